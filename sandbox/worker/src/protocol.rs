//! What the supervisor asks of a worker and what it answers.

use serde::{Deserialize, Serialize};

/// A line range the model has seen, 1-based and inclusive.
pub type Seen = (u64, u64);

/// What the model is known to have seen of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// As the worker resolved it (`FileFact::path`).
    pub path: String,
    pub sha256: String,
    pub seen: Vec<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Request {
    /// `offset` is a 1-based line. `lines_max` lines at most; `line_chars_max` characters of each;
    /// `bytes_max` in all.
    Read {
        path: String,
        offset: u64,
        lines_max: u64,
        line_chars_max: u64,
        bytes_max: u64,
    },
    /// The content follows as raw frames of `bytes` in all. A file that exists is replaced only
    /// when an observation of its present content covers all of it.
    Write {
        path: String,
        bytes: u64,
        observations: Vec<Observation>,
    },
    /// `old` and `new` follow as raw frames of `old_bytes` and `new_bytes`. The match must be
    /// unique and lie in lines the model saw at the file's present content.
    Edit {
        path: String,
        old_bytes: u64,
        new_bytes: u64,
        observations: Vec<Observation>,
    },
    Glob {
        pattern: String,
        path: String,
        entries_max: u64,
    },
    Grep {
        pattern: String,
        path: String,
        matches_max: u64,
        line_chars_max: u64,
    },
    /// A bounded list of files with size, mtime and inode, for `workspace/changed`.
    Manifest {
        roots: Vec<String>,
        entries_max: u64,
    },
    /// Protected names that appeared: what could run or be obeyed outside is renamed, so that nothing
    /// obeys it and nothing is lost. `known` are the names that stood there at the start.
    Sweep {
        roots: Vec<String>,
        names: Vec<String>,
        known: Vec<String>,
    },
    /// Attempts that must fail, from inside: the canary of the guarantee report. Each of
    /// [`attempts::ALL`] once, or with a path once for each. `outside` are directories outside every
    /// granted root; `home` is a path that exists in the closed home and is not re-exposed.
    Canary {
        outside: Vec<String>,
        home: Option<String>,
    },
}

/// A file the answer speaks of, and how much of it the model will have seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileFact {
    pub path: String,
    /// Of the whole file's bytes after the operation.
    pub sha256: String,
    pub bytes: u64,
    pub lines: u64,
    pub seen: Vec<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Response {
    /// Text follows as raw frames of `bytes`. `more` says lines remain after the window.
    Read {
        file: FileFact,
        first: u64,
        last: u64,
        more: bool,
        cut_lines: u64,
        lossy: bool,
        bytes: u64,
    },
    Written {
        file: FileFact,
        created: bool,
        before_sha256: Option<String>,
    },
    /// `at` is the first changed line.
    Edited {
        file: FileFact,
        before_sha256: String,
        at: u64,
    },
    /// Paths, one a line, follow as raw frames of `bytes`.
    Glob {
        count: u64,
        cut: bool,
        bytes: u64,
    },
    /// `path:line:text`, one a line, follow as raw frames of `bytes`.
    Grep {
        count: u64,
        cut: bool,
        files: u64,
        bytes: u64,
    },
    /// JSON lines of `ManifestEntry` follow as raw frames of `bytes`.
    Manifest {
        entries: u64,
        cut: bool,
        bytes: u64,
    },
    Swept {
        swept: Swept,
    },
    Canary {
        findings: Vec<Finding>,
    },
    Error {
        error: ToolError,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestEntry {
    pub path: String,
    pub bytes: u64,
    pub mtime_ns: i128,
    pub ino: u64,
    pub mode: u32,
}

/// Names of the canary's attempts: what is tried, with safe calls only and no lasting effect.
pub mod attempts {
    /// Create a file in each `outside` (removed again if that works).
    pub const CREATE: &str = "create-outside";
    /// Set the mode of each `outside` to the mode it has.
    pub const CHMOD: &str = "chmod-outside";
    /// Open `home` for reading.
    pub const READ_HOME: &str = "read-home";
    /// Connect a TCP socket to 192.0.2.1:9 (TEST-NET-1), without waiting.
    pub const CONNECT: &str = "connect-outside";
    /// socket(AF_UNIX, SOCK_STREAM).
    pub const UNIX: &str = "socket-unix";
    /// socket(AF_VSOCK, SOCK_STREAM).
    pub const VSOCK: &str = "socket-vsock";
    /// Open /proc/sys/kernel/core_pattern for writing.
    pub const CORE_PATTERN: &str = "write-core-pattern";
    /// Look for a process beside PID 1 and this one (`errno` ESRCH when there is none).
    pub const PROCESSES: &str = "see-processes";
    /// Open /proc/1/environ for reading.
    pub const INIT: &str = "read-init";
    /// mount a tmpfs on the working directory.
    pub const MOUNT: &str = "mount";
    /// sethostname to the name it has.
    pub const HOSTNAME: &str = "sethostname";
    /// Hold any capability, effective, permitted, inheritable or bounding (EPERM when none).
    pub const CAPABILITY: &str = "capability";
    /// Be without no_new_privs (EPERM when it is set).
    pub const NEW_PRIVILEGES: &str = "new-privileges";
    /// Find a variable whose name ends in KEY, TOKEN or SECRET in the environment (ENOENT when
    /// there is none).
    pub const SECRET: &str = "secret-in-environment";

    pub const ALL: [&str; 14] = [
        CREATE,
        CHMOD,
        READ_HOME,
        CONNECT,
        UNIX,
        VSOCK,
        CORE_PATTERN,
        PROCESSES,
        INIT,
        MOUNT,
        HOSTNAME,
        CAPABILITY,
        NEW_PRIVILEGES,
        SECRET,
    ];
}

/// What a sweep found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Swept {
    /// Renamed.
    pub moved: Vec<Moved>,
    /// Looked at and left: a new repository as `git init` makes it, a linked worktree.
    pub kept: Vec<String>,
    /// Could not be renamed, and is still there.
    pub failed: Vec<String>,
    /// The search or these lists hit their bound.
    pub cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    pub from: String,
    pub to: String,
}

/// One canary attempt and what the kernel said (`errno` 0: it succeeded).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// One of [`attempts`].
    pub attempt: String,
    pub errno: i32,
}

/// Closed list of what can go wrong in a file tool. Everything reaches the model as a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    NotFound,
    NotAFile,
    NotADirectory,
    /// The kernel refused it (EACCES, EPERM, EROFS, EXDEV …): a denial.
    Denied,
    /// write or edit of a file the model has not read.
    NotRead,
    /// It was read, but has other content now.
    Stale,
    /// The part that would change was not shown to the model.
    NotSeen,
    NoMatch,
    ManyMatches,
    NotText,
    TooLarge,
    BadPattern,
    BadRequest,
    Io,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolError {
    pub code: ErrorCode,
    pub op: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub errno: Option<i32>,
    /// One sentence for the model: what, and what to do instead.
    pub text: String,
}
