//! The drive loop: one channel, one closed enum. It does what the engine says and tells it what
//! happened; it decides nothing.

mod ask;
mod calls;
mod end;
mod model;
mod timers;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use curfew_engine::event::{ApprovalOutcome, Body, SandboxDenied, TurnEndReason};
use curfew_engine::outcome::Signal;
use curfew_engine::turn::io::{Delta, RequestId, TimerId};
use curfew_engine::{Effect, Engine, EngineError, Input};
use curfew_model::{End, Provider, Stopped};
use curfew_store::{Barrier, Note, Notify, Writer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::check::Checked;
use crate::fault::Fault;
use crate::output::Reader;
use crate::tools::run::{Done, Toolbox};
use crate::view::View;

pub use ask::{Approver, Question};
pub use timers::{listen, time_up_after};

/// Everything that can happen to a run.
#[derive(Debug)]
pub enum Happening {
    /// The event stands in the log; this is its line.
    Written {
        seq: u64,
        line: Vec<u8>,
    },
    Durable {
        seq: u64,
    },
    LogFailed {
        why: String,
    },
    Delta {
        request: RequestId,
        delta: Delta,
    },
    Answered {
        request: RequestId,
        ended: Result<End, Stopped>,
    },
    Denied(SandboxDenied),
    Called(Box<Done>),
    Due(TimerId),
    Decided {
        call_id: String,
        digest: String,
        outcome: ApprovalOutcome,
    },
    Signal(Signal),
    /// `--timeout`.
    TimeUp,
    Checked(Box<Result<Checked, Fault>>),
}

/// Told by threads and tasks. Nothing is lost and nobody waits: what can be said is bounded by
/// what was asked for (a stream has a size cap, denials are counted by the broker).
pub type Tell = UnboundedSender<Happening>;
pub type Heard = UnboundedReceiver<Happening>;

/// One session being driven.
pub struct Drive {
    pub engine: Engine,
    /// `None` once it is closed.
    writer: Option<Writer>,
    pub view: View,
    /// `None` where there is no sandbox: then no turn is made either.
    toolbox: Option<Arc<Toolbox>>,
    provider: Arc<Provider>,
    approver: Approver,
    tell: Tell,
    heard: UnboundedReceiver<Happening>,
    /// The broker's numbers of running calls.
    calls: HashMap<String, u64>,
    request: Option<model::Sent>,
    durable_below: u64,
    ended: Option<TurnEndReason>,
    pub stop: Stop,
}

/// What ends a run from outside.
#[derive(Debug, Default)]
pub struct Stop {
    pub signal: Option<Signal>,
    pub time_up: bool,
    /// Why the log takes nothing more.
    pub log_failed: Option<String>,
}

impl Stop {
    pub fn is_set(&self) -> bool {
        self.signal.is_some() || self.time_up || self.log_failed.is_some()
    }
}

/// What a drive is made of.
pub struct Parts {
    pub engine: Engine,
    pub writer: Writer,
    pub view: View,
    pub toolbox: Option<Arc<Toolbox>>,
    pub provider: Arc<Provider>,
    pub approver: Approver,
    pub channel: (Tell, UnboundedReceiver<Happening>),
}

pub fn channel() -> (Tell, UnboundedReceiver<Happening>) {
    unbounded_channel()
}

/// The store's words, on its thread.
pub fn notify(tell: Tell) -> Notify {
    Box::new(move |note| {
        let happening = match note {
            Note::Written { seq, line } => Happening::Written {
                seq,
                line: line.to_vec(),
            },
            Note::Durable { seq } => Happening::Durable { seq },
            Note::Failed { fault } => Happening::LogFailed {
                why: fault.to_string(),
            },
        };
        // Nobody listens once the run has its end.
        drop(tell.send(happening));
    })
}

/// Epoch milliseconds.
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Drive {
    pub fn new(parts: Parts) -> Self {
        let Parts {
            engine,
            writer,
            view,
            toolbox,
            provider,
            approver,
            channel: (tell, heard),
        } = parts;
        Drive {
            durable_below: engine.fold().next_seq(),
            engine,
            writer: Some(writer),
            view,
            toolbox,
            provider,
            approver,
            tell,
            heard,
            calls: HashMap::new(),
            request: None,
            ended: None,
            stop: Stop::default(),
        }
    }

    /// Runs one turn to its end.
    pub async fn turn(&mut self, prompt: String) -> Result<TurnEndReason, Fault> {
        self.ended = None;
        self.input(Input::User { text: prompt })?;
        loop {
            self.perform_all();
            if let Some(reason) = self
                .ended
                .filter(|_| self.engine.is_idle() || self.engine.is_stopped())
            {
                return Ok(reason);
            }
            let Some(happening) = self.heard.recv().await else {
                return Err(bug("nothing can happen any more"));
            };
            self.take(happening)?;
        }
    }

    /// Tells the engine what happened.
    fn take(&mut self, happening: Happening) -> Result<(), Fault> {
        match self.translate(happening) {
            Some(input) => self.input(input),
            None => Ok(()),
        }
    }

    /// What happened, in the engine's words; what only people or this loop care about is done here.
    fn translate(&mut self, happening: Happening) -> Option<Input> {
        match happening {
            Happening::Written { seq, line } => {
                self.view.written(seq, &line);
                self.reader_gone()
            }
            Happening::Durable { seq } => {
                self.durable_below = self.durable_below.max(seq.saturating_add(1));
                Some(Input::Persisted { seq })
            }
            Happening::LogFailed { why } => {
                self.stop.log_failed.get_or_insert(why);
                Some(Input::PersistFailed)
            }
            Happening::Delta { request, delta } => {
                self.view.delta(&delta);
                Some(Input::ModelDelta { request, delta })
            }
            Happening::Answered { request, ended } => self.answered(request, ended),
            Happening::Denied(denied) => Some(Input::Denied(denied)),
            Happening::Called(done) => Some(self.called(*done)),
            Happening::Due(id) => Some(Input::Timer { id }),
            Happening::Decided {
                call_id,
                digest,
                outcome,
            } => Some(Input::Answer {
                call_id,
                digest,
                outcome,
            }),
            Happening::Signal(signal) => {
                self.signalled(signal);
                Some(Input::Cancel)
            }
            Happening::TimeUp => {
                self.stop.time_up = true;
                Some(Input::TimeUp)
            }
            // Only awaited between turns, by `check`.
            Happening::Checked(_) => None,
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Append { events, barrier } => {
                self.view.events(&events);
                let barrier = if barrier {
                    Barrier::Flush
                } else {
                    Barrier::None
                };
                let submitted = self
                    .writer
                    .as_ref()
                    .map(|writer| writer.submit(events, barrier));
                if let Some(Err(error)) = submitted {
                    self.say(Happening::LogFailed {
                        why: error.to_string(),
                    });
                }
            }
            Effect::CallModel {
                request,
                attempt,
                body,
                ..
            } => self.call_model(request, attempt, body),
            Effect::CancelModel { request } => self.cancel_model(request),
            Effect::StartCall {
                call_id,
                name,
                arguments,
            } => self.start_call(call_id, &name, &arguments),
            Effect::KillCall { call_id } => self.kill_call(&call_id),
            Effect::Ask {
                call_id,
                name,
                arguments,
                digest,
                why,
            } => {
                let question = ask::Question {
                    call_id,
                    name,
                    arguments,
                    digest,
                    why,
                };
                self.approver.ask(question, &mut self.view, &self.tell);
            }
            Effect::SetTimer { id, at_ms } => timers::set(id, at_ms, self.tell.clone()),
            Effect::TurnEnded {
                reason, unclaimed, ..
            } => {
                self.ended = Some(reason);
                self.view.unclaimed(&unclaimed);
            }
        }
    }

    fn input(&mut self, input: Input) -> Result<(), Fault> {
        match self.engine.handle(now_ms(), input) {
            Ok(()) => Ok(()),
            // The machine is as it was: what came too late for this run's log is not its end.
            Err(error @ EngineError::NotAFact { .. }) => {
                self.view.printer.detail(&format!("not logged: {error}"));
                Ok(())
            }
            Err(error @ EngineError::PromptTooLong { .. }) => Err(Fault::usage(error.to_string())),
            Err(other) => Err(bug(&other.to_string())),
        }
    }

    /// Logs facts between turns and waits until they are durable.
    pub async fn record(&mut self, facts: Vec<Body>) -> Result<(), Fault> {
        self.engine
            .record(now_ms(), facts)
            .map_err(|error| bug(&error.to_string()))?;
        self.settle().await
    }

    /// Performs what is due and waits until all of it is durable, or never will be.
    pub async fn settle(&mut self) -> Result<(), Fault> {
        self.perform_all();
        while self.durable_below < self.engine.fold().next_seq() && self.stop.log_failed.is_none() {
            let Some(happening) = self.heard.recv().await else {
                return Ok(());
            };
            self.take(happening)?;
            self.perform_all();
        }
        Ok(())
    }

    /// Between turns: takes what happens until `until` is done, or the run is to stop.
    pub async fn idle<T>(
        &mut self,
        until: impl Future<Output = Option<T>>,
    ) -> Result<Option<T>, Fault> {
        let mut until = std::pin::pin!(until);
        while !self.stop.is_set() {
            let happening = tokio::select! {
                done = &mut until => return Ok(done),
                happening = self.heard.recv() => happening,
            };
            let Some(happening) = happening else {
                return Ok(None);
            };
            self.take(happening)?;
            self.perform_all();
            // No turn runs that a Ctrl-C could end, and the terminal's own drops the line.
            if self.stop.signal == Some(Signal::Interrupt) {
                self.stop.signal = None;
            }
        }
        Ok(None)
    }

    /// Takes what has happened already, before the run's end is judged.
    pub fn catch_up(&mut self) -> Result<(), Fault> {
        while let Ok(happening) = self.heard.try_recv() {
            self.take(happening)?;
            self.perform_all();
        }
        Ok(())
    }

    fn perform_all(&mut self) {
        while let Some(effect) = self.engine.poll() {
            self.perform(effect);
        }
    }

    fn signalled(&mut self, signal: Signal) {
        if self.stop.signal.is_some() {
            timers::leave_soon(signal);
        }
        self.stop.signal = self.stop.signal.max(Some(signal));
    }

    /// A closed stdout has nobody to run for.
    fn reader_gone(&mut self) -> Option<Input> {
        let gone = self.view.printer.reader() == Reader::Gone && self.stop.signal.is_none();
        gone.then(|| {
            self.stop.signal = Some(Signal::Terminate);
            Input::Cancel
        })
    }

    fn say(&self, happening: Happening) {
        // The receiver is ours and lives as long as we do.
        drop(self.tell.send(happening));
    }
}

fn bug(what: &str) -> Fault {
    Fault::new(crate::fault::code::FAILED, format!("internal: {what}")).remedy("please report this")
}
