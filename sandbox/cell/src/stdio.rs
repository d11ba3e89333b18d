//! The standard streams of a call, without the host's mounts behind them.
//!
//! A descriptor keeps the mount it was opened through. One of the host's is writable, whatever the
//! view shows by that name: fchmod(2) on an inherited `/dev/null` changes the host's node, and a
//! directory is a way to everything below it. So what has a name is opened again through a mount of
//! this namespace. Pipes, sockets and deleted files have none, and nothing can be reached by them.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{
    FileType, Mode, OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, fstat, openat, readlinkat, seek,
};
use rustix::io::Errno;

use crate::tree;

/// What an open description keeps of how it was opened.
const KEPT: OFlags = OFlags::RWMODE
    .union(OFlags::APPEND)
    .union(OFlags::NONBLOCK)
    .union(OFlags::PATH);

/// Opens 0, 1 and 2 of this process again: in its own mount namespace, before that is sealed.
/// `proc` is the host's.
pub fn settle(proc: BorrowedFd<'_>) -> Result<(), nix::Error> {
    if let Some(fd) = reopened(std::io::stdin().as_fd(), proc) {
        nix::unistd::dup2_stdin(fd)?;
    }
    if let Some(fd) = reopened(std::io::stdout().as_fd(), proc) {
        nix::unistd::dup2_stdout(fd)?;
    }
    if let Some(fd) = reopened(std::io::stderr().as_fd(), proc) {
        nix::unistd::dup2_stderr(fd)?;
    }
    Ok(())
}

/// The same inode by its name in this process's view. `None` where it has none there, and for a
/// regular file open for writing: that was handed over to be changed, and it would keep its mount
/// from becoming read-only.
pub fn reopened(fd: BorrowedFd<'_>, proc: BorrowedFd<'_>) -> Option<OwnedFd> {
    let meant = fstat(fd).ok()?;
    let kind = FileType::from_raw_mode(meant.st_mode);
    let flags = fcntl_getfl(fd).ok()? & KEPT;
    let reads = (flags & OFlags::RWMODE) == OFlags::RDONLY;
    if kind == FileType::Socket || kind == FileType::RegularFile && !reads {
        return None;
    }
    let name = readlinkat(proc, of(fd), Vec::new()).ok()?;
    let path = PathBuf::from(OsString::from_vec(name.into_bytes()));
    // A pipe's name is not a path.
    let place = path.is_absolute().then(|| tree::open_path(&path).ok())??;
    let found = fstat(&place).ok()?;
    if (found.st_dev, found.st_ino, found.st_rdev) != (meant.st_dev, meant.st_ino, meant.st_rdev) {
        return None;
    }
    if flags.contains(OFlags::PATH) {
        return Some(place);
    }
    let new = again(place.as_fd(), flags, proc).ok()?;
    if kind == FileType::RegularFile {
        let at = seek(fd, SeekFrom::Current(0)).ok()?;
        seek(&new, SeekFrom::Start(at)).ok()?;
    }
    Some(new)
}

/// Never waits: a terminal may have no carrier, a FIFO no other end.
fn again(place: BorrowedFd<'_>, flags: OFlags, proc: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let open = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(proc, of(place), open, Mode::empty())?;
    fcntl_setfl(&fd, flags)?;
    Ok(fd)
}

fn of(fd: BorrowedFd<'_>) -> String {
    format!("self/fd/{}", fd.as_raw_fd())
}
