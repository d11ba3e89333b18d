//! Protected names that appeared during calls: renamed, so that nothing obeys them, or left where
//! their content can do nothing.
//!
//! Runs when no command is running, inside a call like any other file tool.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;

use crate::protocol::{Moved, Swept};

/// Different names one answer speaks of.
const NAMES_MAX: usize = 1000;
/// Directories opened for one root.
const DIRECTORIES_MAX: usize = 1000;
/// What is added to a name.
const SUFFIX: &str = ".quarantined";
/// Earlier sweeps of the same name.
const COPIES_MAX: u32 = 1000;

/// Directories that were opened, with the mode they had.
type Opened = Vec<(PathBuf, u32)>;
/// What a sweep needs of a directory.
#[cfg(target_os = "linux")]
const OWNER: u32 = 0o700;

/// What a search found that was not there before.
#[derive(Debug, Default)]
struct New {
    names: Vec<PathBuf>,
    closed: Vec<PathBuf>,
    cut: bool,
}

/// Sweeps below each root.
pub(crate) fn sweep(roots: &[String], names: &[String], known: &[String]) -> Swept {
    let known: BTreeSet<&Path> = known.iter().map(Path::new).collect();
    let mut swept = Swept::default();
    for root in roots.iter().map(Path::new) {
        // In the order of opening, and undone backwards.
        let mut opened = Vec::new();
        let found = search(root, names, &known, &mut opened);
        swept.cut |= found.cut;
        sweep_root(root, found.names, &mut opened, &mut swept);
        for (path, mode) in opened.into_iter().rev() {
            // It was ours a moment ago; what is gone needs no mode.
            swept.cut |= matches!(set_mode(&path, mode), Err(Errno::ACCESS | Errno::PERM));
        }
    }
    swept
}

fn sweep_root(root: &Path, found: Vec<PathBuf>, opened: &mut Opened, swept: &mut Swept) {
    let mut gone: Vec<PathBuf> = Vec::new();
    for path in found {
        if gone.iter().any(|above| path.starts_with(above)) {
            continue;
        }
        if swept.moved.len() + swept.kept.len() + swept.failed.len() >= NAMES_MAX {
            swept.cut = true;
            return;
        }
        settle(root, &path, opened, swept);
        gone.push(path);
    }
}

/// Names that appeared. A command can shut a directory around what it planted there: names in one
/// that nobody may list still work. It is its owner's, so it is opened for the sweep.
fn search(root: &Path, names: &[String], known: &BTreeSet<&Path>, opened: &mut Opened) -> New {
    loop {
        let found = find(root, names, known);
        let before = opened.len();
        for dir in found.closed.iter().take(DIRECTORIES_MAX - before) {
            opened.extend(open_up(dir));
        }
        if opened.len() == before {
            return New {
                cut: found.cut || !found.closed.is_empty(),
                ..found
            };
        }
    }
}

fn settle(root: &Path, path: &Path, opened: &mut Opened, swept: &mut Swept) {
    let from = path.to_string_lossy().into_owned();
    if judge::is_harmless(root, path) {
        swept.kept.push(from);
        return;
    }
    let to = rename(path).or_else(|| {
        opened.extend(open_up(path.parent()?));
        rename(path)
    });
    match to {
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

/// Lets the owner list and change a directory, and says what its mode was.
#[cfg(target_os = "linux")]
fn open_up(dir: &Path) -> Option<(PathBuf, u32)> {
    let stat = rustix::fs::lstat(dir).ok()?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let mode = stat.st_mode & 0o7777;
    if !is_directory || mode & OWNER == OWNER {
        return None;
    }
    set_mode(dir, mode | OWNER).ok()?;
    Some((dir.to_owned(), mode))
}

/// No command runs, so nobody makes a link of it; the kernel confines where one could lead.
#[cfg(target_os = "linux")]
fn set_mode(path: &Path, mode: u32) -> Result<(), Errno> {
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))
}

#[cfg(target_os = "linux")]
fn find(root: &Path, names: &[String], known: &BTreeSet<&Path>) -> New {
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
    let Ok(found) = find(root, &names, BOUNDS) else {
        return New {
            cut: true,
            ..New::default()
        };
    };
    // What a new link leads to was somebody's before; the link goes. What an old one leads to now
    // is new.
    let led_to = found
        .led_to
        .into_iter()
        .filter(|(_, link)| known.contains(root.join(link).as_path()))
        .map(|(path, _)| path);
    let mut names: Vec<PathBuf> = found.names.into_iter().chain(led_to).collect();
    names.sort();
    let here = |path: PathBuf| root.join(path);
    New {
        names: names
            .into_iter()
            .map(here)
            .filter(|path| !known.contains(path.as_path()))
            .collect(),
        closed: found.closed.into_iter().map(here).collect(),
        cut: found.cut,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_up(_: &Path) -> Option<(PathBuf, u32)> {
    None
}

#[cfg(not(target_os = "linux"))]
fn set_mode(_: &Path, _: u32) -> Result<(), Errno> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn rename(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(not(target_os = "linux"))]
fn find(_: &Path, _: &[String], _: &BTreeSet<&Path>) -> New {
    New {
        cut: true,
        ..New::default()
    }
}
