//! Who the calls are: credentials, the user namespace and its maps.

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use rustix::fs::{Mode, OFlags, openat};

use crate::fault::At;
use crate::plan::Identity;
use crate::protocol::SetupFault;

/// Gives up root for the workspace's owner, if the plan says so, and supplementary groups in any
/// case where that is possible: they would open files by group that the owner's uid does not.
pub fn settle(identity: &Identity) -> Result<(), SetupFault> {
    if !geteuid().is_root() {
        return Ok(());
    }
    setgroups(&[]).at("drop-groups")?;
    let gid = Gid::from_raw(identity.host_gid);
    setresgid(gid, gid, gid).at("become-owner")?;
    let uid = Uid::from_raw(identity.host_uid);
    setresuid(uid, uid, uid).at("become-owner")?;
    // A change of uid makes /proc/self/uid_map belong to root (proc(5), PR_SET_DUMPABLE).
    nix::sys::prctl::set_dumpable(true).at("become-owner")
}

/// Makes the session's user namespace and maps exactly one uid and one gid.
pub fn enter_user_namespace(identity: &Identity) -> Result<(), SetupFault> {
    unshare(CloneFlags::CLONE_NEWUSER).at("user-namespace")?;
    // user_namespaces(7): an unprivileged gid_map needs setgroups denied first.
    write("setgroups", "/proc/self/setgroups", "deny")?;
    let uid_map = format!("{} {} 1", identity.inner_uid, identity.host_uid);
    write("uid-map", "/proc/self/uid_map", &uid_map)?;
    let gid_map = format!("{} {} 1", identity.inner_gid, identity.host_gid);
    write("gid-map", "/proc/self/gid_map", &gid_map)?;
    // Only now: a non-dumpable process cannot write its own maps. From here on nobody of the same
    // uid can trace the broker, an init or a worker, or look through their /proc entries.
    nix::sys::prctl::set_dumpable(false).at("non-dumpable")
}

/// Makes the session's other namespaces; the user namespace owns them. The one for the network is
/// made meanwhile, see [`crate::netns`].
pub fn enter_namespaces() -> Result<(), SetupFault> {
    let flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    unshare(flags).at("namespaces")
}

/// No user namespace below this one, whatever a call finds to ask for it: a second lock beside the
/// syscall filter. All other kinds need a capability that only a new user namespace could bring.
/// The limit counts per user namespace (namespaces(7)). `proc` is any /proc.
pub fn forbid_nesting(proc: BorrowedFd<'_>) -> Result<(), SetupFault> {
    let name = "sys/user/max_user_namespaces";
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let written =
        openat(proc, name, flags, Mode::empty()).and_then(|file| rustix::io::write(file, b"0"));
    written.at_path("forbid-nesting", &Path::new("/proc").join(name))?;
    Ok(())
}

fn write(step: &'static str, path: &str, text: &str) -> Result<(), SetupFault> {
    let path = Path::new(path);
    fs::write(path, text).at_path(step, path)
}
