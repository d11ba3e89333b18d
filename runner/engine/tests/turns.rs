//! Single scenes of the turn machine, told step by step.

// Helpers of a test fail it by panicking; clippy's own exception covers test functions only.
#![allow(clippy::expect_used)]

mod world;

use curfew_engine::codec::type_name;
use curfew_engine::event::{
    ApprovalOutcome, Block, Body, ErrorClass, FailureKind, Finish, HeaderReason, MessageSource,
    ModelFailure, ToolCompleted, ToolErrorCode, TurnEndReason, UserMessage,
};
use curfew_engine::projection::{Message, messages};
use curfew_engine::turn::io::{Delta, Effect, Input, RequestId};
use curfew_engine::turn::{
    CALLS_PER_STEP_MAX, Engine, EngineError, KILL_GRACE_MS, PROMPT_BYTES_MAX, RunEnd, RunStart,
};
use curfew_engine::{Event, Fold};
use world::fixture::{DEADLINE_MS, request_header, run_start};
use world::{Options, engine_config, header, plain_completion, script};

/// A machine whose writes become durable at once, or when the scene says so.
struct Scene {
    engine: Engine,
    now: u64,
    log: Vec<Event>,
    effects: Vec<Effect>,
    holds_writes: bool,
    held: Option<u64>,
}

impl Scene {
    fn new() -> Self {
        Self::with(Options {
            max_steps_per_turn: 20,
            ..Options::default()
        })
    }

    fn with(options: Options) -> Self {
        let engine = Engine::new(engine_config(&options), Fold::new(header()));
        let mut scene = Self {
            engine,
            now: 0,
            log: Vec::new(),
            effects: Vec::new(),
            holds_writes: false,
            held: None,
        };
        scene.engine.begin_run(0, run_start()).expect("begins");
        scene.drain();
        scene.effects.clear();
        scene
    }

    fn feed(&mut self, input: Input) -> &mut Self {
        self.try_feed(input).expect("taken");
        self
    }

    fn try_feed(&mut self, input: Input) -> Result<(), EngineError> {
        self.now += 1;
        let done = self.engine.handle(self.now, input);
        self.drain();
        done
    }

    fn drain(&mut self) {
        while let Some(effect) = self.engine.poll() {
            if let Effect::Append { events, barrier } = effect {
                self.log.extend(events);
                if barrier {
                    self.held = Some(self.log.len() as u64 - 1);
                }
            } else {
                self.effects.push(effect);
            }
            if !self.holds_writes {
                self.persist();
            }
        }
    }

    fn persist(&mut self) {
        if let Some(seq) = self.held.take() {
            self.engine
                .handle(self.now, Input::Persisted { seq })
                .expect("taken");
            self.drain();
        }
    }

    fn prompt(&mut self, text: &str) -> &mut Self {
        self.feed(Input::User {
            text: text.to_owned(),
        })
    }

