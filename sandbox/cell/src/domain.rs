//! The Landlock domain of a call: built once per session, entered by each command.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use crate::fault::{At, broken};
use crate::plan::{FileGrant, LandlockPlan};
use crate::protocol::SetupFault;
use crate::tree;

/// The first ABI with scopes for signals and abstract sockets; less is not a fence.
const ABI_MIN: u32 = 6;

/// All rights of the demanded ABI are handled and only the rules' given back. TCP is not handled:
/// loopback must work, and the network namespace and the syscall filter are its two layers.
///
/// Rules bind to the inodes that stand at these paths now, in the finished view. A walk upwards
/// skips the directory below a mount point, so what a call mounts on /proc and /dev/shm falls
/// under the rules of `/` and `/dev`.
pub fn build(plan: &LandlockPlan) -> Result<RulesetCreated, SetupFault> {
    if plan.abi < ABI_MIN {
        let text = format!(
            "Landlock ABI {} has no scopes, {ABI_MIN} is needed",
            plan.abi
        );
        return Err(broken("landlock", None, libc::EOPNOTSUPP, text));
    }
    let abi = ABI::from(i32::try_from(plan.abi).unwrap_or(i32::MAX));
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|r| r.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(|e| unsupported(&e))?;
    for (path, grant) in &plan.rules {
        let place = tree::open_path(path).at_path("landlock-rule", path)?;
        let file = File::from(place);
        let directory = file.metadata().at_path("landlock-rule", path)?.is_dir();
        let mut access = rights(*grant, abi);
        if !directory {
            access &= AccessFs::from_file(abi);
        }
        ruleset = ruleset
            .add_rule(PathBeneath::new(file.as_fd(), access))
            .map_err(|e| broken("landlock-rule", Some(path), libc::EINVAL, e.to_string()))?;
    }
    Ok(ruleset)
}

/// Enters the domain for good. Anything but full enforcement is a failure.
pub fn enter(ruleset: RulesetCreated) -> Result<(), SetupFault> {
    let status = ruleset
        .restrict_self()
        .map_err(|e| broken("landlock", None, errno(), e.to_string()))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        weaker => Err(broken(
            "landlock",
            None,
            libc::EOPNOTSUPP,
            format!("the kernel enforced the domain only in part: {weaker:?}"),
        )),
    }
}

fn rights(grant: FileGrant, abi: ABI) -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    match grant {
        FileGrant::List => AccessFs::ReadDir.into(),
        FileGrant::Read => AccessFs::from_read(abi),
        FileGrant::Write => AccessFs::from_all(abi) & !(devices | AccessFs::IoctlDev),
        FileGrant::Device => AccessFs::from_all(abi) & !devices,
    }
}

fn unsupported(error: &landlock::RulesetError) -> SetupFault {
    let errno = match errno() {
        0 => libc::EOPNOTSUPP,
        errno => errno,
    };
    broken("landlock", None, errno, error.to_string())
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
