//! Which directory a run works in. Looked at from outside only: its own inode, never what is below.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use curfew_policy::Mode;
use rustix::fs::{Access, access};

use crate::fault::Fault;

/// A directory that may be worked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Absolute, without symlinks.
    pub path: PathBuf,
    /// What the operator should know, although it is no error.
    pub warning: Option<String>,
}

/// `-C DIR`, or the current directory. `homes` are `$HOME` and the account's home.
pub fn resolve(typed: Option<&Path>, mode: Mode, homes: &[PathBuf]) -> Result<Workspace, Fault> {
    let path = directory(typed.unwrap_or(Path::new(".")), "workspace")?;
    let mut warning = None;
    if let Some(what) = too_wide(&path, homes) {
        let at = path.display();
        if mode != Mode::ReadOnly {
            let fault = Fault::usage(format!("workspace {at} {what}: a run would own all of it"));
            return Err(fault.remedy("name a project below it with -C, or use --mode read-only"));
        }
        warning = Some(format!("workspace {at} {what}"));
    }
    if mode != Mode::ReadOnly {
        writable(&path)?;
    }
    Ok(Workspace { path, warning })
}

/// An existing directory, canonical; a symlink in its place is refused.
pub fn directory(typed: &Path, role: &str) -> Result<PathBuf, Fault> {
    let at = typed.display();
    let meta = match fs::symlink_metadata(typed) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Fault::usage(format!("{role} {at} does not exist"))
                .remedy("create it, or name another"));
        }
        Err(error) => {
            return Err(Fault::usage(format!(
                "{role} {at} cannot be looked at: {error}"
            )));
        }
    };
    if meta.is_symlink() {
        let fault = Fault::usage(format!("{role} {at} is a symlink"));
        return Err(match fs::canonicalize(typed) {
            Ok(real) => fault.remedy(format!("name where it leads: {}", real.display())),
            Err(_) => fault.remedy("it leads nowhere; name a directory"),
        });
    }
    if !meta.is_dir() {
        return Err(
            Fault::usage(format!("{role} {at} is not a directory")).remedy("name a directory")
        );
    }
    fs::canonicalize(typed)
        .map_err(|error| Fault::usage(format!("{role} {at} cannot be resolved: {error}")))
}

fn too_wide(path: &Path, homes: &[PathBuf]) -> Option<&'static str> {
    if path == Path::new("/") {
        return Some("is the root of the file system");
    }
    let real = |home: &PathBuf| fs::canonicalize(home).unwrap_or_else(|_| home.clone());
    // A home of `/` (some daemons) is covered by the line above; every path is below it.
    let homes = homes.iter().map(real).filter(|home| home != Path::new("/"));
    homes
        .into_iter()
        .find_map(|home| match home.starts_with(path) {
            true if home == path => Some("is the home directory"),
            true => Some("contains the home directory"),
            false => None,
        })
}

fn writable(path: &Path) -> Result<(), Fault> {
    let Err(errno) = access(path, Access::WRITE_OK | Access::EXEC_OK) else {
        return Ok(());
    };
    let owner = fs::metadata(path).map_or_else(
        |_| String::from("another uid"),
        |meta| format!("uid {}", meta.uid()),
    );
    let fault = Fault::usage(format!(
        "workspace {} belongs to {owner} and cannot be written to ({errno})",
        path.display()
    ));
    Err(fault.remedy("run curfew as its owner, or use --mode read-only"))
}

#[cfg(test)]
mod tests;