    /// The request that was sent last.
    fn request(&self) -> RequestId {
        let sent = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::CallModel { request, .. } => Some(*request),
            _ => None,
        });
        sent.expect("a request was sent")
    }

    fn bodies(&self) -> Vec<&Vec<u8>> {
        let mut bodies = Vec::new();
        for effect in &self.effects {
            if let Effect::CallModel { body, .. } = effect {
                bodies.push(body);
            }
        }
        bodies
    }

    fn says(&mut self, text: &str) -> &mut Self {
        let request = self.request();
        self.feed(Input::ModelDelta {
            request,
            delta: script::text(text),
        })
    }

    fn calls(&mut self, calls: &[(&str, &str)]) -> &mut Self {
        let request = self.request();
        for (index, (name, arguments)) in (0..).zip(calls) {
            let delta = script::call_piece(index, Some(name), arguments);
            self.feed(Input::ModelDelta { request, delta });
        }
        self.ends(Finish::ToolCalls)
    }

    fn ends(&mut self, finish: Finish) -> &mut Self {
        let request = self.request();
        self.feed(Input::ModelEnd {
            request,
            finish,
            usage: None,
        })
    }

    fn fails(&mut self, kind: FailureKind, retry_in_ms: Option<u64>) -> &mut Self {
        let failure = ModelFailure {
            kind,
            status: Some(500),
            retry_after_ms: None,
            text: "no".to_owned(),
        };
        let request = self.request();
        self.feed(Input::ModelFailed {
            request,
            failure,
            retry_in_ms,
        })
    }

    fn completes(&mut self, call_id: &str, content: &str) -> &mut Self {
        let completed = plain_completion(call_id, content);
        self.feed(Input::CallCompleted {
            completed,
            events: Vec::new(),
        })
    }

    fn fire_last_timer(&mut self) -> &mut Self {
        let timer = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::SetTimer { id, at_ms } => Some((*id, *at_ms)),
            _ => None,
        });
        let (id, at_ms) = timer.expect("a timer");
        self.now = at_ms;
        self.feed(Input::Timer { id })
    }

    fn types(&self) -> Vec<&str> {
        self.log
            .iter()
            .map(|event| type_name(&event.body))
            .collect()
    }

    fn completion(&self, call_id: &str) -> &ToolCompleted {
        let found = self.log.iter().find_map(|event| match &event.body {
            Body::ToolCompleted(done) if done.call_id == call_id => Some(done),
            _ => None,
        });
        found.expect("completed")
    }

    fn error(&self, call_id: &str) -> Option<&ToolErrorCode> {
        self.completion(call_id).error.as_ref()
    }

    fn ended(&self) -> Option<TurnEndReason> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::TurnEnded { reason, .. } => Some(*reason),
            _ => None,
        })
    }

    fn started(&self) -> Vec<&str> {
        let mut started = Vec::new();
        for effect in &self.effects {
            if let Effect::StartCall { call_id, .. } = effect {
                started.push(call_id.as_str());
            }
        }
        started
    }

    fn messages(&self) -> Vec<Message> {
        messages(self.engine.fold())
    }
}

/// The order of seeds 001 and 003 (M0, M2) in one.
#[test]
fn one_question_and_one_call() {
    let mut scene = Scene::new();
    scene
        .prompt("read it")
        .says("Let me look.")
        .calls(&[("read", "{\"path\":\"a\"}")]);
    scene
        .completes("call_1", "text")
        .says("Done.")
        .ends(Finish::Stop);
    assert_eq!(
        scene.types(),
        [
            "sandbox/confinement",
            "turn/start",
            "step/start",
            "user/message",
            "request/header",
            "request/sent",
            "assistant/chunk",
            "assistant/chunk",
            "assistant/message",
            "tool/call",
            "tool/completed",
            "tool/result",
            "step/end",
            "step/start",
            "request/sent",
            "assistant/chunk",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
    );
    assert_eq!(scene.ended(), Some(TurnEndReason::Completed));
    let result = scene.engine.end_run(99, RunEnd::default()).expect("ends");
    assert_eq!(
        (result.status.as_str(), result.exit_code, result.steps),
        ("finished", 0, 2)
    );
    assert_eq!(result.final_message.as_deref(), Some("Done."));
}

#[test]
fn nothing_leaves_before_its_intent_is_durable() {
    let mut scene = Scene::new();
    scene.holds_writes = true;
    scene.prompt("go");
    assert!(scene.effects.is_empty(), "the request waits");
    scene.persist();
    assert_eq!(scene.bodies().len(), 1);
    scene.calls(&[("bash", "{}")]);
    assert!(scene.started().is_empty(), "the call waits");
    let short = scene.log.len() as u64 - 2;
    scene.feed(Input::Persisted { seq: short });
    assert!(scene.started().is_empty(), "not everything is durable yet");
    scene.persist();
    assert_eq!(scene.started(), ["call_1"]);

    let asks = |scene: &Scene| {
        scene
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Ask { .. }))
    };
    let mut scene = Scene::new();
    scene.prompt("go").holds_writes = true;
    scene.calls(&[("deploy", "{}")]);
    let short = scene.log.len() as u64 - 2;
    scene.feed(Input::Persisted { seq: short });
    assert!(!asks(&scene), "the question waits");
    scene.persist();
    assert!(asks(&scene));
}

