//! Records of calls, their results, and the approvals before them.

use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};

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
