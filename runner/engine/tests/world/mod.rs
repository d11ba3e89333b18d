//! A world for the turn machine, decided by a tape of numbers: when writes become durable, what
//! the model streams, when calls end and in which order, what a person answers, when timers fire,
//! when someone cancels, and when the process dies. Time is injected. Everything that happened is
//! kept as a trace; the tests are judges over traces.

// Each test binary uses its own part of it.
#![allow(dead_code, unused_imports)]

pub mod fixture;
pub mod script;

use std::collections::{BTreeMap, VecDeque};

use curfew_engine::event::{
    ApprovalOutcome, Body, CallFacts, Event, FailureKind, Finish, ModelFailure, RunResult,
    ToolCompleted, TurnEndReason, Usage,
};
use curfew_engine::turn::io::{Delta, Effect, Input, RequestId, TimerId};
use curfew_engine::turn::{Engine, EngineError, RunEnd};
use curfew_engine::{Fold, repair};

use proptest::prelude::*;

pub use fixture::{PlainWire, engine_config, header, run_start};
use script::{ModelMove, Tape};

/// What happened, in order. `durable` is how many events were durable at that moment.
#[derive(Clone, Debug)]
pub enum Seen {
    Logged(Event),
    Durable {
        below: u64,
    },
    Sent {
        turn: u64,
        step: u64,
        attempt: u32,
        body: Vec<u8>,
        durable: u64,
        logged: usize,
    },
    ModelCancelled,
    Started {
        call_id: String,
        name: String,
        arguments: String,
        durable: u64,
    },
    Killed {
        call_id: String,
    },
    Asked {
        call_id: String,
        arguments: String,
        digest: String,
        durable: u64,
    },
    TimerSet {
        at_ms: u64,
        durable: u64,
    },
    TurnEnded {
        reason: TurnEndReason,
        unclaimed: Vec<String>,
        logged: usize,
    },
    FedDelta {
        request: RequestId,
        delta: Delta,
        current: bool,
    },
    FedEnd {
        request: RequestId,
        finish: Finish,
        usage: Option<Usage>,
        current: bool,
    },
    FedFailure {
        kind: FailureKind,
        retry: bool,
        current: bool,
    },
    FedCompletion {
        call_id: String,
        running: bool,
    },
    FedAnswer {
        call_id: String,
        digest: String,
        outcome: ApprovalOutcome,
    },
    FedPrompt {
        text: String,
    },
    FedCancel,
    FedPersistFailed,
    /// The process died; events from `kept` on are lost.
    Died {
        kept: usize,
    },
}

pub struct World {
    pub engine: Engine,
    pub now: u64,
    pub log: Vec<Event>,
    pub trace: Vec<Seen>,
    durable: u64,
    barriers: VecDeque<u64>,
    model: Option<(RequestId, VecDeque<ModelMove>)>,
    past_requests: Vec<RequestId>,
    running: BTreeMap<String, Running>,
    asking: BTreeMap<String, String>,
    past_calls: Vec<String>,
    timers: BTreeMap<u64, (u64, TimerId)>,
    tape: Tape,
    options: Options,
    prompts: u32,
    pub failed: bool,
}

#[derive(Clone, Copy)]
pub struct Options {
    pub max_steps_per_turn: u64,
    pub max_steps_per_run: u64,
    pub deaths: bool,
    pub storage_failures: bool,
    /// One call in this many never ends by itself; 0: all end.
    pub silent_calls: u16,
    /// The model only ever asks for the same call.
    pub stubborn_model: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_steps_per_turn: 6,
            max_steps_per_run: 20,
            deaths: true,
            storage_failures: false,
            silent_calls: 7,
            stubborn_model: false,
        }
    }
}

struct Running {
    name: String,
    silent: bool,
    killed: bool,
}