#[test]
fn a_failure_is_durable_before_the_wait_and_the_bytes_are_the_same() {
    let mut scene = Scene::new();
    scene
        .prompt("go")
        .says("half of it")
        .fails(FailureKind::CutStream, Some(700));
    assert!(scene.types().contains(&"model/retry"));
    scene.fire_last_timer();
    assert!(scene.now >= 700);
    let bodies = scene.bodies();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
    scene.says("whole").ends(Finish::Stop);
    assert_eq!(
        scene.messages().last(),
        Some(&Message::Assistant {
            text: "whole".to_owned(),
            calls: Vec::new()
        })
    );
    assert_eq!(
        scene
            .types()
            .iter()
            .filter(|kind| **kind == "request/sent")
            .count(),
        1
    );
}

#[test]
fn retries_are_counted_and_the_last_failure_is_kept() {
    let mut scene = Scene::new();
    scene.prompt("go");
    scene.fails(FailureKind::Server, Some(1)).fire_last_timer();
    scene.fails(FailureKind::Server, Some(1)).fire_last_timer();
    scene.says("so far").fails(FailureKind::Server, Some(1));
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::Error(ErrorClass::Provider))
    );
    let Some(Body::TurnEnd(end)) = scene.log.last().map(|event| &event.body) else {
        panic!("a turn/end")
    };
    assert_eq!(
        end.failure.as_ref().map(|failure| failure.kind),
        Some(FailureKind::Server)
    );
    // What was paid for is kept.
    assert_eq!(
        scene.messages().last(),
        Some(&Message::Assistant {
            text: "so far".to_owned(),
            calls: Vec::new()
        })
    );
}

#[test]
fn failures_have_their_class() {
    for (kind, class) in [
        (FailureKind::Auth, ErrorClass::Auth),
        (FailureKind::ContextWindow, ErrorClass::Context),
        (FailureKind::Quota, ErrorClass::Provider),
        (FailureKind::BadRequest, ErrorClass::Provider),
    ] {
        let mut scene = Scene::new();
        scene.prompt("go").fails(kind, None);
        assert_eq!(scene.ended(), Some(TurnEndReason::Error(class)), "{kind:?}");
        assert!(scene.engine.is_idle());
    }
}

#[test]
fn an_empty_answer_is_retried_by_the_machine_itself() {
    let mut scene = Scene::new();
    scene.prompt("go").ends(Finish::Stop).fire_last_timer();
    scene.ends(Finish::ToolCalls).fire_last_timer();
    scene.says(" \n").ends(Finish::Stop);
    assert_eq!(scene.bodies().len(), 3);
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::Error(ErrorClass::Provider))
    );
}

#[test]
fn a_cut_answer_ends_the_turn_or_loses_its_calls() {
    let mut scene = Scene::new();
    scene
        .prompt("go")
        .says("This answer was cut")
        .ends(Finish::Length);
    assert_eq!(scene.ended(), Some(TurnEndReason::MaxTokens));

    let mut scene = Scene::new();
    scene.prompt("go");
    for round in 0..3 {
        assert_eq!(scene.bodies().len(), round + 1);
        let request = scene.request();
        // Perfectly valid JSON, and still not what was meant.
        let delta = script::call_piece(0, Some("bash"), "{\"command\":\"rm -rf /etc\"}");
        scene
            .feed(Input::ModelDelta { request, delta })
            .ends(Finish::Length);
    }
    assert!(scene.started().is_empty());
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::MaxTokens),
        "not for ever"
    );
    let told = scene
        .messages()
        .iter()
        .filter(|message| matches!(message, Message::User { text } if text.contains("were not")))
        .count();
    assert_eq!(told, 2);
}

#[test]
fn a_filtered_answer_is_a_refusal() {
    let mut scene = Scene::new();
    scene.prompt("go").says("I can").ends(Finish::ContentFilter);
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::Error(ErrorClass::Refusal))
    );
}

