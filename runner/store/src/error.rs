//! What can go wrong with a session on disk, in one line each: what, where, and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use curfew_engine::codec;
use curfew_engine::fold::FoldError;

/// An operation on the store that was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot {op} {}: {source}", path.display())]
    Io {
        op: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`{id}` is not a session id: ids are letters, digits, `-` and `_`, at most {max} of them", max = crate::ID_BYTES_MAX)]
    BadId { id: String },
    #[error("no session `{id}` in {}; `curfew session list` shows what is there", root.display())]
    NotFound { id: String, root: PathBuf },
    #[error("`{prefix}` fits {} sessions ({}); type more of the id", ids.len(), shorten(ids))]
    Ambiguous { prefix: String, ids: Vec<String> },
    #[error("session `{id}` exists already")]
    Exists { id: String },
    #[error(
        "session `{id}` is in use by {}; wait until it ends, or end it",
        holder_text(holder.as_ref())
    )]
    Locked { id: String, holder: Option<Holder> },
    #[error("{} is {found}, not {wanted}; curfew does not follow or replace it: move it away", path.display())]
    NotOurs {
        path: PathBuf,
        found: &'static str,
        wanted: &'static str,
    },
    #[error(transparent)]
    Damaged(Box<Damage>),
    /// Nothing is wrong with the log: another curfew wrote it.
    #[error(
        "cannot read {}, line {}{}: {}; the log is as it was written and stays so",
        .0.path.display(), .0.line, seq_text(.0.seq), .0.cause
    )]
    Foreign(Box<Damage>),
    #[error("cannot write the log {}: {fault}", path.display())]
    Write { path: PathBuf, fault: WriteFault },
    #[error("the writer of {} did not end within {waited_ms} ms; the lock stays until it does", path.display())]
    CloseTimeout { path: PathBuf, waited_ms: u64 },
    #[error("session `{id}` has used the {max} bytes it may keep as blobs")]
    BlobsFull { id: String, max: u64 },
    #[error("no blob `{sha256}` in session `{id}`")]
    NoBlob { id: String, sha256: String },
    #[error("blob {} does not hash to its name (found {found}): it was changed after it was stored", path.display())]
    BlobDamaged { path: PathBuf, found: String },
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> StoreError {
        use codec::Cause as Found;
        match damage.cause {
            Cause::Codec(
                Found::NewerVersion { .. }
                | Found::OldVersion { .. }
                | Found::UnknownRequired { .. },
            ) => StoreError::Foreign(Box::new(damage)),
            _ => StoreError::Damaged(Box::new(damage)),
        }
    }
}

impl StoreError {
    pub(crate) fn io(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io {
            op,
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Damage of a log, located. The log is not changed; what stands before the place is intact.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is damaged at line {line}{}, byte {offset}: {cause}; everything before it is intact",
    path.display(),
    seq_text(*seq)
)]
pub struct Damage {
    pub path: PathBuf,
    /// 1-based; the header is line 1.
    pub line: u64,
    /// The seq that belongs here. `None` for the header.
    pub seq: Option<u64>,
    /// Where the line starts.
    pub offset: u64,
    pub cause: Cause,
}

/// Why a line is not a record of this log.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error(transparent)]
    Codec(codec::Cause),
    #[error("the line is longer than {max} bytes")]
    LineTooLong { max: usize },
    #[error("a header stands where an event should, or an event where the header should")]
    NoHeader,
    #[error("the file is empty")]
    Empty,
    #[error("the header names session `{found}`")]
    OtherSession { found: String },
    #[error("the record is well-formed and out of place: {0}")]
    Fold(FoldError),
}

/// Why the writer accepts nothing more.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteFault {
    /// The file system is full. What was written is whole; the reserve is kept for closing events.
    #[error("no space is left on the device; free some and resume the session")]
    NoSpace,
    #[error("write failed ({0}); the log was cut back to its last whole record")]
    Write(String),
    #[error(
        "write failed ({write}) and cutting the log back failed too ({cut}); the next resume will do it"
    )]
    WriteAndCut { write: String, cut: String },
    /// After a failed fsync the kernel may have dropped the dirty pages: what is on disk is unknown.
    #[error("fsync failed ({0}); what reached the disk since the last barrier is unknown")]
    Sync(String),
    #[error("the file is {found} bytes long and should be {expected}: something else writes to it")]
    TailMoved { expected: u64, found: u64 },
    #[error("the file was removed: what it held and what follows is lost")]
    Removed,
    #[error("event {found} was submitted where {expected} comes next")]
    SeqGap { expected: u64, found: u64 },
    #[error("event {seq} was not encoded: {error}")]
    Encode { seq: u64, error: String },
    #[error("the closing events do not fit the {room} bytes that are reserved for them")]
    ClosingTooLong { room: u64 },
    #[error("the run was not closed in the log ({0}); the next resume will do it")]
    NotClosed(String),
    #[error("the space reserved for closing events was not given back ({0}); the log is whole")]
    Reserve(String),
    #[error("the writer is closed")]
    Closed,
}

/// Who holds a session's lock, as it wrote itself into the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub host: String,
    /// UTC.
    pub since: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "process {} on {} since {}",
            self.pid, self.host, self.since
        )
    }
}

fn holder_text(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

fn seq_text(seq: Option<u64>) -> String {
    seq.map_or_else(String::new, |seq| format!(" (seq {seq})"))
}

fn shorten(ids: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    let mut text = ids
        .iter()
        .take(SHOWN_MAX)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if ids.len() > SHOWN_MAX {
        text.push_str(", …");
    }
    text
}
