//! The turn machine: `handle(now, input)`, then `poll() -> effect` until `None`.
//!
//! A turn, top down: a prompt starts it; each step logs its request, waits until that is durable,
//! sends it, logs the answer as it streams, and runs the calls the answer makes; the turn ends when
//! an answer makes none, or for one of the closed list of reasons.
//!
//! No effect that touches the world leaves before the `Persisted` of its intent event: a request is
//! sent after its `request/sent`, a call is started after its `tool/call`, a person is asked after
//! `approval/asked`, a wait begins after `model/retry`. Every event is folded before it is handed
//! out, so what the machine writes is what readers accept.

mod approval;
mod calls;
mod config;
mod error;
pub mod io;
mod notice;
mod request;
mod run;
mod stream;

use std::collections::VecDeque;

use crate::event::{
    Body, ErrorClass, Event, LimitHit, MessageSource, ModelFailure, RequestHeader, SandboxDenied,
    StepMark, SurfaceOp, TurnEnd, TurnEndReason, TurnStart, UserMessage,
};
use crate::fold::Fold;
use calls::Calls;
use io::{Effect, Input, TimerId};
use request::Request;

pub use crate::batch::Class;
pub use config::{
    Asks, CALLS_PER_STEP_MAX, EMPTY_RETRY_MS, EngineConfig, KILL_GRACE_MS, LENGTH_CUTS_MAX,
    PROMPT_BYTES_MAX, REPEAT_REMINDERS, REPEATS_MAX, ToolConfig,
};
pub use error::EngineError;
pub use run::{RunEnd, RunStart, run_result};
pub use stream::{CHUNK_AGE_MS_MAX, CHUNK_BYTES_MAX};

type Done = Result<(), EngineError>;

/// One session's loop. It owns the fold; the drive loop owns the world.
pub struct Engine {
    config: EngineConfig,
    fold: Fold,
    state: State,
    now: u64,
    /// Folded, not yet handed out.
    unwritten: Vec<Event>,
    barrier: bool,
    effects: VecDeque<Effect>,
    /// Events below this seq are durable.
    durable_below: u64,
    /// Prompts that no turn has taken.
    prompts: VecDeque<String>,
    /// Context that goes before the next turn's prompt.
    context: Vec<UserMessage>,
    /// Goes into the log before the next request.
    header: Option<RequestHeader>,
    memory: TurnMemory,
    last_id: u64,
}

/// What the machine waits for.
enum State {
    /// A prompt.
    Idle,
    /// An answer.
    Request(Request),
    /// Results.
    Calls(Calls),
    /// Nothing: the log cannot be written any more.
    Stopped,
}

/// What only the running turn needs to remember.
#[derive(Default)]
struct TurnMemory {
    time_up: bool,
    length_cuts: u32,
    reminded_at: u32,
    /// Calls of the running step that were over the number one answer may make.
    dropped_calls: u32,
}

impl Engine {
    /// A machine for a new session (an empty fold) or a repaired one (no open turn).
    pub fn new(config: EngineConfig, fold: Fold) -> Self {
        let durable_below = fold.next_seq();
        Self {
            config,
            fold,
            state: State::Idle,
            now: 0,
            unwritten: Vec::new(),
            barrier: false,
            effects: VecDeque::new(),
            durable_below,
            prompts: VecDeque::new(),
            context: Vec::new(),
            header: None,
            memory: TurnMemory::default(),
            last_id: 0,
        }
    }

