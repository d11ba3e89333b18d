//! The attempts on Linux.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::protocol::{Finding, attempts};

/// TEST-NET-1 (RFC 5737): nobody is there, and nothing on any host routes it on purpose.
const NOWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);
/// linux/socket.h; not in the safe wrapper's list.
const AF_VSOCK: u16 = 40;
/// Directories tried.
const PATHS_MAX: usize = 16;

pub(super) fn try_all(outside: &[String], home: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |attempt: &str, outcome: Result<(), Errno>| {
        let errno = outcome.map_or_else(Errno::raw_os_error, |()| 0);
        findings.push(Finding {
            attempt: attempt.to_owned(),
            errno,
        });
    };
    for path in outside.iter().take(PATHS_MAX).map(Path::new) {
        found(attempts::CREATE, create(path));
        found(attempts::CHMOD, chmod(path));
    }
    if let Some(home) = home {
        found(attempts::READ_HOME, open(Path::new(home), OFlags::RDONLY));
    }
    found(attempts::CONNECT, connect());
    found(attempts::UNIX, socket(AddressFamily::UNIX));
    found(attempts::VSOCK, socket(AddressFamily::from_raw(AF_VSOCK)));
    found(
        attempts::CORE_PATTERN,
        open(Path::new("/proc/sys/kernel/core_pattern"), OFlags::WRONLY),
    );
    found(attempts::PROCESSES, processes());
    found(
        attempts::INIT,
        open(Path::new("/proc/1/environ"), OFlags::RDONLY),
    );
    found(attempts::MOUNT, mount());
    found(attempts::HOSTNAME, hostname());
    let (capability, new_privileges) = status();
    found(attempts::CAPABILITY, capability);
    found(attempts::NEW_PRIVILEGES, new_privileges);
    found(attempts::SECRET, secret());
    findings
}

fn open(path: &Path, access: OFlags) -> Result<(), Errno> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map(drop)
}

fn create(directory: &Path) -> Result<(), Errno> {
    let path = directory.join(format!(".curfew-canary-{}", rustix::process::getpid()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR)?;
    // It should not have worked; at least nothing is left.
    rustix::fs::unlinkat(CWD, &path, AtFlags::empty()).or(Ok(()))
}

fn chmod(path: &Path) -> Result<(), Errno> {
    let mode = rustix::fs::stat(path)?.st_mode;
    rustix::fs::chmod(path, Mode::from_raw_mode(mode & 0o1777))
}

fn connect() -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &NOWHERE) {
        // On its way to the network.
        Err(Errno::INPROGRESS) => Ok(()),
        outcome => outcome,
    }
}

fn socket(family: AddressFamily) -> Result<(), Errno> {
    rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).map(drop)
}

/// Success is to see somebody else.
fn processes() -> Result<(), Errno> {
    let own = rustix::process::getpid().as_raw_nonzero().get().to_string();
    let entries = std::fs::read_dir("/proc")
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut others = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.bytes().all(|byte| byte.is_ascii_digit()) && name != "1" && name != own
    });
    match others.next() {
        Some(_) => Ok(()),
        None => Err(Errno::SRCH),
    }
}

fn mount() -> Result<(), Errno> {
    rustix::mount::mount("tmpfs", ".", "tmpfs", MountFlags::empty(), None)?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).or(Ok(()))
}

fn hostname() -> Result<(), Errno> {
    let name = rustix::system::uname().nodename().to_bytes().to_vec();
    rustix::system::sethostname(&name)
}

/// Holding any capability, and being without no_new_privs; both from proc_pid_status(5), because
/// asking with capget(2) says nothing of the bounding set.
fn status() -> (Result<(), Errno>, Result<(), Errno>) {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else {
        // Nothing can be shown, so nothing is.
        return (Ok(()), Ok(()));
    };
    let fields = |prefix: &'static str| {
        text.lines().filter_map(move |line| {
            line.strip_prefix(prefix)?
                .split_once(':')
                .map(|(_, value)| value.trim())
        })
    };
    let none = fields("Cap").count() > 0
        && fields("Cap").all(|set| set.bytes().all(|digit| digit == b'0'));
    let locked = fields("NoNewPrivs").any(|value| value == "1");
    let refused = |refused: bool| if refused { Err(Errno::PERM) } else { Ok(()) };
    (refused(none), refused(locked))
}

fn secret() -> Result<(), Errno> {
    let is_secret = |name: &str| {
        ["KEY", "TOKEN", "SECRET"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let mut names = std::env::vars_os().map(|(name, _)| name);
    match names.any(|name| is_secret(&name.to_string_lossy())) {
        true => Ok(()),
        false => Err(Errno::NOENT),
    }
}
