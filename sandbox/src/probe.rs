//! Asks the kernel what a plan needs to know. A few dozen cheap system calls and no fork: the
//! broker's own set-up is the trial, and its fault the answer.

mod mountinfo;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use curfew_policy::Confinement;
use curfew_policy::confinement::Net;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::facts::{ACCOUNTS, EMPTIED, HostFacts, Kind, Node, TEMPORARY};

/// Names of one directory on the way to a closed one. A directory with more grants none of them,
/// which closes more, not less.
const WAY_ENTRIES_MAX: usize = 512;
/// resolv.conf is a few lines.
const RESOLVER_BYTES_MAX: u64 = 64 << 10;

/// The host could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{op} {}: {source}", path.display())]
pub struct ProbeError {
    pub op: &'static str,
    pub path: PathBuf,
    pub source: std::io::Error,
}

impl ProbeError {
    fn new(op: &'static str, path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self {
            op,
            path: path.to_path_buf(),
            source: source.into(),
        }
    }
}

/// Facts about this host for this confinement.
pub fn probe(confinement: &Confinement) -> Result<HostFacts, ProbeError> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    let own = own_directories(&|name| std::env::var_os(name));
    let executable = std::fs::read_link("/proc/self/exe")
        .map_err(|source| ProbeError::new("readlink", Path::new("/proc/self/exe"), source))?;
    let mut nodes = nodes(confinement, &own, &executable)?;
    forget_unreachable(confinement, &mut nodes, uid);
    let entries = entries(confinement, &nodes)?;
    let roots: Vec<&Path> = confinement.write.iter().map(PathBuf::as_path).collect();
    Ok(HostFacts {
        uid,
        gid,
        landlock_abi: curfew_cell::landlock_abi(),
        submounts: submounts(confinement)?,
        owner_gid: owner_gid(confinement, &nodes, uid),
        resolver: resolver(confinement)?,
        shell: crate::host::shell(&roots),
        nodes,
        entries,
        own,
        executable,
    })
}

/// Where curfew keeps what is its own, by the variables that can move it.
pub fn own_directories(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = absolute("HOME");
    let below = |name: &str, default: &str| {
        absolute(name)
            .or_else(|| home.as_ref().map(|home| home.join(default)))
            .map(|path| path.join("curfew"))
    };
    let found = [
        absolute("CURFEW_HOME"),
        below("XDG_STATE_HOME", ".local/state"),
        below("XDG_CONFIG_HOME", ".config"),
    ];
    found.into_iter().flatten().collect()
}

fn nodes(
    confinement: &Confinement,
    own: &[PathBuf],
    executable: &Path,
) -> Result<BTreeMap<PathBuf, Node>, ProbeError> {
    let fixed = TEMPORARY
        .iter()
        .chain(&EMPTIED)
        .chain(&ACCOUNTS)
        .map(Path::new);
    let named = [
        &confinement.write,
        &confinement.read,
        &confinement.closed,
        &confinement.private,
        &confinement.mask,
    ];
    let paths: BTreeSet<&Path> = fixed
        .chain([confinement.workspace.as_path(), executable])
        .chain(named.into_iter().flatten().map(PathBuf::as_path))
        .chain(own.iter().map(PathBuf::as_path))
        .collect();
    let mut nodes = BTreeMap::new();
    for path in paths {
        if let Some(node) = node(path)? {
            nodes.insert(path.to_path_buf(), node);
        }
    }
    Ok(nodes)
}

/// What stands at `path`, or nothing when nothing does or this process may not know.
pub fn node(path: &Path) -> Result<Option<Node>, ProbeError> {
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mut real = path.to_path_buf();
    let mut opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), no_links);
    if matches!(opened, Err(Errno::LOOP | Errno::NOSYS)) {
        real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(ProbeError::new("resolve", path, error)),
        };
        opened = rustix::fs::open(&real, flags | OFlags::NOFOLLOW, Mode::empty());
    }
    let fd = match opened {
        Ok(fd) => fd,
        Err(errno) if is_absence(&errno.into()) => return Ok(None),
        Err(errno) => return Err(ProbeError::new("open", path, errno)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|errno| ProbeError::new("fstat", path, errno))?;
    let kind = kind(FileType::from_raw_mode(stat.st_mode));
    Ok(Some(Node {
        real,
        kind,
        dev: stat.st_dev,
        ino: stat.st_ino,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }))
}

