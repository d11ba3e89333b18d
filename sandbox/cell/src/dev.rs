//! A /dev with nothing in it that reaches the machine.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::mount::MountAttrFlags;

use crate::fault::At;
use crate::protocol::SetupFault;
use crate::tree::{self, Clone};

/// Device nodes cannot be made in a user namespace; the host's are bound.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Puts it on /dev and returns the mount, which the caller makes read-only at last. Each call mounts
/// its own shm in it. A write through a device node on a read-only mount is allowed; changing the
/// node's mode or times is not.
pub fn build() -> Result<OwnedFd, SetupFault> {
    let path = Path::new("/dev");
    let nodes = NODES.map(|name| (name, path.join(name)));
    let mut trees = Vec::with_capacity(nodes.len());
    for (name, node) in &nodes {
        let place = tree::open_path(node).at_path("dev", node)?;
        let tree = tree::clone_tree(place.as_fd(), Clone::One).at_path("dev", node)?;
        trees.push((name, tree));
    }
    // Not HARMLESS: NODEV on this mount does not reach the nodes, which are mounts of their own.
    let dev = tree::tmpfs(64 << 10, 64, 0o755).at_path("dev", path)?;
    let place = tree::open_path(path).at_path("dev", path)?;
    tree::attach(dev.as_fd(), place.as_fd()).at_path("dev", path)?;
    for (name, tree) in trees {
        place_node(dev.as_fd(), name, tree.as_fd())?;
    }
    for directory in ["pts", "shm"] {
        mkdirat(&dev, directory, Mode::from_raw_mode(0o755)).at_path("dev", path)?;
    }
    mount_pts(dev.as_fd())?;
    for (target, name) in LINKS {
        symlinkat(target, &dev, name).at_path("dev", path)?;
    }
    Ok(dev)
}

fn place_node(dev: BorrowedFd<'_>, name: &str, tree: BorrowedFd<'_>) -> Result<(), SetupFault> {
    let path = Path::new("/dev").join(name);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(dev, name, flags, Mode::from_raw_mode(0o644)).at_path("dev", &path)?;
    let place = tree::open_below(dev, Path::new(name)).at_path("dev", &path)?;
    tree::attach(tree, place.as_fd()).at_path("dev", &path)
}

/// A terminal pool of the session's own: the host's terminals have no names in it.
fn mount_pts(dev: BorrowedFd<'_>) -> Result<(), SetupFault> {
    let path = Path::new("/dev/pts");
    let options = [("mode", "620".to_owned()), ("ptmxmode", "666".to_owned())];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let pts = tree::make("devpts", &options, attributes).at_path("dev", path)?;
    let place = tree::open_below(dev, Path::new("pts")).at_path("dev", path)?;
    tree::attach(pts.as_fd(), place.as_fd()).at_path("dev", path)
}
