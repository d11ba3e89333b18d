//! What the supervisor and a broker say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::plan::{CallLimits, Plan};

/// Supervisor to broker. `call` carries file descriptors: stdin, stdout, stderr, and for a worker
/// its frame socket as the fourth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ToBroker {
    /// First frame, once.
    Plan { plan: Box<Plan> },
    /// Make a call.
    Call {
        call: u64,
        what: What,
        limits: CallLimits,
    },
    /// End a call now.
    Kill { call: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// Run a program. `argv[0]` is an absolute path.
    Command {
        argv: Vec<String>,
        env: Vec<(String, String)>,
        cwd: PathBuf,
    },
    /// Run the file worker on the frame socket.
    Worker { cwd: PathBuf },
}

/// Broker to supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FromBroker {
    /// The namespaces stand; calls can be made.
    Ready { facts: ReadyFacts },
    /// The plan could not be carried out. Nothing ran.
    Failed { fault: SetupFault },
    /// The command was executed (EOF on the close-on-exec status pipe).
    Started { call: u64 },
    /// The call could not be set up. Nothing ran.
    NotRun { call: u64, fault: SetupFault },
    /// An operation was refused, or is predicted to be.
    Denied { call: u64, denial: Denial },
    /// The main process ended and everything below it is gone.
    Ended { call: u64, end: CallEnd },
}

/// What the broker found while it set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyFacts {
    /// Protected names that were found and pinned.
    pub pinned: Vec<PathBuf>,
    /// The scan for protected names hit its bound; what lies beyond is unprotected.
    pub scan_cut: bool,
    /// Syscall evidence works (the listener was accepted by the kernel).
    pub listener: bool,
    /// pid_max of the PID namespace can be set (Linux 6.14 and later).
    pub pid_max: bool,
}

/// A step of set-up that failed: what, where, which errno, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupFault {
    pub step: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<PathBuf>,
    pub errno: i32,
    pub text: String,
}

/// How far a denial can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The kernel refused it, seen by us.
    Kernel,
    /// The file worker met the refusal.
    Worker,
    /// Foreseen from the arguments; the kernel decided afterwards.
    Predicted,
}

/// A refused operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// `open-write`, `unlink`, `socket`, `mount`, `read-masked` …
    pub op: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<String>,
    pub errno: i32,
    /// `mounts`, `landlock`, `seccomp`, `namespaces`, `caps`, `limits`.
    pub layer: String,
    pub rule: String,
    /// How a person would allow it, or why nobody can.
    pub remedy: String,
    pub trust: Trust,
    pub count: u64,
}

impl std::hash::Hash for Trust {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        core::mem::discriminant(self).hash(state);
    }
}

/// Facts about an ended call, reported separately; nothing is inferred from output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallEnd {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    /// The wall limit ended it.
    pub timed_out: bool,
    /// The supervisor asked for its end.
    pub killed: bool,
    /// Processes that were still there when the main process had ended, and were ended.
    pub background: u32,
    /// Of those, the ones that could not be ended (only without a PID namespace).
    #[serde(default)]
    pub survivors: u32,
    pub wall_us: u64,
}

/// Protected names that were found after a command and not before; of a broker in place.
#[derive(Debug, Default)]
pub struct Appeared {
    pub names: Vec<PathBuf>,
    /// The look hit its bound: there may be more.
    pub cut: bool,
}
