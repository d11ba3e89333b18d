//! The environment of a call, built from nothing. What is not named here or asked for by the
//! operator does not reach a call; keys never do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::PolicyError;
use crate::gitconfig::{Identity, clean};
use crate::profile::EnvRow;

/// Where programs are looked for when the operator's PATH leaves nothing.
const PATH_FALLBACK: &str = "/usr/local/bin:/usr/bin:/bin";
/// Names that no flag and no profile passes on: curfew's own provider keys.
pub const NEVER: [&str; 1] = ["OPENAI_API_KEY"];
/// A value of one variable; the kernel's own bound is 128 KiB for a string.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Of the operator's environment, passed on as they are (there are no secrets in them).
const PLAIN: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Variables that are passed on because the operator happens to have them, not because anybody
/// asked: where toolchains are (the built-in profile's `env`) and how text looks. A resumed run
/// does without those its session did not have.
pub(crate) const INCIDENTAL: [&str; 17] = [
    "CARGO_HOME",
    "CONDA_PREFIX",
    "DOTNET_ROOT",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "NVM_DIR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "TZ",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// What an environment is made of.
pub(crate) struct Parts<'a> {
    pub host: &'a BTreeMap<String, String>,
    pub home: &'a Path,
    pub user: &'a str,
    pub shell: &'a Path,
    pub path: &'a [PathBuf],
    pub identity: &'a Identity,
    /// The profile's rows, then the operator's: the last word counts.
    pub rows: Vec<&'a EnvRow>,
}

/// Complete and sorted.
pub(crate) fn compose(parts: &Parts<'_>) -> Result<Vec<(String, String)>, PolicyError> {
    let mut env = fixed(parts)?;
    for name in PLAIN {
        if let Some(value) = parts.host.get(name) {
            env.insert(name.to_owned(), value.clone());
        }
    }
    for (name, fallback) in git_names(parts.identity) {
        // The operator's own GIT_AUTHOR_NAME beats the configuration, as it does in git.
        let own = parts
            .host
            .get(name)
            .map(|value| clean(value))
            .filter(|value| !value.is_empty());
        env.insert(name.to_owned(), own.unwrap_or_else(|| fallback.clone()));
    }
    for row in &parts.rows {
        if NEVER.contains(&row.name.as_str()) {
            let text = format!("{} is curfew's own key and never reaches a call", row.name);
            return Err(PolicyError::Env { text });
        }
        match row.value.as_ref().or_else(|| parts.host.get(&row.name)) {
            Some(value) => env.insert(row.name.clone(), value.clone()),
            // Asked for, but the operator has none: nothing to pass on.
            None => continue,
        };
    }
    match env
        .iter()
        .find(|(_, value)| value.len() > VALUE_BYTES_MAX || value.contains('\0'))
    {
        Some((name, _)) => Err(PolicyError::Env {
            text: format!("{name} is longer than {VALUE_BYTES_MAX} bytes or holds NUL"),
        }),
        None => Ok(env.into_iter().collect()),
    }
}

fn fixed(parts: &Parts<'_>) -> Result<BTreeMap<String, String>, PolicyError> {
    let path = match parts.path {
        [] => PATH_FALLBACK.to_owned(),
        dirs => {
            let dirs: Result<Vec<&str>, _> = dirs.iter().map(|dir| utf8(dir)).collect();
            dirs?.join(":")
        }
    };
    let pairs = [
        ("CURFEW", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("HOME", utf8(parts.home)?),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", parts.user),
        ("PAGER", "cat"),
        ("PATH", &path),
        ("SHELL", utf8(parts.shell)?),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("USER", parts.user),
    ];
    Ok(pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

fn git_names(identity: &Identity) -> [(&'static str, &String); 4] {
    [
        ("GIT_AUTHOR_NAME", &identity.name),
        ("GIT_AUTHOR_EMAIL", &identity.email),
        ("GIT_COMMITTER_NAME", &identity.name),
        ("GIT_COMMITTER_EMAIL", &identity.email),
    ]
}

fn utf8(path: &Path) -> Result<&str, PolicyError> {
    path.to_str().ok_or_else(|| PolicyError::Refused {
        what: "path",
        path: path.to_path_buf(),
        text: "not UTF-8; rename it".to_owned(),
    })
}
