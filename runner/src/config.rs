//! The user's configuration, and where curfew keeps things. Never read from a workspace.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;

use crate::fault::{Fault, nearest};

/// A configuration file larger than this is not one.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

const KEYS: [&str; 8] = [
    "model",
    "baseUrl",
    "keyFile",
    "keyCommand",
    "contextWindow",
    "firstByteSeconds",
    "idleSeconds",
    "profile",
];

/// `config.toml`, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    pub model: Option<String>,
    pub base_url: Option<String>,
    /// A file that holds the key and nothing else.
    pub key_file: Option<PathBuf>,
    /// A shell command that prints the key.
    pub key_command: Option<String>,
    /// Tokens the model's window holds.
    pub context_window: Option<u64>,
    /// How long a server may take to begin an answer.
    pub first_byte_seconds: Option<u64>,
    /// How long it may be silent in the middle of one.
    pub idle_seconds: Option<u64>,
    pub profile: Option<String>,
}

/// The environment, read once. What is not here is not read.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub home: Option<PathBuf>,
    pub curfew_home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
    pub state_home: Option<PathBuf>,
    pub base_url: Option<String>,
    pub no_color: bool,
}

impl Environment {
    pub fn read() -> Self {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |value: OsString| value.into_string().ok();
        Environment {
            home: var("HOME").map(PathBuf::from),
            curfew_home: var("CURFEW_HOME").map(PathBuf::from),
            config_home: var("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
            state_home: var("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
            base_url: var("OPENAI_BASE_URL").and_then(text),
            no_color: var("NO_COLOR").is_some(),
        }
    }

    /// Where sessions live.
    pub fn state_dir(&self) -> Result<PathBuf, Fault> {
        if let Some(root) = &self.curfew_home {
            return absolute(root, "CURFEW_HOME");
        }
        match (&self.state_home, etcetera::base_strategy::Xdg::new()) {
            (Some(state), _) => Ok(state.join("curfew")),
            (None, Ok(xdg)) => Ok(xdg
                .state_dir()
                .unwrap_or_else(|| xdg.home_dir().join(".local/state"))
                .join("curfew")),
            (None, Err(_)) => Err(homeless()),
        }
    }

    /// Where the user's configuration lives.
    pub fn config_dir(&self) -> Option<PathBuf> {
        match (&self.curfew_home, &self.config_home, &self.home) {
            (Some(root), _, _) => Some(root.clone()),
            (None, Some(config), _) => Some(config.join("curfew")),
            (None, None, Some(home)) => Some(home.join(".config/curfew")),
            (None, None, None) => None,
        }
    }

    fn config_file(&self) -> Option<PathBuf> {
        self.config_dir().map(|folder| folder.join("config.toml"))
    }

    pub fn config(&self) -> Result<Config, Fault> {
        match self.config_file() {
            Some(file) => load(&file),
            None => Ok(Config::default()),
        }
    }
}

fn absolute(path: &Path, name: &str) -> Result<PathBuf, Fault> {
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    Err(Fault::usage(format!(
        "{name} is not an absolute path: {}",
        path.display()
    ))
    .remedy(format!("set {name} to one")))
}

fn homeless() -> Fault {
    Fault::storage("no home directory is known, so there is no place for sessions")
        .remedy("set HOME or CURFEW_HOME")
}

fn load(file: &Path) -> Result<Config, Fault> {
    let at = file.display();
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => return Err(Fault::usage(format!("cannot read {at}: {error}"))),
        Ok(meta) if !meta.is_file() => {
            return Err(Fault::usage(format!("{at} is not a regular file")));
        }
        Ok(meta) if meta.len() > CONFIG_BYTES_MAX => {
            return Err(Fault::usage(format!(
                "{at} is larger than {CONFIG_BYTES_MAX} bytes"
            )));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(file)
        .map_err(|error| Fault::usage(format!("cannot read {at}: {error}")))?;
    parse(&text).map_err(|fault| Fault {
        what: format!("{at}: {}", fault.what),
        ..fault
    })
}

fn parse(text: &str) -> Result<Config, Fault> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| Fault::usage(toml_line(&error, text)))?;
    for key in table.keys() {
        if !KEYS.contains(&key.as_str()) {
            let remedy = match nearest(key, KEYS) {
                Some(known) => format!("did you mean '{known}'?"),
                None => format!("known keys are {}", KEYS.join(", ")),
            };
            return Err(Fault::usage(format!("unknown key '{key}'")).remedy(remedy));
        }
    }
    toml::from_str(text).map_err(|error| Fault::usage(toml_line(&error, text)))
}

fn toml_line(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

#[cfg(test)]
mod tests;
