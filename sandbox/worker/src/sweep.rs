//! Protected names that appeared during calls: renamed, so that nothing obeys them, or left where
//! their content can do nothing.
//!
//! Runs when no command is running, inside a call like any other file tool.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::protocol::{Moved, Swept};

/// Different names one answer speaks of.
const NAMES_MAX: usize = 1000;
/// What is added to a name.
const SUFFIX: &str = ".quarantined";
/// Earlier sweeps of the same name.
const COPIES_MAX: u32 = 1000;

/// Sweeps below each root.
pub(crate) fn sweep(roots: &[String], names: &[String], known: &[String]) -> Swept {
    let known: BTreeSet<&Path> = known.iter().map(Path::new).collect();
    let mut swept = Swept::default();
    for root in roots.iter().map(Path::new) {
        let (found, cut) = find(root, names);
        swept.cut |= cut;
        let mut gone: Vec<PathBuf> = Vec::new();
        for path in found
            .into_iter()
            .filter(|path| !known.contains(path.as_path()))
        {
            if gone.iter().any(|above| path.starts_with(above)) {
                continue;
            }
            if swept.moved.len() + swept.kept.len() + swept.failed.len() >= NAMES_MAX {
                swept.cut = true;
                break;
            }
            settle(root, &path, &mut swept);
            gone.push(path);
        }
    }
    swept
}

fn settle(root: &Path, path: &Path, swept: &mut Swept) {
    let from = path.to_string_lossy().into_owned();
    if judge::is_harmless(root, path) {
        swept.kept.push(from);
        return;
    }
    match rename(path) {
        Some(to) => swept.moved.push(Moved {
            from,
            to: to.to_string_lossy().into_owned(),
        }),
        None => swept.failed.push(from),
    }
}

/// To a free name beside it.
#[cfg(target_os = "linux")]
fn rename(path: &Path) -> Option<PathBuf> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    for copy in 0..COPIES_MAX {
        let mut name = path.file_name()?.to_owned();
        name.push(SUFFIX);
        if copy > 0 {
            name.push(format!(".{copy}"));
        }
        let to = path.with_file_name(name);
        match renameat_with(CWD, path, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => return Some(to),
            Err(Errno::EXIST) => {}
            Err(_) => return None,
        }
    }
    None
}

#[cfg(target_os = "linux")]
fn find(root: &Path, names: &[String]) -> (Vec<PathBuf>, bool) {
    use curfew_cell::names::{Bounds, find};
    use curfew_cell::plan::ProtectedName;
    /// As far as the search at the start goes.
    const BOUNDS: Bounds = Bounds {
        entries_max: 100_000,
        depth_max: 16,
    };
    let names: Vec<ProtectedName> = names
        .iter()
        .map(|name| ProtectedName {
            name: name.clone(),
            any_depth: true,
        })
        .collect();
    match find(root, &names, BOUNDS) {
        Ok(found) => (
            found.names.iter().map(|name| root.join(name)).collect(),
            found.cut,
        ),
        Err(_) => (Vec::new(), true),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(not(target_os = "linux"))]
fn find(_: &Path, _: &[String]) -> (Vec<PathBuf>, bool) {
    (Vec::new(), true)
}
