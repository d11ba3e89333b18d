//! The one projection of a log for people: REPL, show, report and web draw the same items.
//!
//! Deterministic, and inert: whatever a model or a command wrote, no control character gets
//! through, so a terminal only shows it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::assemble::Assembled;
use crate::event::{
    AssistantMessage, Block, Body, CallFacts, Event, MessageSource, SandboxDenied, ToolCompleted,
    ToolErrorCode, TurnEndReason, UserMessage,
};
use crate::outcome::reason_name;

/// Longest main argument shown in a line, in characters.
pub const MAIN_ARGUMENT_CHARS_MAX: usize = 80;
/// Members that say what a call is about, the most telling first.
const MAIN_MEMBERS: [&str; 4] = ["command", "path", "pattern", "query"];

/// Something to show. Texts are as logged; [`line`] makes them inert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Prompt {
        text: String,
    },
    Instructions {
        path: String,
    },
    Notice {
        name: String,
        text: String,
    },
    /// A piece of the answer.
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    /// The pieces since the last request were of a failed one.
    Retry {
        why: String,
        delay_ms: u64,
    },
    CallStarted(CallLine),
    CallEnded(CallLine),
    Denied {
        call_id: String,
        op: String,
        what: String,
        layer: String,
        rule: String,
        remedy: String,
    },
    TurnEnded {
        reason: TurnEndReason,
        why: Option<String>,
    },
}

/// A call in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLine {
    pub call_id: String,
    pub name: String,
    /// What it is about: a command, a path, a pattern.
    pub main: String,
    /// `None` while it runs.
    pub end: Option<CallOutcome>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    pub facts: CallFacts,
    pub error: Option<ToolErrorCode>,
    pub is_error: bool,
}

/// Folds events into items.
#[derive(Clone, Debug, Default)]
pub struct Ui {
    pieces: Vec<(Block, String)>,
    calls: BTreeMap<String, (String, String)>,
}

impl Ui {
    pub fn apply(&mut self, event: &Event) -> Vec<Item> {
        match &event.body {
            Body::UserMessage(data) => vec![said(data)],
            Body::StepStart(_) => self.forget(),
            Body::AssistantChunk(data) => {
                self.pieces.push((data.block.clone(), data.text.clone()));
                match data.block {
                    Block::Text => vec![Item::Text {
                        text: data.text.clone(),
                    }],
                    Block::Reasoning => vec![Item::Reasoning {
                        text: data.text.clone(),
                    }],
                    Block::Call { .. } => Vec::new(),
                }
            }
            Body::AssistantMessage(data) => self.answered(data),
            Body::ModelRetry(data) => {
                self.pieces.clear();
                vec![Item::Retry {
                    why: data.failure.text.clone(),
                    delay_ms: data.delay_ms,
                }]
            }
            Body::ToolCall(data) => vec![Item::CallStarted(self.call(&data.call_id, None))],
            Body::ToolCompleted(data) => vec![Item::CallEnded(
                self.call(&data.call_id, Some(outcome(data))),
            )],
            Body::SandboxDenied(data) => vec![denied(data)],
            Body::TurnEnd(data) => {
                let why = data.failure.as_ref().map(|failure| failure.text.clone());
                vec![Item::TurnEnded {
                    reason: data.reason,
                    why,
                }]
            }
            _ => Vec::new(),
        }
    }

    fn answered(&mut self, data: &AssistantMessage) -> Vec<Item> {
        let pieces = self
            .pieces
            .iter()
            .map(|(block, text)| (block, text.as_str()));
        let whole = Assembled::from_pieces(pieces);
        for (named, call) in data.calls.iter().zip(whole.calls) {
            let shown = (call.name, main_argument(&call.arguments));
            self.calls.insert(named.call_id.clone(), shown);
        }
        Vec::new()
    }

    fn forget(&mut self) -> Vec<Item> {
        self.pieces.clear();
        self.calls.clear();
        Vec::new()
    }

    fn call(&self, call_id: &str, end: Option<CallOutcome>) -> CallLine {
        let (name, main) = self.calls.get(call_id).cloned().unwrap_or_default();
        CallLine {
            call_id: call_id.to_owned(),
            name,
            main,
            end,
        }
    }
}

fn said(data: &UserMessage) -> Item {
    let text = data.text.clone();
    match &data.source {
        MessageSource::User => Item::Prompt { text },
        MessageSource::Instructions { path, .. } => Item::Instructions { path: path.clone() },
        MessageSource::Notice { name } => Item::Notice {
            name: name.clone(),
            text,
        },
    }
}

