//! What a person is shown of a log: a pure projection of its events, the same live and afterwards.

use curfew_engine::event::{
    ApprovalOutcome, Body, CheckResult, ErrorClass, Event, FailureKind, ModelRetry, RunResult,
    SandboxConfinement, SandboxDenied, ToolErrorCode, TurnEndReason, WorkspaceChanged,
};
use curfew_engine::ui::{self, Item};
use curfew_policy::Mode;

use crate::denied;
use crate::output::Tone;
use crate::output::inert::line_cut;

/// Characters of a call's main argument that its line shows.
const ARGUMENT_CHARS_MAX: usize = 80;
/// Characters of a server's text in a line.
const TEXT_CHARS_MAX: usize = 200;

/// One thing to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What a person or an instruction file said.
    Prompt {
        from: String,
        text: String,
    },
    /// A piece of the model's answer. Live, it has been streamed already.
    Answer(String),
    Line {
        tone: Tone,
        text: String,
    },
    /// For those who asked for more.
    Detail(String),
}

/// Folds events to lines: the engine's projection, and beside it what only an operator needs.
#[derive(Debug, Default)]
pub struct Ui {
    projection: curfew_engine::ui::Ui,
    /// Who is asked, for the line that says it went wrong.
    endpoint: String,
}

impl Ui {
    pub fn event(&mut self, event: &Event) -> Vec<Shown> {
        if let Body::RequestHeader(header) = &event.body {
            self.endpoint.clone_from(&header.endpoint);
        }
        let items = self.projection.apply(event).into_iter();
        let mut shown: Vec<Shown> = items
            .filter_map(|item| line_of(item, &self.endpoint))
            .collect();
        shown.extend(beside(&event.body));
        shown
    }
}

fn line_of(item: Item, endpoint: &str) -> Option<Shown> {
    let line = |tone, text: String| Some(Shown::Line { tone, text });
    match item {
        Item::Prompt { text } => Some(Shown::Prompt {
            from: String::from("user"),
            text,
        }),
        // What stands in it is for the model; that it was sent is for the operator.
        Item::Instructions { path } => line(Tone::Plain, format!("instructions  {path}")),
        Item::Notice { name, text } => Some(Shown::Prompt {
            from: format!("curfew {name}"),
            text,
        }),
        Item::Text { text } => Some(Shown::Answer(text)),
        Item::CallStarted(ref call) => Some(Shown::Detail(format!(
            "{}  {}",
            call.call_id,
            ui::line(&item)
        ))),
        Item::Reasoning { .. } | Item::Retry { .. } => None,
        Item::CallEnded(ref call) => {
            let failed = call.end.as_ref().is_some_and(|end| end.is_error);
            let tone = if failed { Tone::Warning } else { Tone::Plain };
            line(tone, format!("{}  {}", call.call_id, ui::line(&item)))
        }
        Item::Denied { .. } => None,
        Item::TurnEnded {
            reason: TurnEndReason::Completed,
            ..
        } => None,
        Item::TurnEnded { reason, .. } => {
            let remedy = remedy(reason, endpoint);
            line(
                Tone::Warning,
                format!("turn ended: {}{remedy}", ui::line(&item)),
            )
        }
    }
}

/// What helps after a turn that ended like this.
fn remedy(reason: TurnEndReason, endpoint: &str) -> String {
    let TurnEndReason::Error(class) = reason else {
        return String::new();
    };
    match class {
        ErrorClass::Auth => {
            String::from("; set OPENAI_API_KEY, or keyFile or keyCommand in the user configuration")
        }
        // A recording has no address.
        ErrorClass::Provider if endpoint.contains("://") => {
            format!("; {endpoint} was asked: check --base-url and --model, or resume later")
        }
        ErrorClass::Context => {
            String::from("; start a new session, or take a model with a larger window")
        }
        _ => String::new(),
    }
}

fn beside(body: &Body) -> Vec<Shown> {
    match body {
        Body::ModelRetry(retry) => vec![warning(retry_line(retry))],
        Body::AssistantMessage(message) if message.dropped_calls > 0 => {
            vec![warning(format!(
                "{} calls were cut by the length limit and dropped",
                message.dropped_calls
            ))]
        }
        Body::SandboxDenied(denial) => vec![denied_line(denial)],
        Body::SandboxConfinement(confinement) => confinement_lines(confinement),
        Body::ApprovalDecided(decided) if decided.outcome != ApprovalOutcome::AllowedOnce => {
            vec![warning(format!(
                "{}  {}",
                decided.call_id,
                approval(decided.outcome)
            ))]
        }
        Body::LimitHit(hit) if hit.limit == "steps" => {
            vec![warning(format!(
                "limit reached: {} steps (--max-steps)",
                hit.max
            ))]
        }
        Body::LimitHit(hit) => vec![warning(format!("limit reached: {} {}", hit.limit, hit.max))],
        Body::WorkspaceChanged(changed) => changed_line(changed).into_iter().collect(),
        Body::CheckResult(check) => vec![check_line(check)],
        _ => Vec::new(),
    }
}

fn warning(text: String) -> Shown {
    Shown::Line {
        tone: Tone::Warning,
        text,
    }
}

