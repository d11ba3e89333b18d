//! Which directory a run works in. Looked at from outside only: its own inode, never what is below.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use curfew_policy::Mode;
use rustix::fs::{Access, access};

use crate::fault::Fault;

/// Whether a run may own this directory; a warning where it may only read. `homes` are `$HOME` and
/// the account's home.
pub fn judge(path: &Path, mode: Mode, homes: &[PathBuf]) -> Result<Option<String>, Fault> {
    let at = path.display();
    let wide = too_wide(path, homes);
    match (mode, wide) {
        (Mode::ReadOnly, wide) => Ok(wide.map(|what| format!("workspace {at} {what}"))),
        (_, Some(what)) => {
            let fault = Fault::usage(format!("workspace {at} {what}: a run would own all of it"));
            Err(fault.remedy("name a project below it with -C, or use --mode read-only"))
        }
        (_, None) => writable(path).map(|()| None),
    }
}

/// An existing directory, canonical; a symlink in its place is refused.
pub fn directory(typed: &Path, role: &str) -> Result<PathBuf, Fault> {
    let at = typed.display();
    // `link/` is looked up behind the link; without its end it is the link (path_resolution(7)).
    let bare: PathBuf = typed.components().collect();
    let meta = match fs::symlink_metadata(&bare) {
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
