//! A session header, a confinement, a request header, tools and a wire for tests.

use curfew_engine::event::{
    AgentPreset, Enforcement, HeaderReason, RequestHeader, Sampling, SandboxConfinement, ToolSchema,
};
use curfew_engine::turn::{Asks, Class, EngineConfig, RunStart, ToolConfig};
use curfew_engine::{Header, Message, RequestBody, Wire};
use curfew_policy::confinement::{Limits, Net};
use curfew_policy::{Confinement, Mode};

use super::Options;

pub const DEADLINE_MS: u64 = 60_000;
pub const ATTEMPTS_MAX: u32 = 3;

pub fn header() -> Header {
    Header {
        version: 1,
        id: "s1".to_owned(),
        created_at: 1,
        cwd: "/w".to_owned(),
        parent_session: None,
        seed_length: None,
        origin: None,
        delegation_depth: 0,
        agent_preset: AgentPreset {
            name: "default".to_owned(),
            digest: "0".repeat(64),
        },
        profile: "default".to_owned(),
        curfew: "0.1.0".to_owned(),
        host: "h".to_owned(),
    }
}

pub fn confinement() -> SandboxConfinement {
    SandboxConfinement {
        confinement: Confinement {
            mode: Mode::WorkspaceWrite,
            profile: "default".to_owned(),
            workspace: "/w".into(),
            write: vec!["/w".into()],
            read: Vec::new(),
            closed: Vec::new(),
            private: Vec::new(),
            mask: Vec::new(),
            protect: Vec::new(),
            net: Net::Off,
            env: Vec::new(),
            limits: Limits {
                wall_ms: 1,
                memory_bytes: 1,
                processes: 1,
                output_bytes: 1,
                private_bytes: 1,
            },
            evidence: true,
        },
        digest: "0".repeat(64),
        enforcement: Enforcement {
            tier: "full".to_owned(),
            abi: 7,
            guarantees: Vec::new(),
        },
    }
}

pub fn request_header() -> RequestHeader {
    let parameters =
        serde_json::value::RawValue::from_string("{\"type\":\"object\"}".to_owned()).expect("JSON");
    RequestHeader {
        reason: HeaderReason::Initial,
        endpoint: "http://127.0.0.1/v1".to_owned(),
        model: "m".to_owned(),
        wire: PlainWire.name().to_owned(),
        sampling: Sampling::default(),
        context_window: None,
        system: "You are a test.".to_owned(),
        tools: vec![ToolSchema {
            name: "read".to_owned(),
            description: "reads".to_owned(),
            parameters,
        }],
    }
}

pub fn run_start() -> RunStart {
    RunStart {
        confinement: confinement(),
        header: request_header(),
        context: Vec::new(),
    }
}

/// Arguments must be a JSON object without the member `bad`.
pub fn validate(arguments: &str) -> Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    match value.as_object() {
        Some(object) if !object.contains_key("bad") => Ok(()),
        Some(_) => Err("unknown field `bad`".to_owned()),
        None => Err("not an object".to_owned()),
    }
}

/// name, class, asks
pub const TOOLS: [(&str, Class, bool); 5] = [
    ("read", Class::Safe, false),
    ("grep", Class::Safe, false),
    ("bash", Class::Exclusive, false),
    ("write", Class::Exclusive, false),
    ("deploy", Class::Safe, true),
];

pub fn is_safe(name: &str) -> bool {
    TOOLS
        .iter()
        .any(|tool| tool.0 == name && tool.1 == Class::Safe && !tool.2)
}

pub fn asks(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.0 == name && tool.2)
}

pub fn engine_config(options: &Options) -> EngineConfig {
    let tool = |(name, class, asks): &(&str, Class, bool)| ToolConfig {
        name: (*name).to_owned(),
        class: *class,
        asks: if *asks {
            Asks::Always {
                why: "because".to_owned(),
            }
        } else {
            Asks::Never
        },
        validate,
        deadline_ms: DEADLINE_MS,
    };
    EngineConfig {
        tools: TOOLS.iter().map(tool).collect(),
        wire: Box::new(PlainWire),
        max_steps_per_turn: options.max_steps_per_turn,
        max_steps_per_run: options.max_steps_per_run,
        attempts_max: ATTEMPTS_MAX,
        ask_deadline_ms: DEADLINE_MS,
    }
}

/// A readable body with the one property every wire has: fixed parts first, messages last.
pub struct PlainWire;

impl Wire for PlainWire {
    fn name(&self) -> &'static str {
        "plain/1"
    }

    fn render(&self, header: &RequestHeader, messages: &[Message]) -> RequestBody {
        let mut text = format!("model {}\nsystem {}\n", header.model, header.system);
        for tool in &header.tools {
            text.push_str(&format!("tool {} {}\n", tool.name, tool.parameters.get()));
        }
        for message in messages {
            text.push_str(&format!("{message:?}\n"));
        }
        let prefix_len = text.len();
        text.push_str("end\n");
        RequestBody {
            bytes: text.into_bytes(),
            prefix_len,
        }
    }
}
