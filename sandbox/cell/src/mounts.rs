//! The mount view of a session: the plan's mount steps, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, StatVfsMountFlags, fstat, fstatvfs, mkdirat, openat,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, mount_change};

use crate::dev;
use crate::fault::{At, broken};
use crate::plan::MountOp;
use crate::protect::{self, Pins};
use crate::protocol::SetupFault;
use crate::sys::{Reach, mount_setattr};
use crate::tree::{self, Clone};
use crate::watch::{Meaning, Watch};

const RDONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
const NONE: MountAttrFlags = MountAttrFlags::empty();

/// Size of the area that holds masks and synthetic files.
const STAGE_BYTES: u64 = 1 << 20;
const STAGE_INODES: u64 = 4096;

/// What the mount steps made and found.
pub struct View {
    grabbed: BTreeMap<u32, OwnedFd>,
    /// Devices of private areas: only there may a missing place be made.
    private: BTreeSet<u64>,
    /// Mounts that become read-only once everything stands.
    settle: Vec<OwnedFd>,
    /// Holds masks and synthetic files. Mounted on /proc, which it hides from every call even
    /// before the call's own /proc is on top.
    stage: Option<OwnedFd>,
    staged: u32,
    pub watch: Watch,
    pub pins: Pins,
    pub scan_cut: bool,
}

/// Carries out the steps in this process's mount namespace, which must be its own.
pub fn build(ops: &[MountOp]) -> Result<View, SetupFault> {
    // A slave would receive what the host mounts later, writable.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .at("private-mounts")?;
    let mut view = View {
        grabbed: BTreeMap::new(),
        private: BTreeSet::new(),
        settle: Vec::new(),
        stage: None,
        staged: 0,
        watch: Watch::new()?,
        pins: Pins::default(),
        scan_cut: false,
    };
    for op in ops {
        view.carry_out(op)?;
    }
    for mount in view.settle.drain(..) {
        mount_setattr(mount.as_fd(), Reach::One, RDONLY, NONE).at("settle")?;
    }
    view.grabbed.clear();
    Ok(view)
}

impl View {
    fn carry_out(&mut self, op: &MountOp) -> Result<(), SetupFault> {
        match op {
            MountOp::Grab { id, path, dev, ino } => {
                let tree = grab(path, *dev, *ino)?;
                self.grabbed.insert(*id, tree);
                Ok(())
            }
            MountOp::Seal => self.seal(),
            MountOp::Place { id, path, writable } => self.place(*id, path, *writable),
            MountOp::Private {
                path,
                bytes,
                inodes,
                mode,
                writable,
            } => {
                let area = tree::tmpfs(*bytes, *inodes, *mode).at_path("private", path)?;
                let dev = fstat(&area).at_path("private", path)?.st_dev;
                let place = self.target(path, Kind::Directory, "private")?;
                tree::attach(area.as_fd(), place.as_fd()).at_path("private", path)?;
                self.private.insert(dev);
                if !writable {
                    self.settle.push(area);
                }
                Ok(())
            }
            MountOp::Dev => {
                self.settle.push(dev::build()?);
                Ok(())
            }
            MountOp::Mask { path, directory } => self.mask(path, *directory),
            MountOp::Synthetic { path, text } => {
                let file = self.stage_file(text.as_bytes())?;
                let place = self.target(path, Kind::File, "synthetic")?;
                tree::attach(file.as_fd(), place.as_fd()).at_path("synthetic", path)
            }
            MountOp::Dir { path } => self.make_directories(path),
            MountOp::Pin { path } => {
                let place = tree::open_path(path).at_path("pin", path)?;
                let tree = tree::clone_tree(place.as_fd(), Clone::Below).at_path("pin", path)?;
                tree::attach(tree.as_fd(), place.as_fd()).at_path("pin", path)
            }
            MountOp::Protect {
                root,
                names,
                entries_max,
                depth_max,
            } => {
                let bounds = protect::Bounds {
                    entries_max: *entries_max,
                    depth_max: *depth_max,
                };
                let found = protect::pin(root, names, bounds)?;
                self.scan_cut |= found.cut;
                self.watch.pins(&found.pins)?;
                self.pins.append(found.pins);
                Ok(())
            }
        }
    }

    fn seal(&mut self) -> Result<(), SetupFault> {
        let root = tree::open_path(Path::new("/")).at("seal")?;
        let set = RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
        mount_setattr(root.as_fd(), Reach::Below, set, NONE).at("seal")?;
        let proc = Path::new("/proc");
        let stage = tree::tmpfs(STAGE_BYTES, STAGE_INODES, 0o755).at("stage")?;
        let place = tree::open_path(proc).at_path("stage", proc)?;
        tree::attach(stage.as_fd(), place.as_fd()).at_path("stage", proc)?;
        self.stage = Some(stage);
        Ok(())
    }

