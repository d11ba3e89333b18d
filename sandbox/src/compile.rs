//! Pure: a confinement and a host's facts become a plan.
//!
//! [`layout`] decides once what stands where; [`mounts`] and [`landlock`] are two independent
//! renderings of it.

mod identity;
mod landlock;
mod layout;
mod mounts;
mod syscalls;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use curfew_cell::plan::{CallLimits, Fence, NetPlan, Plan};
use curfew_policy::confinement::{Limits, Net};
use curfew_policy::{Confinement, Mode};

use crate::facts::HostFacts;
use layout::Layout;

/// What the calls' host name is.
const HOSTNAME: &str = "curfew";
/// Below ABI 6 Landlock has no scopes for signals and abstract sockets, and the second layer would
/// have a hole.
pub const LANDLOCK_ABI_MIN: u32 = 6;
/// The ABI whose rights were looked at one by one.
pub const LANDLOCK_ABI_VETTED: u32 = 7;
/// How long children of a main process may still write after it ended.
const DRAIN_MS: u64 = 200;

/// Why there is no plan. Nothing has been tried on the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("granted root {} does not exist", path.display())]
    RootMissing { path: PathBuf },
    #[error("granted root {} is reached through a symlink; its real path is {}", path.display(), real.display())]
    RootNotCanonical { path: PathBuf, real: PathBuf },
    #[error("/ cannot be a granted root")]
    RootIsSlash,
    #[error("granted root {} is a directory this profile closes, or one of curfew's own", path.display())]
    RootClosed { path: PathBuf },
    #[error("curfew's own directory {} would lie in a granted root and does not exist: a call could make it first", path.display())]
    OwnAbsent { path: PathBuf },
    #[error(
        "this kernel offers Landlock ABI {abi}, and {LANDLOCK_ABI_MIN} is the least that will do"
    )]
    Landlock { abi: u32 },
}

/// The plan for `confinement` on a host with `facts`.
pub fn compile(confinement: &Confinement, facts: &HostFacts) -> Result<Plan, CompileError> {
    let fence = match confinement.mode {
        Mode::DangerFullAccess => None,
        Mode::ReadOnly | Mode::WorkspaceWrite => Some(fence(confinement, facts)?),
    };
    Ok(Plan {
        workspace: confinement.workspace.clone(),
        limits: limits(&confinement.limits),
        fence,
    })
}

/// The bounds of a call as the cell knows them.
pub fn limits(limits: &Limits) -> CallLimits {
    CallLimits {
        wall_ms: limits.wall_ms,
        memory_bytes: limits.memory_bytes,
        processes: limits.processes,
        shm_bytes: limits.private_bytes,
        drain_ms: DRAIN_MS,
    }
}

fn fence(confinement: &Confinement, facts: &HostFacts) -> Result<Fence, CompileError> {
    if facts.landlock_abi < LANDLOCK_ABI_MIN {
        return Err(CompileError::Landlock {
            abi: facts.landlock_abi,
        });
    }
    let layout = Layout::of(confinement, facts)?;
    let who = identity::identity(confinement, facts);
    Ok(Fence {
        mounts: mounts::mounts(confinement, facts, &layout, who),
        landlock: landlock::landlock(confinement, facts, &layout),
        syscalls: syscalls::rules(confinement),
        identity: who,
        net: match confinement.net {
            Net::Off => NetPlan::Empty,
            Net::Full => NetPlan::Host,
        },
        hostname: HOSTNAME.to_owned(),
        evidence: confinement.evidence,
    })
}
