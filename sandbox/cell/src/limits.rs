//! Bounds of one process of a call, by setrlimit(2).
//!
//! Memory is bounded per process by RLIMIT_DATA, which counts private writable mappings since
//! Linux 4.7. RLIMIT_AS would also count what Go, V8, Java and sanitizers reserve without using,
//! and break them. The sum over a call's processes is bounded by nothing here, and said so.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::fault::At;
use crate::plan::CallLimits;
use crate::protocol::SetupFault;

/// Open files of one process: what it starts with, and what it may raise itself to.
const FILES_SOFT: u64 = 4096;
const FILES_HARD: u64 = 65_536;

/// Where the kernel counts the processes of the call's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    InSession,
    OnHost,
}

/// Sets what a command and everything below it inherits.
///
/// RLIMIT_CORE is 1, not 0: for a core_pattern that is a pipe the kernel ignores a limit of 0 and
/// would start a program of the host's for each crash, while 1 stops both kinds of core
/// (fs/coredump.c). RLIMIT_NPROC counts within the session's user namespace, but not at all for
/// kuid 0; the PID namespace's pid_max holds there. Without a user namespace it would count all
/// that the user runs on the host, so it is not set.
pub fn apply(limits: &CallLimits, counted: Counted) -> Result<(), SetupFault> {
    lower(Resource::RLIMIT_CORE, 1, 1)?;
    lower(Resource::RLIMIT_NOFILE, FILES_SOFT, FILES_HARD)?;
    if counted == Counted::InSession {
        lower(Resource::RLIMIT_NPROC, limits.processes, limits.processes)?;
    }
    lower(
        Resource::RLIMIT_DATA,
        limits.memory_bytes,
        limits.memory_bytes,
    )?;
    lower(Resource::RLIMIT_MEMLOCK, 8 << 20, 8 << 20)?;
    lower(Resource::RLIMIT_RTPRIO, 0, 0)
}

/// Never raises a hard limit: a stricter one that was inherited stays.
fn lower(resource: Resource, soft: u64, hard: u64) -> Result<(), SetupFault> {
    let (_, hard_now) = getrlimit(resource).at("limits")?;
    let hard = hard.min(hard_now);
    setrlimit(resource, soft.min(hard), hard).at("limits")
}
