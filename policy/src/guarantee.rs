//! Guarantees, and how a host's real state is compared with what was promised.

use serde::{Deserialize, Serialize};

/// A promise a user can name in `--require` and `--allow-missing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// Bytes, names and metadata outside the granted roots stay unchanged.
    WriteFence,
    /// Only what the profile grants can be read.
    ReadFence,
    /// What would run or be obeyed outside later cannot be planted.
    ProtectedNames,
    /// No network beyond what was granted.
    NetFence,
    /// Other processes cannot be seen, signalled, traced or tuned; nothing survives the call.
    ProcessFence,
    /// Host sockets, SysV and POSIX IPC, keyrings, D-Bus and vsock are out of reach.
    IpcFence,
    /// Kernel interfaces an agent has no use for are refused.
    SyscallFence,
    /// Memory, processes, time and output are bounded.
    Limits,
    /// Keys and tokens are never in a call, a log or a report.
    SecretFence,
}

/// What this host really gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Absent,
    Partial,
    Enforced,
}

/// One line of the guarantee table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuaranteeReport {
    pub name: Guarantee,
    pub state: State,
    /// The mechanisms behind it: `mounts`, `namespaces`, `landlock`, `seccomp`, `caps`, `limits`.
    pub layers: Vec<String>,
    /// What is missing, or which window stays open. Empty when enforced.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<String>,
}
