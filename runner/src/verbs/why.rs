//! `curfew why CALL`: what a call was, what it was refused, and how a person would allow it.

use curfew_engine::event::{ApprovalDecided, Body, Event, SandboxDenied, ToolCall, ToolCompleted};
use serde_json::{Value, json};

use super::{faced, json as print_json, store};
use crate::cli::WhyArgs;
use crate::denied;
use crate::fault::Fault;
use crate::output::Printer;
use crate::session::storage;
use crate::ui;

/// Everything the log says about one call.
#[derive(Default)]
struct Told<'a> {
    call: Option<&'a ToolCall>,
    completed: Option<&'a ToolCompleted>,
    decided: Option<&'a ApprovalDecided>,
    denials: Vec<&'a SandboxDenied>,
    limits: Vec<String>,
}

pub fn run(args: &WhyArgs) -> i32 {
    faced(|printer| explain(args, printer))
}

fn explain(args: &WhyArgs, printer: &mut Printer) -> Result<i32, Fault> {
    let store = store()?;
    let id = match &args.session {
        Some(id) => id.clone(),
        None => {
            let newest = store
                .list()
                .map_err(|error| storage(&error))?
                .into_iter()
                .next();
            newest
                .map(|entry| entry.id)
                .ok_or_else(|| Fault::usage("there is no session yet"))?
        }
    };
    let session = store.inspect(&id).map_err(|error| storage(&error))?;
    let told = gather(&session.events, &args.call);
    if told.call.is_none() && told.completed.is_none() {
        let fault = Fault::usage(format!(
            "session {} has no call {}",
            session.header.id, args.call
        ));
        return Err(fault.remedy("see curfew session show, or name the session with --session"));
    }
    if args.json {
        for denial in &told.denials {
            print_json(printer, &object(denial))?;
        }
    } else {
        lines(&args.call, &told, printer);
    }
    Ok(0)
}

fn gather<'a>(events: &'a [Event], call_id: &str) -> Told<'a> {
    let mut told = Told::default();
    for event in events {
        match &event.body {
            Body::ToolCall(call) if call.call_id == call_id => told.call = Some(call),
            Body::ToolCompleted(completed) if completed.call_id == call_id => {
                told.completed = Some(completed)
            }
            Body::ApprovalDecided(decided) if decided.call_id == call_id => {
                told.decided = Some(decided)
            }
            Body::SandboxDenied(denial) if denial.call_id == call_id => told.denials.push(denial),
            Body::LimitHit(hit) if hit.call_id.as_deref() == Some(call_id) => {
                told.limits.push(format!("{} {}", hit.limit, hit.max));
            }
            _ => {}
        }
    }
    told
}

fn lines(call_id: &str, told: &Told<'_>, printer: &mut Printer) {
    if let Some(call) = told.call {
        printer.line(&format!("{call_id}  {}  {}", call.name, call.arguments));
    }
    if let Some(decided) = told.decided {
        printer.line(&format!(
            "approval: {:?}, arguments {}",
            decided.outcome, decided.digest
        ));
    }
    for limit in &told.limits {
        printer.line(&format!("limit: {limit}"));
    }
    for denial in &told.denials {
        printer.line(&curfew_sandbox::render_denial(&denied::of_event(denial)));
        printer.line(&format!("  layer {}, trust {}", denial.layer, denial.trust));
    }
    if let Some(error) = told
        .completed
        .and_then(|completed| completed.error.as_ref())
    {
        printer.line(&format!("result: {}", ui::error_name(error)));
    }
    if told.denials.is_empty() {
        printer.line("nothing was refused that curfew could see");
    }
}

fn object(denial: &SandboxDenied) -> Value {
    json!({
        "callId": denial.call_id,
        "op": denial.op,
        "path": denial.path,
        "address": denial.address,
        "errno": denial.errno,
        "layer": denial.layer,
        "rule": denial.rule,
        "remedy": denial.remedy,
        "trust": denial.trust,
        "count": denial.count,
    })
}
