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

use rustix::mount::MountAttrFlags;

use crate::fault::At;
use crate::plan::ProtectedName;
use crate::protocol::SetupFault;
use crate::sys::{Reach, mount_setattr};
use crate::tree::{self, Clone};

pub use scan::Bounds;

/// What a scan found and pinned.
#[derive(Debug, Default)]
pub struct Found {
    pub pinned: Vec<PathBuf>,
    /// A bound was reached; names beyond it are not protected.
    pub cut: bool,
}

/// Finds `names` below `root`, which is a mount of this view already, and pins them.
pub fn pin(root: &Path, names: &[ProtectedName], bounds: Bounds) -> Result<Found, SetupFault> {
    let scanned = scan::find(root, names, bounds)?;
    let mut found = Found {
        pinned: Vec::new(),
        cut: scanned.cut,
    };
    let mut bound = BTreeSet::new();
    // Parents come first, so that a child's pin lands on top of its parent's.
    for relative in scanned.names {
        bind_ancestors(root, &relative, &mut bound)?;
        let path = root.join(&relative);
        bind(&path, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
        bound.insert(path.clone());
        found.pinned.push(path);
    }
    Ok(found)
}

fn bind_ancestors(
    root: &Path,
    relative: &Path,
    bound: &mut BTreeSet<PathBuf>,
) -> Result<(), SetupFault> {
    let mut above: Vec<&Path> = relative.ancestors().skip(1).collect();
    above.reverse();
    for ancestor in above {
        if ancestor.as_os_str().is_empty() {
            continue; // the root is a mount already
        }
        let path = root.join(ancestor);
        if bound.insert(path.clone()) {
            bind(&path, MountAttrFlags::empty())?;
        }
    }
    Ok(())
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
