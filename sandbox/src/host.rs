//! What the policy needs to be told about the operator's account: folders, name, shell, variables,
//! git identity. Read from the environment and the account file, never from a workspace.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use curfew_policy::gitconfig::{GITCONFIG_BYTES_MAX, Identity, identity};
use curfew_policy::{Asked, PolicyError, Profile, Resolved};

#[cfg(test)]
mod tests;

/// The account file is read up to here.
const PASSWD_BYTES_MAX: u64 = 4 << 20;
/// Shells that are looked for, best first.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"];

/// The operator's account on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    pub home: Option<PathBuf>,
    pub passwd_home: Option<PathBuf>,
    pub user: String,
    /// The environment, as far as it is UTF-8.
    pub variables: BTreeMap<String, String>,
}

/// One account as the account file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub gid: u32,
    pub home: PathBuf,
}

impl Operator {
    /// Whose calls on `workspace` would be: this process's user, or the workspace's owner where
    /// root gives itself up for that one.
    pub fn of(workspace: &Path) -> Self {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let own = rustix::process::geteuid().as_raw();
        let owner = std::fs::metadata(workspace).map_or(own, |found| found.uid());
        let uid = if own == 0 { owner } else { own };
        let account = account(uid);
        let absolute = |path: &PathBuf| path.is_absolute();
        Self {
            home: variables.get("HOME").map(PathBuf::from).filter(absolute),
            user: account
                .as_ref()
                .map_or_else(|| name_of(uid, &variables), |account| account.name.clone()),
            passwd_home: account.map(|account| account.home).filter(absolute),
            variables,
        }
    }

    /// Who commits are by, from the user's own git configuration, parsed and not run.
    pub fn git_identity(&self) -> Identity {
        let xdg = self
            .variables
            .get("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let config = xdg.or_else(|| self.home.as_ref().map(|home| home.join(".config")));
        let files = [
            config.map(|config| config.join("git/config")),
            self.home.as_ref().map(|home| home.join(".gitconfig")),
        ];
        let texts: Vec<String> = files
            .into_iter()
            .flatten()
            .filter_map(|path| read(&path, GITCONFIG_BYTES_MAX as u64))
            .collect();
        identity(texts.iter().map(String::as_str))
    }

    /// The policy's resolution with this operator's facts.
    pub fn resolve(&self, profile: &Profile, asked: &Asked) -> Result<Resolved, PolicyError> {
        let roots: Vec<&Path> = std::iter::once(&asked.workspace)
            .chain(&asked.add_dirs)
            .map(PathBuf::as_path)
            .collect();
        let shell = shell(&roots);
        let host = curfew_policy::Host {
            home: self.home.as_deref(),
            passwd_home: self.passwd_home.as_deref(),
            user: &self.user,
            shell: &shell,
            variables: &self.variables,
            look: &real_path,
        };
        curfew_policy::resolve(profile, asked, &host)
    }
}

/// The real path of what stands at `path`. One call for most paths, where realpath(3) makes one for
/// each component: a profile names a hundred.
fn real_path(path: &Path) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2, readlink};
        let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), no_links) {
            // Without a link on the way and without a dot in it, a path is its own real path.
            Ok(_) if is_plain(path) => return Some(path.to_path_buf()),
            Err(rustix::io::Errno::NOENT) => return None,
            Ok(_) | Err(_) => {}
        }
        let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&place));
        let text = readlink(link, Vec::new()).ok()?;
        let real: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(text.into_bytes());
        Some(PathBuf::from(real))
    }
    #[cfg(not(target_os = "linux"))]
    std::fs::canonicalize(path).ok()
}

/// Absolute, without `.`, `..`, doubled slashes and a slash at the end.
#[cfg(target_os = "linux")]
fn is_plain(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mut parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    parts.next() == Some(b"") && parts.all(|part| !matches!(part, b"" | b"." | b".."))
}

/// The first usual shell that no call can replace.
pub fn shell(roots: &[&Path]) -> PathBuf {
    let real = SHELLS
        .iter()
        .filter_map(|path| std::fs::canonicalize(path).ok());
    real.into_iter()
        .find(|path| !roots.iter().any(|root| path.starts_with(root)))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

/// The account of `uid`. A host that keeps its accounts elsewhere (LDAP) has none here.
pub fn account(uid: u32) -> Option<Account> {
    parse_account(&read(Path::new("/etc/passwd"), PASSWD_BYTES_MAX)?, uid)
}

fn parse_account(passwd: &str, uid: u32) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, found) = (fields.next()?, fields.next()?, fields.next()?);
        let (gid, _, home) = (fields.next()?, fields.next()?, fields.next()?);
        let matches = found.parse() == Ok(uid) && !name.is_empty();
        let account = || {
            Some(Account {
                name: name.to_owned(),
                gid: gid.parse().ok()?,
                home: PathBuf::from(home),
            })
        };
        matches.then(account).flatten()
    })
}

fn name_of(uid: u32, variables: &BTreeMap<String, String>) -> String {
    variables
        .get("USER")
        .filter(|name| !name.is_empty())
        .cloned()
        .unwrap_or_else(|| uid.to_string())
}

/// The start of a regular file, or nothing. Opened without blocking: a FIFO in a home is no file.
fn read(path: &Path, bytes_max: u64) -> Option<String> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .ok()?
        .take(bytes_max)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