/// Root that gives itself up for the workspace's owner sees paths here that it will not reach then,
/// such as a toolchain in its own home: for the calls they are not there.
fn forget_unreachable(confinement: &Confinement, nodes: &mut BTreeMap<PathBuf, Node>, uid: u32) {
    let owner = nodes.get(&confinement.workspace).map_or(0, |node| node.uid);
    if uid != 0 || owner == 0 {
        return;
    }
    let gid = owner_gid(confinement, nodes, uid);
    nodes
        .retain(|path, node| !confinement.read.contains(path) || reachable(&node.real, owner, gid));
}

/// Whether every directory on the way may be passed by this uid, as far as modes say.
fn reachable(path: &Path, uid: u32, gid: u32) -> bool {
    path.ancestors().skip(1).all(|way| {
        rustix::fs::stat(way).is_ok_and(|stat| {
            let passes = match stat.st_uid == uid {
                true => 0o100,
                false if stat.st_gid == gid => 0o010,
                false => 0o001,
            };
            stat.st_mode & passes != 0
        })
    })
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::Directory => Kind::Directory,
        FileType::RegularFile => Kind::File,
        _ => Kind::Other,
    }
}

/// What cannot be reached by this uid cannot be reached by its calls either. A dangling symlink
/// counts as absent; a loop of them too.
fn is_absence(error: &std::io::Error) -> bool {
    let raw = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        raw,
        Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP)
    )
}

type Entries = BTreeMap<PathBuf, Vec<(PathBuf, Kind)>>;

/// The names of every directory on the way to a closed one.
fn entries(
    confinement: &Confinement,
    nodes: &BTreeMap<PathBuf, Node>,
) -> Result<Entries, ProbeError> {
    let closed = confinement.closed.iter().filter_map(|path| nodes.get(path));
    let mut ways: BTreeSet<&Path> = closed
        .flat_map(|node| node.real.ancestors().skip(1))
        .collect();
    ways.insert(Path::new("/"));
    let mut entries = BTreeMap::new();
    for way in ways {
        entries.insert(way.to_path_buf(), list(way)?);
    }
    Ok(entries)
}

fn list(directory: &Path) -> Result<Vec<(PathBuf, Kind)>, ProbeError> {
    let reader = match std::fs::read_dir(directory) {
        Ok(reader) => reader,
        // Passable but not listable (0711): nothing beside the closed directory is granted.
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(ProbeError::new("read directory", directory, error)),
    };
    let mut found = Vec::new();
    for entry in reader {
        let entry = entry.map_err(|error| ProbeError::new("read directory", directory, error))?;
        let file_type = entry
            .file_type()
            .map_err(|error| ProbeError::new("read directory", directory, error))?;
        if file_type.is_dir() {
            found.push((entry.path(), Kind::Directory));
        } else if file_type.is_file() {
            found.push((entry.path(), Kind::File));
        }
        if found.len() > WAY_ENTRIES_MAX {
            return Ok(Vec::new());
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn submounts(confinement: &Confinement) -> Result<Vec<PathBuf>, ProbeError> {
    let path = Path::new("/proc/self/mountinfo");
    let text = std::fs::read(path).map_err(|error| ProbeError::new("read", path, error))?;
    let roots = || std::iter::once(&confinement.workspace).chain(&confinement.write);
    let below = |point: &PathBuf| roots().any(|root| point != root && point.starts_with(root));
    Ok(mountinfo::mount_points(&text).filter(below).collect())
}

/// Where root gives itself up for another owner, that owner's own group comes from the account
/// file; a workspace's group alone may be one it was lent (docker, wheel).
fn owner_gid(confinement: &Confinement, nodes: &BTreeMap<PathBuf, Node>, uid: u32) -> u32 {
    let Some(node) = nodes.get(&confinement.workspace) else {
        return 0;
    };
    if uid != 0 || node.uid == 0 {
        return node.gid;
    }
    crate::host::account(node.uid).map_or(node.gid, |account| account.gid)
}

fn resolver(confinement: &Confinement) -> Result<Option<(PathBuf, String)>, ProbeError> {
    let path = Path::new("/etc/resolv.conf");
    if confinement.net != Net::Full {
        return Ok(None);
    }
    let Some(node) = node(path)?.filter(|node| node.kind == Kind::File) else {
        return Ok(None);
    };
    let read = |error| ProbeError::new("read", path, error);
    let file = std::fs::File::open(&node.real).map_err(read)?;
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut std::io::Read::take(file, RESOLVER_BYTES_MAX),
        &mut text,
    )
    .map_err(read)?;
    Ok(Some((node.real, text)))
}
