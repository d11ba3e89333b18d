//! What goes into the turn machine and what comes out.

use crate::event::{
    ApprovalOutcome, Block, Event, Finish, ModelFailure, SandboxDenied, ToolCompleted, TurnEndReason, Usage,
};

/// What the world tells the machine.
#[derive(Debug)]
pub enum Input {
    /// A prompt. Starts a turn, or waits until the running one ends.
    User { text: String },
    /// A piece of the model's answer, as it came off the wire.
    ModelDelta(Delta),
    /// The stream ended well: a finish reason was seen.
    ModelEnd { finish: Finish, usage: Option<Usage> },
    /// The request failed. `retry_in_ms` is what the retry rules allow for this failure, or `None`
    /// when it must not be retried.
    ModelFailed { failure: ModelFailure, retry_in_ms: Option<u64> },
    /// A refused operation of a running call.
    Denied(SandboxDenied),
    /// A call ended, whatever its outcome; `events` are facts to log beside it
    /// (`limit/hit`, `workspace/changed`).
    CallCompleted { completed: ToolCompleted, events: Vec<crate::event::Body> },
    /// The answer to an `Ask`.
    Answer { call_id: String, outcome: ApprovalOutcome },
    Timer { id: TimerId },
    /// Ctrl-C or SIGTERM.
    Cancel,
    /// Every event up to `seq` is durable.
    Persisted { seq: u64 },
    /// A write or flush failed: nothing further is done.
    PersistFailed,
}

/// A piece of a stream. Pieces of one block arrive in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    pub block: Block,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId(pub u64);

/// What the machine wants done.
#[derive(Debug)]
pub enum Effect {
    /// Write these, in order. With `barrier`, make them durable and answer `Persisted`.
    Append { events: Vec<Event>, barrier: bool },
    /// Send exactly these bytes.
    CallModel { turn: u64, step: u64, attempt: u32, body: Vec<u8> },
    /// Drop the running request.
    CancelModel,
    /// Run a tool. `arguments` is the very string that was logged and judged.
    StartCall { call_id: String, name: String, arguments: String },
    KillCall { call_id: String },
    /// Ask a person, once; no answer is a denial.
    Ask { call_id: String, name: String, arguments: String, digest: String, why: String },
    SetTimer { id: TimerId, at_ms: u64 },
    /// The turn is over; its `turn/end` has been appended.
    TurnEnded { turn: u64, reason: TurnEndReason },
}
