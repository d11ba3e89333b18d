//! Mode, profile and workspace resolved to absolute facts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Mode, PolicyError};

/// What a call may reach outside itself over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Net {
    /// Loopback of the session only.
    Off,
    /// The host's network.
    Full,
}

/// Bounds of one call. Units are in the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    pub wall_ms: u64,
    pub memory_bytes: u64,
    pub processes: u64,
    /// Bytes of output kept as a blob; more is counted and dropped.
    pub output_bytes: u64,
    /// Size of each private area (/tmp, /dev/shm).
    pub private_bytes: u64,
}

/// Everything the kernel will be asked to enforce, independent of the host's abilities.
///
/// Of two paths in these lists the longer one governs what lies below it, whichever list it is in;
/// no path is in two lists. Paths are as the call will see them: a link on the way (`~/.cargo` that
/// points to `/data/cargo`) is followed on the host when the plan is made, and what it leads to is
/// placed at the path as written. A path of `read`, `closed` or `mask` that is missing on the host
/// is left out of the plan; one of `write` was there when this was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confinement {
    pub mode: Mode,
    /// Name of the profile it came from.
    pub profile: String,
    /// Canonical absolute path.
    pub workspace: PathBuf,
    /// Roots a call may change, canonical (the workspace first, unless read-only).
    pub write: Vec<PathBuf>,
    /// Paths shown read-only inside closed areas (toolchains, caches, a read-only workspace), or
    /// kept read-only inside a write root.
    pub read: Vec<PathBuf>,
    /// Directories inside closed areas that are writable and empty at the session's start, and
    /// never the host's: `~/.cache`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<PathBuf>,
    /// Directories that appear empty and cannot be written (the home, by default), but for what
    /// longer paths of the other lists place in them.
    pub closed: Vec<PathBuf>,
    /// Paths that appear as empty inodes; a read attempt is evidence.
    pub mask: Vec<PathBuf>,
    /// Names that stay read-only wherever they stand below a write root: relative paths, `*` for
    /// one component.
    pub protect: Vec<String>,
    pub net: Net,
    /// Environment of a call, complete and sorted.
    pub env: Vec<(String, String)>,
    pub limits: Limits,
    /// Whether refused and write-intent operations are observed and reported.
    pub evidence: bool,
}

/// What a path is to a call, by the confinement alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Not there, or an empty inode.
    Hidden,
    Read,
    /// Writable, but not the host's.
    Private,
    Write,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Access::Hidden => "hidden",
            Access::Read => "read-only",
            Access::Private => "private",
            Access::Write => "writable",
        })
    }
}

impl Confinement {
    /// What governs `path`: the longest listed path that is `path` or above it. Lexical; links are
    /// the kernel's business. For explanations and comparison, never for enforcement.
    #[must_use]
    pub fn access(&self, path: &Path) -> Access {
        if self.mode == Mode::DangerFullAccess {
            return Access::Write;
        }
        let lists = [
            (Access::Hidden, &self.mask),
            (Access::Write, &self.write),
            (Access::Private, &self.private),
            (Access::Read, &self.read),
            (Access::Hidden, &self.closed),
        ];
        let mut best: Option<(usize, Access)> = None;
        for (access, list) in lists {
            for root in list.iter().filter(|root| path.starts_with(root)) {
                let length = root.components().count();
                if best.is_none_or(|(longest, _)| length > longest) {
                    best = Some((length, access));
                }
            }
        }
        best.map_or(Access::Read, |(_, access)| access)
    }

    /// Lowercase hex SHA-256 of the canonical JSON (struct order, no spaces).
    ///
    /// # Errors
    /// When a path is not UTF-8; [`crate::resolve()`] lets none in.
    pub fn digest(&self) -> Result<String, PolicyError> {
        let bytes = serde_json::to_vec(self).map_err(|fault| PolicyError::Bug {
            what: "confinement cannot be written as JSON",
            text: fault.to_string(),
        })?;
        Ok(Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}
