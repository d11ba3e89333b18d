//! Where protected names stand below a root: one bounded walk, each directory read once.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, readlinkat, statat,
};

use crate::fault::At;
use crate::plan::ProtectedName;
use crate::protocol::SetupFault;

#[cfg(test)]
mod tests;

/// How far a scan goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub entries_max: u64,
    pub depth_max: u32,
}

/// What it found, relative to the root and parents first.
#[derive(Debug, Default)]
pub struct Scanned {
    pub names: BTreeSet<PathBuf>,
    pub cut: bool,
}

/// Directories are followed only within the mount of the root and never through a symbolic link.
const WITHIN: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// Symbolic links to symbolic links.
const LINKS_MAX: u32 = 8;
const READ_BYTES: usize = 32 << 10;
/// A repository's own directory holds thousands of objects and no projects.
const REPOSITORY: &str = ".git";

/// Finds `names` below `root`.
pub fn find(root: &Path, names: &[ProtectedName], bounds: Bounds) -> Result<Scanned, SetupFault> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = || openat2(CWD, root, flags, Mode::empty(), no_links).at_path("protect", root);
    let anywhere = Names::of(names.iter().filter(|name| name.any_depth));
    let at_top = Names::of(names.iter().filter(|name| !name.any_depth));
    let mut scan = Scan {
        root,
        top: open()?,
        anywhere: &anywhere,
        bounds,
        entries: 0,
        space: vec![MaybeUninit::uninit(); READ_BYTES],
        found: Scanned::default(),
    };
    scan.walk(
        open()?,
        Path::new(""),
        0,
        &[&anywhere, &at_top],
        Reach::Everywhere,
    );
    Ok(scan.found)
}

/// Names as a tree of components.
#[derive(Debug, Default)]
struct Names {
    below: Vec<(Pattern, Names)>,
    /// A name ends here.
    end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    /// Folded.
    Is(OsString),
}

impl Names {
    fn of<'a>(names: impl Iterator<Item = &'a ProtectedName>) -> Self {
        let mut top = Names::default();
        for name in names {
            let mut at = &mut top;
            for part in Path::new(&name.name).components() {
                let pattern = match part.as_os_str() {
                    any if any == "*" => Pattern::Any,
                    name => Pattern::Is(fold(name)),
                };
                let place = at.below.iter().position(|(known, _)| *known == pattern);
                let place = place.unwrap_or_else(|| {
                    at.below.push((pattern, Names::default()));
                    at.below.len() - 1
                });
                at = &mut at.below[place].1;
            }
            at.end = true;
        }
        top
    }

    fn matching<'a>(&'a self, folded: &OsStr) -> impl Iterator<Item = &'a Names> {
        let fits = move |pattern: &Pattern| match pattern {
            Pattern::Any => true,
            Pattern::Is(name) => name == folded,
        };
        self.below
            .iter()
            .filter(move |(pattern, _)| fits(pattern))
            .map(|(_, names)| names)
    }
}

/// Whether a directory is searched for projects, or only for the rest of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Everywhere,
    NamesOnly,
}

struct Scan<'a> {
    root: &'a Path,
    top: OwnedFd,
    anywhere: &'a Names,
    bounds: Bounds,
    entries: u64,
    space: Vec<MaybeUninit<u8>>,
    found: Scanned,
}

