//! Looking at an observed call: what it is about to touch, and whether the mount view will refuse.
//!
//! Everything here is a forecast for the report. The path is read from the memory of a hostile
//! process, resolved in the broker's view, which differs from the call's by /proc and /dev/shm only,
//! and by calls that neither open nor change anything.

use std::ffi::OsStr;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags, accessat,
    openat, readlinkat, statvfs, statx,
};
use rustix::io::Errno;

use crate::fault::At;
use crate::plan::NetPlan;
use crate::protocol::{Denial, SetupFault, Trust};
use crate::sys::seccomp::Notification;

/// Longest path the kernel takes (PATH_MAX).
const PATH_BYTES_MAX: usize = 4096;
const PAGE_BYTES: usize = 4096;

/// Which arguments of a call say what it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A file is opened for writing, or changed: it must be on a writable mount.
    Change { dir: Option<u8>, path: u8 },
    /// The same by descriptor.
    ChangeFd { fd: u8 },
    /// A name is made or removed: its directory must be on a writable mount, and a mount point can
    /// be neither removed nor renamed.
    Name { dir: Option<u8>, path: u8 },
    /// Two names at once.
    Names {
        from: (Option<u8>, u8),
        to: (Option<u8>, u8),
    },
    /// A socket address.
    Address { address: u8, length: u8 },
}

/// The operation's name in a denial and its shape. Calls that are not here go on without a look.
pub fn shape_of(name: &str) -> Option<(&'static str, Shape)> {
    let change = |path| Shape::Change { dir: None, path };
    let change_at = |path| Shape::Change { dir: Some(0), path };
    let name_at = |path| Shape::Name { dir: Some(0), path };
    let plain = Shape::Name { dir: None, path: 0 };
    let fd = Shape::ChangeFd { fd: 0 };
    let names = |from, to| Shape::Names { from, to };
    Some(match name {
        "open" | "creat" => ("open-write", change(0)),
        "openat" => ("open-write", change_at(1)),
        "truncate" => ("truncate", change(0)),
        "ftruncate" | "fallocate" => ("truncate", fd),
        "chmod" => ("chmod", change(0)),
        "fchmodat" | "fchmodat2" => ("chmod", change_at(1)),
        "fchmod" => ("chmod", fd),
        "chown" | "lchown" => ("chown", change(0)),
        "fchownat" => ("chown", change_at(1)),
        "fchown" => ("chown", fd),
        "utime" | "utimes" => ("utime", change(0)),
        "futimesat" | "utimensat" => ("utime", change_at(1)),
        "setxattr" | "lsetxattr" | "removexattr" | "lremovexattr" => ("setxattr", change(0)),
        "setxattrat" | "removexattrat" | "file_setattr" => ("setxattr", change_at(1)),
        "fsetxattr" | "fremovexattr" => ("setxattr", fd),
        "unlink" | "rmdir" => ("unlink", plain),
        "unlinkat" => ("unlink", name_at(1)),
        "mkdir" => ("mkdir", plain),
        "mkdirat" => ("mkdir", name_at(1)),
        "mknod" => ("mknod", plain),
        "mknodat" => ("mknod", name_at(1)),
        "symlink" => ("symlink", Shape::Name { dir: None, path: 1 }),
        "symlinkat" => (
            "symlink",
            Shape::Name {
                dir: Some(1),
                path: 2,
            },
        ),
        "link" => ("link", plain_second()),
        "linkat" => (
            "link",
            Shape::Name {
                dir: Some(2),
                path: 3,
            },
        ),
        "rename" => ("rename", names((None, 0), (None, 1))),
        "renameat" | "renameat2" => ("rename", names((Some(0), 1), (Some(2), 3))),
        "connect" | "bind" => (
            "connect",
            Shape::Address {
                address: 1,
                length: 2,
            },
        ),
        "sendto" => (
            "send",
            Shape::Address {
                address: 4,
                length: 5,
            },
        ),
        _ => return None,
    })
}

fn plain_second() -> Shape {
    Shape::Name { dir: None, path: 1 }
}

/// Where to look from.
pub struct Lookout {
    /// The host's /proc, opened before it was covered.
    proc: OwnedFd,
    pinned: Vec<PathBuf>,
    net: NetPlan,
}

