//! The Landlock domain of a call: its places are opened once per session, each command builds the
//! ruleset from them and enters it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

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
/// Every call mounts its own here. A walk upwards skips the directory below a mount point, so only
/// a rule on the new inode, or one on `/`, reaches it. (/dev/shm falls under the rule of /dev.)
const OF_THE_CALL: &str = "/proc";

/// Rules with their places open, bound to the inodes of the finished view.
pub struct Domain {
    abi: ABI,
    rules: Vec<(OwnedFd, BitFlags<AccessFs>)>,
    of_the_call: Vec<(PathBuf, FileGrant)>,
}

impl Domain {
    /// The places it holds open.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.rules.iter().map(|(place, _)| place.as_raw_fd())
    }
}

/// Opens the places of the plan's rules.
pub fn prepare(plan: &LandlockPlan) -> Result<Domain, SetupFault> {
    if plan.abi < ABI_MIN {
        let text = format!(
            "Landlock ABI {} has no scopes, {ABI_MIN} is needed",
            plan.abi
        );
        return Err(broken("landlock", None, libc::EOPNOTSUPP, text));
    }
    let abi = ABI::from(i32::try_from(plan.abi).unwrap_or(i32::MAX));
    // A kernel that has less is found out now and not by the first call.
    ruleset(abi)?;
    let mut domain = Domain {
        abi,
        rules: Vec::new(),
        of_the_call: Vec::new(),
    };
    for (path, grant) in &plan.rules {
        if path == Path::new(OF_THE_CALL) {
            domain.of_the_call.push((path.clone(), *grant));
        } else if let Some(rule) = open_rule(path, *grant, abi)? {
            domain.rules.push(rule);
        }
    }
    Ok(domain)
}

/// A place that may only be read and is gone, or out of this uid's reach, grants nothing; that is
/// less than asked for, never more.
fn open_rule(
    path: &Path,
    grant: FileGrant,
    abi: ABI,
) -> Result<Option<(OwnedFd, BitFlags<AccessFs>)>, SetupFault> {
    let place = match tree::open_path(path) {
        Err(e)
            if matches!(grant, FileGrant::Read | FileGrant::List)
                && matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EACCES)) =>
        {
            return Ok(None);
        }
        opened => File::from(opened.at_path("landlock-rule", path)?),
    };
    let mut access = rights(grant, abi);
    if !place.metadata().at_path("landlock-rule", path)?.is_dir() {
        access &= AccessFs::from_file(abi);
    }
    Ok((!access.is_empty()).then(|| (place.into(), access)))
}

/// Enters the domain for good. Anything but full enforcement is a failure.
///
/// All rights of the demanded ABI are handled and only the rules' given back. TCP is not handled:
/// loopback must work, and the network namespace and the syscall filter are its two layers.
pub fn enter(domain: &Domain) -> Result<(), SetupFault> {
    let mut ruleset = ruleset(domain.abi)?;
    let mut late = Vec::new();
    for (path, grant) in &domain.of_the_call {
        late.extend(open_rule(path, *grant, domain.abi)?);
    }
    for (place, access) in domain.rules.iter().chain(&late) {
        ruleset = ruleset
            .add_rule(PathBeneath::new(place.as_fd(), *access))
            .map_err(|e| broken("landlock-rule", None, libc::EINVAL, e.to_string()))?;
    }
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

/// Handles every right and scope of the ABI; one that the kernel does not know is an error.
fn ruleset(abi: ABI) -> Result<RulesetCreated, SetupFault> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|r| r.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(|e| unsupported(&e))
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
