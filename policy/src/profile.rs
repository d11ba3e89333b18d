//! Profiles: TOML that says what a mode grants on this host.
//!
//! Keys: `extends`, `mode`, `read`, `write`, `mask`, `protect`, `net`, `env`, `limits`, `evidence`.
//! A row of a list is a string or a table (`{ path = "~/x", optional = true, why = "…" }`). Later
//! layers add rows; for `mode`, `net`, `evidence` and each limit the last word counts. A profile
//! that extends nothing by name extends `default`: an empty profile is not an open home.

mod built_in;
mod raw;

use std::borrow::Cow;

use crate::confinement::Net;
use crate::{Mode, PolicyError, nearest};

pub use raw::parse;

/// The profile that stands in for none.
pub const DEFAULT: &str = "default";
/// Profiles that extend profiles.
const DEPTH_MAX: usize = 8;
/// A profile is a page, not a database.
pub const PROFILE_BYTES_MAX: usize = 256 << 10;
/// Rows of one list of one profile.
pub const ROWS_MAX: usize = 1024;

/// One profile with everything it extends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    pub extends: Option<String>,
    pub mode: Option<Mode>,
    pub read: Vec<Row>,
    pub write: Vec<Row>,
    pub mask: Vec<Row>,
    /// Names at any depth below a write root; the built-in ones are always among them.
    pub protect: Vec<ProtectRow>,
    pub net: Option<Net>,
    pub env: Vec<EnvRow>,
    pub limits: LimitRows,
    pub evidence: Option<bool>,
}

/// A path as written, with what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub path: Cow<'static, str>,
    /// A missing path is no error.
    pub optional: bool,
    pub kind: RowKind,
    pub origin: Origin,
    pub why: Option<Cow<'static, str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    Plain,
    /// In `write`: writable, empty at the start, never the host's.
    Private,
    /// In `mask`: an empty directory in which longer rows are placed.
    Closed,
}

/// Who wrote a row. Built-in rows help; they never narrow what the operator granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectRow {
    pub name: Cow<'static, str>,
    pub why: Option<Cow<'static, str>>,
}

/// A variable of a call: passed on, or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvRow {
    pub name: String,
    /// Absent: the operator's own value, if there is one.
    pub value: Option<String>,
}

impl EnvRow {
    /// `NAME` or `NAME=value`.
    ///
    /// # Errors
    /// One sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<EnvRow, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let mut bytes = name.bytes();
        let starts_well = bytes
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !starts_well || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(format!(
                "`{name}` is no variable name; write NAME or NAME=value"
            ));
        }
        if value.as_deref().is_some_and(|value| value.contains('\0')) {
            return Err(format!("{name}: a value cannot hold NUL"));
        }
        Ok(EnvRow {
            name: name.to_owned(),
            value,
        })
    }
}

/// Limits a profile names; absent ones come from what it extends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRows {
    pub wall_ms: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub output_bytes: Option<u64>,
    pub private_bytes: Option<u64>,
}

impl Profile {
    /// The profile `name` with all it extends. `text` finds profiles that are not built in (the
    /// operator's own files, read by the caller and never from a workspace).
    ///
    /// # Errors
    /// The first thing that is wrong, with profile, line and remedy.
    pub fn load(name: &str, text: &dyn Fn(&str) -> Option<String>) -> Result<Profile, PolicyError> {
        let mut layers = Vec::new();
        let mut next = Some(name.to_owned());
        while let Some(name) = next {
            if layers.len() == DEPTH_MAX || layers.iter().any(|layer: &Profile| layer.name == name)
            {
                let by = layers
                    .last()
                    .map_or_else(String::new, |layer| layer.name.clone());
                return Err(PolicyError::ExtendsCycle { profile: name, by });
            }
            let layer = Self::layer(&name, text)?;
            next = layer
                .extends
                .clone()
                .or_else(|| (name != DEFAULT).then(|| DEFAULT.to_owned()));
            layers.push(layer);
        }
        let mut whole = layers.iter().rev().fold(Profile::default(), Profile::over);
        name.clone_into(&mut whole.name);
        whole
            .protect
            .splice(0..0, built_in::PROTECTED.iter().cloned());
        Ok(whole)
    }

    fn layer(name: &str, text: &dyn Fn(&str) -> Option<String>) -> Result<Profile, PolicyError> {
        if name == DEFAULT {
            return built_in::default();
        }
        match text(name) {
            Some(text) => parse(name, &text, Origin::Operator),
            None => Err(PolicyError::UnknownProfile {
                name: nearest::unknown("profile", name, &[DEFAULT]),
            }),
        }
    }

    /// `self` with `layer` on top.
    fn over(mut self, layer: &Profile) -> Profile {
        self.mode = layer.mode.or(self.mode);
        self.net = layer.net.or(self.net);
        self.evidence = layer.evidence.or(self.evidence);
        self.read.extend_from_slice(&layer.read);
        self.write.extend_from_slice(&layer.write);
        self.mask.extend_from_slice(&layer.mask);
        self.protect.extend_from_slice(&layer.protect);
        self.env.extend_from_slice(&layer.env);
        let (below, above) = (self.limits, layer.limits);
        self.limits = LimitRows {
            wall_ms: above.wall_ms.or(below.wall_ms),
            memory_bytes: above.memory_bytes.or(below.memory_bytes),
            processes: above.processes.or(below.processes),
            output_bytes: above.output_bytes.or(below.output_bytes),
            private_bytes: above.private_bytes.or(below.private_bytes),
        };
        self
    }
}

#[cfg(test)]
mod tests;
