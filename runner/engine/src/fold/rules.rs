//! May this event follow? One function per kind of event; none changes anything.

use super::step::{OpenCall, OpenStep, OpenTurn, Phase, Stage};
use super::{Fold, Plan, Rule};
use crate::event::{
    ApprovalAsked, ApprovalDecided, AssistantChunk, AssistantMessage, Body, CheckResult, Event,
    Finish, HeaderReason, ModelRetry, RequestHeader, RequestSent, StepMark, SurfaceOp, ToolCall,
    ToolCompleted, ToolErrorCode, ToolResult, TurnEnd, TurnStart,
};
use crate::hash::sha256_hex;

mod surface;

type Checked = Result<(), Rule>;

/// Whether `event` may follow what `fold` holds, and what it will do.
pub(super) fn check(fold: &Fold, event: &Event) -> Result<Plan, Rule> {
    if event.seq != fold.next_seq {
        return Err(Rule::Seq {
            expected: fold.next_seq,
        });
    }
    let mut plan = Plan::default();
    if surface::is_node(&event.body) {
        plan.surface = Some(surface::plan(fold, event)?);
    } else if event.surface_op.is_some() || event.source_event_seqs.is_some() {
        return Err(Rule::NotANode);
    }
    if !matches!(
        event.body,
        Body::SandboxConfinement(_) | Body::Unknown { .. }
    ) && fold.open_run().is_none()
    {
        return Err(Rule::NoRun);
    }
    match &event.body {
        Body::TurnStart(data) => turn_start(fold, data)?,
        Body::TurnEnd(data) => turn_end(fold, data)?,
        Body::StepStart(data) => step_start(fold, *data)?,
        Body::StepEnd(data) => step_end(fold, *data)?,
        Body::UserMessage(_) => user_message(fold, event)?,
        Body::AssistantChunk(data) => chunk(fold, data)?,
        Body::AssistantMessage(data) => plan.answer = Some(answer(fold, event, data)?),
        Body::ToolCall(data) => tool_call(fold, data)?,
        Body::ToolCompleted(data) => tool_completed(fold, data)?,
        Body::ToolResult(data) => tool_result(fold, event, data)?,
        Body::RequestHeader(data) => request_header(fold, data)?,
        Body::RequestSent(data) => request_sent(fold, data)?,
        Body::ModelRetry(data) => model_retry(fold, data)?,
        Body::ApprovalAsked(data) => approval_asked(fold, data)?,
        Body::ApprovalDecided(data) => approval_decided(fold, data)?,
        Body::SandboxConfinement(_) => confinement(fold)?,
        Body::SandboxDenied(data) => known_call(fold, Some(&data.call_id))?,
        Body::LimitHit(data) => known_call(fold, data.call_id.as_deref())?,
        Body::WorkspaceChanged(data) => known_call(fold, data.call_id.as_deref())?,
        Body::CheckResult(data) => check_result(fold, event, data)?,
        Body::Result(data) => run_result(fold, data.run, data.cost_usd)?,
        Body::Unknown { .. } => {
            if !event.ignorable {
                return Err(Rule::UnknownRequired);
            }
        }
    }
    Ok(plan)
}

fn open_turn(fold: &Fold, turn: u64) -> Result<&OpenTurn, Rule> {
    let open = fold.turn.as_ref().ok_or(Rule::NoTurn)?;
    if open.turn == turn {
        Ok(open)
    } else {
        Err(Rule::TurnNumber {
            found: turn,
            expected: open.turn,
        })
    }
}

fn open_step(fold: &Fold, turn: u64, step: u64) -> Result<&OpenStep, Rule> {
    let open = open_turn(fold, turn)?.step.as_ref().ok_or(Rule::NoStep)?;
    if open.step == step {
        Ok(open)
    } else {
        Err(Rule::StepNumber {
            found: step,
            expected: open.step,
        })
    }
}

/// A call of the open step, whichever step that is.
fn open_call<'a>(fold: &'a Fold, call_id: &str) -> Result<&'a OpenCall, Rule> {
    fold.open_step()
        .ok_or(Rule::NoStep)?
        .call(call_id)
        .ok_or_else(|| Rule::NoSuchCall {
            call_id: call_id.to_owned(),
        })
}

fn no_turn(fold: &Fold) -> Checked {
    match &fold.turn {
        Some(open) => Err(Rule::TurnOpen { turn: open.turn }),
        None => Ok(()),
    }
}

fn no_step(open: &OpenTurn) -> Checked {
    match &open.step {
        Some(step) => Err(Rule::StepOpen { step: step.step }),
        None => Ok(()),
    }
}

fn phase(step: &OpenStep, wanted: Phase) -> Checked {
    match (step.phase, wanted) {
        (found, wanted) if found == wanted => Ok(()),
        (Phase::Open, _) => Err(Rule::NotSent),
        (Phase::Sent, _) => Err(Rule::AlreadySent),
        (Phase::Answered, _) => Err(Rule::AlreadyAnswered),
    }
}

