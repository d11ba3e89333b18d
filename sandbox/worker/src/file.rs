//! Opening and reading without ever blocking.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::FILE_BYTES_MAX;
use crate::fault::{Fault, bad_request};
use crate::protocol::ErrorCode;

/// A regular file that is open, and which one it is.
#[derive(Debug)]
pub(crate) struct Opened {
    pub file: File,
    pub stat: Stat,
    /// Every symlink resolved, by the kernel.
    pub real: PathBuf,
}

/// Where `path` begins is `cwd`, unless it is absolute.
pub(crate) fn absolute(cwd: &Path, path: &str) -> Result<PathBuf, Fault> {
    if path.is_empty() {
        return Err(bad_request("the path is empty"));
    }
    if path.contains('\0') {
        return Err(bad_request("a path cannot hold NUL"));
    }
    Ok(cwd.join(path).components().collect())
}

/// Opens a regular file for reading, and with `write` for writing too (which shows whether it may
/// be replaced). A FIFO or device of that name is not waited for and not touched.
pub(crate) fn open(path: &Path, access: Access) -> Result<Opened, Fault> {
    let (op, mode) = match access {
        Access::Read => ("open-read", OFlags::RDONLY),
        Access::Write => ("open-write", OFlags::RDWR),
    };
    let fail = |errno| Fault::kernel(op, &best_real(path), errno);
    // Opening some devices does something; a look at the name keeps from most of them. What is
    // opened in the end is judged below.
    let named = rustix::fs::stat(path).map_err(fail)?;
    refuse_special(path, op, &named)?;
    // O_NONBLOCK: a FIFO put here in the meantime must not hold the call (fifo(7)).
    let flags = mode | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(fail)?;
    let stat = rustix::fs::fstat(&fd).map_err(fail)?;
    refuse_special(path, op, &stat)?;
    let real = real_path(&fd, path)?;
    Ok(Opened {
        file: File::from(fd),
        stat,
        real,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

fn refuse_special(path: &Path, op: &str, stat: &Stat) -> Result<(), Fault> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory; use glob to list it",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "no regular file",
    };
    let text = format!("{} is {what}", path.display());
    Err(Fault::new(ErrorCode::NotAFile, op, path, text))
}

/// The path behind a descriptor. The kernel keeps it through renames of the file.
#[cfg(target_os = "linux")]
fn real_path(fd: impl std::os::fd::AsFd, path: &Path) -> Result<PathBuf, Fault> {
    use std::os::fd::AsRawFd as _;
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let real = std::fs::read_link(&link).map_err(|error| Fault::io("resolve", path, &error))?;
    // An unlinked file has no path; the kernel says so in words (proc_pid_fd(5)).
    if real.to_string_lossy().ends_with(" (deleted)") && rustix::fs::stat(&real).is_err() {
        return Err(Fault::kernel("open-read", path, Errno::NOENT));
    }
    Ok(real)
}

#[cfg(not(target_os = "linux"))]
fn real_path(_fd: impl std::os::fd::AsFd, path: &Path) -> Result<PathBuf, Fault> {
    std::fs::canonicalize(path).map_err(|error| Fault::io("resolve", path, &error))
}

/// Where a refused path really leads, as far as it can be found out: evidence should name the
/// target of a link, not the link. Nothing is decided by it.
pub(crate) fn best_real(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    // A link that leads nowhere yet names what would be made.
    let leads = std::fs::read_link(path).map(|to| path.parent().unwrap_or(path).join(to));
    let path = leads.as_deref().unwrap_or(path);
    let beside = path
        .parent()
        .and_then(|parent| std::fs::canonicalize(parent).ok());
    match (beside, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.to_path_buf(),
    }
}

impl Opened {
    /// The whole content from its beginning, if it is not too large. The size of the inode is not
    /// trusted: files of /proc say 0 and give more, and a file can grow.
    pub fn content(&mut self) -> Result<Vec<u8>, Fault> {
        let too_large = |real: &Path| {
            let text = format!(
                "{} is larger than {} MiB; look at it with bash (head, grep, sed)",
                real.display(),
                FILE_BYTES_MAX >> 20
            );
            Fault::new(ErrorCode::TooLarge, "open-read", real, text)
        };
        if u64::try_from(self.stat.st_size).is_ok_and(|size| size > FILE_BYTES_MAX) {
            return Err(too_large(&self.real));
        }
        let fail = |error| Fault::io("read", &self.real, &error);
        self.file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut content = Vec::new();
        (&self.file)
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut content)
            .map_err(fail)?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return Err(too_large(&self.real));
        }
        Ok(content)
    }
}

/// Lowercase hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests;
