//! Protected names: found by a bounded scan, each pinned so that neither it nor a directory above
//! it can be renamed, replaced or changed.
//!
//! A read-only mount on `.git/hooks` alone does not hold: renaming `.git` carries it away and a new
//! `.git` takes its place. So every directory between the root and the name is bound onto itself
//! as well; renaming a mount point is EBUSY.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, openat2};
use rustix::mount::MountAttrFlags;

use crate::fault::At;
use crate::plan::ProtectedName;
use crate::protocol::SetupFault;
use crate::sys::{Reach, mount_setattr};
use crate::tree::{self, Clone};

/// How far a scan goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub entries_max: u64,
    pub depth_max: u32,
}

/// What a scan found and pinned.
#[derive(Debug, Default)]
pub struct Found {
    pub pinned: Vec<PathBuf>,
    /// A bound was reached; names beyond it are not protected.
    pub cut: bool,
}

/// Directories are followed only within the mount of the root and never through a symbolic link.
const WITHIN: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Finds `names` below `root`, which is a mount of this view already, and pins them.
pub fn pin(root: &Path, names: &[ProtectedName], bounds: Bounds) -> Result<Found, SetupFault> {
    let wanted = Wanted::new(names);
    let mut scan = Scan {
        wanted: &wanted,
        bounds,
        entries: 0,
        cut: false,
        found: Vec::new(),
    };
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let top = openat2(
        rustix::fs::CWD,
        root,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .at_path("protect", root)?;
    scan.walk(top, PathBuf::new(), 0);
    let mut found = Found {
        pinned: Vec::new(),
        cut: scan.cut,
    };
    let mut bound = BTreeSet::new();
    // Parents come first, so that a child's pin lands on top of its parent's.
    scan.found.sort();
    for relative in scan.found {
        bind_ancestors(root, &relative, &mut bound)?;
        let path = root.join(&relative);
        bind(&path, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
        bound.insert(path.clone());
        found.pinned.push(path);
    }
    Ok(found)
}

/// The names by their first component, folded.
struct Wanted {
    names: Vec<(OsString, PathBuf, bool)>,
}

impl Wanted {
    fn new(names: &[ProtectedName]) -> Wanted {
        let names = names.iter().filter_map(|name| {
            let mut parts = Path::new(&name.name).components();
            let first = parts.next()?.as_os_str();
            Some((fold(first), parts.as_path().to_owned(), name.any_depth))
        });
        Wanted {
            names: names.collect(),
        }
    }
}

struct Scan<'a> {
    wanted: &'a Wanted,
    bounds: Bounds,
    entries: u64,
    cut: bool,
    found: Vec<PathBuf>,
}

impl Scan<'_> {
    /// A directory that cannot be read is the call's loss too: the call runs as the same uid.
    fn walk(&mut self, dir: OwnedFd, relative: PathBuf, depth: u32) {
        let mut below = Vec::new();
        let mut space = vec![MaybeUninit::uninit(); 32 << 10];
        let mut entries = RawDir::new(&dir, &mut space);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > self.bounds.entries_max {
                self.cut = true;
                return;
            }
            self.judge(dir.as_fd(), name, &relative, depth);
            if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
                below.push(name.to_owned());
            }
        }
        if below.is_empty() {
            return;
        }
        if depth >= self.bounds.depth_max {
            self.cut = true;
            return;
        }
        for name in below {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            if let Ok(child) = openat2(&dir, &name, flags, Mode::empty(), WITHIN) {
                self.walk(child, relative.join(os(&name)), depth + 1);
            }
        }
    }

    fn judge(&mut self, dir: BorrowedFd<'_>, name: &CStr, relative: &Path, depth: u32) {
        let folded = fold(os(name));
        for (first, rest, any_depth) in &self.wanted.names {
            if *first != folded || (depth > 0 && !any_depth) {
                continue;
            }
            let path = Path::new(os(name)).join(rest);
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            if openat2(dir, &path, flags, Mode::empty(), WITHIN).is_ok() {
                let path = relative.join(path);
                if !self.found.contains(&path) {
                    self.found.push(path);
                }
            }
        }
    }
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
    let place = tree::open_path(path).at_path("protect", path)?;
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

/// How names compare: some file systems ignore case, and git ignores code points of no width
/// (CVE-2014-9390).
fn fold(name: &OsStr) -> OsString {
    let Some(text) = name.to_str() else {
        return name.to_owned();
    };
    if text.is_ascii() {
        return text.to_ascii_lowercase().into();
    }
    let visible = text.chars().filter(|c| !is_invisible(*c));
    visible
        .flat_map(char::to_lowercase)
        .collect::<String>()
        .into()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
