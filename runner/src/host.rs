//! What the runner knows of its host and user: read once, from outside any workspace.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use curfew_policy::gitconfig::{GITCONFIG_BYTES_MAX, Identity, identity};

use crate::config::Environment;

/// An account file larger than this is not read.
const PASSWD_BYTES_MAX: u64 = 4 << 20;
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"];

/// Who runs curfew, and with what.
#[derive(Clone, Debug)]
pub struct Host {
    pub home: Option<PathBuf>,
    pub passwd_home: Option<PathBuf>,
    pub user: String,
    /// The operator's environment, as far as it is UTF-8.
    pub variables: BTreeMap<String, String>,
    pub identity: Identity,
    pub name: String,
}

impl Host {
    pub fn read(environment: &Environment) -> Self {
        let account = account(rustix::process::geteuid().as_raw());
        let (user, passwd_home) = match account {
            Some((user, home)) => (user, Some(home)),
            None => (String::from("curfew"), None),
        };
        let name = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Host {
            home: environment.home.clone(),
            passwd_home,
            user,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            identity: git_identity(environment),
            name,
        }
    }

    /// `$HOME` and the account's home.
    pub fn homes(&self) -> Vec<PathBuf> {
        self.home.iter().chain(&self.passwd_home).cloned().collect()
    }
}

/// The first usual shell outside every granted root, by its real path: what a call runs must not
/// be something a call can replace.
pub fn shell(roots: &[PathBuf]) -> Option<PathBuf> {
    let real = SHELLS
        .iter()
        .filter_map(|shell| fs::canonicalize(shell).ok());
    real.into_iter()
        .find(|shell| !roots.iter().any(|root| shell.starts_with(root)))
}

/// Name and home of an account.
fn account(uid: u32) -> Option<(String, PathBuf)> {
    let mut text = String::new();
    File::open("/etc/passwd")
        .ok()?
        .take(PASSWD_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, _, _, home, ..] = fields.as_slice() else {
            return None;
        };
        (id.parse() == Ok(uid)).then(|| ((*name).to_owned(), PathBuf::from(home)))
    })
}

fn git_identity(environment: &Environment) -> Identity {
    let home = environment.home.as_deref();
    let xdg = environment
        .config_home
        .clone()
        .or_else(|| home.map(|home| home.join(".config")));
    let files = [
        Some(PathBuf::from("/etc/gitconfig")),
        xdg.map(|folder| folder.join("git/config")),
        home.map(|home| home.join(".gitconfig")),
    ];
    let texts: Vec<String> = files
        .into_iter()
        .flatten()
        .filter_map(|file| bounded(&file))
        .collect();
    identity(texts.iter().map(String::as_str))
}

/// The beginning of a regular file; a missing or odd one says nothing.
fn bounded(file: &Path) -> Option<String> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file)
        .ok()?
        .take(GITCONFIG_BYTES_MAX as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