impl Lookout {
    /// Before the view is built.
    pub fn new(net: NetPlan) -> Result<Lookout, SetupFault> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc =
            openat(CWD, "/proc", flags, Mode::empty()).at_path("proc", Path::new("/proc"))?;
        Ok(Lookout {
            proc,
            pinned: Vec::new(),
            net,
        })
    }

    /// The host's /proc.
    pub fn proc(&self) -> BorrowedFd<'_> {
        self.proc.as_fd()
    }

    /// A descriptor that keeps this process's mount namespace alive.
    pub fn own_mounts(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(self.proc.as_fd(), "self/ns/mnt", flags, Mode::empty())
    }

    pub fn set_pinned(&mut self, pinned: Vec<PathBuf>) {
        self.pinned = pinned;
    }

    /// What will be refused, if anything. The caller checks afterwards that the task still waits.
    pub fn foresee(&self, op: &str, shape: Shape, asked: &Notification) -> Option<Denial> {
        match shape {
            Shape::Change { dir, path } => {
                let dir = dir.map(|dir| asked.args[usize::from(dir)] as i32);
                let text = match asked.args[usize::from(path)] {
                    // utimensat with a null path changes the descriptor itself.
                    0 => Vec::new(),
                    address => read_text(asked.pid, address)?,
                };
                if self.is_writable(asked.pid, dir, &text) {
                    return None;
                }
                self.change(op, &self.absolute(asked.pid, dir, &text)?)
            }
            Shape::ChangeFd { fd } => {
                let path = self.link(
                    asked.pid,
                    &format!("fd/{}", asked.args[usize::from(fd)] as i32),
                )?;
                self.change(op, &path)
            }
            Shape::Name { dir, path } => self.name(op, &self.path(asked, dir, path)?),
            Shape::Names { from, to } => {
                let from = self.path(asked, from.0, from.1)?;
                let to = self.path(asked, to.0, to.1)?;
                self.name(op, &from).or_else(|| self.name(op, &to))
            }
            Shape::Address { address, length } => self.address(op, asked, address, length),
        }
    }

    fn change(&self, op: &str, path: &Path) -> Option<Denial> {
        // What is not there is not refused but missing, except to an open that may make it.
        if op != "open-write" && !is_there(path) {
            return None;
        }
        match mount_of(path)? {
            Mount::Writable => None,
            Mount::ReadOnly => Some(self.read_only(op, path)),
        }
    }

    fn name(&self, op: &str, path: &Path) -> Option<Denial> {
        // A name that exists answers EEXIST before anything else is looked at: `mkdir -p` asks for
        // each directory on the way.
        if matches!(op, "mkdir" | "mknod" | "symlink" | "link") && is_there(path) {
            return None;
        }
        let parent = path.parent()?;
        match mount_of(parent)? {
            Mount::ReadOnly => Some(self.read_only(op, path)),
            Mount::Writable if is_mount_point(path) => {
                Some(denial(op, path, libc::EBUSY, &PROTECTED))
            }
            Mount::Writable => None,
        }
    }

    fn read_only(&self, op: &str, path: &Path) -> Denial {
        let pinned = self.pinned.iter().any(|pin| path.starts_with(pin));
        let rule = if pinned { &PROTECTED } else { &OUTSIDE };
        denial(op, path, libc::EROFS, rule)
    }

    /// Whether a file is there and can be written: the common case, told by one system call.
    fn is_writable(&self, pid: i32, dir: Option<i32>, text: &[u8]) -> bool {
        let (from, path) = if text.first() == Some(&b'/') {
            (CWD, text.to_vec())
        } else {
            let mut path = match dir {
                None | Some(libc::AT_FDCWD) => format!("{pid}/cwd/"),
                Some(fd) => format!("{pid}/fd/{fd}/"),
            }
            .into_bytes();
            path.extend_from_slice(text);
            (self.proc.as_fd(), path)
        };
        accessat(from, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    }

    /// The absolute path an argument means, as text; nothing in it is resolved.
    fn path(&self, asked: &Notification, dir: Option<u8>, at: u8) -> Option<PathBuf> {
        let text = read_text(asked.pid, asked.args[usize::from(at)])?;
        let dir = dir.map(|dir| asked.args[usize::from(dir)] as i32);
        self.absolute(asked.pid, dir, &text)
    }

    fn absolute(&self, pid: i32, dir: Option<i32>, text: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(text));
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        let base = match dir {
            None | Some(libc::AT_FDCWD) => self.link(pid, "cwd")?,
            Some(fd) => self.link(pid, &format!("fd/{fd}"))?,
        };
        Some(if text.is_empty() {
            base
        } else {
            base.join(path)
        })
    }

    fn link(&self, pid: i32, name: &str) -> Option<PathBuf> {
        let target = readlinkat(self.proc.as_fd(), format!("{pid}/{name}"), Vec::new()).ok()?;
        let path = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
        path.is_absolute().then_some(path)
    }

    fn address(&self, op: &str, asked: &Notification, at: u8, length: u8) -> Option<Denial> {
        if self.net == NetPlan::Host {
            return None;
        }
        let address = asked.args[usize::from(at)];
        let length = (asked.args[usize::from(length)] as usize).min(28);
        let mut bytes = [0; 28];
        let got = read_memory(asked.pid, address, &mut bytes[..length])?;
        let text = outside_address(&bytes[..got])?;
        Some(Denial {
            op: op.to_owned(),
            path: None,
            address: Some(text),
            errno: libc::ENETUNREACH,
            layer: "namespaces".to_owned(),
            rule: "net-fence".to_owned(),
            remedy: "the network is off for calls; --net full opens it".to_owned(),
            trust: Trust::Predicted,
            count: 1,
        })
    }
}

