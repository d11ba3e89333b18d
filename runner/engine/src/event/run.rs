//! Records of a run: its confinement, what it refused and changed, its checks, its result.

use curfew_policy::{Confinement, GuaranteeReport};
use serde::{Deserialize, Serialize};

use super::{Usage, is_false};

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
