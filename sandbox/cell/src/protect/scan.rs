//! Where protected names stand below a root: one bounded walk, each directory read once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, fstat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

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
    /// What links in the place of names lead to and through, and the link it was reached by.
    pub led_to: BTreeMap<PathBuf, PathBuf>,
    /// Directories that this uid may not list. It may still own them, and what is in them works.
    pub closed: Vec<PathBuf>,
    pub cut: bool,
}

/// Directories are followed only within the mount of the root and never through a symbolic link.
const WITHIN: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// Symbolic links on the way of one, as in the kernel (path_resolution(7)).
const LINKS_MAX: u32 = 40;
const READ_BYTES: usize = 32 << 10;
/// A repository's own directory holds thousands of objects and no projects.
const REPOSITORY: &str = ".git";
/// Hundreds of directories and no repository: `**` does not go there.
const OBJECTS: &str = "objects";

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
        left: VecDeque::new(),
        followed: BTreeSet::new(),
        found: Scanned::default(),
    };
    scan.list(open()?, Dir::top(vec![&anywhere, &at_top]));
    // Near ones first: a bound must cut what is deep and not what stands at the root.
    while let Some(dir) = scan.left.pop_front() {
        scan.enter(dir);
    }
    Ok(scan.found)
}

/// Names as a tree of components.
#[derive(Debug, Default)]
struct Names {
    below: Vec<(Pattern, Names)>,
    /// A name ends here.
    end: bool,
    /// Behind `**`: goes on in every directory below.
    deep: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    /// Any number of directories, none included.
    Deep,
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
                    deep if deep == "**" => Pattern::Deep,
                    name => Pattern::Is(fold(name)),
                };
                let place = at.below.iter().position(|(known, _)| *known == pattern);
                let place = place.unwrap_or_else(|| {
                    let deep = pattern == Pattern::Deep;
                    let names = Names {
                        deep,
                        ..Names::default()
                    };
                    at.below.push((pattern, names));
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
            Pattern::Deep => false,
            Pattern::Is(name) => name == folded,
        };
        self.below
            .iter()
            .filter(move |(pattern, _)| fits(pattern))
            .map(|(_, names)| names)
    }

    /// With what `**` stands for no directory in.
    fn unfold<'a>(&'a self, into: &mut Vec<&'a Names>) {
        into.push(self);
        for (pattern, names) in &self.below {
            if *pattern == Pattern::Deep {
                names.unfold(into);
            }
        }
    }
}

/// Whether a directory is searched for projects, or only for the rest of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Everywhere,
    NamesOnly,
}

/// A directory that is to be read.
struct Dir<'a> {
    path: PathBuf,
    depth: u32,
    active: Vec<&'a Names>,
    reach: Reach,
}

impl<'a> Dir<'a> {
    fn top(active: Vec<&'a Names>) -> Self {
        Self {
            path: PathBuf::new(),
            depth: 0,
            active,
            reach: Reach::Everywhere,
        }
    }
}

struct Scan<'a> {
    root: &'a Path,
    top: OwnedFd,
    anywhere: &'a Names,
    bounds: Bounds,
    entries: u64,
    space: Vec<MaybeUninit<u8>>,
    left: VecDeque<Dir<'a>>,
    /// Links that were followed, and for which names.
    followed: BTreeSet<(PathBuf, Vec<*const Names>)>,
    found: Scanned,
}