fn turn_start(fold: &Fold, data: &TurnStart) -> Checked {
    no_turn(fold)?;
    let expected = fold.turns + 1;
    if data.turn == expected {
        Ok(())
    } else {
        Err(Rule::TurnNumber {
            found: data.turn,
            expected,
        })
    }
}

fn turn_end(fold: &Fold, data: &TurnEnd) -> Checked {
    no_step(open_turn(fold, data.turn)?)
}

fn step_start(fold: &Fold, data: StepMark) -> Checked {
    let open = open_turn(fold, data.turn)?;
    no_step(open)?;
    let expected = open.steps + 1;
    if data.step == expected {
        Ok(())
    } else {
        Err(Rule::StepNumber {
            found: data.step,
            expected,
        })
    }
}

fn step_end(fold: &Fold, data: StepMark) -> Checked {
    let step = open_step(fold, data.turn, data.step)?;
    if !step.chunks.is_empty() {
        return Err(Rule::StreamWithoutAnswer);
    }
    match step.pending() {
        Some(call) => Err(Rule::CallWithoutResult {
            call_id: call.call_id.clone(),
        }),
        None => Ok(()),
    }
}

/// Never between a request and its answer, or a call and its result: the model would see it there.
fn user_message(fold: &Fold, event: &Event) -> Checked {
    if fold.turn.is_none() && event.surface_op == Some(SurfaceOp::Append) {
        return Err(Rule::NoTurn);
    }
    match fold.open_step() {
        Some(step) if !step.is_settled() => Err(Rule::Awaiting),
        Some(step) if event.surface_op == Some(SurfaceOp::Append) => phase(step, Phase::Open),
        _ => Ok(()),
    }
}

fn chunk(fold: &Fold, data: &AssistantChunk) -> Checked {
    let step = open_step(fold, data.turn, data.step)?;
    phase(step, Phase::Sent)?;
    if data.attempt == step.attempt {
        Ok(())
    } else {
        Err(Rule::Attempt {
            found: data.attempt,
            expected: step.attempt,
        })
    }
}

fn answer(
    fold: &Fold,
    event: &Event,
    data: &AssistantMessage,
) -> Result<crate::assemble::Assembled, Rule> {
    let step = open_step(fold, data.turn, data.step)?;
    phase(step, Phase::Sent)?;
    let chunks = step.chunks.iter().map(|piece| piece.seq);
    if !event
        .source_event_seqs
        .as_ref()
        .is_some_and(|sources| chunks.eq(sources.iter().copied()))
    {
        return Err(Rule::NotItsChunks);
    }
    let whole = step.assembled();
    let cut = data.interrupted
        || matches!(
            data.finish,
            Finish::Length | Finish::ContentFilter | Finish::Cut
        );
    if cut && !data.calls.is_empty() {
        return Err(Rule::CutCalls);
    }
    if data.calls.len() + data.dropped_calls as usize != whole.calls.len() {
        return Err(Rule::NotItsCalls {
            what: "their number",
        });
    }
    if !data
        .calls
        .iter()
        .zip(&whole.calls)
        .all(|(named, asked)| named.index == asked.index)
    {
        return Err(Rule::NotItsCalls {
            what: "their order",
        });
    }
    for (at, call) in data.calls.iter().enumerate() {
        let twice = data.calls[..at]
            .iter()
            .any(|before| before.call_id == call.call_id);
        if twice || fold.call_ids.contains(&call.call_id) {
            return Err(Rule::CallIdUsed {
                call_id: call.call_id.clone(),
            });
        }
    }
    Ok(whole)
}

fn tool_call(fold: &Fold, data: &ToolCall) -> Checked {
    open_step(fold, data.turn, data.step)?;
    let call = open_call(fold, &data.call_id)?;
    same(call, "its name", data.name == call.asked.name)?;
    same(
        call,
        "its arguments",
        data.arguments == call.asked.arguments,
    )?;
    same(call, "its id", data.model_id == call.asked.id)?;
    match &call.stage {
        Stage::Declared => Ok(()),
        Stage::Granted { digest } => same(
            call,
            "the digest",
            *digest == sha256_hex(&[data.arguments.as_bytes()]),
        ),
        stage => Err(state(call, stage)),
    }
}

/// `tool/call` means that an effect was possible. So a completion without it must say that there
/// was none, and one after it must not.
fn tool_completed(fold: &Fold, data: &ToolCompleted) -> Checked {
    use ToolErrorCode as Code;
    let call = open_call(fold, &data.call_id)?;
    let fits = match (&call.stage, &data.error) {
        (
            Stage::Called,
            Some(
                Code::NotStarted
                | Code::UnknownTool
                | Code::InvalidArguments
                | Code::ApprovalDenied,
            ),
        ) => false,
        (Stage::Called, _) => true,
        (Stage::Declared, Some(Code::UnknownTool | Code::InvalidArguments)) => true,
        (Stage::Refused, Some(Code::ApprovalDenied)) => true,
        (
            Stage::Declared | Stage::Granted { .. } | Stage::Refused,
            Some(Code::NotStarted | Code::AbortedBeforeDispatch),
        ) => true,
        (stage @ (Stage::Asked { .. } | Stage::Completed(_)), _) => return Err(state(call, stage)),
        _ => false,
    };
    if fits && (data.is_error || data.error.is_none()) {
        return Ok(());
    }
    Err(Rule::CompletionCode {
        call_id: call.call_id.clone(),
        code: format!("{:?}", data.error),
    })
}

