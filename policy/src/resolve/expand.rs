//! Paths as written to absolute paths, from given folders.

use std::path::{Path, PathBuf};

use super::{Asked, Host};

/// Directories of the system that some accounts have as home; closing one would close the tools.
const SYSTEM: [&str; 14] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys",
    "/tmp", "/usr", "/var",
];

/// Folders a path can begin with.
pub(super) struct Places<'a> {
    host: Host<'a>,
    workspace: &'a Path,
    /// Real paths of the operator's homes; the first is `$HOME` if that can be one.
    homes: Vec<PathBuf>,
}

/// A path a row stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub path: PathBuf,
    /// It came out of a variable, so nobody chose it for this purpose.
    pub derived: bool,
}

impl<'a> Places<'a> {
    pub fn new(asked: &'a Asked, host: &Host<'a>) -> Self {
        let mut homes: Vec<PathBuf> = Vec::new();
        for home in [host.home, host.passwd_home].into_iter().flatten() {
            let home = (host.look)(home).unwrap_or_else(|| tidy(home));
            if is_home(&home) && !homes.contains(&home) {
                homes.push(home);
            }
        }
        Self {
            host: *host,
            workspace: &asked.workspace,
            homes,
        }
    }

    pub fn look(&self, path: &Path) -> Option<PathBuf> {
        (self.host.look)(path)
    }

    /// `HOME` of a call: the operator's, or the private /tmp where there is none.
    pub fn home(&self) -> &Path {
        let home = self.homes.first().filter(|home| self.look(home).is_some());
        home.map_or(Path::new("/tmp"), PathBuf::as_path)
    }

    /// The absolute directories of the operator's PATH, in order.
    pub fn path_dirs(&self) -> Vec<PathBuf> {
        let mut dirs: Vec<PathBuf> = Vec::new();
        let path = self.host.variables.get("PATH").map_or("", String::as_str);
        for dir in path
            .split(':')
            .map(Path::new)
            .filter(|dir| dir.is_absolute())
        {
            let dir = tidy(dir);
            if !dirs.contains(&dir) && !dir.components().any(|part| part.as_os_str() == "..") {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// Why a root is too broad to be written, if it is.
    pub fn breadth(&self, real: &Path) -> Option<&'static str> {
        if real.parent().is_none() {
            return Some("is the root of the file system");
        }
        match self.homes.iter().find(|home| home.starts_with(real)) {
            Some(home) if home == real => Some("is a home directory"),
            Some(_) => Some("holds a home directory"),
            None => None,
        }
    }

    /// What a row's path stands for here: nothing, one path, or several.
    pub fn expand(&self, written: &str) -> Vec<Expanded> {
        let (head, rest) = written.split_once('/').unwrap_or((written, ""));
        let below = |root: &Path, derived| Expanded {
            path: tidy(&root.join(rest)),
            derived,
        };
        match head {
            "" => vec![below(Path::new("/"), false)],
            "~" => self.homes.iter().map(|home| below(home, false)).collect(),
            "$HOME" => self
                .homes
                .first()
                .map(|home| below(home, false))
                .into_iter()
                .collect(),
            "$WORKSPACE" => vec![below(self.workspace, false)],
            "$PATH" => self
                .path_dirs()
                .iter()
                .map(|dir| below(dir, true))
                .collect(),
            _ => {
                let name = head.trim_start_matches('$');
                let value = self.host.variables.get(name).map_or("", String::as_str);
                // KUBECONFIG and its like hold several.
                let paths = value
                    .split(':')
                    .map(Path::new)
                    .filter(|path| path.is_absolute());
                paths.map(|path| below(path, true)).collect()
            }
        }
    }
}

/// Without doubled slashes, `.` and a slash at the end.
pub(super) fn tidy(path: &Path) -> PathBuf {
    let text = path.as_os_str().as_encoded_bytes();
    let mut parts = text.split(|byte| *byte == b'/');
    if parts.next() == Some(b"") && parts.all(|part| !matches!(part, b"" | b".")) {
        return path.to_path_buf();
    }
    path.components()
        .filter(|part| part.as_os_str() != ".")
        .collect()
}

/// Whether a directory can be closed as a home without closing the system.
fn is_home(path: &Path) -> bool {
    let below_tools = ["/bin", "/dev", "/lib", "/proc", "/sbin", "/sys", "/usr"];
    path.is_absolute()
        && path.parent().is_some()
        && !SYSTEM.iter().any(|system| path == Path::new(system))
        && !below_tools.iter().any(|system| path.starts_with(system))
}
