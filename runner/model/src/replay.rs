//! `replay:FILE`: recorded responses, fed through the very path that live ones take.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use curfew_engine::event::{FailureKind, ModelFailure};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::exchange::{Body, Reply};
use crate::failure::failure;
use crate::wire::record::{Record, RecordedEnd};

/// Longest file that is read. One session of a real model is some megabytes.
const REPLAY_BYTES_MAX: u64 = 512 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot read the recording {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the recording {path} is longer than {REPLAY_BYTES_MAX} bytes")]
    TooLong { path: PathBuf },
    #[error("the recording {path}, line {line}: {source}")]
    Parse {
        path: PathBuf,
        line: usize,
        source: serde_json::Error,
    },
    #[error("the recording {path}, line {line}: {what}")]
    Record {
        path: PathBuf,
        line: usize,
        what: &'static str,
    },
}

/// The records of a file and how many of them have been played.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    records: Vec<Record>,
    played: AtomicUsize,
}

impl Replay {
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        let read = |source| ReplayError::Read {
            path: path.to_owned(),
            source,
        };
        if std::fs::metadata(path).map_err(read)?.len() > REPLAY_BYTES_MAX {
            return Err(ReplayError::TooLong {
                path: path.to_owned(),
            });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        Self::parse(path, &text)
    }

    /// Reads a recording from memory; `path` is its name in messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ReplayError> {
        let mut records = Vec::new();
        for (at, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let line_number = at + 1;
            let parse = |source| ReplayError::Parse {
                path: path.to_owned(),
                line: line_number,
                source,
            };
            let record = Record::parse(line).map_err(parse)?;
            let bad = |what| ReplayError::Record {
                path: path.to_owned(),
                line: line_number,
                what,
            };
            if record.status.is_none() == record.failure.is_none() {
                return Err(bad("exactly one of status and failure must be there"));
            }
            if record.body_bytes().is_none() {
                return Err(bad("bodyHex is not hexadecimal"));
            }
            records.push(record);
        }
        Ok(Self {
            path: path.to_owned(),
            records,
            played: AtomicUsize::new(0),
        })
    }

    /// How many requests this recording can answer.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The answer to the next request.
    pub(crate) fn next_reply(&self) -> Result<Reply, ModelFailure> {
        let at = self.played.fetch_add(1, Ordering::Relaxed);
        let Some(record) = self.records.get(at) else {
            let (path, had) = (self.path.display(), self.records.len());
            let text = format!(
                "the recording {path} has {had} responses and request {} came",
                at + 1
            );
            return Err(failure(FailureKind::BadRequest, text));
        };
        match (record.status, &record.failure) {
            (Some(status), _) => Ok(Reply {
                status,
                headers: headers_of(record),
                body: body_of(record),
            }),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Err(failure(
                FailureKind::BadRequest,
                "a record without a response",
            )),
        }
    }
}

fn headers_of(record: &Record) -> HeaderMap {
    let pairs = record.headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name.as_str()).ok()?;
        Some((name, HeaderValue::try_from(value.as_str()).ok()?))
    });
    pairs.collect()
}

fn body_of(record: &Record) -> Body {
    let mut rest = Bytes::from(record.body_bytes().unwrap_or_default());
    let mut pieces = Vec::new();
    for length in &record.chunks {
        let length = (*length).min(rest.len());
        if length > 0 {
            pieces.push(rest.split_to(length));
        }
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    Body::Recorded(RecordedBody::new(pieces, record.end))
}

/// A body that is already here.
pub(crate) struct RecordedBody {
    pieces: std::vec::IntoIter<Bytes>,
    end: RecordedEnd,
}

impl RecordedBody {
    pub(crate) fn new(pieces: Vec<Bytes>, end: RecordedEnd) -> Self {
        Self {
            pieces: pieces.into_iter(),
            end,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelFailure> {
        if let Some(piece) = self.pieces.next() {
            return Ok(Some(piece));
        }
        match self.end {
            RecordedEnd::Clean => Ok(None),
            RecordedEnd::Reset => Err(failure(
                FailureKind::Transport,
                "the connection broke where the recording says so",
            )),
            RecordedEnd::Silent => std::future::pending().await,
        }
    }
}
