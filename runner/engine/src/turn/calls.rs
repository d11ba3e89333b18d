//! The calls of an answer: judged, asked about, started once durable, completed, shown in order.

use super::io::{Effect, TimerId};
use super::{
    Asks, CALLS_PER_STEP_MAX, Class, Done, Engine, EngineError, KILL_GRACE_MS, REPEAT_REMINDERS,
    REPEATS_MAX,
};
use super::{State, ToolConfig, notice};
use crate::batch::Batch;
use crate::event::{
    ApprovalOutcome, Body, CallFacts, ErrorClass, ToolCall, ToolCompleted, ToolErrorCode,
    ToolResult, TurnEndReason,
};
use crate::fold::{OpenStep, Stage as FoldStage};
use crate::hash::sha256_hex;

/// The calls of the open step, in model order.
pub(super) struct Calls {
    batch: Batch,
    pub(super) calls: Vec<Call>,
    cancelled: bool,
}

pub(super) struct Call {
    pub(super) call_id: String,
    model_id: Option<String>,
    pub(super) name: String,
    /// Judged, logged and executed: one string, one digest.
    pub(super) arguments: String,
    pub(super) digest: String,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    Waiting,
    /// `approval/asked` is written, not yet durable.
    AskLogged {
        seq: u64,
    },
    Asking {
        timer: TimerId,
    },
    /// `tool/call` is written, not yet durable.
    Logged {
        seq: u64,
    },
    Running {
        timer: TimerId,
    },
    /// Killed; its completion may still come.
    Killed {
        timer: TimerId,
        why: Kill,
    },
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kill {
    Cancelled,
    Deadline,
}

impl Calls {
    fn new(step: &OpenStep, tools: &[ToolConfig]) -> Self {
        let calls: Vec<Call> = step
            .calls
            .iter()
            .map(|call| Call {
                call_id: call.call_id.clone(),
                model_id: call.asked.id.clone(),
                name: call.asked.name.clone(),
                digest: sha256_hex(&[call.asked.arguments.as_bytes()]),
                arguments: call.asked.arguments.clone(),
                stage: Stage::Waiting,
            })
            .collect();
        let batch = Batch::new(calls.iter().map(|call| class_of(tools, &call.name)));
        Self {
            batch,
            calls,
            cancelled: false,
        }
    }

    pub(super) fn kill_all(&self) -> Vec<Effect> {
        let running = self
            .calls
            .iter()
            .filter(|call| matches!(call.stage, Stage::Running { .. }));
        running
            .map(|call| Effect::KillCall {
                call_id: call.call_id.clone(),
            })
            .collect()
    }

    fn position(&self, call_id: &str) -> Option<usize> {
        self.calls.iter().position(|call| call.call_id == call_id)
    }
}

/// A call that asks runs alone, so that nothing happens while a person thinks. A call of an unknown
/// tool never runs and holds nobody up.
fn class_of(tools: &[ToolConfig], name: &str) -> Class {
    match tools.iter().find(|tool| tool.name == name) {
        Some(tool) if tool.asks == Asks::Never => tool.class,
        Some(_) => Class::Exclusive,
        None => Class::Safe,
    }
}

impl Engine {
    pub(super) fn begin_calls(&mut self) -> Done {
        if let Some(step) = self.fold.open_step() {
            self.state = State::Calls(Calls::new(step, &self.config.tools));
        }
        self.with_calls(|_, _| Ok(()))
    }

    /// Changes the calls, then moves everything on that can move.
    pub(super) fn with_calls(
        &mut self,
        change: impl FnOnce(&mut Self, &mut Calls) -> Done,
    ) -> Done {
        let mut calls = match std::mem::replace(&mut self.state, State::Idle) {
            State::Calls(calls) => calls,
            other => {
                self.state = other;
                return Ok(());
            }
        };
        let done = change(self, &mut calls).and_then(|()| self.advance(&mut calls));
        let (over, cancelled) = (calls.batch.is_over(), calls.cancelled);
        self.state = State::Calls(calls);
        done?;
        if over {
            self.finish_calls(cancelled)
        } else {
            Ok(())
        }
    }

    /// Judges what may start and shows what is done.
    fn advance(&mut self, calls: &mut Calls) -> Done {
        while !calls.cancelled {
            let admitted = calls.batch.admit();
            if admitted.is_empty() {
                break;
            }
            for at in admitted {
                self.judge(calls, at)?;
            }
        }
        for at in calls.batch.commit() {
            self.show_result(&calls.calls[at].call_id)?;
        }
        Ok(())
    }

