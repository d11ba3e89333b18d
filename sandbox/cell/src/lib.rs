//! The child half of the sandbox.
//!
//! A *broker* (this binary, re-executed before keys are read and before threads exist) owns a
//! confinement's namespaces and makes calls; each call is a fresh PID namespace with an `init` as
//! PID 1 and the command, or the file worker, below it. The only crate with `unsafe`, all of it in
//! `sys`. It depends on no other crate of this workspace and decides nothing: it carries out a
//! [`plan::Plan`] that was computed and checked elsewhere, step by step, and reports the step that
//! failed. It never parses anything the confined command wrote, except length-prefixed frames.
//!
//! Reading order: [`plan`] (what is asked for), `session` (set up once), `mounts`, then for each
//! call `broker`, `init`, `call`.

use std::os::fd::OwnedFd;
use std::path::Path;

pub mod frame;
pub mod plan;
pub mod protocol;

#[cfg(target_os = "linux")]
pub mod broker;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
pub mod broker;

#[cfg(target_os = "linux")]
mod call;
#[cfg(target_os = "linux")]
mod caps;
#[cfg(target_os = "linux")]
mod dev;
#[cfg(target_os = "linux")]
mod domain;
#[cfg(target_os = "linux")]
mod evidence;
#[cfg(target_os = "linux")]
mod fault;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod listener;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod netns;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod protect;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod stdio;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod sys;
#[cfg(target_os = "linux")]
pub mod syscalls;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod wire;

/// Where protected names stand, for whoever sweeps those that appeared.
#[cfg(target_os = "linux")]
pub mod names {
    pub use crate::protect::{Bounds, Scanned, find};
}

/// The Landlock ABI of the running kernel; 0 without Landlock.
#[must_use]
pub fn landlock_abi() -> u32 {
    #[cfg(target_os = "linux")]
    return sys::landlock_abi().unwrap_or(0);
    #[cfg(not(target_os = "linux"))]
    0
}

/// The file worker: serves one request on the frame socket in a confined child that is not
/// executed, and returns its exit code. The path is the working directory, already entered.
pub type WorkerFn = fn(OwnedFd, &Path) -> i32;