fn tool_result(fold: &Fold, event: &Event, data: &ToolResult) -> Checked {
    if event.surface_op != Some(SurfaceOp::Append) {
        return surface::result_replacement(fold, event, data);
    }
    let step = open_step(fold, data.turn, data.step)?;
    let call = open_call(fold, &data.call_id)?;
    match step.pending() {
        Some(next) if next.call_id == call.call_id => {}
        Some(next) => {
            return Err(Rule::ResultOrder {
                expected: next.call_id.clone(),
            });
        }
        None => return Err(state(call, &call.stage)),
    }
    let Stage::Completed(completion) = &call.stage else {
        return Err(state(call, &call.stage));
    };
    let names_it = event.source_event_seqs.as_deref() == Some(&[completion.seq]);
    if names_it && data.content.is_none() {
        Ok(())
    } else {
        Err(Rule::NotItsCompletion)
    }
}

fn request_sent(fold: &Fold, data: &RequestSent) -> Checked {
    if fold.request_header.is_none() {
        return Err(Rule::NoHeader);
    }
    phase(open_step(fold, data.turn, data.step)?, Phase::Open)
}

/// Never after the request of a step: it would describe what was not sent.
fn request_header(fold: &Fold, data: &RequestHeader) -> Checked {
    if let Some(step) = fold.open_step() {
        phase(step, Phase::Open)?;
    }
    match (data.reason, fold.request_header.is_some()) {
        (HeaderReason::Initial, true) => Err(Rule::HeaderReason {
            expected: "resume or change",
        }),
        (HeaderReason::Resume | HeaderReason::Change, false) => Err(Rule::HeaderReason {
            expected: "initial",
        }),
        _ if data
            .sampling
            .temperature
            .is_some_and(|value| !value.is_finite()) =>
        {
            Err(Rule::NotFinite)
        }
        _ => Ok(()),
    }
}

fn model_retry(fold: &Fold, data: &ModelRetry) -> Checked {
    let step = open_step(fold, data.turn, data.step)?;
    phase(step, Phase::Sent)?;
    let expected = step.attempt + 1;
    if data.attempt == expected {
        Ok(())
    } else {
        Err(Rule::Attempt {
            found: data.attempt,
            expected,
        })
    }
}

fn approval_asked(fold: &Fold, data: &ApprovalAsked) -> Checked {
    let call = open_call(fold, &data.call_id)?;
    same(call, "its name", data.name == call.asked.name)?;
    same(
        call,
        "the digest",
        data.digest == sha256_hex(&[call.asked.arguments.as_bytes()]),
    )?;
    match &call.stage {
        Stage::Declared => Ok(()),
        stage => Err(state(call, stage)),
    }
}

fn approval_decided(fold: &Fold, data: &ApprovalDecided) -> Checked {
    let call = open_call(fold, &data.call_id)?;
    match &call.stage {
        Stage::Asked { digest } => same(call, "the digest", data.digest == *digest),
        stage => Err(state(call, stage)),
    }
}

fn confinement(fold: &Fold) -> Checked {
    no_turn(fold)?;
    match fold.open_run() {
        Some(run) => Err(Rule::RunOpen { run: run.run }),
        None => Ok(()),
    }
}

fn known_call(fold: &Fold, call_id: Option<&str>) -> Checked {
    match call_id {
        Some(call_id) if !fold.call_ids.contains(call_id) => Err(Rule::UnknownCall {
            call_id: call_id.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn check_result(fold: &Fold, event: &Event, data: &CheckResult) -> Checked {
    no_turn(fold)?;
    if data.after_seq < event.seq {
        Ok(())
    } else {
        Err(Rule::NotBefore)
    }
}

fn run_result(fold: &Fold, run: u64, cost_usd: Option<f64>) -> Checked {
    no_turn(fold)?;
    if cost_usd.is_some_and(|cost| !cost.is_finite()) {
        return Err(Rule::NotFinite);
    }
    match fold.open_run() {
        Some(open) if open.run == run => Ok(()),
        Some(open) => Err(Rule::RunNumber {
            found: run,
            expected: open.run,
        }),
        None => Err(Rule::NoRun),
    }
}

fn same(call: &OpenCall, what: &'static str, equal: bool) -> Checked {
    if equal {
        Ok(())
    } else {
        Err(Rule::NotWhatWasAsked {
            call_id: call.call_id.clone(),
            what,
        })
    }
}

fn state(call: &OpenCall, stage: &Stage) -> Rule {
    let state = match stage {
        Stage::Declared => "it was not judged",
        Stage::Asked { .. } => "a person is being asked",
        Stage::Granted { .. } => "it was granted",
        Stage::Refused => "it was refused",
        Stage::Called => "it was called",
        Stage::Completed(_) => "it was completed",
    };
    Rule::CallState {
        call_id: call.call_id.clone(),
        state,
    }
}
