//! What can be wrong with a profile, a flag or a workspace. One line each: what, where, the remedy.

use std::path::PathBuf;

use crate::nearest::UnknownName;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("profile {profile}: line {line}: {text}")]
    Syntax {
        profile: String,
        line: usize,
        text: String,
    },
    #[error("profile {profile}: line {line}: {name}")]
    UnknownKey {
        profile: String,
        line: usize,
        name: UnknownName,
    },
    #[error("profile {profile}: {key}: {text}")]
    Value {
        profile: String,
        key: String,
        text: String,
    },
    #[error("{name}; a file given as a path works too")]
    UnknownProfile { name: UnknownName },
    #[error("profile {profile}: extends itself by way of {by}")]
    ExtendsCycle { profile: String, by: String },
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    #[error("{key} {path}: no such directory on this host; create it, or mark the row `optional = true`", path = .path.display())]
    MissingRoot { key: &'static str, path: PathBuf },
    #[error("{what} {path}: {text}", path = .path.display())]
    Refused {
        what: &'static str,
        path: PathBuf,
        text: String,
    },
    #[error("environment: {text}")]
    Env { text: String },
    #[error("internal: {what}: {text}")]
    Bug { what: &'static str, text: String },
}
