//! The three modes.

use serde::{Deserialize, Serialize};

/// How much of the workspace a call may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Calls may read; nothing on the host changes.
    ReadOnly,
    /// Calls may change the workspace and the roots the operator named.
    WorkspaceWrite,
    /// No fences. Only ever typed by the operator.
    DangerFullAccess,
}
