//! `-o FILE`: the last answer, in a file of the operator's.
//!
//! The directory is opened before the agent runs, and the file is made in that very directory under
//! a new name and renamed: whatever the agent puts in its place in the meantime (a link, another
//! directory) is replaced or left alone, never followed.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};

use crate::fault::Fault;

#[derive(Debug)]
pub struct OutFile {
    folder: OwnedFd,
    name: PathBuf,
    shown: PathBuf,
}

impl OutFile {
    pub fn open(path: &Path) -> Result<Self, Fault> {
        let refused = |why: &str| Fault::usage(format!("-o {}: {why}", path.display()));
        let name = path.file_name().ok_or_else(|| refused("names no file"))?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(refused("is a directory").remedy("name a file in it"));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, folder, flags, Mode::empty())
            .map_err(|errno| refused(&format!("its directory cannot be opened ({errno})")))?;
        Ok(OutFile {
            folder,
            name: PathBuf::from(name),
            shown: path.to_owned(),
        })
    }

    pub fn write(&self, text: &str) -> Result<(), Fault> {
        let temp = PathBuf::from(format!(".curfew-{}", uuid::Uuid::now_v7().simple()));
        let written = self.create(&temp, text).and_then(|()| {
            renameat(&self.folder, &temp, &self.folder, &self.name).map_err(std::io::Error::from)
        });
        written.map_err(|error| {
            let left = match unlinkat(&self.folder, &temp, AtFlags::empty()) {
                // It may not have been made at all.
                Ok(()) | Err(rustix::io::Errno::NOENT) => String::new(),
                Err(errno) => format!("; {} was left behind ({errno})", temp.display()),
            };
            Fault::storage(format!(
                "cannot write {}: {error}{left}",
                self.shown.display()
            ))
        })
    }

    fn create(&self, temp: &Path, text: &str) -> std::io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(
            &self.folder,
            temp,
            flags,
            Mode::from_raw_mode(0o666),
        )?);
        file.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        file.sync_all()
    }
}
