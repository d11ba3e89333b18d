//! Protected names: found by a bounded scan, each pinned so that neither it nor a directory above
//! it can be renamed, replaced or changed.
//!
//! A read-only mount on `.git/hooks` alone does not hold: renaming `.git` carries it away and a new
//! `.git` takes its place. So every directory between the root and the name is bound onto itself
//! as well; renaming a mount point is EBUSY. A name that is a symbolic link is pinned as the link
//! it is (a mount stands on the link itself), and so is what it leads to below the root.

mod scan;

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatVfsMountFlags, StatxAttributes, StatxFlags, fstatvfs, statx};
use rustix::mount::MountAttrFlags;

use crate::fault::At;
use crate::plan::ProtectedName;
use crate::protocol::SetupFault;
use crate::sys::{Reach, mount_setattr};
use crate::tree::{self, Clone};

pub use scan::{Bounds, Scanned, find};

/// What a scan found and pinned.
#[derive(Debug)]
pub struct Found {
    pub pins: Pins,
    /// A bound was reached; names beyond it are not protected.
    pub cut: bool,
}

/// Finds `names` below `root`, which is a mount of this view already, and pins them.
pub fn pin(root: &Path, names: &[ProtectedName], bounds: Bounds) -> Result<Found, SetupFault> {
    let scanned = scan::find(root, names, bounds)?;
    let mut pins = Pins::default();
    let mut names = scanned.names;
    names.extend(scanned.led_to.into_keys());
    // Parents come first, so that a child's pin lands on top of its parent's.
    for relative in names {
        pins.bind_name(root, &relative)?;
    }
    Ok(Found {
        pins,
        // What cannot be listed here can be by its owner, which a call is.
        cut: scanned.cut || !scanned.closed.is_empty(),
    })
}

/// What is pinned, to look after it: the host can replace a name, and its mount goes with it.
#[derive(Debug, Default)]
pub struct Pins {
    /// (root, path below it).
    names: Vec<(PathBuf, PathBuf)>,
    /// Directories bound onto themselves on the way to the names.
    ancestors: BTreeSet<PathBuf>,
}

impl Pins {
    pub fn names(&self) -> impl Iterator<Item = PathBuf> {
        self.names.iter().map(|(root, name)| root.join(name))
    }

    pub fn ancestors(&self) -> impl Iterator<Item = &PathBuf> {
        self.ancestors.iter()
    }

    pub fn append(&mut self, mut other: Pins) {
        self.names.append(&mut other.names);
        self.ancestors.append(&mut other.ancestors);
    }

    /// Whether every pin is where it was put.
    pub fn intact(&self) -> bool {
        self.names().all(|name| is_pinned(&name, Mount::ReadOnly))
            && self.ancestors.iter().all(|a| is_pinned(a, Mount::Any))
    }

    /// Pins again what the host replaced. One that is gone stays on the list: it may come back.
    pub fn restore(&mut self) -> Result<(), SetupFault> {
        for (root, name) in std::mem::take(&mut self.names) {
            let path = root.join(&name);
            if is_pinned(&path, Mount::ReadOnly) || tree::open_link(&path).is_err() {
                self.names.push((root, name));
            } else {
                self.bind_name(&root, &name)?;
            }
        }
        Ok(())
    }

    fn bind_name(&mut self, root: &Path, name: &Path) -> Result<(), SetupFault> {
        let mut above: Vec<&Path> = name.ancestors().skip(1).collect();
        above.reverse();
        // The first is empty and means the root, which is a mount already.
        for ancestor in above.into_iter().skip(1) {
            let path = root.join(ancestor);
            if !is_pinned(&path, Mount::Any) {
                bind(&path, MountAttrFlags::empty())?;
            }
            self.ancestors.insert(path);
        }
        bind(&root.join(name), MountAttrFlags::MOUNT_ATTR_RDONLY)?;
        self.names.push((root.to_owned(), name.to_owned()));
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mount {
    Any,
    ReadOnly,
}

/// Whether a mount of its own stands at `path`. A directory that was a mount for another reason
/// counts for an ancestor: it cannot be renamed either.
fn is_pinned(path: &Path, mount: Mount) -> bool {
    let Ok(place) = tree::open_link(path) else {
        return false;
    };
    let flags = AtFlags::EMPTY_PATH;
    let is_root = statx(&place, c"", flags, StatxFlags::empty())
        .is_ok_and(|s| s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    let read_only = || fstatvfs(&place).is_ok_and(|s| s.f_flag.contains(StatVfsMountFlags::RDONLY));
    is_root && (mount == Mount::Any || read_only())
}

/// Mounts what stands at `path` onto itself with more attributes.
fn bind(path: &Path, attributes: MountAttrFlags) -> Result<(), SetupFault> {
    let place = tree::open_link(path).at_path("protect", path)?;
    let tree = tree::clone_tree(place.as_fd(), Clone::Below).at_path("protect", path)?;
    if !attributes.is_empty() {
        mount_setattr(
            tree.as_fd(),
            Reach::Below,
            attributes,
            MountAttrFlags::empty(),
        )
        .at_path("protect", path)?;
    }
    tree::attach(tree.as_fd(), place.as_fd()).at_path("protect", path)
}