#[test]
fn calls_that_cannot_run_get_a_result_without_being_dispatched() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[
        ("nope", "{}"),
        ("read", "{\"bad\":1}"),
        ("read", "{\"pa"),
        ("", "{}"),
    ]);
    assert!(scene.started().is_empty());
    assert_eq!(scene.error("call_1"), Some(&ToolErrorCode::UnknownTool));
    assert!(
        scene
            .completion("call_1")
            .content
            .contains("read, grep, bash, write, deploy")
    );
    assert_eq!(
        scene.error("call_2"),
        Some(&ToolErrorCode::InvalidArguments)
    );
    assert!(
        scene
            .completion("call_2")
            .content
            .contains("unknown field `bad`")
    );
    assert_eq!(
        scene.error("call_3"),
        Some(&ToolErrorCode::InvalidArguments)
    );
    assert_eq!(scene.error("call_4"), Some(&ToolErrorCode::UnknownTool));
    assert!(
        !scene.types().contains(&"tool/call"),
        "tool/call means that it may have run"
    );
    assert_eq!(scene.bodies().len(), 2, "the model is shown what was wrong");
}

#[test]
fn cancel_closes_running_and_undispatched_calls() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[
        ("read", "{}"),
        ("grep", "{}"),
        ("bash", "{}"),
        ("write", "{}"),
    ]);
    assert_eq!(scene.started(), ["call_1", "call_2"]);
    scene.completes("call_2", "done before");
    scene.feed(Input::Cancel);
    let killed =
        |effect: &Effect| matches!(effect, Effect::KillCall { call_id } if call_id == "call_1");
    assert!(scene.effects.iter().any(killed));
    assert_eq!(scene.ended(), None, "it waits for what is being killed");
    let mut completed = plain_completion("call_1", "half");
    completed.facts.killed = true;
    scene.feed(Input::CallCompleted {
        completed,
        events: Vec::new(),
    });
    assert_eq!(scene.ended(), Some(TurnEndReason::Cancelled));
    assert_eq!(scene.error("call_1"), Some(&ToolErrorCode::Cancelled));
    assert_eq!(scene.completion("call_1").content, "half");
    assert_eq!(scene.error("call_2"), None);
    assert_eq!(
        scene.error("call_3"),
        Some(&ToolErrorCode::AbortedBeforeDispatch)
    );
    assert_eq!(
        scene.error("call_4"),
        Some(&ToolErrorCode::AbortedBeforeDispatch)
    );
    // The next request is valid: four calls, four results, in order.
    scene.prompt("again");
    let results: Vec<String> = scene
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Tool { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(results, ["call_1", "call_2", "call_3", "call_4"]);
}

#[test]
fn a_killed_call_that_stays_silent_is_given_up() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("bash", "{}")]);
    scene.feed(Input::Cancel);
    let before = scene.now;
    scene.fire_last_timer();
    assert!(scene.now - before <= KILL_GRACE_MS + 1);
    assert_eq!(scene.error("call_1"), Some(&ToolErrorCode::Cancelled));
    assert_eq!(scene.ended(), Some(TurnEndReason::Cancelled));

    // A second Ctrl-C does not even wait for that.
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("bash", "{}")]);
    scene.feed(Input::Cancel).feed(Input::Cancel);
    assert_eq!(scene.ended(), Some(TurnEndReason::Cancelled));
    // What it did after all is still a fact.
    let events = vec![script::denial("call_1")];
    scene.feed(Input::CallCompleted {
        completed: plain_completion("call_1", "late"),
        events,
    });
    assert_eq!(scene.types().last(), Some(&"sandbox/denied"));
}

#[test]
fn a_call_over_its_deadline_is_killed_and_the_turn_goes_on() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("bash", "{}")]);
    scene.fire_last_timer();
    assert!(scene.now >= DEADLINE_MS);
    let killed = |effect: &Effect| matches!(effect, Effect::KillCall { .. });
    assert!(scene.effects.iter().any(killed));
    scene.fire_last_timer();
    assert_eq!(
        scene.error("call_1"),
        Some(&ToolErrorCode::Tool("timeout".to_owned()))
    );
    assert!(scene.completion("call_1").facts.timed_out);
    assert_eq!(scene.bodies().len(), 2);
}