fn denied(data: &SandboxDenied) -> Item {
    let what = data.path.clone().or_else(|| data.address.clone());
    Item::Denied {
        call_id: data.call_id.clone(),
        op: data.op.clone(),
        what: what.unwrap_or_default(),
        layer: data.layer.clone(),
        rule: data.rule.clone(),
        remedy: data.remedy.clone(),
    }
}

fn outcome(data: &ToolCompleted) -> CallOutcome {
    CallOutcome {
        facts: data.facts.clone(),
        error: data.error.clone(),
        is_error: data.is_error,
    }
}

/// The member that says most, or the raw text when the arguments are no object.
fn main_argument(arguments: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(arguments) else {
        return arguments.to_owned();
    };
    let named = MAIN_MEMBERS
        .iter()
        .find_map(|name| members.get(*name).and_then(Value::as_str));
    let any = || members.values().find_map(Value::as_str);
    named.or_else(any).unwrap_or_default().to_owned()
}

/// An item as one line of plain text.
pub fn line(item: &Item) -> String {
    match item {
        Item::Prompt { text } => format!("> {}", one_line(text)),
        Item::Instructions { path } => format!("instructions {}", one_line(path)),
        Item::Notice { name, .. } => format!("notice {}", one_line(name)),
        Item::Text { text } | Item::Reasoning { text } => one_line(text),
        Item::Retry { why, delay_ms } => format!("retry in {delay_ms} ms: {}", one_line(why)),
        Item::CallStarted(call) | Item::CallEnded(call) => call_line(call),
        Item::Denied {
            op,
            what,
            layer,
            rule,
            remedy,
            ..
        } => {
            let parts = [op, what, layer, rule, remedy].map(|part| one_line(part));
            let [op, what, layer, rule, remedy] = parts;
            format!("denied {op} {what} ({layer}: {rule}); {remedy}")
        }
        Item::TurnEnded {
            reason,
            why: Some(why),
        } => format!("{}: {}", reason_name(*reason), one_line(why)),
        Item::TurnEnded { reason, why: None } => reason_name(*reason),
    }
}

/// `bash cargo test · exit 101 · denied 2 · 1.3 s`
fn call_line(call: &CallLine) -> String {
    let name = if call.name.is_empty() {
        "(no tool)".to_owned()
    } else {
        one_line(&call.name)
    };
    let mut parts = vec![
        format!("{name} {}", cut(&one_line(&call.main)))
            .trim_end()
            .to_owned(),
    ];
    let Some(end) = &call.end else {
        return parts.remove(0);
    };
    let facts = &end.facts;
    parts.extend(end.error.as_ref().map(error_text));
    parts.extend(facts.exit_code.map(|code| format!("exit {code}")));
    parts.extend(facts.signal.map(|signal| format!("signal {signal}")));
    if facts.timed_out {
        parts.push("timed out".to_owned());
    } else if facts.killed {
        parts.push("killed".to_owned());
    }
    if facts.denied > 0 {
        parts.push(format!("denied {}", facts.denied));
    }
    if facts.truncated {
        parts.push("output cut".to_owned());
    }
    if end.is_error && parts.len() == 1 {
        parts.push("failed".to_owned());
    }
    parts.extend(
        facts
            .wall_us
            .map(|us| format!("{}.{} s", us / 1_000_000, us / 100_000 % 10)),
    );
    parts.join(" · ")
}

fn error_text(code: &ToolErrorCode) -> String {
    match code {
        ToolErrorCode::OutcomeUnknown => "outcome unknown".to_owned(),
        ToolErrorCode::NotStarted | ToolErrorCode::AbortedBeforeDispatch => {
            "not started".to_owned()
        }
        ToolErrorCode::Cancelled => "cancelled".to_owned(),
        ToolErrorCode::UnknownTool => "unknown tool".to_owned(),
        ToolErrorCode::InvalidArguments => "invalid arguments".to_owned(),
        ToolErrorCode::ApprovalDenied => "approval denied".to_owned(),
        ToolErrorCode::SandboxFailed => "sandbox failed".to_owned(),
        ToolErrorCode::Tool(code) => one_line(code),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAIN_ARGUMENT_CHARS_MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAIN_ARGUMENT_CHARS_MAX - 1).collect();
    format!("{head}…")
}

/// Text on one line, made inert.
fn one_line(text: &str) -> String {
    inert(text).replace('\n', " ⏎ ")
}

/// Control characters and invisible direction marks become visible escapes; line breaks and tabs
/// stay. What a terminal would obey (CVE-2021-42574 and its kind) it then only shows.
pub fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() || is_direction_mark(c) => {
                shown.push_str(&format!("\\u{{{:x}}}", u32::from(c)))
            }
            c => shown.push(c),
        }
    }
    shown
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}')
}

#[cfg(test)]
mod tests;