    fn judge(&mut self, calls: &mut Calls, at: usize) -> Done {
        let call = &calls.calls[at];
        let Some(tool) = self.config.tools.iter().find(|tool| tool.name == call.name) else {
            let known: Vec<&str> = self
                .config
                .tools
                .iter()
                .map(|tool| tool.name.as_str())
                .collect();
            let text = format!(
                "There is no tool `{}`. The tools are: {}.",
                call.name,
                known.join(", ")
            );
            return self.refuse(calls, at, ToolErrorCode::UnknownTool, text);
        };
        if let Err(reason) = (tool.validate)(&call.arguments) {
            let text = format!(
                "The arguments of `{}` are not valid: {reason}. Nothing was run.",
                call.name
            );
            return self.refuse(calls, at, ToolErrorCode::InvalidArguments, text);
        }
        match &tool.asks {
            Asks::Never => self.log_intent(calls, at),
            Asks::Always { why } => {
                let why = why.clone();
                self.log_question(calls, at, why)
            }
        }
    }

    /// Logs `tool/call`: from here on an effect is possible, and only once this is durable.
    pub(super) fn log_intent(&mut self, calls: &mut Calls, at: usize) -> Done {
        let call = &mut calls.calls[at];
        let mark = self.mark();
        let seq = self.log(Body::ToolCall(ToolCall {
            turn: mark.turn,
            step: mark.step,
            call_id: call.call_id.clone(),
            model_id: call.model_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }))?;
        self.barrier = true;
        call.stage = Stage::Logged { seq };
        Ok(())
    }

    pub(super) fn calls_persisted(&mut self) -> Done {
        self.with_calls(|engine, calls| {
            for call in &mut calls.calls {
                match call.stage {
                    Stage::Logged { seq } if engine.is_durable(seq) => engine.start(call),
                    Stage::AskLogged { seq } if engine.is_durable(seq) => engine.ask(call),
                    _ => {}
                }
            }
            Ok(())
        })
    }