/// `--timeout` is a budget, not a Ctrl-C: exit code 3, not 130.
#[test]
fn a_run_whose_time_is_up_ends_by_its_budget() {
    let mut scene = Scene::new();
    scene.prompt("go").says("half").feed(Input::TimeUp);
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::Error(ErrorClass::Budget))
    );
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("bash", "{}"), ("bash", "{}")]);
    scene.feed(Input::TimeUp).completes("call_1", "just so");
    assert_eq!(scene.error("call_1"), None);
    assert_eq!(
        scene.error("call_2"),
        Some(&ToolErrorCode::AbortedBeforeDispatch)
    );
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::Error(ErrorClass::Budget))
    );
    assert_eq!(
        scene
            .engine
            .end_run(9, RunEnd::default())
            .map(|result| result.exit_code),
        Ok(3)
    );
}

#[test]
fn cancel_keeps_what_was_streamed() {
    let mut scene = Scene::new();
    scene.prompt("go").says("I was about to");
    let request = scene.request();
    scene.feed(Input::ModelDelta {
        request,
        delta: script::call_piece(0, Some("bash"), "{"),
    });
    scene.feed(Input::Cancel);
    assert!(
        scene
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::CancelModel { .. }))
    );
    let answer = scene.log.iter().find_map(|event| match &event.body {
        Body::AssistantMessage(answer) => Some(answer),
        _ => None,
    });
    let answer = answer.expect("kept");
    assert!(answer.interrupted);
    assert_eq!((answer.dropped_calls, answer.calls.len()), (1, 0));
    assert_eq!(scene.ended(), Some(TurnEndReason::Cancelled));
    scene.prompt("next");
    assert_eq!(
        scene.messages()[1],
        Message::Assistant {
            text: "I was about to".to_owned(),
            calls: Vec::new()
        }
    );
}

#[test]
fn cancel_before_the_request_left_or_during_a_wait() {
    let mut scene = Scene::new();
    scene.holds_writes = true;
    scene.prompt("go").feed(Input::Cancel);
    scene.persist();
    assert!(scene.bodies().is_empty());
    assert_eq!(scene.ended(), Some(TurnEndReason::Cancelled));

    let mut scene = Scene::new();
    scene
        .prompt("go")
        .fails(FailureKind::RateLimit, Some(9_000));
    scene.feed(Input::Cancel);
    assert_eq!(scene.ended(), Some(TurnEndReason::Cancelled));
    scene.fire_last_timer();
    assert_eq!(scene.bodies().len(), 1, "an old timer sends nothing");
}

#[test]
fn pieces_of_a_cancelled_request_do_not_reach_the_next() {
    let mut scene = Scene::new();
    scene.prompt("one");
    let old = scene.request();
    scene.feed(Input::Cancel).prompt("two");
    scene.feed(Input::ModelDelta {
        request: old,
        delta: script::text("ghost"),
    });
    scene.feed(Input::ModelEnd {
        request: old,
        finish: Finish::Stop,
        usage: None,
    });
    assert_eq!(
        scene
            .engine
            .fold()
            .open_step()
            .map(|step| step.chunks.len()),
        Some(0)
    );
    scene.says("real").ends(Finish::Stop);
    assert_eq!(
        scene.messages().last(),
        Some(&Message::Assistant {
            text: "real".to_owned(),
            calls: Vec::new()
        })
    );
}

fn question(scene: &Scene) -> (String, String) {
    let asked = scene.effects.iter().rev().find_map(|effect| match effect {
        Effect::Ask {
            call_id, digest, ..
        } => Some((call_id.clone(), digest.clone())),
        _ => None,
    });
    asked.expect("asked")
}

#[test]
fn only_the_right_answer_lets_a_call_run() {
    for (outcome, right, runs) in [
        (ApprovalOutcome::AllowedOnce, true, true),
        (ApprovalOutcome::AllowedOnce, false, false),
        (ApprovalOutcome::Denied, true, false),
        (ApprovalOutcome::Unavailable, true, false),
        (ApprovalOutcome::Cancelled, true, false),
    ] {
        let mut scene = Scene::new();
        scene.prompt("go").calls(&[("deploy", "{\"to\":\"prod\"}")]);
        let (call_id, digest) = question(&scene);
        let digest = if right { digest } else { "0".repeat(64) };
        scene.feed(Input::Answer {
            call_id,
            digest,
            outcome,
        });
        assert_eq!(
            scene.started().len(),
            usize::from(runs),
            "{outcome:?} {right}"
        );
        if !runs {
            assert!(scene.error("call_1").is_some());
            assert_eq!(scene.bodies().len(), 2, "the model is told and goes on");
        }
    }
}

