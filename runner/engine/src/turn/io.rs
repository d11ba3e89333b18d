//! What goes into the turn machine and what comes out.

use crate::event::{
    ApprovalOutcome, Block, Event, Finish, ModelFailure, SandboxDenied, ToolCompleted,
    TurnEndReason, Usage,
};

/// What the world tells the machine.
#[derive(Debug)]
pub enum Input {
    /// A prompt. Starts a turn; while one runs it is queued and joins it before its next request,
    /// or starts the next turn when that never comes.
    User {
        text: String,
    },
    /// A piece of the model's answer, as it came off the wire. What belongs to another request than
    /// the running one (it was cancelled while pieces were on their way) is ignored.
    ModelDelta {
        request: RequestId,
        delta: Delta,
    },
    /// The stream ended well: a finish reason was seen.
    ModelEnd {
        request: RequestId,
        finish: Finish,
        usage: Option<Usage>,
    },
    /// The request failed. `retry_in_ms` is what the retry rules allow for this failure, or `None`
    /// when it must not be retried.
    ModelFailed {
        request: RequestId,
        failure: ModelFailure,
        retry_in_ms: Option<u64>,
    },
    /// A refused operation of a running call.
    Denied(SandboxDenied),
    /// A call ended, whatever its outcome; `events` are facts to log beside it
    /// (`limit/hit`, `workspace/changed`).
    CallCompleted {
        completed: ToolCompleted,
        events: Vec<crate::event::Body>,
    },
    /// The answer to an `Ask`, for the arguments that were shown.
    Answer {
        call_id: String,
        digest: String,
        outcome: ApprovalOutcome,
    },
    Timer {
        id: TimerId,
    },
    /// Ctrl-C or SIGTERM.
    Cancel,
    /// The run's wall time is over: like `Cancel`, and the turn ends with `error{budget}`.
    TimeUp,
    /// Every event up to `seq` is durable.
    Persisted {
        seq: u64,
    },
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

/// One request on the wire; a retry has its own. Unique in the life of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub u64);

/// What the machine wants done.
#[derive(Debug)]
pub enum Effect {
    /// Write these, in order. With `barrier`, make them durable and answer `Persisted`.
    Append {
        events: Vec<Event>,
        barrier: bool,
    },
    /// Send exactly these bytes.
    CallModel {
        request: RequestId,
        turn: u64,
        step: u64,
        attempt: u32,
        body: Vec<u8>,
    },
    /// Drop this request.
    CancelModel {
        request: RequestId,
    },
    /// Run a tool. `arguments` is the very string that was logged and judged.
    StartCall {
        call_id: String,
        name: String,
        arguments: String,
    },
    KillCall {
        call_id: String,
    },
    /// Ask a person, once; no answer is a denial.
    Ask {
        call_id: String,
        name: String,
        arguments: String,
        digest: String,
        why: String,
    },
    SetTimer {
        id: TimerId,
        at_ms: u64,
    },
    /// The turn is over; its `turn/end` has been appended (but not when the reason is
    /// `error{storage}`: then nothing more can be). `unclaimed` are queued prompts that no turn took.
    TurnEnded {
        turn: u64,
        reason: TurnEndReason,
        unclaimed: Vec<String>,
    },
}
