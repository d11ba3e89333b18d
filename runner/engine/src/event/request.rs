//! Records of what was asked of the model and how that failed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Everything of a request that is not a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl PartialEq for ToolSchema {
    /// By bytes: two spellings of one schema are two requests.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.parameters.get() == other.parameters.get()
    }
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
    /// The whole request took too long.
    TotalTimeout,
    Transport,
    EmptyResponse,
    Malformed,
    InBandError,
    /// The stream ended without a finish reason.
    CutStream,
    /// A size cap of ours was hit.
    TooLarge,
}
