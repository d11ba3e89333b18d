//! The file layer: the few operations through which the store changes a disk.
//!
//! [`RealDisk`] is the only implementation in the product. Tests put another one in its place to
//! count, fail or lose operations; a simulated disk has to implement this much and no more.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// What is read of a lock file to learn who holds it.
const HOLDER_BYTES_MAX: u64 = 4096;

/// Directories, and opening what is in them. Paths are absolute or relative to the process; the
/// last component is never followed when it is a symbolic link.
pub trait Disk: Send + Sync {
    /// Makes a directory and its missing parents, 0700, durable. One of ours that was there and is
    /// open to others is closed to them.
    fn create_root(&self, path: &Path) -> io::Result<()>;
    /// Makes one directory, 0700. An existing one is an error.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes a file, 0600. An existing one is an error.
    fn create_log(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;
    fn open_log(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;
    /// Fails with `AlreadyExists` rather than replace.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the directory's entries durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// What stands at a path, without following it.
    fn kind(&self, path: &Path) -> io::Result<Kind>;
    /// Names in a directory; those that are not UTF-8 are left out, since no id is like that.
    fn names(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Takes the exclusive lock on a file, which is made when missing, and writes `holder` into it.
    fn lock(&self, path: &Path, holder: &[u8]) -> io::Result<LockOutcome>;
}

/// A log that is open for appending.
pub trait LogFile: Send {
    /// May write less than all.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize>;
    /// fdatasync(2).
    fn sync(&mut self) -> io::Result<()>;
    fn length(&self) -> io::Result<u64>;
    /// Whether it lost its last name since it was opened: what is written then is lost.
    fn is_removed(&self) -> io::Result<bool>;
    /// Cuts the file, and gives back what was reserved beyond the new end.
    fn set_len(&mut self, bytes: u64) -> io::Result<()>;
    /// Reserves space beyond the end without changing the length.
    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<Reserved>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Dir,
    File { bytes: u64 },
    Symlink,
    Other,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Dir => "a directory",
            Kind::File { .. } => "a file",
            Kind::Symlink => "a symbolic link",
            Kind::Other => "a device, socket or FIFO",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    Done,
    /// This file system cannot.
    Unsupported,
}

pub enum LockOutcome {
    /// Held until dropped.
    Held(Box<dyn Send>),
    /// Somebody else holds it; the bytes are what they wrote.
    Busy(Vec<u8>),
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_root(&self, path: &Path) -> io::Result<()> {
        create_missing(path)?;
        let meta = fs::metadata(path)?;
        let ours = meta.uid() == rustix::process::geteuid().as_raw();
        if ours && meta.mode() & 0o077 != 0 {
            fs::set_permissions(path, Permissions::from_mode(DIR_MODE))?;
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(DIR_MODE).create(path)
    }

    fn create_log(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let file = no_follow()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)?;
        Ok(Box::new(RealLog::new(file)?))
    }

    fn open_log(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let file = no_follow().write(true).open(path)?;
        Ok(Box::new(RealLog::new(regular(file)?)?))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let file = no_follow().read(true).open(path)?;
        Ok(Box::new(regular(file)?))
    }

    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // rename(2): EINVAL when the file system has no RENAME_NOREPLACE. A directory that is
            // not empty is not replaced by a plain rename either, and a session never is empty.
            Err(rustix::io::Errno::INVAL) => fs::rename(from, to),
            other => Ok(other?),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let meta = fs::symlink_metadata(path)?;
        let kind = meta.file_type();
        Ok(if kind.is_symlink() {
            Kind::Symlink
        } else if kind.is_dir() {
            Kind::Dir
        } else if kind.is_file() {
            Kind::File { bytes: meta.len() }
        } else {
            Kind::Other
        })
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self, path: &Path, holder: &[u8]) -> io::Result<LockOutcome> {
        let mut file = no_follow()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = Vec::new();
                file.take(HOLDER_BYTES_MAX).read_to_end(&mut text)?;
                return Ok(LockOutcome::Busy(text));
            }
            Err(e) => return Err(e.into()),
        }
        // The lock is the flock, not the text: on a full disk it is held all the same, and the
        // next opener is told of "another process".
        if let Err(e) = write_holder(&mut file, holder)
            && !is_no_space(&e)
        {
            return Err(e);
        }
        Ok(LockOutcome::Held(Box::new(Flock { file })))
    }
}

/// Makes a directory and its missing parents, each durable in the one above.
fn create_missing(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    create_missing(parent)?;
    match RealDisk.create_dir(path) {
        Ok(()) => RealDisk.sync_dir(parent),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) => Err(e),
    }
}

/// flock(2): the lock belongs to the open file, which a process that was forked and has not called
/// exec yet shares. Closing ours would leave it to that one; unlocking does not.
struct Flock {
    file: File,
}

impl Drop for Flock {
    fn drop(&mut self) {
        // It cannot fail on a descriptor that holds the lock; the close that follows unlocks too.
        rustix::fs::flock(&self.file, FlockOperation::Unlock).unwrap_or(());
    }
}

fn write_holder(file: &mut File, holder: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(holder)
}

/// O_NONBLOCK: opening a FIFO that somebody put there must not hang.
fn no_follow() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    options
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

struct RealLog {
    file: File,
    /// Some file systems count no links; they cannot be asked later either.
    named: bool,
}

impl RealLog {
    fn new(file: File) -> io::Result<Self> {
        let named = file.metadata()?.nlink() > 0;
        Ok(RealLog { file, named })
    }
}

impl LogFile for RealLog {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.named && self.file.metadata()?.nlink() == 0)
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        // ftruncate to the present length still frees blocks beyond it: ext4_setattr calls
        // ext4_truncate for that case, shmem_setattr calls shmem_truncate_range.
        self.file.set_len(bytes)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<Reserved> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        loop {
            return match fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, bytes) {
                Ok(()) => Ok(Reserved::Done),
                Err(Errno::INTR) => continue,
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Reserved::Unsupported),
                Err(e) => Err(e.into()),
            };
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn reserve(&mut self, _offset: u64, _bytes: u64) -> io::Result<Reserved> {
        Ok(Reserved::Unsupported)
    }
}