struct Rule {
    name: &'static str,
    remedy: &'static str,
}

const OUTSIDE: Rule = Rule {
    name: "write-fence",
    remedy: "outside what calls may change; --add-dir, or `write` in a profile, grants a folder",
};
const PROTECTED: Rule = Rule {
    name: "protected-names",
    remedy: "what would run or be obeyed outside stays as it is; change it yourself, outside a call",
};

fn denial(op: &str, path: &Path, errno: i32, rule: &Rule) -> Denial {
    Denial {
        op: op.to_owned(),
        path: Some(path.to_string_lossy().into_owned()),
        address: None,
        errno,
        layer: "mounts".to_owned(),
        rule: rule.name.to_owned(),
        remedy: rule.remedy.to_owned(),
        trust: Trust::Predicted,
        count: 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mount {
    Writable,
    ReadOnly,
}

/// The mount that a write to `path` meets: its own, or its directory's when it is not there yet.
fn mount_of(path: &Path) -> Option<Mount> {
    // The call's own mounts, which the broker does not have: device nodes and what hangs below
    // them can be written, /proc cannot, but for links to what is open already.
    if path.starts_with("/dev") {
        return Some(Mount::Writable);
    }
    if path.starts_with("/proc") {
        let is_link = path.components().any(|c| c.as_os_str() == "fd");
        return (!is_link).then_some(Mount::ReadOnly);
    }
    let stat = match statvfs(path) {
        Err(Errno::NOENT) => statvfs(path.parent()?),
        stat => stat,
    };
    Some(if stat.ok()?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Mount::ReadOnly
    } else {
        Mount::Writable
    })
}

fn is_there(path: &Path) -> bool {
    statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()).is_ok()
}

fn is_mount_point(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(CWD, path, flags, StatxFlags::empty())
        .is_ok_and(|s| s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// An inet address that is not loopback, as text.
fn outside_address(bytes: &[u8]) -> Option<String> {
    let family = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]);
    let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
    match i32::from(family) {
        libc::AF_INET => {
            let raw: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            let address = Ipv4Addr::from(raw);
            let inside = address.is_loopback() || address.is_unspecified();
            (!inside).then(|| format!("{address}:{port}"))
        }
        libc::AF_INET6 => {
            let raw: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            let address = Ipv6Addr::from(raw);
            let mapped = address.to_ipv4_mapped().is_some_and(|a| a.is_loopback());
            let inside = address.is_loopback() || address.is_unspecified() || mapped;
            (!inside).then(|| format!("[{address}]:{port}"))
        }
        _ => None,
    }
}

/// A NUL-terminated string of the task, read page by page so that it may end at a mapping's end.
fn read_text(pid: i32, address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut at = address;
    let mut page = [0; PAGE_BYTES];
    while text.len() < PATH_BYTES_MAX {
        let to_boundary = PAGE_BYTES - (at as usize % PAGE_BYTES);
        // Most paths are short; the rest of the page is only read for those that are not.
        let want = if text.is_empty() {
            to_boundary.min(256)
        } else {
            to_boundary
        };
        let got = read_memory(pid, at, &mut page[..want])?;
        if let Some(end) = page[..got].iter().position(|b| *b == 0) {
            text.extend_from_slice(&page[..end]);
            return Some(text);
        }
        text.extend_from_slice(&page[..got]);
        at = at.checked_add(got as u64)?;
    }
    None
}

fn read_memory(pid: i32, address: u64, into: &mut [u8]) -> Option<usize> {
    let remote = [RemoteIoVec {
        base: usize::try_from(address).ok()?,
        len: into.len(),
    }];
    let got = process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(into)], &remote).ok()?;
    (got > 0).then_some(got)
}

#[cfg(test)]
mod tests;
