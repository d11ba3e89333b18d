//! Mode, profile and workspace resolved to absolute facts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Mode;

/// What a call may reach outside itself over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confinement {
    pub mode: Mode,
    /// Name of the profile it came from.
    pub profile: String,
    /// Canonical absolute path.
    pub workspace: PathBuf,
    /// Roots a call may change (the workspace first, unless read-only).
    pub write: Vec<PathBuf>,
    /// Paths re-exposed read-only inside closed areas (toolchains, caches).
    pub read: Vec<PathBuf>,
    /// Directories that appear empty and private (the home, by default).
    pub closed: Vec<PathBuf>,
    /// Paths that appear as empty inodes; a read attempt is evidence.
    pub mask: Vec<PathBuf>,
    /// Names that stay read-only wherever they stand below a write root.
    pub protect: Vec<String>,
    pub net: Net,
    /// Environment of a call, complete and sorted.
    pub env: Vec<(String, String)>,
    pub limits: Limits,
    /// Whether refused and write-intent operations are observed and reported.
    pub evidence: bool,
}
