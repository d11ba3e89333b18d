//! What the broker tells a call's init, and what init and the command tell the broker, before the
//! command is executed and after it ended. All three are our own code; the command proper never holds this socket.

use serde::{Deserialize, Serialize};

use crate::plan::CallLimits;
use crate::protocol::{SetupFault, What};

/// What the broker tells an init: the one call it is for. Attached are stdin, stdout, stderr, for a
/// worker its socket, and what is to be held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Order {
    Call {
        what: What,
        limits: CallLimits,
        held: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Report {
    /// The filter stands; its listener is attached.
    Listener,
    /// The command was executed, or the worker entered.
    Started,
    /// A step failed; nothing of the command ran.
    NotRun { fault: SetupFault },
    /// The main process ended, and what it left behind was counted and is being ended.
    Exited { exit: Exit },
}

/// How the main process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Processes still there when the main process had ended and the drain was over.
    pub background: u32,
    /// Those that could not be ended.
    pub survivors: u32,
}
