//! Walking a tree that may be hostile: bounded in names, depth and time, no link followed, nothing
//! opened but directories and ignore files (and those without blocking).
//!
//! Ignore rules are those of `.gitignore` and `.ignore` files below the base, by ripgrep's matcher.
//! Files above the base, the user's global file and `.git/info/exclude` do not count: what a tool
//! lists must not depend on what is outside the workspace. The walker of the `ignore` crate is not
//! used, because it opens ignore files with a plain open: a FIFO of that name would hold the call.

use std::fs::FileType;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::file::{self, Access};

/// Names looked at in one walk.
const NAMES_MAX: u64 = 400_000;
/// Directories below each other.
const DEPTH_MAX: usize = 128;
/// Bytes of one ignore file.
const IGNORE_BYTES_MAX: u64 = 256 << 10;
/// Lines of one ignore file.
const IGNORE_LINES_MAX: usize = 4096;
/// How long one walk and what is done on it may take. The wall limit of the call comes later.
pub(crate) const WALK_MS_MAX: u64 = 20_000;

/// Which names a walk leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// What ignore files name, and `.git`.
    Ignored,
    /// `.git` and caches, which are named but not entered.
    Caches,
}

/// A name that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub path: PathBuf,
    pub kind: FileType,
    /// A directory that is named and not entered.
    pub closed: bool,
}

/// Visits everything below `base`; `false` when a bound was hit and some was left out.
pub(crate) fn walk(
    base: &Path,
    skip: Skip,
    deadline: Instant,
    visit: &mut dyn FnMut(Found) -> Go,
) -> bool {
    let mut walk = Walk {
        skip,
        deadline,
        names: 0,
        whole: true,
        visit,
    };
    walk.directory(base, &mut Vec::new(), 0);
    walk.whole
}

/// When a walk that starts now has to end.
pub(crate) fn deadline() -> Instant {
    Instant::now() + Duration::from_millis(WALK_MS_MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

struct Walk<'a> {
    skip: Skip,
    deadline: Instant,
    names: u64,
    whole: bool,
    visit: &'a mut dyn FnMut(Found) -> Go,
}

impl Walk<'_> {
    /// One directory and what is below it, with the ignore files of all directories above.
    fn directory(&mut self, dir: &Path, ignores: &mut Vec<Gitignore>, depth: usize) -> Go {
        // A directory that cannot be read shows nothing, like one that is not there.
        let Ok(entries) = std::fs::read_dir(dir) else {
            return Go::On;
        };
        let before = ignores.len();
        if self.skip == Skip::Ignored {
            ignores.extend(
                [".gitignore", ".ignore"]
                    .iter()
                    .filter_map(|name| ignore_file(dir, name)),
            );
        }
        let mut below = Vec::new();
        let mut go = Go::On;
        for entry in entries {
            self.names += 1;
            if self.names > NAMES_MAX
                || (self.names.is_multiple_of(256) && Instant::now() > self.deadline)
            {
                self.whole = false;
                go = Go::Stop;
                break;
            }
            let Ok(entry) = entry else { continue };
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            if self.left_out(&path, kind, ignores) {
                continue;
            }
            let closed = kind.is_dir() && self.skip == Skip::Caches && is_cache(&path);
            if kind.is_dir() && !closed {
                below.push(path);
            } else if (self.visit)(Found { path, kind, closed }) == Go::Stop {
                self.whole = false;
                go = Go::Stop;
                break;
            }
        }
        below.sort();
        for path in below {
            if go == Go::Stop {
                break;
            }
            if depth >= DEPTH_MAX {
                self.whole = false;
                break;
            }
            go = self.directory(&path, ignores, depth + 1);
        }
        ignores.truncate(before);
        go
    }

    fn left_out(&self, path: &Path, kind: FileType, ignores: &[Gitignore]) -> bool {
        if path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        // The file nearest to a name has the last word.
        ignores
            .iter()
            .rev()
            .find_map(|ignore| match ignore.matched(path, kind.is_dir()) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            })
            .unwrap_or(false)
    }
}

/// Directories that tools fill by the thousand and mark as not worth keeping.
fn is_cache(path: &Path) -> bool {
    let named = path
        .file_name()
        .is_some_and(|name| name == "node_modules" || name == "__pycache__");
    named || std::fs::symlink_metadata(path.join("CACHEDIR.TAG")).is_ok_and(|meta| meta.is_file())
}

fn ignore_file(dir: &Path, name: &str) -> Option<Gitignore> {
    let path = dir.join(name);
    // Not there, not a file, not readable: no rules. That hides nothing.
    let opened = file::open(&path, Access::Read).ok()?;
    let mut bytes = Vec::new();
    opened
        .file
        .take(IGNORE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    let mut builder = GitignoreBuilder::new(dir);
    for line in String::from_utf8_lossy(&bytes)
        .lines()
        .take(IGNORE_LINES_MAX)
    {
        // A line that is no pattern names nothing.
        drop(builder.add_line(Some(path.clone()), line));
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests;