    fn start(&mut self, call: &mut Call) {
        let deadline = self
            .config
            .tools
            .iter()
            .find(|tool| tool.name == call.name)
            .map_or(0, |tool| tool.deadline_ms);
        self.emit(Effect::StartCall {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        call.stage = Stage::Running {
            timer: self.set_timer(deadline),
        };
    }

    /// A result of our own for a call that was not or will not be run.
    pub(super) fn refuse(
        &mut self,
        calls: &mut Calls,
        at: usize,
        code: ToolErrorCode,
        text: String,
    ) -> Done {
        let call_id = calls.calls[at].call_id.clone();
        self.complete(
            calls,
            at,
            own_result(call_id, code, text, CallFacts::default()),
        )
    }

    fn complete(&mut self, calls: &mut Calls, at: usize, completed: ToolCompleted) -> Done {
        self.log(Body::ToolCompleted(completed))?;
        calls.calls[at].stage = Stage::Over;
        calls.batch.finish(at);
        Ok(())
    }

    /// The surface node of a completed call. It names the completion and repeats nothing of it.
    fn show_result(&mut self, call_id: &str) -> Done {
        let stage = self
            .fold
            .open_step()
            .and_then(|step| step.call(call_id))
            .map(|call| &call.stage);
        let Some(FoldStage::Completed(completion)) = stage else {
            return Ok(());
        };
        let sources = vec![completion.seq];
        let mark = self.mark();
        let result = ToolResult {
            turn: mark.turn,
            step: mark.step,
            call_id: call_id.to_owned(),
            content: None,
        };
        self.log_node(Body::ToolResult(result), Some(sources))
            .map(drop)
    }

    /// Logged at once, in order of completion. The facts beside it count even when the call was
    /// given up before: something did happen.
    pub(super) fn call_completed(&mut self, completed: ToolCompleted, facts: Vec<Body>) -> Done {
        if let Some(stranger) = facts.iter().find(|fact| !self.is_fact(fact)) {
            return Err(EngineError::NotAFact {
                kind: crate::codec::type_name(stranger).to_owned(),
            });
        }
        self.barrier |= self.is_idle() && !facts.is_empty();
        for fact in facts {
            self.log(fact)?;
        }
        self.with_calls(|engine, calls| {
            let Some(at) = calls.position(&completed.call_id) else {
                return Ok(());
            };
            match calls.calls[at].stage {
                Stage::Running { .. } => engine.complete(calls, at, completed),
                Stage::Killed { why, .. } => engine.complete(calls, at, as_killed(completed, why)),
                _ => Ok(()),
            }
        })
    }

    /// What may be logged beside a call of this session, as long as the run lasts.
    pub(super) fn is_fact(&self, fact: &Body) -> bool {
        if self.fold.open_run().is_none() {
            return false;
        }
        match fact {
            Body::SandboxDenied(data) => self.fold.knows_call(&data.call_id),
            Body::LimitHit(data) => data
                .call_id
                .as_deref()
                .is_none_or(|id| self.fold.knows_call(id)),
            Body::WorkspaceChanged(data) => data
                .call_id
                .as_deref()
                .is_none_or(|id| self.fold.knows_call(id)),
            _ => false,
        }
    }

    pub(super) fn calls_timer(&mut self, id: TimerId) -> Done {
        self.with_calls(|engine, calls| {
            for at in 0..calls.calls.len() {
                match calls.calls[at].stage {
                    Stage::Asking { timer } if timer == id => {
                        engine.decide(calls, at, ApprovalOutcome::Unavailable)?;
                    }
                    Stage::Running { timer } if timer == id => {
                        engine.kill(&mut calls.calls[at], Kill::Deadline)
                    }
                    Stage::Killed { timer, why } if timer == id => {
                        engine.give_up(calls, at, why)?
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    }

    fn kill(&mut self, call: &mut Call, why: Kill) {
        self.emit(Effect::KillCall {
            call_id: call.call_id.clone(),
        });
        call.stage = Stage::Killed {
            timer: self.set_timer(KILL_GRACE_MS),
            why,
        };
    }

    /// The call was killed and nothing came back: its result is written without it.
    fn give_up(&mut self, calls: &mut Calls, at: usize, why: Kill) -> Done {
        let call_id = calls.calls[at].call_id.clone();
        let facts = CallFacts {
            killed: true,
            timed_out: why == Kill::Deadline,
            ..CallFacts::default()
        };
        let (code, text) = match why {
            Kill::Cancelled => (ToolErrorCode::Cancelled, CANCELLED),
            Kill::Deadline => (ToolErrorCode::Tool("timeout".to_owned()), TIMED_OUT),
        };
        self.complete(calls, at, own_result(call_id, code, text.to_owned(), facts))
    }

    /// Ctrl-C: running calls are killed, calls that were never dispatched are closed. A second one
    /// does not wait for what is being killed.
    pub(super) fn cancel_calls(&mut self) -> Done {
        self.with_calls(|engine, calls| {
            let again = std::mem::replace(&mut calls.cancelled, true);
            for at in 0..calls.calls.len() {
                match calls.calls[at].stage {
                    Stage::Waiting | Stage::Logged { .. } => {
                        engine.refuse(
                            calls,
                            at,
                            ToolErrorCode::AbortedBeforeDispatch,
                            ABORTED.to_owned(),
                        )?;
                    }
                    Stage::AskLogged { .. } | Stage::Asking { .. } => {
                        engine.decide(calls, at, ApprovalOutcome::Cancelled)?;
                    }
                    Stage::Running { .. } => engine.kill(&mut calls.calls[at], Kill::Cancelled),
                    Stage::Killed { why, .. } if again => engine.give_up(calls, at, why)?,
                    Stage::Killed { .. } | Stage::Over => {}
                }
            }
            Ok(())
        })
    }

    /// Every call has its result: the step ends and the loop decides whether to go on.
    fn finish_calls(&mut self, cancelled: bool) -> Done {
        let dropped = std::mem::take(&mut self.memory.dropped_calls);
        self.end_step()?;
        if cancelled {
            return self.end_turn(self.cancel_reason(), None);
        }
        let streak = self.fold.repeat().streak();
        if streak >= REPEATS_MAX {
            return self.end_turn(TurnEndReason::Error(ErrorClass::NoProgress), None);
        }
        let before = if streak > self.memory.reminded_at {
            self.memory.reminded_at
        } else {
            0
        };
        if REPEAT_REMINDERS
            .iter()
            .any(|at| before < *at && *at <= streak)
        {
            self.say(notice::repeat(streak, REPEATS_MAX))?;
        }
        self.memory.reminded_at = streak;
        if dropped > 0 {
            self.say(notice::too_many_calls(dropped, CALLS_PER_STEP_MAX))?;
        }
        self.next_step()
    }
}

pub(super) const ABORTED: &str =
    "The call was not started: the user cancelled before it was dispatched.";
const CANCELLED: &str =
    "The call was killed because the user cancelled. What it had done by then is not known.";
const TIMED_OUT: &str =
    "The call did not end in time and was killed. What it had done by then is not known.";

fn own_result(
    call_id: String,
    code: ToolErrorCode,
    content: String,
    facts: CallFacts,
) -> ToolCompleted {
    ToolCompleted {
        call_id,
        content,
        is_error: true,
        error: Some(code),
        facts,
        files: Vec::new(),
        blob: None,
    }
}

/// A completion that came after its kill: what it says of itself is kept, and that it was cut short
/// is said when it was.
fn as_killed(mut completed: ToolCompleted, why: Kill) -> ToolCompleted {
    if completed.facts.killed {
        completed.is_error = true;
        completed.facts.timed_out |= why == Kill::Deadline;
        completed.error = Some(match why {
            Kill::Cancelled => ToolErrorCode::Cancelled,
            Kill::Deadline => ToolErrorCode::Tool("timeout".to_owned()),
        });
    }
    completed
}
