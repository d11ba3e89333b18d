//! What makes an agent of a model: the system prompt, the tools, and how the engine treats them.

use curfew_engine::event::{AgentPreset, HeaderReason, RequestHeader, Sampling};
use curfew_engine::hash::sha256_hex;
use curfew_engine::turn::{Asks, Class, ToolConfig};
use curfew_engine::{EngineConfig, Wire as _};
use curfew_model::OpenAiChat;
use curfew_policy::{Guarantee, Mode, State};

use crate::confine::{Stood, Wanted};
use crate::prompt::SYSTEM;
use crate::provider::Model;
use crate::tools::{args, schema};

/// Steps of a run when `--max-steps` is not given.
pub const STEPS_MAX_DEFAULT: u64 = 100;
/// How long a person may think about a question.
const ASK_DEADLINE_MS: u64 = 5 * 60_000;
/// The engine's last resort comes after the cell's own limit has had its time.
const DEADLINE_GRACE_MS: u64 = 30_000;

/// Name and digest of what this version of curfew tells a model.
pub fn agent() -> AgentPreset {
    let mut parts = vec![SYSTEM.to_owned()];
    for tool in schema::all() {
        parts.extend([
            tool.name,
            tool.description,
            tool.parameters.get().to_owned(),
        ]);
    }
    // Lengths keep the parts apart.
    let parts: Vec<String> = parts
        .into_iter()
        .map(|part| format!("{}:{part}", part.len()))
        .collect();
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    AgentPreset {
        name: String::from("default"),
        digest: sha256_hex(&parts),
    }
}

pub fn request_header(endpoint: &str, model: &Model) -> RequestHeader {
    RequestHeader {
        reason: HeaderReason::Initial,
        endpoint: endpoint.to_owned(),
        model: model.name.clone(),
        wire: OpenAiChat.name().to_owned(),
        sampling: Sampling::default(),
        context_window: model.window,
        system: SYSTEM.to_owned(),
        tools: schema::all(),
    }
}

/// Whether somebody is there to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    Unattended,
    Attended,
}

pub fn engine(
    wanted: &Wanted,
    stood: &Stood,
    steps_max: u64,
    attendance: Attendance,
) -> EngineConfig {
    let deadline_ms = wanted
        .confinement
        .limits
        .wall_ms
        .saturating_add(DEADLINE_GRACE_MS);
    let tools = schema::NAMES.into_iter().map(|name| ToolConfig {
        name: name.to_owned(),
        class: class(name),
        asks: asks(name, wanted, stood, attendance),
        validate: validator(name),
        deadline_ms,
    });
    EngineConfig {
        tools: tools.collect(),
        wire: Box::new(OpenAiChat),
        max_steps_per_turn: steps_max,
        // A conversation is bounded turn by turn.
        max_steps_per_run: match attendance {
            Attendance::Unattended => steps_max,
            Attendance::Attended => u64::MAX,
        },
        attempts_max: curfew_model::retry::ATTEMPTS_MAX,
        ask_deadline_ms: ASK_DEADLINE_MS,
    }
}

fn class(name: &str) -> Class {
    match name {
        "read" | "glob" | "grep" => Class::Safe,
        _ => Class::Exclusive,
    }
}

/// Where no fence stands between a call and the host, a person decides about each call that could
/// write. In danger-full-access the operator has decided for an unattended run by typing it.
fn asks(name: &str, wanted: &Wanted, stood: &Stood, attendance: Attendance) -> Asks {
    if class(name) == Class::Safe {
        return Asks::Never;
    }
    if wanted.confinement.mode == Mode::DangerFullAccess {
        return match attendance {
            Attendance::Unattended => Asks::Never,
            Attendance::Attended => Asks::Always {
                why: String::from("full access to this machine"),
            },
        };
    }
    let mut fences = stood
        .enforcement()
        .guarantees
        .iter()
        .filter(|report| report.name == Guarantee::WriteFence);
    if fences.any(|report| report.state == State::Enforced) {
        return Asks::Never;
    }
    Asks::Always {
        why: String::from("the write-fence is weaker than promised"),
    }
}

fn validator(name: &str) -> fn(&str) -> Result<(), String> {
    match name {
        "read" => |arguments| check("read", arguments),
        "write" => |arguments| check("write", arguments),
        "edit" => |arguments| check("edit", arguments),
        "bash" => |arguments| check("bash", arguments),
        "glob" => |arguments| check("glob", arguments),
        _ => |arguments| check("grep", arguments),
    }
}

fn check(name: &str, arguments: &str) -> Result<(), String> {
    args::parse(name, arguments)
        .map(drop)
        .map_err(|fault| match fault {
            args::ArgumentFault::Invalid { why, fields, .. } => {
                format!("{why} (it takes {fields})")
            }
            unknown => unknown.to_string(),
        })
}