impl<'a> Scan<'a> {
    fn enter(&mut self, dir: Dir<'a>) {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match openat2(&self.top, &dir.path, flags, Mode::empty(), WITHIN) {
            Ok(open) => self.list(open, dir),
            Err(Errno::XDEV) => self.enter_pinned(dir),
            Err(Errno::ACCESS) => self.found.closed.push(dir.path),
            // Gone or replaced: nothing of this root.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(_) => self.found.cut = true,
        }
    }

    /// Another mount, or below one. A directory that leads to a pinned name is a mount too, of
    /// itself, and new names in it count; a foreign one has another device than what is above it.
    fn enter_pinned(&mut self, dir: Dir<'a>) {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let within = WITHIN.difference(ResolveFlags::NO_XDEV);
        let above = match dir.path.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            Some(_) | None => Path::new("."),
        };
        let above = statat(&self.top, above, AtFlags::SYMLINK_NOFOLLOW);
        match openat2(&self.top, &dir.path, flags, Mode::empty(), within) {
            Ok(open) => match (fstat(&open), above) {
                (Ok(found), Ok(above)) if found.st_dev == above.st_dev => self.list(open, dir),
                (Ok(_), Ok(_)) => {}
                (Err(_), _) | (_, Err(_)) => self.found.cut = true,
            },
            Err(Errno::ACCESS) => self.found.closed.push(dir.path),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(_) => self.found.cut = true,
        }
    }

    fn list(&mut self, open: OwnedFd, dir: Dir<'a>) {
        let mut active = Vec::new();
        dir.active
            .iter()
            .for_each(|names| names.unfold(&mut active));
        for (name, kind) in self.read(open.as_fd()) {
            let folded = fold(os(&name));
            let hits: Vec<&Names> = active
                .iter()
                .flat_map(|names| names.matching(&folded))
                .collect();
            let path = dir.path.join(os(&name));
            let mut deeper: Vec<&Names> = hits
                .iter()
                .copied()
                .filter(|names| !names.below.is_empty())
                .collect();
            if hits.iter().any(|names| names.end) {
                self.found.names.insert(path.clone());
            }
            let is_directory = matches!(kind, FileType::Directory | FileType::Unknown);
            // A file in the place of a directory: `.git` of a linked worktree is a pointer.
            if !is_directory && kind != FileType::Symlink && !deeper.is_empty() {
                self.found.names.insert(path.clone());
            }
            if folded != OBJECTS {
                deeper.extend(active.iter().filter(|names| names.deep));
            }
            if is_directory {
                self.descend(&dir, path, &folded, deeper);
            } else if kind == FileType::Symlink && !(hits.is_empty() && deeper.is_empty()) {
                self.follow(path, deeper);
            }
        }
    }

    /// Where names lead goes before where they may be.
    fn descend(&mut self, dir: &Dir<'a>, path: PathBuf, folded: &OsStr, names: Vec<&'a Names>) {
        let is_on_the_way = !names.is_empty();
        let mut active = names;
        let reach = if folded == REPOSITORY {
            Reach::NamesOnly
        } else {
            dir.reach
        };
        if reach == Reach::Everywhere {
            active.push(self.anywhere);
        }
        if active.is_empty() {
            return;
        }
        if dir.depth >= self.bounds.depth_max {
            self.found.cut = true;
            return;
        }
        let next = Dir {
            path,
            depth: dir.depth + 1,
            active,
            reach,
        };
        if is_on_the_way {
            self.left.push_front(next);
        } else {
            self.left.push_back(next);
        }
    }

    /// A link in the place of a name, or of a directory on the way to one: it stays, and so does
    /// every link it leads through, and what it leads to.
    fn follow(&mut self, link: PathBuf, deeper: Vec<&'a Names>) {
        let names = deeper.iter().map(|names| std::ptr::from_ref(*names));
        if !self.followed.insert((link.clone(), names.collect())) {
            return;
        }
        self.found.names.insert(link.clone());
        let Some((target, kind)) = self.resolve(&link) else {
            return;
        };
        if kind != FileType::Directory || deeper.is_empty() {
            self.found.led_to.entry(target).or_insert(link);
            return;
        }
        self.left.push_front(Dir {
            path: target,
            depth: 0,
            active: deeper,
            reach: Reach::NamesOnly,
        });
    }

    /// Where a link leads, if that is below the root; links on the way are noted. By name and not
    /// by descriptor: what is found is looked up again, without links, by whoever uses it.
    fn resolve(&mut self, link: &Path) -> Option<(PathBuf, FileType)> {
        let mut at = self.root.join(link.parent()?);
        let mut left = parts(Path::new(link.file_name()?));
        let mut links = 0;
        let mut kind = FileType::Directory;
        while let Some(part) = left.pop() {
            if part == ".." {
                at.pop();
                kind = FileType::Directory;
                continue;
            }
            let next = at.join(&part);
            let stat = statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            kind = FileType::from_raw_mode(stat.st_mode);
            if kind != FileType::Symlink {
                at = next;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                self.found.cut = true;
                return None;
            }
            match next.strip_prefix(self.root) {
                Ok(inside) if inside != link => {
                    let origin = link.to_path_buf();
                    self.found.led_to.entry(inside.into()).or_insert(origin);
                }
                Ok(_) | Err(_) => {}
            }
            let text = readlinkat(CWD, &next, Vec::new()).ok()?;
            let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
            if text.is_absolute() {
                at = PathBuf::from("/");
            }
            left.extend(parts(&text));
        }
        let target = at.strip_prefix(self.root).ok()?;
        (!target.as_os_str().is_empty()).then(|| (target.to_path_buf(), kind))
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

/// Components, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