/// As the log spells it.
pub fn error_name(code: &ToolErrorCode) -> &str {
    match code {
        ToolErrorCode::OutcomeUnknown => "TOOL_OUTCOME_UNKNOWN",
        ToolErrorCode::NotStarted => "TOOL_NOT_STARTED",
        ToolErrorCode::AbortedBeforeDispatch => "ABORTED_BEFORE_DISPATCH",
        ToolErrorCode::Cancelled => "CANCELLED",
        ToolErrorCode::UnknownTool => "UNKNOWN_TOOL",
        ToolErrorCode::InvalidArguments => "INVALID_ARGUMENTS",
        ToolErrorCode::ApprovalDenied => "APPROVAL_DENIED",
        ToolErrorCode::SandboxFailed => "SANDBOX_FAILED",
        ToolErrorCode::Tool(code) => code,
    }
}

fn denied_line(denial: &SandboxDenied) -> Shown {
    let line = curfew_sandbox::render_denial(&denied::of_event(denial));
    Shown::Line {
        tone: Tone::Denied,
        text: format!("{}  {line}", denial.call_id),
    }
}

fn confinement_lines(event: &SandboxConfinement) -> Vec<Shown> {
    let confinement = &event.confinement;
    let place = confinement.workspace.display();
    if confinement.mode == Mode::DangerFullAccess {
        let text = format!(
            "DANGER: full access. No fence stands between the model and this machine ({place})."
        );
        return vec![Shown::Line {
            tone: Tone::Alarm,
            text,
        }];
    }
    let net = match confinement.net {
        curfew_policy::confinement::Net::Off => "off",
        curfew_policy::confinement::Net::Full => "full",
    };
    let text = format!(
        "{}  {place}  net {net}  profile {}",
        confinement.mode.as_str(),
        confinement.profile
    );
    vec![Shown::Line {
        tone: Tone::Plain,
        text,
    }]
}

fn approval(outcome: ApprovalOutcome) -> &'static str {
    match outcome {
        ApprovalOutcome::AllowedOnce => "allowed once",
        ApprovalOutcome::Denied => "denied by you",
        ApprovalOutcome::Unavailable => "denied: nobody could be asked",
        ApprovalOutcome::Cancelled => "cancelled before it ran",
    }
}

fn changed_line(changed: &WorkspaceChanged) -> Option<Shown> {
    let lists = [
        ("created", &changed.created),
        ("changed", &changed.changed),
        ("removed", &changed.removed),
    ];
    let mut parts: Vec<String> = lists
        .into_iter()
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(word, paths)| match paths.as_slice() {
            [only] => format!("{word} {only}"),
            [first, rest @ ..] => format!("{word} {first} and {} more", rest.len()),
            [] => String::new(),
        })
        .collect();
    if changed.cut {
        parts.push(String::from("not all changes are known"));
    }
    (!parts.is_empty()).then(|| Shown::Line {
        tone: Tone::Plain,
        text: format!("workspace  {}", parts.join(", ")),
    })
}

fn check_line(check: &CheckResult) -> Shown {
    let (tone, outcome) = match (check.exit_code, check.signal) {
        _ if check.timed_out => (Tone::Warning, String::from("timed out")),
        (Some(0), _) => (Tone::Good, String::from("passed")),
        (Some(code), _) => (Tone::Warning, format!("failed, exit {code}")),
        (None, Some(signal)) => (Tone::Warning, format!("failed, signal {signal}")),
        (None, None) => (Tone::Warning, String::from("could not run")),
    };
    Shown::Line {
        tone,
        text: format!(
            "check  {}  {outcome}",
            line_cut(&check.command, ARGUMENT_CHARS_MAX)
        ),
    }
}

fn retry_line(retry: &ModelRetry) -> String {
    let text = line_cut(&retry.failure.text, TEXT_CHARS_MAX);
    let kind = failure_name(retry.failure.kind);
    format!(
        "{kind}: {text}; retry {} of {} in {}",
        retry.attempt,
        retry.attempts_max,
        time(retry.delay_ms)
    )
}

fn failure_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Auth => "authentication failed",
        FailureKind::RateLimit => "rate limit",
        FailureKind::Quota => "quota",
        FailureKind::ContextWindow => "context window",
        FailureKind::Server => "server error",
        FailureKind::BadRequest => "bad request",
        FailureKind::NotAModel => "not a model server",
        FailureKind::Connect => "no connection",
        FailureKind::FirstByteTimeout => "no first byte",
        FailureKind::IdleTimeout => "stream fell silent",
        FailureKind::TotalTimeout => "request took too long",
        FailureKind::Transport => "connection broke",
        FailureKind::EmptyResponse => "empty answer",
        FailureKind::Malformed => "malformed answer",
        FailureKind::InBandError => "error in the stream",
        FailureKind::CutStream => "stream was cut",
        FailureKind::TooLarge => "answer too large",
    }
}

/// The last line of a run, for people.
pub fn result_line(result: &RunResult) -> Shown {
    let tone = if result.exit_code == 0 {
        Tone::Good
    } else {
        Tone::Warning
    };
    let usage = &result.usage;
    let mut text = format!(
        "{} ({}), exit {}, {} steps, {} + {} tokens, {}",
        result.status,
        result.reason,
        result.exit_code,
        result.steps,
        usage.input,
        usage.output,
        time(result.duration_ms)
    );
    if result.denials > 0 {
        text.push_str(&format!(", {} denied", result.denials));
    }
    if !result.changed.is_empty() {
        text.push_str(&format!(", {} files changed", result.changed.len()));
    }
    text.push_str(&format!("  session {}", result.session_id));
    Shown::Line { tone, text }
}

fn time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests;
