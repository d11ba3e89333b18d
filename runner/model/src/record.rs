//! Recording: the raw bytes of each response, so that a run with a real model becomes a fixture.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use curfew_engine::event::{FailureKind, ModelFailure};
use reqwest::header::HeaderMap;
use sha2::{Digest, Sha256};

use crate::answer::BodyEnd;
use crate::wire::record::{Record, RecordedEnd, RecordedRequest};

/// What a replay needs of the headers. Others may hold cookies or account names.
const HEADERS_KEPT: &[&str] = &[
    "content-type",
    "date",
    "location",
    "retry-after",
    "retry-after-ms",
];

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot create the recording {path}: {source}")]
    Create {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write to the recording {path}: {source}")]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot encode a record for {path}: {source}")]
    Encode {
        path: PathBuf,
        source: serde_json::Error,
    },
}

/// A file that grows by one line for each response.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    /// Makes a new file; one that exists is not touched.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|source| RecordError::Create {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
        })
    }

    pub(crate) fn write(&self, tape: Tape) -> Result<(), RecordError> {
        let encode = |source| RecordError::Encode {
            path: self.path.clone(),
            source,
        };
        let line = tape.into_record().to_line().map_err(encode)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .map_err(|source| RecordError::Write {
                path: self.path.clone(),
                source,
            })
    }
}

/// What one exchange leaves on the recording.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    record: Record,
    body: Vec<u8>,
}

impl Tape {
    pub(crate) fn of_request(body: &[u8]) -> Self {
        let sha256 = Sha256::digest(body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let request = Some(RecordedRequest {
            sha256,
            bytes: body.len() as u64,
        });
        Self {
            record: Record {
                request,
                ..Record::default()
            },
            body: Vec::new(),
        }
    }

    pub(crate) fn response(&mut self, status: u16, headers: &HeaderMap) {
        self.record.status = Some(status);
        for (name, value) in headers {
            let name = name.as_str();
            if (HEADERS_KEPT.contains(&name) || name.starts_with("x-ratelimit-"))
                && let Ok(text) = value.to_str()
            {
                self.record.headers.insert(name.to_owned(), text.to_owned());
            }
        }
    }

    pub(crate) fn no_response(&mut self, failure: &ModelFailure) {
        self.record.failure = Some(failure.clone());
    }

    pub(crate) fn push(&mut self, bytes: &Bytes) {
        self.body.extend_from_slice(bytes);
        self.record.chunks.push(bytes.len());
    }

    pub(crate) fn end(&mut self, end: &BodyEnd) {
        self.record.end = match end {
            BodyEnd::Clean => RecordedEnd::Clean,
            BodyEnd::Broken(fault) if fault.kind == FailureKind::Transport => RecordedEnd::Reset,
            BodyEnd::Broken(_) => RecordedEnd::Silent,
        };
    }

    fn into_record(mut self) -> Record {
        self.record.set_body(self.body);
        self.record
    }
}