#[test]
fn nobody_answers_and_that_is_a_no() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("deploy", "{}")]);
    let (call_id, digest) = question(&scene);
    scene.fire_last_timer();
    assert_eq!(scene.error("call_1"), Some(&ToolErrorCode::ApprovalDenied));
    scene.feed(Input::Answer {
        call_id,
        digest,
        outcome: ApprovalOutcome::AllowedOnce,
    });
    assert!(scene.started().is_empty(), "too late");
}

#[test]
fn prompts_join_the_running_turn_or_start_the_next() {
    let mut scene = Scene::new();
    scene.prompt("one").prompt("two");
    scene.calls(&[("read", "{}")]).completes("call_1", "x");
    assert_eq!(
        scene.messages().last(),
        Some(&Message::User {
            text: "two".to_owned()
        })
    );
    scene.prompt("three").says("done").ends(Finish::Stop);
    assert_eq!(scene.engine.fold().turns(), 2);
    assert_eq!(
        scene.messages().last(),
        Some(&Message::User {
            text: "three".to_owned()
        })
    );
    // A turn that did not end well gives back what nobody took.
    scene.prompt("four").feed(Input::Cancel);
    let back = scene.effects.iter().rev().find_map(|effect| match effect {
        Effect::TurnEnded { unclaimed, .. } => Some(unclaimed.clone()),
        _ => None,
    });
    assert_eq!(back, Some(vec!["four".to_owned()]));
}

#[test]
fn more_calls_than_one_answer_may_make() {
    let mut scene = Scene::new();
    let many: Vec<(&str, &str)> = vec![("nope", "{}"); CALLS_PER_STEP_MAX + 3];
    scene.prompt("go").calls(&many);
    let told = scene.messages().iter().any(|message| matches!(message, Message::User { text } if text.contains("The last 3 were not run")));
    assert!(told);
    assert_eq!(
        scene.engine.fold().next_call(),
        CALLS_PER_STEP_MAX as u64 + 1
    );
}

#[test]
fn call_ids_go_on_over_turns() {
    let mut scene = Scene::new();
    scene
        .prompt("go")
        .calls(&[("nope", "{}")])
        .calls(&[("nope", "{}")])
        .says("x")
        .ends(Finish::Stop);
    scene.prompt("go").calls(&[("nope", "{}")]);
    assert!(scene.engine.fold().knows_call("call_3"));
}

#[test]
fn instruction_files_are_logged_once_per_content() {
    let context = |sha: &str| UserMessage {
        source: MessageSource::Instructions {
            path: "AGENTS.md".to_owned(),
            sha256: sha.to_owned(),
            cut: false,
        },
        text: format!("rules {sha}"),
    };
    let mut scene = Scene::new();
    scene.prompt("one").says("x").ends(Finish::Stop);
    for (sha, nodes) in [("a", 4), ("a", 6), ("b", 9)] {
        scene.engine.end_run(9, RunEnd::default()).expect("ends");
        let start = RunStart {
            context: vec![context(sha)],
            ..run_start()
        };
        scene.engine.begin_run(10, start).expect("begins");
        scene.drain();
        scene.prompt("more").says("x").ends(Finish::Stop);
        assert_eq!(scene.messages().len(), nodes + 1, "{sha}");
    }
    let reasons: Vec<HeaderReason> = scene
        .log
        .iter()
        .filter_map(|event| match &event.body {
            Body::RequestHeader(header) => Some(header.reason),
            _ => None,
        })
        .collect();
    use HeaderReason::{Initial, Resume};
    assert_eq!(reasons, [Initial, Resume, Resume, Resume]);
}

