//! What can be wrong with a line, and where.

use thiserror::Error;

/// A line that cannot be taken, located.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}{}: {cause}", .seq.map_or_else(String::new, |seq| format!(" (seq {seq})")))]
pub struct DecodeError {
    /// 1-based.
    pub line: u64,
    /// The seq that should have stood there; `None` for the header.
    pub seq: Option<u64>,
    pub cause: Cause,
}

impl DecodeError {
    /// Whether this can be the trace of an unfinished write, if nothing follows it: the only fault
    /// that may be cut away without a person's word.
    pub fn is_torn_tail(&self) -> bool {
        matches!(
            self.cause,
            Cause::Torn { .. } | Cause::NulRun { to_end: true, .. }
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    #[error("torn: the record ends after {bytes} bytes without a newline")]
    Torn { bytes: usize },
    #[error("{bytes} NUL bytes at byte {offset} of the line")]
    NulRun {
        offset: usize,
        bytes: usize,
        to_end: bool,
    },
    #[error("not UTF-8 at byte {offset} of the line")]
    NotUtf8 { offset: usize },
    #[error("longer than a record may be: {bytes} bytes")]
    TooLong { bytes: usize },
    #[error("no hash at its end")]
    NoHash,
    #[error("bad hash: {found} stands there, its bytes and the line before give {computed}")]
    BadHash { found: String, computed: String },
    #[error("bad seq: found {found}, expected {expected}")]
    BadSeq { found: u64, expected: u64 },
    #[error("bad JSON: {text}")]
    BadJson { text: String },
    #[error("data of `{kind}` does not fit: {text}")]
    BadData { kind: String, text: String },
    #[error("unknown required event type `{kind}`; a newer curfew may know it")]
    UnknownRequired { kind: String },
    #[error("log version {version} is newer than this curfew reads; upgrade curfew")]
    NewerVersion { version: u64 },
    #[error("log version {version} was never released")]
    OldVersion { version: u32 },
    #[error("the first line must be the session header, not `{kind}`")]
    NotAHeader { kind: String },
}

impl Cause {
    pub(super) fn json(source: serde_json::Error) -> Self {
        Self::BadJson {
            text: source.to_string(),
        }
    }
}

/// A record that must not be written.
#[derive(Debug, Error)]
pub enum EncodeError {
    #[error("encoding a record as JSON: {source}")]
    Json { source: serde_json::Error },
    #[error("a record of {bytes} bytes is longer than the log takes")]
    TooLong { bytes: usize },
    #[error("event type `{kind}` is unknown and not ignorable: readers would refuse the log")]
    UnknownRequired { kind: String },
    #[error("event type `{kind}` is known, but its data was not typed")]
    Untyped { kind: String },
    #[error("this curfew writes log version 1, not {version}")]
    Version { version: u32 },
    #[error("the data of a foreign event contains a line break")]
    LineBreak,
}
