//! Closing what a dead process left open, from the log alone.
//!
//! Nothing is cut and nothing invented: streamed chunks become an interrupted answer, a call whose
//! completion was logged gets its real result, one that may have run is said to have an unknown
//! outcome, one that was not started is said so; then the step, the turn and the run are closed.

use crate::event::{
    ApprovalDecided, ApprovalOutcome, AssistantMessage, Body, CallFacts, ErrorClass, Event, Finish,
    ModelFailure, StepMark, SurfaceOp, ToolCompleted, ToolErrorCode, ToolResult, TurnEnd,
    TurnEndReason,
};
use crate::fold::{Fold, FoldError, OpenCall, Stage};
use crate::outcome::Signal;
use crate::turn::{RunEnd, run_result};

/// Why the session must be closed from outside the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The process died: found at the next load.
    Interrupted,
    /// The log can take no more than these records (a full disk).
    Storage,
}

/// What a cold session lacks. Empty when nothing is open.
pub fn plan(fold: &Fold, now: u64) -> Result<Vec<Event>, FoldError> {
    close(fold, now, Closing::Interrupted)
}

/// The records that close `fold`. They fold, one after the other, onto it.
pub fn close(fold: &Fold, now: u64, closing: Closing) -> Result<Vec<Event>, FoldError> {
    if fold.open_run().is_none() {
        return Ok(Vec::new());
    }
    let mut repair = Repair {
        fold: fold.clone(),
        now,
        events: Vec::new(),
    };
    repair.close_step()?;
    if let Some(turn) = repair.fold.open_turn() {
        let reason = match closing {
            Closing::Interrupted => TurnEndReason::Interrupted,
            Closing::Storage => TurnEndReason::Error(ErrorClass::Storage),
        };
        let failure: Option<ModelFailure> = None;
        let end = TurnEnd {
            turn: turn.turn,
            reason,
            failure,
        };
        repair.log(Body::TurnEnd(end))?;
    }
    let end = match closing {
        Closing::Interrupted => RunEnd {
            signal: Some(Signal::Terminate),
            ..RunEnd::default()
        },
        Closing::Storage => RunEnd {
            failure: Some(ErrorClass::Storage),
            ..RunEnd::default()
        },
    };
    if let Some(mut result) = run_result(&repair.fold, now, end) {
        if closing == Closing::Interrupted {
            result.status = "interrupted".to_owned();
            result.reason = "interrupted".to_owned();
        }
        repair.log(Body::Result(Box::new(result)))?;
    }
    Ok(repair.events)
}

struct Repair {
    fold: Fold,
    now: u64,
    events: Vec<Event>,
}

impl Repair {
    fn close_step(&mut self) -> Result<(), FoldError> {
        let Some(mark) = self.mark() else {
            return Ok(());
        };
        self.promote_chunks(mark)?;
        let calls: Vec<OpenCall> = self
            .fold
            .open_step()
            .map(|step| step.calls[step.results..].to_vec())
            .unwrap_or_default();
        for call in calls {
            self.close_call(mark, &call)?;
        }
        self.log(Body::StepEnd(mark))
    }

    fn mark(&self) -> Option<StepMark> {
        let turn = self.fold.open_turn()?;
        Some(StepMark {
            turn: turn.turn,
            step: turn.step.as_ref()?.step,
        })
    }

    /// Text that was paid for and shown is not lost.
    fn promote_chunks(&mut self, mark: StepMark) -> Result<(), FoldError> {
        let Some(step) = self.fold.open_step().filter(|step| !step.chunks.is_empty()) else {
            return Ok(());
        };
        let sources = step.chunks.iter().map(|piece| piece.seq).collect();
        let message = AssistantMessage {
            turn: mark.turn,
            step: mark.step,
            finish: Finish::Cut,
            calls: Vec::new(),
            usage: None,
            interrupted: true,
            dropped_calls: step.assembled().calls.len() as u32,
        };
        self.log_node(Body::AssistantMessage(message), sources)
    }

    fn close_call(&mut self, mark: StepMark, call: &OpenCall) -> Result<(), FoldError> {
        let call_id = call.call_id.clone();
        if let Stage::Asked { digest } = &call.stage {
            let outcome = ApprovalOutcome::Cancelled;
            self.log(Body::ApprovalDecided(ApprovalDecided {
                call_id: call_id.clone(),
                digest: digest.clone(),
                outcome,
            }))?;
        }
        let completed = match &call.stage {
            Stage::Completed(completion) => completion.seq,
            Stage::Called => self.complete(call, ToolErrorCode::OutcomeUnknown, OUTCOME_UNKNOWN)?,
            Stage::Declared | Stage::Asked { .. } | Stage::Granted { .. } | Stage::Refused => {
                self.complete(call, ToolErrorCode::NotStarted, NOT_STARTED)?
            }
        };
        let result = ToolResult {
            turn: mark.turn,
            step: mark.step,
            call_id,
            content: None,
        };
        self.log_node(Body::ToolResult(result), vec![completed])
    }

    fn complete(
        &mut self,
        call: &OpenCall,
        code: ToolErrorCode,
        text: &str,
    ) -> Result<u64, FoldError> {
        let seq = self.fold.next_seq();
        self.log(Body::ToolCompleted(ToolCompleted {
            call_id: call.call_id.clone(),
            content: text.to_owned(),
            is_error: true,
            error: Some(code),
            facts: CallFacts::default(),
            files: Vec::new(),
            blob: None,
        }))?;
        Ok(seq)
    }

    fn log(&mut self, body: Body) -> Result<(), FoldError> {
        self.push(body, None, None)
    }

    fn log_node(&mut self, body: Body, sources: Vec<u64>) -> Result<(), FoldError> {
        self.push(body, Some(SurfaceOp::Append), Some(sources))
    }

    fn push(
        &mut self,
        body: Body,
        surface_op: Option<SurfaceOp>,
        source_event_seqs: Option<Vec<u64>>,
    ) -> Result<(), FoldError> {
        let seq = self.fold.next_seq();
        let event = Event {
            seq,
            time: self.now,
            body,
            surface_op,
            source_event_seqs,
            ignorable: false,
        };
        self.fold.apply(&event)?;
        self.events.push(event);
        Ok(())
    }
}

const OUTCOME_UNKNOWN: &str = "curfew died while this call ran. Whether it took effect, or how far, is not known. \
     Repeat it only if it reads, or if doing it twice does no harm; otherwise look at what is there first.";
const NOT_STARTED: &str = "curfew died before this call was started. It had no effect; make it again if it is still needed.";