    /// Everything logged so far, as a state.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// No turn is running and none is about to start.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped)
    }

    /// The next thing to do, until `None`.
    pub fn poll(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Takes one input. After an [`EngineError::Fold`] the machine has stopped; every other error
    /// leaves it as it was.
    pub fn handle(&mut self, now: u64, input: Input) -> Done {
        self.now = now;
        if self.is_stopped() {
            return Ok(());
        }
        let done = match input {
            Input::User { text } => self.prompt(text),
            Input::ModelDelta { request, delta } => self.model_delta(request, delta),
            Input::ModelEnd {
                request,
                finish,
                usage,
            } => self.model_end(request, finish, usage),
            Input::ModelFailed {
                request,
                failure,
                retry_in_ms,
            } => self.model_failed(request, failure, retry_in_ms),
            Input::CallCompleted { completed, events } => self.call_completed(completed, events),
            Input::Denied(denied) => self.denied(denied),
            Input::Answer {
                call_id,
                digest,
                outcome,
            } => self.answered(&call_id, &digest, outcome),
            Input::Timer { id } => self.timer(id),
            Input::Cancel => self.cancel(),
            Input::TimeUp => {
                self.memory.time_up = true;
                self.cancel()
            }
            Input::Persisted { seq } => self.persisted(seq),
            Input::PersistFailed => {
                self.stop();
                Ok(())
            }
        };
        self.conclude(done)
    }

    /// Hands out what was logged; a refused event of our own stops the machine.
    fn conclude(&mut self, done: Done) -> Done {
        match &done {
            Err(EngineError::Fold(_)) => self.stop(),
            _ => self.flush(),
        }
        done
    }

    fn prompt(&mut self, text: String) -> Done {
        if text.len() > PROMPT_BYTES_MAX {
            return Err(EngineError::PromptTooLong {
                bytes: text.len(),
                bytes_max: PROMPT_BYTES_MAX,
            });
        }
        if self.fold.open_run().is_none() {
            return Err(EngineError::NotBegun);
        }
        self.prompts.push_back(text);
        if self.is_idle() {
            self.start_turn()
        } else {
            Ok(())
        }
    }

    fn start_turn(&mut self) -> Done {
        self.memory = TurnMemory::default();
        let turn = self.fold.turns() + 1;
        self.log(Body::TurnStart(TurnStart { turn }))?;
        self.next_step()
    }

    /// What waits to be said: context first, so that the prefix stays the same, then prompts. A
    /// prompt leaves the queue in the same batch that logs it: it is never in neither.
    fn claim_messages(&mut self) -> Done {
        for message in std::mem::take(&mut self.context) {
            self.say(message)?;
        }
        while let Some(text) = self.prompts.pop_front() {
            self.say(UserMessage {
                source: MessageSource::User,
                text,
            })?;
        }
        Ok(())
    }

    /// The next request of the turn, or its end when no step is left.
    fn next_step(&mut self) -> Done {
        let (left, max) = self.steps_left();
        if left == 0 {
            self.log(Body::LimitHit(LimitHit {
                limit: "steps".to_owned(),
                call_id: None,
                max,
            }))?;
            return self.end_turn(TurnEndReason::MaxSteps, None);
        }
        let mark = self.next_mark();
        self.log(Body::StepStart(mark))?;
        self.claim_messages()?;
        if left == 1 {
            self.say(notice::last_step(max))?;
        }
        self.log_header()?;
        self.request(mark)
    }

    /// Steps that may still start in this turn, and the limit that is nearest.
    fn steps_left(&self) -> (u64, u64) {
        let in_turn = self.fold.open_turn().map_or(0, |turn| turn.steps);
        let in_run = self.fold.open_run().map_or(0, |run| run.steps);
        let turn = (
            self.config.max_steps_per_turn.saturating_sub(in_turn),
            self.config.max_steps_per_turn,
        );
        let run = (
            self.config.max_steps_per_run.saturating_sub(in_run),
            self.config.max_steps_per_run,
        );
        if run.0 < turn.0 { run } else { turn }
    }

    fn next_mark(&self) -> StepMark {
        let (turn, steps) = self
            .fold
            .open_turn()
            .map_or((0, 0), |turn| (turn.turn, turn.steps));
        StepMark {
            turn,
            step: steps + 1,
        }
    }

    fn mark(&self) -> StepMark {
        let turn = self.fold.open_turn().map_or(0, |turn| turn.turn);
        StepMark {
            turn,
            step: self.fold.open_step().map_or(0, |step| step.step),
        }
    }

    fn end_step(&mut self) -> Done {
        let mark = self.mark();
        self.log(Body::StepEnd(mark)).map(drop)
    }

    /// Ends the turn. Prompts that wait start the next one if this one ended well; else they go
    /// back to whoever typed them.
    fn end_turn(&mut self, reason: TurnEndReason, failure: Option<ModelFailure>) -> Done {
        let turn = self.mark().turn;
        self.log(Body::TurnEnd(TurnEnd {
            turn,
            reason,
            failure,
        }))?;
        self.barrier = true;
        self.state = State::Idle;
        let goes_on = reason == TurnEndReason::Completed;
        let unclaimed = if goes_on {
            Vec::new()
        } else {
            self.prompts.drain(..).collect()
        };
        self.emit(Effect::TurnEnded {
            turn,
            reason,
            unclaimed,
        });
        if self.prompts.is_empty() {
            Ok(())
        } else {
            self.start_turn()
        }
    }

    fn denied(&mut self, denied: SandboxDenied) -> Done {
        let fact = Body::SandboxDenied(denied);
        if !self.is_fact(&fact) {
            return Err(EngineError::NotAFact {
                kind: crate::codec::type_name(&fact).to_owned(),
            });
        }
        // Between turns nothing comes behind it that would carry it to the disk.
        self.barrier |= self.is_idle();
        self.log(fact).map(drop)
    }

    fn persisted(&mut self, seq: u64) -> Done {
        self.durable_below = self.durable_below.max(seq.saturating_add(1));
        match self.state {
            State::Request(_) => self.request_persisted(),
            State::Calls(_) => self.calls_persisted(),
            State::Idle | State::Stopped => Ok(()),
        }
    }

    fn timer(&mut self, id: TimerId) -> Done {
        match self.state {
            State::Request(_) => self.request_timer(id),
            State::Calls(_) => self.calls_timer(id),
            State::Idle | State::Stopped => Ok(()),
        }
    }

    fn cancel(&mut self) -> Done {
        match self.state {
            State::Request(_) => self.cancel_request(),
            State::Calls(_) => self.cancel_calls(),
            State::Idle | State::Stopped => Ok(()),
        }
    }

    /// Why a turn that is being cancelled ends.
    fn cancel_reason(&self) -> TurnEndReason {
        if self.memory.time_up {
            TurnEndReason::Error(ErrorClass::Budget)
        } else {
            TurnEndReason::Cancelled
        }
    }

    /// Nothing further is done: whatever runs is ended, nothing more is logged.
    fn stop(&mut self) {
        self.unwritten.clear();
        match std::mem::replace(&mut self.state, State::Stopped) {
            State::Request(request) => self.effects.extend(request.abort()),
            State::Calls(calls) => self.effects.extend(calls.kill_all()),
            State::Idle | State::Stopped => {}
        }
        if let Some(turn) = self.fold.open_turn() {
            let reason = TurnEndReason::Error(ErrorClass::Storage);
            let unclaimed = self.prompts.drain(..).collect();
            self.effects.push_back(Effect::TurnEnded {
                turn: turn.turn,
                reason,
                unclaimed,
            });
        }
    }

    fn say(&mut self, message: UserMessage) -> Done {
        self.log_node(Body::UserMessage(message), None).map(drop)
    }

    fn log(&mut self, body: Body) -> Result<u64, EngineError> {
        self.log_event(body, None, None)
    }

    fn log_node(&mut self, body: Body, sources: Option<Vec<u64>>) -> Result<u64, EngineError> {
        self.log_event(body, Some(SurfaceOp::Append), sources)
    }

    fn log_event(
        &mut self,
        body: Body,
        surface_op: Option<SurfaceOp>,
        source_event_seqs: Option<Vec<u64>>,
    ) -> Result<u64, EngineError> {
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
        self.unwritten.push(event);
        Ok(seq)
    }

    fn emit(&mut self, effect: Effect) {
        self.flush();
        self.effects.push_back(effect);
    }

    fn flush(&mut self) {
        let barrier = std::mem::take(&mut self.barrier);
        if !self.unwritten.is_empty() {
            let events = std::mem::take(&mut self.unwritten);
            self.effects.push_back(Effect::Append { events, barrier });
        }
    }

    fn is_durable(&self, seq: u64) -> bool {
        seq < self.durable_below
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn set_timer(&mut self, after_ms: u64) -> TimerId {
        let id = TimerId(self.next_id());
        self.emit(Effect::SetTimer {
            id,
            at_ms: self.now.saturating_add(after_ms),
        });
        id
    }
}
