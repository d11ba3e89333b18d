//! What the host is like, as far as a plan depends on it. Data only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories that are private to a session whatever the profile says.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Directories that are emptied: sockets and state of the host's daemons.
pub const EMPTIED: [&str; 1] = ["/run"];
/// Account files, replaced where a call's ids are not the host's.
pub const ACCOUNTS: [&str; 2] = ["/etc/passwd", "/etc/group"];

/// What kind of thing stands at a path, symlinks resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Other,
}

/// A path that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The path with every symlink resolved.
    pub real: PathBuf,
    pub kind: Kind,
    pub dev: u64,
    pub ino: u64,
    pub uid: u32,
    pub gid: u32,
}

/// Facts found by asking the kernel, once, before a plan is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Effective ids of this process.
    pub uid: u32,
    pub gid: u32,
    /// 0 without Landlock.
    pub landlock_abi: u32,
    /// Every path of the confinement that exists, by the name it has there.
    pub nodes: BTreeMap<PathBuf, Node>,
    /// What stands in `/` and in each directory on the way to a closed one, symlinks left out.
    pub entries: BTreeMap<PathBuf, Vec<(PathBuf, Kind)>>,
    /// Mount points below a granted root: outside, unless they are roots themselves.
    pub submounts: Vec<PathBuf>,
    /// The primary group of the workspace's owner.
    pub owner_gid: u32,
    /// curfew's own directories (state and configuration), never shown to a call.
    pub own: Vec<PathBuf>,
    /// curfew's executable: not to be replaced from inside.
    pub executable: PathBuf,
    /// Real path and text of resolv.conf, where a call may use the network.
    pub resolver: Option<(PathBuf, String)>,
    /// An absolute shell outside every granted root.
    pub shell: PathBuf,
}

impl HostFacts {
    /// The node at `path`, if something is there.
    pub fn node(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }
}