#[derive(Clone, Debug)]
enum Move {
    Persist,
    PersistLess,
    Model,
    Complete(String),
    Answer(String),
    Timer,
    Prompt,
    Cancel,
    Late,
    Die,
    PersistFailed,
}

pub fn tapes() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..500)
}

/// So many cases, or as many as `PROPTEST_CASES` says.
pub fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else {
        cases
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..default
    }
}

/// Plays a whole tape and then lets everything come to rest.
pub fn play(tape: Vec<u16>, options: Options) -> World {
    let mut world = World::new(tape, options);
    world.prompt();
    while !world.tape.is_over() && !world.failed {
        let moves = world.moves();
        let pick = world.tape.next() as usize % moves.len();
        world.make(moves[pick].clone());
    }
    world.rest();
    world
}

impl World {
    pub fn new(tape: Vec<u16>, options: Options) -> Self {
        let engine = Engine::new(engine_config(&options), Fold::new(header()));
        let mut world = Self {
            engine,
            now: 1_000,
            log: Vec::new(),
            trace: Vec::new(),
            durable: 0,
            barriers: VecDeque::new(),
            model: None,
            past_requests: Vec::new(),
            running: BTreeMap::new(),
            asking: BTreeMap::new(),
            past_calls: Vec::new(),
            timers: BTreeMap::new(),
            tape: Tape::new(tape),
            options,
            prompts: 0,
            failed: false,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.engine
            .begin_run(self.now, run_start())
            .expect("a run begins");
        self.drain();
    }

    /// Each move as often as it is likely.
    fn moves(&self) -> Vec<Move> {
        let mut moves = vec![Move::Late, Move::Prompt];
        let mut add = |what: Move, times: usize| moves.extend(std::iter::repeat_n(what, times));
        if !self.barriers.is_empty() {
            add(Move::Persist, 40);
            add(Move::PersistLess, 10);
        }
        if self.model.is_some() {
            add(Move::Model, 80);
        }
        for (call_id, call) in &self.running {
            if !call.silent {
                add(Move::Complete(call_id.clone()), 20);
            }
        }
        for call_id in self.asking.keys() {
            add(Move::Answer(call_id.clone()), 20);
        }
        if !self.timers.is_empty() {
            add(Move::Timer, 4);
        }
        if !self.engine.is_idle() {
            add(Move::Cancel, 1);
        }
        if self.options.deaths {
            add(Move::Die, 1);
        }
        if self.options.storage_failures {
            add(Move::PersistFailed, 1);
        }
        moves
    }

    /// No more surprises: everything that is awaited comes, until nothing is.
    pub fn rest(&mut self) {
        for _ in 0..20_000 {
            let next = if self.failed {
                return;
            } else if !self.barriers.is_empty() {
                Move::Persist
            } else if self.model.is_some() {
                Move::Model
            } else if let Some((call_id, _)) = self.running.iter().find(|(_, call)| !call.silent) {
                Move::Complete(call_id.clone())
            } else if let Some(call_id) = self.asking.keys().next() {
                Move::Answer(call_id.clone())
            } else if !self.timers.is_empty() {
                Move::Timer
            } else {
                assert!(
                    self.engine.is_idle(),
                    "nothing is awaited, yet the machine waits: it hangs"
                );
                return;
            };
            self.make(next);
        }
        panic!("the machine does not come to rest");
    }

    fn make(&mut self, next: Move) {
        self.now += u64::from(self.tape.next() % 300);
        match next {
            Move::Persist => self.persist(),
            Move::PersistLess => self.persist_less(),
            Move::Model => self.model_move(),
            Move::Complete(call_id) => self.complete(&call_id),
            Move::Answer(call_id) => self.answer(&call_id),
            Move::Timer => self.fire_timer(),
            Move::Prompt => self.prompt(),
            Move::Cancel => self.feed(Seen::FedCancel, Input::Cancel),
            Move::Late => self.late(),
            Move::Die => self.die(),
            Move::PersistFailed => {
                self.feed(Seen::FedPersistFailed, Input::PersistFailed);
                self.failed = true;
            }
        }
    }

    pub fn feed(&mut self, seen: Seen, input: Input) {
        self.trace.push(seen);
        if let Input::Persisted { seq } = &input {
            self.durable = self.durable.max(seq + 1);
            self.barriers.retain(|barrier| barrier > seq);
        }
        match self.engine.handle(self.now, input) {
            Ok(()) | Err(EngineError::NotAFact { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        self.drain();
    }

    /// Does what the machine wants.
    fn drain(&mut self) {
        while let Some(effect) = self.engine.poll() {
            match effect {
                Effect::Append { events, barrier } => self.append(events, barrier),
                Effect::CallModel {
                    request,
                    turn,
                    step,
                    attempt,
                    body,
                } => {
                    let (durable, logged) = (self.durable, self.log.len());
                    self.trace.push(Seen::Sent {
                        turn,
                        step,
                        attempt,
                        body,
                        durable,
                        logged,
                    });
                    assert!(self.model.is_none(), "two requests at once");
                    let plan = script::plan(&mut self.tape, self.options.stubborn_model);
                    self.model = Some((request, plan));
                }
                Effect::CancelModel { request } => {
                    let running = self.model.take().map(|(running, _)| running);
                    assert_eq!(
                        running,
                        Some(request),
                        "cancels a request that does not run"
                    );
                    self.past_requests.push(request);
                    self.trace.push(Seen::ModelCancelled);
                }
                Effect::StartCall {
                    call_id,
                    name,
                    arguments,
                } => self.start(call_id, name, arguments),
                Effect::KillCall { call_id } => {
                    self.running
                        .get_mut(&call_id)
                        .expect("kills a call that runs")
                        .killed = true;
                    self.trace.push(Seen::Killed { call_id });
                }
                Effect::Ask {
                    call_id,
                    arguments,
                    digest,
                    ..
                } => {
                    let durable = self.durable;
                    self.asking.insert(call_id.clone(), digest.clone());
                    self.trace.push(Seen::Asked {
                        call_id,
                        arguments,
                        digest,
                        durable,
                    });
                }
                Effect::SetTimer { id, at_ms } => {
                    self.timers.insert(id.0, (at_ms, id));
                    self.trace.push(Seen::TimerSet {
                        at_ms,
                        durable: self.durable,
                    });
                }
                Effect::TurnEnded {
                    reason, unclaimed, ..
                } => {
                    self.asking.clear();
                    self.running.clear();
                    let logged = self.log.len();
                    self.trace.push(Seen::TurnEnded {
                        reason,
                        unclaimed,
                        logged,
                    });
                }
            }
        }
    }

    fn append(&mut self, events: Vec<Event>, barrier: bool) {
        for event in events {
            assert_eq!(event.seq as usize, self.log.len(), "seqs are contiguous");
            self.trace.push(Seen::Logged(event.clone()));
            self.log.push(event);
        }
        if barrier {
            self.barriers.push_back(self.log.len() as u64 - 1);
        }
    }

    fn start(&mut self, call_id: String, name: String, arguments: String) {
        let every = self.options.silent_calls;
        let silent = every > 0 && self.tape.next() % every == every - 1;
        let running = Running {
            name: name.clone(),
            silent,
            killed: false,
        };
        assert!(
            self.running.insert(call_id.clone(), running).is_none(),
            "started twice"
        );
        self.past_calls.push(call_id.clone());
        self.trace.push(Seen::Started {
            call_id,
            name,
            arguments,
            durable: self.durable,
        });
    }

    fn persist(&mut self) {
        let Some(seq) = self.barriers.pop_front() else {
            return;
        };
        self.durable = self.durable.max(seq + 1);
        self.feed(
            Seen::Durable {
                below: self.durable,
            },
            Input::Persisted { seq },
        );
    }

    /// Durable, but not as far as a barrier: nobody may take it for that.
    fn persist_less(&mut self) {
        let barrier = self.barriers.front().copied().unwrap_or(self.durable);
        let at_risk = barrier.saturating_sub(self.durable);
        if at_risk > 0 {
            let seq = self.durable + u64::from(self.tape.next()) % at_risk;
            self.feed(Seen::Durable { below: seq + 1 }, Input::Persisted { seq });
        }
    }

    fn model_move(&mut self) {
        let Some((request, plan)) = &mut self.model else {
            return;
        };
        let request = *request;
        match plan.pop_front() {
            Some(ModelMove::Delta(delta)) => {
                let seen = Seen::FedDelta {
                    request,
                    delta: delta.clone(),
                    current: true,
                };
                self.feed(seen, Input::ModelDelta { request, delta });
            }
            Some(ModelMove::End(finish, usage)) => {
                self.model = None;
                self.past_requests.push(request);
                let seen = Seen::FedEnd {
                    request,
                    finish,
                    usage,
                    current: true,
                };
                self.feed(
                    seen,
                    Input::ModelEnd {
                        request,
                        finish,
                        usage,
                    },
                );
            }
            Some(ModelMove::Fail(kind, retry_in_ms)) => self.fail_model(request, kind, retry_in_ms),
            None => self.fail_model(request, FailureKind::IdleTimeout, None),
        }
    }

    fn fail_model(&mut self, request: RequestId, kind: FailureKind, retry_in_ms: Option<u64>) {
        self.model = None;
        self.past_requests.push(request);
        let failure = ModelFailure {
            kind,
            status: None,
            retry_after_ms: None,
            text: "told by the world".to_owned(),
        };
        let seen = Seen::FedFailure {
            kind,
            retry: retry_in_ms.is_some(),
            current: true,
        };
        self.feed(
            seen,
            Input::ModelFailed {
                request,
                failure,
                retry_in_ms,
            },
        );
    }

    fn complete(&mut self, call_id: &str) {
        let Some(call) = self.running.remove(call_id) else {
            return;
        };
        let variant = self.tape.next();
        let killed = call.killed && !variant.is_multiple_of(3);
        let completed = script::completion(call_id, &call.name, killed, variant);
        let events = if variant.is_multiple_of(5) {
            vec![script::denial(call_id)]
        } else {
            Vec::new()
        };
        let seen = Seen::FedCompletion {
            call_id: call_id.to_owned(),
            running: true,
        };
        self.feed(seen, Input::CallCompleted { completed, events });
    }

    fn answer(&mut self, call_id: &str) {
        let Some(digest) = self.asking.remove(call_id) else {
            return;
        };
        let (outcome, right) = script::answer(self.tape.next());
        let digest = if right { digest } else { "0".repeat(64) };
        let call_id = call_id.to_owned();
        let seen = Seen::FedAnswer {
            call_id: call_id.clone(),
            digest: digest.clone(),
            outcome,
        };
        self.feed(
            seen,
            Input::Answer {
                call_id,
                digest,
                outcome,
            },
        );
    }

    fn fire_timer(&mut self) {
        let Some((key, (at_ms, id))) = self
            .timers
            .iter()
            .min_by_key(|(_, timer)| timer.0)
            .map(|(k, v)| (*k, *v))
        else {
            return;
        };
        self.timers.remove(&key);
        self.now = self.now.max(at_ms);
        self.trace.push(Seen::Durable {
            below: self.durable,
        });
        self.engine
            .handle(self.now, Input::Timer { id })
            .expect("timer");
        self.drain();
    }

    pub fn prompt(&mut self) {
        self.prompts += 1;
        let text = format!("prompt {}", self.prompts);
        self.feed(Seen::FedPrompt { text: text.clone() }, Input::User { text });
    }

    /// Things that come too late, twice, or from nowhere. None of them may matter.
    fn late(&mut self) {
        match self.tape.next() % 5 {
            0 | 1 => {
                let Some(request) = self.past_requests.last().copied() else {
                    return;
                };
                let delta = script::text("late");
                let seen = Seen::FedDelta {
                    request,
                    delta: delta.clone(),
                    current: false,
                };
                self.feed(seen, Input::ModelDelta { request, delta });
                let finish = Finish::Stop;
                let seen = Seen::FedEnd {
                    request,
                    finish,
                    usage: None,
                    current: false,
                };
                self.feed(
                    seen,
                    Input::ModelEnd {
                        request,
                        finish,
                        usage: None,
                    },
                );
            }
            2 => {
                let Some(call_id) = self
                    .past_calls
                    .last()
                    .filter(|id| !self.running.contains_key(*id))
                    .cloned()
                else {
                    return;
                };
                let completed = script::completion(&call_id, "read", false, 1);
                let seen = Seen::FedCompletion {
                    call_id,
                    running: false,
                };
                self.feed(
                    seen,
                    Input::CallCompleted {
                        completed,
                        events: Vec::new(),
                    },
                );
            }
            3 => {
                let outcome = ApprovalOutcome::AllowedOnce;
                let (call_id, digest) = ("call_1".to_owned(), "0".repeat(64));
                if !self.asking.contains_key(&call_id) {
                    let seen = Seen::FedAnswer {
                        call_id: call_id.clone(),
                        digest: digest.clone(),
                        outcome,
                    };
                    self.feed(
                        seen,
                        Input::Answer {
                            call_id,
                            digest,
                            outcome,
                        },
                    );
                }
            }
            _ => self.feed(
                Seen::Durable {
                    below: self.durable,
                },
                Input::Timer {
                    id: TimerId(9_999_999),
                },
            ),
        }
    }

    /// SIGKILL: what was not durable may be lost, from any event on. Then a cold start.
    pub fn die(&mut self) {
        let at_risk = self.log.len() - self.durable as usize;
        let kept = self.durable as usize + usize::from(self.tape.next()) % (at_risk + 1);
        self.die_keeping(kept);
    }

    pub fn die_keeping(&mut self, kept: usize) {
        self.log.truncate(kept);
        self.trace.push(Seen::Died { kept });
        self.barriers.clear();
        self.past_requests.clear();
        self.model = None;
        self.running.clear();
        self.asking.clear();
        self.timers.clear();
        let mut fold = Fold::of(header(), &self.log).expect("every prefix folds");
        let closing = repair::plan(&fold, self.now).expect("every prefix can be closed");
        for event in &closing {
            fold.apply(event).expect("what closes it folds");
        }
        self.engine = Engine::new(engine_config(&self.options), fold);
        self.append(closing, false);
        self.durable = self.log.len() as u64;
        self.trace.push(Seen::Durable {
            below: self.durable,
        });
        self.begin();
    }

    pub fn end_run(&mut self) -> RunResult {
        let result = self
            .engine
            .end_run(self.now, RunEnd::default())
            .expect("a run is open");
        self.drain();
        result
    }

    /// The request on the wire. From now on the test plays its model.
    pub fn take_model(&mut self) -> Option<RequestId> {
        self.model.take().map(|(request, _)| request)
    }

    /// Events of the final log, with their bodies.
    pub fn bodies(&self) -> impl Iterator<Item = (&Event, &Body)> {
        self.log.iter().map(|event| (event, &event.body))
    }
}

pub fn facts() -> CallFacts {
    CallFacts::default()
}

/// A completion without anything special.
pub fn plain_completion(call_id: &str, content: &str) -> ToolCompleted {
    ToolCompleted {
        call_id: call_id.to_owned(),
        content: content.to_owned(),
        is_error: false,
        error: None,
        facts: facts(),
        files: Vec::new(),
        blob: None,
    }
}