impl<'a> Scan<'a> {
    /// A directory that cannot be read is the call's loss too: the call runs as the same uid.
    fn walk(
        &mut self,
        dir: OwnedFd,
        relative: &Path,
        depth: u32,
        active: &[&'a Names],
        reach: Reach,
    ) {
        for (name, kind) in self.read(dir.as_fd()) {
            let folded = fold(os(&name));
            let hits: Vec<&Names> = active
                .iter()
                .flat_map(|names| names.matching(&folded))
                .collect();
            let path = relative.join(os(&name));
            let deeper: Vec<&Names> = hits
                .iter()
                .copied()
                .filter(|names| !names.below.is_empty())
                .collect();
            if hits.iter().any(|names| names.end) {
                self.found.names.insert(path.clone());
            }
            match kind {
                FileType::Directory | FileType::Unknown => {
                    let reach = if folded == REPOSITORY {
                        Reach::NamesOnly
                    } else {
                        reach
                    };
                    self.descend(&dir, &name, (&path, depth), deeper, reach);
                }
                FileType::Symlink if !hits.is_empty() => self.follow(path, &deeper),
                // A file in the place of a directory: `.git` of a linked worktree is a pointer.
                _ if !deeper.is_empty() => {
                    self.found.names.insert(path);
                }
                _ => {}
            }
        }
    }

    fn descend(
        &mut self,
        dir: &OwnedFd,
        name: &CStr,
        (path, depth): (&Path, u32),
        mut active: Vec<&'a Names>,
        reach: Reach,
    ) {
        if reach == Reach::Everywhere {
            active.push(self.anywhere);
        }
        if active.is_empty() {
            return;
        }
        if depth >= self.bounds.depth_max {
            self.found.cut = true;
            return;
        }
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if let Ok(child) = openat2(dir, name, flags, Mode::empty(), WITHIN) {
            self.walk(child, path, depth + 1, &active, reach);
        }
    }

    /// A link in the place of a name, or of a directory on the way to one: it stays, and so does
    /// what it leads to.
    fn follow(&mut self, mut link: PathBuf, deeper: &[&'a Names]) {
        for _ in 0..LINKS_MAX {
            self.found.names.insert(link.clone());
            let Some(target) = self.target(&link) else {
                return;
            };
            let kind = statat(&self.top, &target, AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| FileType::from_raw_mode(stat.st_mode));
            match kind {
                Ok(FileType::Symlink) => link = target,
                Ok(FileType::Directory) if !deeper.is_empty() => {
                    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                    if let Ok(child) = openat2(&self.top, &target, flags, Mode::empty(), WITHIN) {
                        self.walk(child, &target, 0, deeper, Reach::NamesOnly);
                    }
                    return;
                }
                Ok(_) => {
                    self.found.names.insert(target);
                    return;
                }
                Err(_) => return,
            }
        }
        self.found.cut = true;
    }

    /// Where a link leads, if that is below the root and no further link is on the way.
    fn target(&self, link: &Path) -> Option<PathBuf> {
        let text = readlinkat(&self.top, link, Vec::new()).ok()?;
        let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
        let from_root = match text.strip_prefix(self.root) {
            Ok(inside) => inside.to_path_buf(),
            Err(_) if text.is_absolute() => return None,
            Err(_) => link.parent()?.join(text),
        };
        let mut clean = PathBuf::new();
        for part in from_root.components() {
            match part {
                Component::Normal(name) => clean.push(name),
                Component::CurDir => {}
                Component::ParentDir if clean.pop() => {}
                _ => return None,
            }
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = openat2(&self.top, &clean, flags, Mode::empty(), WITHIN);
        (open.is_ok() && !clean.as_os_str().is_empty()).then_some(clean)
    }

    /// All of a directory at once: the walk below needs the buffer again.
    fn read(&mut self, dir: BorrowedFd<'_>) -> Vec<(CString, FileType)> {
        let mut names = Vec::new();
        let mut entries = RawDir::new(dir, &mut self.space);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > self.bounds.entries_max {
                self.found.cut = true;
                break;
            }
            names.push((name.to_owned(), entry.file_type()));
        }
        names
    }
}

/// How names compare: some file systems ignore case, and git ignores code points of no width
/// (CVE-2014-9390).
fn fold(name: &OsStr) -> OsString {
    let Some(text) = name.to_str() else {
        return name.to_owned();
    };
    if text.is_ascii() {
        return text.to_ascii_lowercase().into();
    }
    let visible = text.chars().filter(|c| !is_invisible(*c));
    visible
        .flat_map(char::to_lowercase)
        .collect::<String>()
        .into()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
