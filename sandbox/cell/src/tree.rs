//! Mounts by descriptor: opened without following a link, cloned, made, placed.
//!
//! Set-up works on trees that somebody else may change meanwhile. Paths are therefore resolved
//! once, without symbolic links, and everything after that names the descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// What every mount of a private or granted area carries.
pub const HARMLESS: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Opens a path as a place, neither reading nor writing it. A symbolic link anywhere is ELOOP.
pub fn open_path(path: &Path) -> io::Result<OwnedFd> {
    open_below(CWD, path)
}

/// The same where the last component may be a symbolic link, which is then what is opened.
pub fn open_link(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat2(CWD, path, flags, Mode::empty(), NO_LINKS)?)
}

/// The same below a directory, which an absolute path ignores.
pub fn open_below(dir: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(dir, path, flags, Mode::empty(), NO_LINKS)?)
}

/// How much of a tree to clone.
#[derive(Clone, Copy, Debug)]
pub enum Clone {
    /// The mount alone. EINVAL where something is mounted below that must not be uncovered.
    One,
    /// With what is mounted below it.
    Below,
}

/// A detached copy of the mount tree at `place`.
pub fn clone_tree(place: BorrowedFd<'_>, extent: Clone) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if matches!(extent, Clone::Below) {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(place, c"", flags)?)
}

/// Puts a detached mount on `place`.
pub fn attach(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, c"", place, c"", flags)?)
}

/// A fresh file system of this type, detached.
pub fn make(
    kind: &str,
    options: &[(&str, String)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, value.as_str())?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// A fresh tmpfs of bounded size and number of inodes, detached.
pub fn tmpfs(bytes: u64, inodes: u64, mode: u32) -> io::Result<OwnedFd> {
    let options = [
        ("size", bytes.to_string()),
        ("nr_inodes", inodes.to_string()),
        ("mode", format!("{mode:o}")),
    ];
    make("tmpfs", &options, HARMLESS)
}
