//! The vocabulary of the log. A closed enum: what is not here is unknown, kept verbatim, and
//! refused unless marked ignorable. Keys are camelCase, absent rather than null, in struct order.

use curfew_policy::{Confinement, GuaranteeReport};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurfaceOp {
    Append,
    /// The nodes from `start` to `end` (named by seq, meaning positions, inclusive) leave; this
    /// node takes the place of `start`.
    Replace { start: u64, end: u64 },
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
    Unknown { kind: String, data: Box<RawValue> },
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
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum MessageSource {
    /// A person typed it.
    User,
    /// An instruction file of the workspace, read through the worker.
    Instructions { path: String, sha256: String, cut: bool },
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
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
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

/// The intent to run a tool. Durable before the effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCall {
    pub turn: u64,
    pub step: u64,
    pub call_id: String,
    /// The provider's id; may be empty, duplicated or reused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model_id: Option<String>,
    pub name: String,
    /// Raw, as the model wrote it; possibly not JSON.
    pub arguments: String,
}

/// What a call produced, logged at once, in order of completion. Not a surface node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCompleted {
    pub call_id: String,
    /// What the model will see.
    pub content: String,
    pub is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ToolErrorCode>,
    pub facts: CallFacts,
    /// Files read or written, with how much of them the model has now seen.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<FileSeen>,
    /// Whole raw output, when `content` is a cut of it or it was not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blob: Option<BlobRef>,
}

/// Codes of results the supervisor writes itself; those of tools are `Tool(code)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolErrorCode {
    #[serde(rename = "TOOL_OUTCOME_UNKNOWN")]
    OutcomeUnknown,
    #[serde(rename = "TOOL_NOT_STARTED")]
    NotStarted,
    #[serde(rename = "ABORTED_BEFORE_DISPATCH")]
    AbortedBeforeDispatch,
    #[serde(rename = "CANCELLED")]
    Cancelled,
    #[serde(rename = "UNKNOWN_TOOL")]
    UnknownTool,
    #[serde(rename = "INVALID_ARGUMENTS")]
    InvalidArguments,
    #[serde(rename = "APPROVAL_DENIED")]
    ApprovalDenied,
    #[serde(rename = "SANDBOX_FAILED")]
    SandboxFailed,
    /// A tool's own code, kebab-case (`not-found`, `stale` …).
    #[serde(untagged)]
    Tool(String),
}

/// Facts about a call, each on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallFacts {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "is_false", default)]
    pub timed_out: bool,
    #[serde(skip_serializing_if = "is_false", default)]
    pub killed: bool,
    /// Bytes of output in all, kept or not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_bytes: Option<u64>,
    #[serde(skip_serializing_if = "is_false", default)]
    pub truncated: bool,
    #[serde(skip_serializing_if = "is_zero", default)]
    pub denied: u32,
    #[serde(skip_serializing_if = "is_zero", default)]
    pub background: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wall_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSeen {
    pub path: String,
    pub sha256: String,
    pub bytes: u64,
    pub lines: u64,
    pub seen: Vec<(u64, u64)>,
    /// Set when the call changed the file; absent for a file it created.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before_sha256: Option<String>,
    pub access: FileAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    Read,
    Created,
    Changed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlobRef {
    pub sha256: String,
    pub bytes: u64,
    /// The output was longer than what a blob may hold.
    #[serde(skip_serializing_if = "is_false", default)]
    pub cut: bool,
}

/// The surface node of a call, in model order. Names its `tool/completed` in `sourceEventSeqs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolResult {
    pub turn: u64,
    pub step: u64,
    pub call_id: String,
    /// Only in a replacement: the text that stands for the completion's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content: Option<String>,
}

/// Everything of a request that is not a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestHeader {
    pub reason: HeaderReason,
    /// Base URL without credentials, query or fragment.
    pub endpoint: String,
    pub model: String,
    /// The released renderer that makes the body, such as `openai-chat/1`.
    pub wire: String,
    pub sampling: Sampling,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context_window: Option<ContextWindow>,
    pub system: String,
    pub tools: Vec<ToolSchema>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderReason {
    Initial,
    Resume,
    Change,
}

/// Absent fields are not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reasoning_effort: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextWindow {
    pub tokens: u64,
    pub source: WindowSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowSource {
    Configured,
    Provider,
    Default,
}

/// A tool as the model is told of it. `parameters` keeps its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSchema {
    pub name: String,
    pub description: String,
    pub parameters: Box<RawValue>,
}

/// Durable before the request leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestSent {
    pub turn: u64,
    pub step: u64,
    pub sha256: String,
    pub bytes: u64,
    /// SHA-256 of the body up to where the next step's body must still agree with it.
    pub prefix_sha256: String,
}

/// A failed request and the wait before the same bytes are sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelRetry {
    pub turn: u64,
    pub step: u64,
    pub failure: ModelFailure,
    /// 1 for the first retry.
    pub attempt: u32,
    pub attempts_max: u32,
    pub delay_ms: u64,
}

/// A typed failure of a model request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelFailure {
    pub kind: FailureKind,
    /// HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<u16>,
    /// What the server asked us to wait.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after_ms: Option<u64>,
    /// For people, bounded, without secrets.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    Auth,
    RateLimit,
    Quota,
    ContextWindow,
    /// 5xx, or 4xx that a retry may cure (408, 425).
    Server,
    /// A request the server will never take.
    BadRequest,
    /// The address answers, but is no model server.
    NotAModel,
    Connect,
    FirstByteTimeout,
    IdleTimeout,
    Transport,
    EmptyResponse,
    Malformed,
    InBandError,
    /// The stream ended without a finish reason.
    CutStream,
    /// A size cap of ours was hit.
    TooLarge,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalAsked {
    pub call_id: String,
    pub name: String,
    /// SHA-256 of the exact arguments; a grant is bound to it.
    pub digest: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalDecided {
    pub call_id: String,
    pub digest: String,
    pub outcome: ApprovalOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalOutcome {
    AllowedOnce,
    Denied,
    /// Nobody could be asked, or nobody answered in time: denied.
    Unavailable,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SandboxConfinement {
    pub confinement: Confinement,
    /// SHA-256 of the confinement's canonical JSON.
    pub digest: String,
    pub enforcement: Enforcement,
}

/// What this host made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Enforcement {
    /// `full`, `landlock`, `none`.
    pub tier: String,
    /// Landlock ABI of the running kernel; 0 without Landlock.
    pub abi: u32,
    pub guarantees: Vec<GuaranteeReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SandboxDenied {
    pub call_id: String,
    pub op: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<String>,
    pub errno: i32,
    pub layer: String,
    pub rule: String,
    pub remedy: String,
    /// `kernel`, `worker`, `proxy`, `predicted`.
    pub trust: String,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitHit {
    /// `wall`, `output`, `blob`, `memory`, `processes`, `steps`.
    pub limit: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<String>,
    pub max: u64,
}

/// Difference of two bounded manifests of the workspace, by a write-capable call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceChanged {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<String>,
    pub created: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// The manifest or these lists hit their bound.
    #[serde(skip_serializing_if = "is_false", default)]
    pub cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckResult {
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    pub timed_out: bool,
    /// The last event before the check ran.
    pub after_seq: u64,
}

/// The last record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunResult {
    /// `finished`, `failed`, `cancelled`, `interrupted`.
    pub status: String,
    pub exit_code: i32,
    pub reason: String,
    pub session_id: String,
    pub run: u64,
    pub steps: u64,
    pub usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub final_message: Option<String>,
    pub checks: Vec<CheckResult>,
    pub denials: u64,
    pub changed: Vec<String>,
    pub logged: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
