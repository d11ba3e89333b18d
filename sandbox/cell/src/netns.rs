//! The session's network namespace: empty but for loopback.
//!
//! Making one takes the kernel 0.4 ms, often several, about as long as all the rest of a session.
//! So a process of its own makes it while the broker mounts, and the broker joins it at the end.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::fault::{At, broken};
use crate::frame::{Channel, Rights};
use crate::protocol::SetupFault;
use crate::sys::{self, Spawned, exit_now};
use crate::wire::NetReport;

/// A network namespace that is being made.
pub struct Pending {
    maker: Spawned,
    report: Channel,
}

/// Starts to make it; owned by this process's user namespace, which must be the session's.
pub fn begin() -> Result<Pending, SetupFault> {
    let (report, mut theirs) = Channel::pair(Rights::Accepted)
        .map_err(|e| broken("network-namespace", None, libc::EMFILE, e.to_string()))?;
    let Some(maker) = sys::clone_into(0).at("network-namespace")? else {
        drop(report);
        let sent = match make() {
            Ok(namespace) => theirs.send_json(&NetReport::Made, &[namespace.as_fd()]),
            Err(fault) => theirs.send_json(&NetReport::Failed { fault }, &[]),
        };
        exit_now(i32::from(sent.is_err()));
    };
    Ok(Pending { maker, report })
}

impl Pending {
    /// Waits for it and enters.
    pub fn join(mut self) -> Result<(), SetupFault> {
        let step = "network-namespace";
        let (answer, fds) = self
            .report
            .recv_json::<NetReport>()
            .map_err(|e| broken(step, None, libc::EPIPE, e.to_string()))?;
        waitid(Id::PIDFd(self.maker.pidfd.as_fd()), WaitPidFlag::WEXITED).at(step)?;
        match (answer, fds.first()) {
            (NetReport::Failed { fault }, _) => Err(fault),
            (NetReport::Made, Some(namespace)) => {
                setns(namespace, CloneFlags::CLONE_NEWNET).at(step)
            }
            (NetReport::Made, None) => {
                Err(broken(step, None, libc::EBADF, "its descriptor is missing"))
            }
        }
    }
}

fn make() -> Result<OwnedFd, SetupFault> {
    unshare(CloneFlags::CLONE_NEWNET).at("network-namespace")?;
    loopback_up()?;
    let path = Path::new("/proc/self/ns/net");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).at_path("network-namespace", path)
}

fn loopback_up() -> Result<(), SetupFault> {
    let open = |family| socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = match open(AddressFamily::INET) {
        Err(Errno::AFNOSUPPORT) => open(AddressFamily::INET6),
        opened => opened,
    };
    let socket = socket.at("loopback")?;
    sys::interface_up(socket.as_fd(), "lo").at("loopback")
}
