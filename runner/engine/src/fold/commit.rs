//! Applies what [`super::rules`] has allowed. Nothing here can refuse.

use super::step::{Completion, OpenCall, OpenStep, OpenTurn, Phase, Piece, Stage};
use super::totals::{Run, add_usage, observe};
use super::{CALL_ID_PREFIX, Fold, Node, NodeCall, Place, Plan};
use crate::assemble::Assembled;
use crate::event::{
    ApprovalDecided, ApprovalOutcome, AssistantMessage, Body, Event, FileAccess,
    SandboxConfinement, ToolCompleted, ToolResult, WorkspaceChanged,
};

pub(super) fn commit(fold: &mut Fold, event: &Event, plan: Plan) {
    fold.next_seq = event.seq + 1;
    fold.last_time = event.time;
    match &event.body {
        Body::UserMessage(_) | Body::AssistantMessage(_) | Body::ToolResult(_) => {
            node(fold, event, plan);
        }
        Body::TurnStart(data) => turn_start(fold, data.turn),
        Body::TurnEnd(data) => {
            fold.turn = None;
            with_run(fold, |run| run.reasons.push(data.reason));
        }
        Body::StepStart(data) => step_start(fold, data.step),
        Body::StepEnd(_) => step_end(fold),
        Body::RequestHeader(data) => fold.request_header = Some((**data).clone()),
        Body::RequestSent(_) => with_step(fold, |step| step.phase = Phase::Sent),
        Body::ModelRetry(data) => with_step(fold, |step| {
            step.attempt = data.attempt;
            step.chunks.clear();
        }),
        Body::AssistantChunk(data) => {
            let (block, text) = (data.block.clone(), data.text.clone());
            let seq = event.seq;
            with_step(fold, |step| step.chunks.push(Piece { seq, block, text }));
        }
        Body::ApprovalAsked(data) => {
            let digest = data.digest.clone();
            set_stage(fold, &data.call_id, Stage::Asked { digest });
        }
        Body::ApprovalDecided(data) => decided(fold, data),
        Body::ToolCall(data) => set_stage(fold, &data.call_id, Stage::Called),
        Body::ToolCompleted(data) => completed(fold, event.seq, data),
        Body::SandboxConfinement(data) => run_start(fold, event.time, data),
        Body::SandboxDenied(data) => {
            fold.denials = fold.denials.saturating_add(data.count);
            with_run(fold, |run| {
                run.denials = run.denials.saturating_add(data.count)
            });
        }
        Body::WorkspaceChanged(data) => workspace_changed(fold, data),
        Body::CheckResult(data) => with_run(fold, |run| run.checks.push(data.clone())),
        Body::Result(_) => with_run(fold, |run| run.ended = true),
        Body::LimitHit(_) | Body::Unknown { .. } => {}
    }
}

/// A surface node: what it covers leaves, it takes its place, its text is kept for the projection.
fn node(fold: &mut Fold, event: &Event, plan: Plan) {
    let Some(place) = plan.surface else { return };
    let covered = fold.surface.covered(&place).to_vec();
    match &event.body {
        Body::UserMessage(data) => {
            let (source, text) = (data.source.clone(), data.text.clone());
            fold.nodes.insert(event.seq, Node::User { source, text });
        }
        Body::AssistantMessage(data) => {
            answer(fold, event.seq, data, plan.answer.unwrap_or_default());
        }
        Body::ToolResult(data) => result(fold, event.seq, data, &covered),
        _ => return,
    }
    fold.surface.apply(&place);
    // What is shadowed is in the log; the state need not keep it.
    for seq in covered {
        fold.nodes.remove(&seq);
    }
}

fn turn_start(fold: &mut Fold, turn: u64) {
    fold.turns = turn;
    fold.turn = Some(OpenTurn {
        turn,
        steps: 0,
        step: None,
    });
    fold.repeat = super::Repeat::default();
}

fn run_start(fold: &mut Fold, time: u64, data: &SandboxConfinement) {
    let run = fold.run.as_ref().map_or(1, |run| run.run + 1);
    fold.run = Some(Run {
        run,
        started_ms: time,
        ..Run::default()
    });
    fold.confinement = Some(data.clone());
}

fn decided(fold: &mut Fold, data: &ApprovalDecided) {
    let stage = match data.outcome {
        ApprovalOutcome::AllowedOnce => Stage::Granted {
            digest: data.digest.clone(),
        },
        ApprovalOutcome::Denied | ApprovalOutcome::Unavailable | ApprovalOutcome::Cancelled => {
            Stage::Refused
        }
    };
    set_stage(fold, &data.call_id, stage);
}

fn with_run(fold: &mut Fold, change: impl FnOnce(&mut Run)) {
    if let Some(run) = &mut fold.run {
        change(run);
    }
}

fn with_step(fold: &mut Fold, change: impl FnOnce(&mut OpenStep)) {
    if let Some(step) = fold.turn.as_mut().and_then(|turn| turn.step.as_mut()) {
        change(step);
    }
}

