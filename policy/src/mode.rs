//! The three modes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much of the workspace a call may change. Ordered from less to more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Calls may read; nothing on the host changes.
    ReadOnly,
    /// Calls may change the workspace and the roots the operator named.
    WorkspaceWrite,
    /// No fences. Only ever typed by the operator.
    DangerFullAccess,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess];

    /// As it is typed and logged.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::WorkspaceWrite => "workspace-write",
            Mode::DangerFullAccess => "danger-full-access",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Mode {
    type Err = crate::nearest::UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        crate::nearest::pick("mode", text, &Mode::ALL, |mode| mode.as_str())
    }
}
