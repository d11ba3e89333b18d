//! The session's network namespace: empty but for loopback.
//!
//! Making one takes the kernel 0.4 ms, often several, about as long as all the rest of a session.
//! So a thread makes it while the broker mounts, and the broker joins its namespace at the end. It is
//! the only other thread a broker ever has, and it has ended before anything is forked.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread::{Builder, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::fault::{At, broken};
use crate::protocol::SetupFault;
use crate::sys;

/// What it does needs little.
const STACK_BYTES: usize = 128 << 10;

/// A network namespace that is being made.
pub struct Pending {
    maker: JoinHandle<Result<OwnedFd, SetupFault>>,
}

/// Starts to make it; owned by this process's user namespace, which must be the session's.
pub fn begin() -> Result<Pending, SetupFault> {
    let maker = Builder::new().stack_size(STACK_BYTES).spawn(make);
    let maker = maker.at("network-namespace")?;
    Ok(Pending { maker })
}

impl Pending {
    /// Waits for it and enters.
    pub fn join(self) -> Result<(), SetupFault> {
        let step = "network-namespace";
        let died = |_| broken(step, None, libc::ECHILD, "its maker died");
        let namespace = self.maker.join().map_err(died)??;
        setns(namespace, CloneFlags::CLONE_NEWNET).at(step)
    }
}

/// Namespaces belong to a thread: this one's changes, and the others' do not.
fn make() -> Result<OwnedFd, SetupFault> {
    unshare(CloneFlags::CLONE_NEWNET).at("network-namespace")?;
    loopback_up()?;
    let path = Path::new("/proc/thread-self/ns/net");
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