#[test]
fn what_cannot_be_taken_changes_nothing() {
    let mut engine = Engine::new(engine_config(&Options::default()), Fold::new(header()));
    let early = engine.handle(
        0,
        Input::User {
            text: "hi".to_owned(),
        },
    );
    assert_eq!(early, Err(EngineError::NotBegun));
    assert_eq!(
        engine.end_run(0, RunEnd::default()),
        Err(EngineError::NotBegun)
    );

    let mut scene = Scene::new();
    let long = scene.try_feed(Input::User {
        text: "x".repeat(PROMPT_BYTES_MAX + 1),
    });
    assert!(matches!(long, Err(EngineError::PromptTooLong { .. })));
    assert_eq!(
        scene.engine.begin_run(0, run_start()),
        Err(EngineError::Begun)
    );
    scene.prompt("go");
    assert_eq!(
        scene.engine.change_header(0, request_header()),
        Err(EngineError::Busy)
    );
    assert_eq!(
        scene.engine.end_run(0, RunEnd::default()),
        Err(EngineError::Busy)
    );
    let Body::SandboxDenied(denied) = script::denial("call_9") else {
        panic!()
    };
    assert!(matches!(
        scene.try_feed(Input::Denied(denied)),
        Err(EngineError::NotAFact { .. })
    ));
    let completed = plain_completion("call_9", "");
    let events = vec![Body::TurnStart(curfew_engine::event::TurnStart { turn: 9 })];
    let foreign = scene.try_feed(Input::CallCompleted { completed, events });
    assert!(matches!(foreign, Err(EngineError::NotAFact { .. })));
    // And the turn still goes on.
    scene.says("x").ends(Finish::Stop);
    assert_eq!(scene.ended(), Some(TurnEndReason::Completed));
}

#[test]
fn a_denial_between_turns_is_logged_and_one_after_the_run_is_not() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("read", "{}")]);
    scene.completes("call_1", "x").says("done");
    scene.ends(Finish::Stop);
    let Body::SandboxDenied(denied) = script::denial("call_1") else {
        panic!()
    };
    let now = 1_000_000;
    let late = |scene: &mut Scene| scene.engine.handle(now, Input::Denied(denied.clone()));
    late(&mut scene).unwrap();
    match scene.engine.poll() {
        Some(Effect::Append { events, barrier }) => {
            assert!(
                barrier,
                "nothing comes behind it that would make it durable"
            );
            assert_eq!(type_name(&events[0].body), "sandbox/denied");
        }
        other => panic!("{other:?}"),
    }
    scene.engine.end_run(now, RunEnd::default()).unwrap();
    let refused = late(&mut scene);
    assert!(
        matches!(refused, Err(EngineError::NotAFact { .. })),
        "{refused:?}"
    );
    assert!(!scene.engine.is_stopped());
}

#[test]
fn a_failed_write_ends_what_runs() {
    let mut scene = Scene::new();
    scene.prompt("go").calls(&[("read", "{}"), ("grep", "{}")]);
    let logged = scene.log.len();
    scene.feed(Input::PersistFailed);
    let kills = scene
        .effects
        .iter()
        .filter(|effect| matches!(effect, Effect::KillCall { .. }))
        .count();
    assert_eq!(kills, 2);
    assert_eq!(
        scene.ended(),
        Some(TurnEndReason::Error(ErrorClass::Storage))
    );
    scene.completes("call_1", "x").prompt("more");
    assert_eq!(scene.log.len(), logged);
    assert_eq!(
        scene.engine.end_run(0, RunEnd::default()),
        Err(EngineError::Stopped)
    );
}

#[test]
fn big_streams_are_logged_in_pieces() {
    let mut scene = Scene::new();
    scene.prompt("go");
    let request = scene.request();
    for _ in 0..50 {
        let delta = Delta {
            block: Block::Text,
            text: "0123456789".repeat(100),
        };
        scene.feed(Input::ModelDelta { request, delta });
    }
    scene.ends(Finish::Stop);
    let chunks = scene
        .types()
        .iter()
        .filter(|kind| **kind == "assistant/chunk")
        .count();
    assert!(
        (10..=14).contains(&chunks),
        "{chunks} chunks for 50 deltas of 1000 bytes"
    );
}