    fn place(&mut self, id: u32, path: &Path, writable: bool) -> Result<(), SetupFault> {
        let Some(tree) = self.grabbed.remove(&id) else {
            let text = format!("the plan places tree {id} that it did not grab");
            return Err(broken("place", Some(path), libc::EINVAL, text));
        };
        let kind = if is_directory(tree.as_fd()).at_path("place", path)? {
            Kind::Directory
        } else {
            Kind::File
        };
        let was_writable = !fstatvfs(&tree)
            .at_path("place", path)?
            .f_flag
            .contains(StatVfsMountFlags::RDONLY);
        let set = RDONLY | tree::HARMLESS;
        mount_setattr(tree.as_fd(), Reach::Below, set, NONE).at_path("place", path)?;
        if writable && was_writable {
            mount_setattr(tree.as_fd(), Reach::One, NONE, RDONLY).at_path("place", path)?;
        }
        let target = self.target(path, kind, "place")?;
        tree::attach(tree.as_fd(), target.as_fd()).at_path("place", path)
    }

    fn mask(&mut self, path: &Path, directory: bool) -> Result<(), SetupFault> {
        let blank = if directory {
            self.stage_directory()?
        } else {
            self.stage_file(b"")?
        };
        let kind = if directory {
            Kind::Directory
        } else {
            Kind::File
        };
        let place = self.target(path, kind, "mask")?;
        tree::attach(blank.as_fd(), place.as_fd()).at_path("mask", path)?;
        self.watch.add(path, Meaning::Masked)
    }

    /// A read-only mount of one new file with these bytes, detached.
    fn stage_file(&mut self, bytes: &[u8]) -> Result<OwnedFd, SetupFault> {
        let (stage, name) = self.stage_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(stage, &*name, flags, Mode::from_raw_mode(0o444)).at("stage")?;
        File::from(file).write_all(bytes).at("stage")?;
        self.clone_staged(&name)
    }

    fn stage_directory(&mut self) -> Result<OwnedFd, SetupFault> {
        let (stage, name) = self.stage_name()?;
        mkdirat(stage, &*name, Mode::from_raw_mode(0o555)).at("stage")?;
        self.clone_staged(&name)
    }

    fn stage_name(&mut self) -> Result<(BorrowedFd<'_>, String), SetupFault> {
        self.staged += 1;
        let name = self.staged.to_string();
        match &self.stage {
            Some(stage) => Ok((stage.as_fd(), name)),
            None => {
                let text = "the plan masks something before it seals the tree";
                Err(broken("stage", None, libc::EINVAL, text))
            }
        }
    }

    fn clone_staged(&self, name: &str) -> Result<OwnedFd, SetupFault> {
        let path = Path::new("/proc").join(name);
        let place = tree::open_path(&path).at("stage")?;
        let tree = tree::clone_tree(place.as_fd(), Clone::One).at("stage")?;
        let set = RDONLY | tree::HARMLESS | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        mount_setattr(tree.as_fd(), Reach::One, set, NONE).at("stage")?;
        Ok(tree)
    }

    /// The place to mount on. In a private area a missing one is made.
    fn target(&self, path: &Path, kind: Kind, step: &'static str) -> Result<OwnedFd, SetupFault> {
        match tree::open_path(path) {
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {}
            found => return found.at_path(step, path),
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(broken(step, Some(path), libc::ENOENT, "not a path below /"));
        };
        let parent = tree::open_path(parent).at_path(step, path)?;
        self.make(parent.as_fd(), name, kind).at_path(step, path)?;
        tree::open_below(parent.as_fd(), Path::new(name)).at_path(step, path)
    }

    fn make_directories(&self, path: &Path) -> Result<(), SetupFault> {
        let mut ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.reverse();
        let mut at = tree::open_path(Path::new("/")).at_path("dir", path)?;
        for name in ancestors.iter().filter_map(|a| a.file_name()) {
            at = match tree::open_below(at.as_fd(), Path::new(name)) {
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {
                    self.make(at.as_fd(), name, Kind::Directory)
                        .at_path("dir", path)?;
                    tree::open_below(at.as_fd(), Path::new(name)).at_path("dir", path)?
                }
                found => found.at_path("dir", path)?,
            };
        }
        Ok(())
    }

    /// Makes an entry, but only in a private area: never a trace on the host.
    fn make(&self, parent: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> Result<(), Errno> {
        if !self.private.contains(&fstat(parent)?.st_dev) {
            return Err(Errno::NOENT);
        }
        match kind {
            Kind::Directory => mkdirat(parent, name, Mode::from_raw_mode(0o755)),
            Kind::File => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                openat(parent, name, flags, Mode::from_raw_mode(0o644)).map(drop)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Directory,
    File,
}

/// A detached clone of what stands at `path`, if it still is what the plan saw there.
fn grab(path: &Path, dev: u64, ino: u64) -> Result<OwnedFd, SetupFault> {
    let place = tree::open_path(path).at_path("grab", path)?;
    let found = fstat(&place).at_path("grab", path)?;
    if (found.st_dev, found.st_ino) != (dev, ino) {
        let text = format!(
            "{} was replaced since the plan was made (device and inode differ)",
            path.display()
        );
        return Err(broken("grab", Some(path), libc::ESTALE, text));
    }
    tree::clone_tree(place.as_fd(), Clone::Below).at_path("grab", path)
}

fn is_directory(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let stat = rustix::fs::statat(fd, c"", AtFlags::EMPTY_PATH)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}
