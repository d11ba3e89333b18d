//! Putting content in place: whole or not at all, and never over something nobody looked at.
//!
//! The content goes to a fresh file beside the target, then takes its name. For a file that exists
//! the two names are exchanged, which shows what was replaced; if that is not the inode whose
//! content was judged, they are exchanged back. A file that does not exist yet is made under a
//! name that must not exist. Everything is relative to the directory's descriptor, so that a
//! directory that is swapped for a link in the meantime changes nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::fault::Fault;
use crate::file::Opened;
use crate::protocol::ErrorCode;

/// Names tried for the fresh file before giving up.
const TRIES_MAX: u32 = 16;
/// Permission bits that are carried over. Set-id bits are not: nothing made here may have them.
const MODE_KEPT: u32 = 0o1777;

/// A directory, held open, and a name in it.
struct Spot<'a> {
    path: &'a Path,
    dir: OwnedFd,
    name: &'a OsStr,
}

impl<'a> Spot<'a> {
    fn of(path: &'a Path) -> Result<Self, Fault> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Fault::kernel("open-write", path, Errno::ISDIR));
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, parent, flags, Mode::empty())
            .map_err(|errno| Fault::kernel("open-read", parent, errno))?;
        Ok(Spot { path, dir, name })
    }

    fn fail(&self, op: &'static str) -> impl Fn(Errno) -> Fault + '_ {
        move |errno| Fault::kernel(op, self.path, errno)
    }
}

/// A fresh file beside the target. What stands under its name in the end is removed, if it is what
/// should be there: somebody who exchanges names at the same time must not lose a file by it.
struct Fresh<'a> {
    spot: &'a Spot<'a>,
    name: String,
    file: File,
    remove: Stat,
}

impl<'a> Fresh<'a> {
    fn new(spot: &'a Spot<'a>, mode: Mode) -> Result<Self, Fault> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut tries = 0;
        loop {
            // Seeded by the process's random keys; O_EXCL is what makes it safe, this what makes
            // it likely to be free.
            let random = std::hash::RandomState::new().build_hasher().finish();
            let name = format!(".curfew-{random:016x}");
            match rustix::fs::openat(&spot.dir, &name, flags, mode) {
                Ok(fd) => {
                    let stat = rustix::fs::fstat(&fd).map_err(spot.fail("stat"))?;
                    return Ok(Fresh {
                        spot,
                        name,
                        file: File::from(fd),
                        remove: stat,
                    });
                }
                Err(Errno::EXIST) if tries < TRIES_MAX => tries += 1,
                Err(errno) => return Err(Fault::kernel("open-write", spot.path, errno)),
            }
        }
    }

    fn fill(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.file
            .write_all(content)
            .map_err(|error| Fault::io("write", self.spot.path, &error))
    }

    fn rename(&self, flags: RenameFlags) -> Result<(), Errno> {
        let Spot { dir, name, .. } = self.spot;
        rustix::fs::renameat_with(dir, self.name.as_str(), dir, *name, flags)
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        let (dir, name) = (&self.spot.dir, self.name.as_str());
        let there = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|stat| same_file(&stat, &self.remove)) {
            // The error that led here is the one to report, not this one.
            rustix::fs::unlinkat(dir, name, AtFlags::empty()).unwrap_or(());
        }
    }
}

/// Replaces the file that `opened` is with `content`, if its name still leads to it and its bytes
/// are still `present`, those that were judged.
pub(crate) fn replace(opened: &mut Opened, present: &[u8], content: &[u8]) -> Result<(), Fault> {
    let real = opened.real.clone();
    let spot = Spot::of(&real)?;
    let named = rustix::fs::statat(&spot.dir, spot.name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(spot.fail("stat"))?;
    if !same_file(&named, &opened.stat) {
        return Err(stale(&opened.real));
    }
    let mode = Mode::from_raw_mode((opened.stat.st_mode & MODE_KEPT) as _);
    let mut fresh = Fresh::new(&spot, Mode::RUSR | Mode::WUSR)?;
    fresh.fill(content)?;
    rustix::fs::fchmod(&fresh.file, mode).map_err(spot.fail("chmod"))?;
    match fresh.rename(RenameFlags::EXCHANGE) {
        Ok(()) => {}
        // Some file systems cannot exchange; then the look above is the last one.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if opened.content()? != present {
                return Err(stale(&opened.real));
            }
            let plain = rustix::fs::renameat(&spot.dir, fresh.name.as_str(), &spot.dir, spot.name);
            plain.map_err(spot.fail("rename"))?;
            return Ok(());
        }
        Err(errno) => return Err(spot.fail("rename")(errno)),
    }
    // What was replaced now has the fresh file's name. If it is not what was judged, give it back.
    let replaced = rustix::fs::statat(&spot.dir, fresh.name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
    let as_judged = replaced.is_ok_and(|stat| same_file(&stat, &opened.stat))
        && opened.content().is_ok_and(|now| now == present);
    if !as_judged {
        fresh
            .rename(RenameFlags::EXCHANGE)
            .map_err(spot.fail("rename"))?;
        return Err(stale(&opened.real));
    }
    fresh.remove = opened.stat;
    Ok(())
}

/// Makes a file that must not exist, with the directories above it. With a link that leads
/// nowhere in its place, makes what the link names, if the kernel allows it.
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<(), Fault> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|error| Fault::io("mkdir", &crate::file::best_real(parent), &error))?;
    }
    let new = Mode::from_raw_mode(0o666);
    if rustix::fs::lstat(path).is_ok_and(|stat| is_link(&stat)) {
        return through_link(path, content, new);
    }
    let spot = Spot::of(path)?;
    let mut fresh = Fresh::new(&spot, new)?;
    fresh.fill(content)?;
    let made = match fresh.rename(RenameFlags::NOREPLACE) {
        // Where rename cannot promise that, link can: it never replaces.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(
            &spot.dir,
            fresh.name.as_str(),
            &spot.dir,
            spot.name,
            AtFlags::empty(),
        ),
        made => made,
    };
    match made {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(stale(path)),
        Err(errno) => Err(spot.fail("rename")(errno)),
    }
}

/// O_CREAT without O_EXCL follows the link; what it made is empty, or it is somebody else's.
fn through_link(path: &Path, content: &[u8], mode: Mode) -> Result<(), Fault> {
    let real = crate::file::best_real(path);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fail = |errno| Fault::kernel("open-write", &real, errno);
    let fd = rustix::fs::openat(CWD, path, flags, mode).map_err(fail)?;
    let stat = rustix::fs::fstat(&fd).map_err(fail)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile
        || stat.st_size != 0
    {
        return Err(stale(path));
    }
    File::from(fd)
        .write_all(content)
        .map_err(|error| Fault::io("write", &real, &error))
}

fn is_link(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink
}

fn same_file(a: &Stat, b: &Stat) -> bool {
    a.st_dev == b.st_dev && a.st_ino == b.st_ino
}

fn stale(path: &Path) -> Fault {
    let text = format!(
        "{} was changed by something else at this moment; read it again",
        path.display()
    );
    Fault::new(ErrorCode::Stale, "open-write", path, text)
}

#[cfg(test)]
mod tests;