fn set_stage(fold: &mut Fold, call_id: &str, stage: Stage) {
    with_step(fold, |step| {
        if let Some(call) = step.call_mut(call_id) {
            call.stage = stage;
        }
    });
}

fn step_start(fold: &mut Fold, step: u64) {
    if let Some(turn) = &mut fold.turn {
        turn.steps = step;
        turn.step = Some(OpenStep::new(step));
    }
    fold.steps += 1;
    fold.repeat.step_starts();
    with_run(fold, |run| run.steps += 1);
}

/// With the step its results are complete: from the next request on the model has seen them.
fn step_end(fold: &mut Fold) {
    let step = fold.turn.as_mut().and_then(|turn| turn.step.take());
    let mut done: Vec<Completion> = Vec::new();
    for call in step.into_iter().flat_map(|step| step.calls) {
        if let Stage::Completed(completion) = call.stage {
            done.push(completion);
        }
    }
    // Of two reads at once the one that ended later saw the later content.
    done.sort_by_key(|completion| completion.seq);
    for file in done.iter().flat_map(|completion| &completion.read) {
        observe(&mut fold.files, file);
    }
    fold.repeat.step_ends();
}

fn answer(fold: &mut Fold, seq: u64, data: &AssistantMessage, whole: Assembled) {
    let declared = whole.calls.into_iter().zip(&data.calls);
    let calls: Vec<OpenCall> = declared
        .map(|(asked, named)| OpenCall {
            call_id: named.call_id.clone(),
            asked,
            stage: Stage::Declared,
        })
        .collect();
    let shown = calls.iter().map(|call| NodeCall {
        call_id: call.call_id.clone(),
        name: call.asked.name.clone(),
        arguments: call.asked.arguments.clone(),
    });
    fold.nodes.insert(
        seq,
        Node::Answer {
            text: whole.text.clone(),
            calls: shown.collect(),
        },
    );
    for call in &calls {
        fold.call_ids.insert(call.call_id.clone());
        let number = call
            .call_id
            .strip_prefix(CALL_ID_PREFIX)
            .and_then(|digits| digits.parse::<u64>().ok());
        if let Some(number) = number {
            fold.next_call = fold.next_call.max(number.saturating_add(1));
        }
    }
    if let Some(usage) = &data.usage {
        add_usage(&mut fold.usage, usage);
    }
    with_run(fold, |run| {
        if let Some(usage) = &data.usage {
            run.add_usage(usage);
        }
        if !whole.text.trim().is_empty() {
            run.final_message = Some(whole.text);
        }
    });
    with_step(fold, |step| {
        step.phase = Phase::Answered;
        step.chunks.clear();
        step.calls = calls;
    });
}

fn completed(fold: &mut Fold, seq: u64, data: &ToolCompleted) {
    let mut read = Vec::new();
    for file in &data.files {
        if file.access == FileAccess::Read {
            read.push(file.clone());
            continue;
        }
        // The model's own change: it knows the content as of now, and what an earlier call of this
        // step read of it is no longer so.
        observe(&mut fold.files, file);
        with_step(fold, |step| forget_read(step, &file.path));
        fold.changed.insert(file.path.clone());
        with_run(fold, |run| {
            run.changed.insert(file.path.clone());
        });
    }
    let completion = Completion {
        seq,
        content: data.content.clone(),
        is_error: data.is_error,
        error: data.error.clone(),
        read,
    };
    set_stage(fold, &data.call_id, Stage::Completed(completion));
}

fn forget_read(step: &mut OpenStep, path: &str) {
    for call in &mut step.calls {
        if let Stage::Completed(completion) = &mut call.stage {
            completion.read.retain(|file| file.path != path);
        }
    }
}

fn result(fold: &mut Fold, seq: u64, data: &ToolResult, covered: &[u64]) {
    let place = Place {
        turn: data.turn,
        step: data.step,
        call_id: data.call_id.clone(),
    };
    if !covered.is_empty() {
        let content = data.content.clone().unwrap_or_default();
        fold.nodes.insert(seq, Node::Result { place, content });
        return;
    }
    let mut shown = None;
    with_step(fold, |step| {
        step.results += 1;
        if let Some(OpenCall {
            asked,
            stage: Stage::Completed(completion),
            ..
        }) = step.call(&data.call_id)
        {
            shown = Some((asked.clone(), completion.content.clone()));
        }
    });
    if let Some((asked, content)) = shown {
        fold.repeat.result(&asked.name, &asked.arguments, &content);
        fold.nodes.insert(seq, Node::Result { place, content });
    }
}

fn workspace_changed(fold: &mut Fold, data: &WorkspaceChanged) {
    for path in data
        .created
        .iter()
        .chain(&data.changed)
        .chain(&data.removed)
    {
        fold.changed.insert(path.clone());
        with_run(fold, |run| {
            run.changed.insert(path.clone());
        });
    }
}
