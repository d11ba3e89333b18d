//! The vocabulary of the log. A closed enum: what is not here is unknown, kept verbatim, and
//! refused unless marked ignorable. Keys are camelCase, absent rather than null, in struct order.

mod request;
mod run;
mod tools;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use request::{
    ContextWindow, FailureKind, HeaderReason, ModelFailure, ModelRetry, RequestHeader, RequestSent,
    Sampling, ToolSchema, WindowSource,
};
pub use run::{
    CheckResult, Enforcement, LimitHit, RunResult, SandboxConfinement, SandboxDenied,
    WorkspaceChanged,
};
pub use tools::{
    ApprovalAsked, ApprovalDecided, ApprovalOutcome, BlobRef, CallFacts, FileAccess, FileSeen,
    ToolCall, ToolCompleted, ToolErrorCode, ToolResult,
};

/// Line 1 of a log: what this record is, not what happened in it. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    pub version: u32,
    pub id: String,
    /// Epoch milliseconds.
    pub created_at: u64,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent_session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seed_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    pub delegation_depth: u32,
    pub agent_preset: AgentPreset,
    pub profile: String,
    /// The version of curfew that wrote it.
    pub curfew: String,
    pub host: String,
}

/// Which system prompt and tools the session was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPreset {
    pub name: String,
    /// Lowercase hex SHA-256 over the system prompt and the tool schemas.
    pub digest: String,
}

/// One record after the header, as the engine holds it. The hash belongs to the codec.
#[derive(Clone, Debug)]
pub struct Event {
    /// Zero-based and contiguous.
    pub seq: u64,
    /// Epoch milliseconds; not monotonic.
    pub time: u64,
    pub body: Body,
    pub surface_op: Option<SurfaceOp>,
    pub source_event_seqs: Option<Vec<u64>>,
    pub ignorable: bool,
}

/// How a surface node takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceOp {
    Append,
    /// The nodes from `start` to `end` (named by seq, meaning positions, inclusive) leave; this
    /// node takes the place of `start`.
    Replace {
        start: u64,
        end: u64,
    },
}

/// `type` and `data` of an event.
#[derive(Clone, Debug)]
pub enum Body {
    TurnStart(TurnStart),
    TurnEnd(TurnEnd),
    StepStart(StepMark),
    StepEnd(StepMark),
    UserMessage(UserMessage),
    AssistantChunk(AssistantChunk),
    AssistantMessage(AssistantMessage),
    ToolCall(ToolCall),
    ToolCompleted(ToolCompleted),
    ToolResult(ToolResult),
    RequestHeader(Box<RequestHeader>),
    RequestSent(RequestSent),
    ModelRetry(ModelRetry),
    ApprovalAsked(ApprovalAsked),
    ApprovalDecided(ApprovalDecided),
    SandboxConfinement(Box<SandboxConfinement>),
    SandboxDenied(SandboxDenied),
    LimitHit(LimitHit),
    WorkspaceChanged(WorkspaceChanged),
    CheckResult(CheckResult),
    Result(Box<RunResult>),
    /// A type this version does not know, verbatim.
    Unknown {
        kind: String,
        data: Box<RawValue>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnStart {
    pub turn: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnEnd {
    pub turn: u64,
    pub reason: TurnEndReason,
    /// The failure that could not be retried, when that is why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<ModelFailure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepMark {
    pub turn: u64,
    pub step: u64,
}

/// Closed. Serialized as `"completed"` … or `{"error":"provider"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnEndReason {
    Completed,
    MaxSteps,
    Cancelled,
    Blocked,
    MaxTokens,
    Error(ErrorClass),
    /// Written by cold repair only.
    Interrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    Auth,
    Provider,
    Context,
    Budget,
    NoProgress,
    Approval,
    Schema,
    Sandbox,
    Storage,
    Refusal,
}

/// Text the model sees as coming from the user's side, and where it really came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserMessage {
    pub source: MessageSource,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum MessageSource {
    /// A person typed it.
    User,
    /// An instruction file of the workspace, read through the worker.
    Instructions {
        path: String,
        sha256: String,
        cut: bool,
    },
    /// curfew itself: step limits, dropped calls, repeat reminders.
    Notice { name: String },
}

/// A coalesced piece of the model's stream. The text lives here and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssistantChunk {
    pub turn: u64,
    pub step: u64,
    /// Which request of the step: 0, then 1 for the first retry …
    pub attempt: u32,
    pub block: Block,
    /// The piece: text, reasoning, or call arguments.
    pub text: String,
}

/// Which block of the answer a piece belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Block {
    Text,
    Reasoning,
    /// `index` as the provider numbers its calls. `id` and `name` stand in the block's first piece.
    Call {
        index: u32,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        name: Option<String>,
    },
}

/// The answer of a step. Its chunks are its `sourceEventSeqs`; concatenated they are the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssistantMessage {
    pub turn: u64,
    pub step: u64,
    pub finish: Finish,
    /// In model order. `callId` is ours and unique in the session.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub calls: Vec<CallRef>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "is_false", default)]
    pub interrupted: bool,
    /// Calls that were cut by the length limit: never repaired, executed or projected.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub dropped_calls: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRef {
    pub call_id: String,
    /// The provider's block index.
    pub index: u32,
}

/// Why the model stopped, as the provider said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    /// The stream ended by our side (cancel, crash).
    Cut,
}

/// Disjoint buckets, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cache_read: Option<u64>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
