//! The twelve invariants and the two bites of the seed, each as a property over worlds that a tape
//! of numbers decides. INVARIANTS.md says how each is kept.

// Helpers of a test fail it by panicking; clippy's own exception covers test functions only.
#![allow(clippy::expect_used, clippy::print_stdout)]

mod world;

use std::collections::BTreeMap;

use curfew_engine::assemble::Assembled;
use curfew_engine::event::{
    ApprovalOutcome, Block, Body, Event, FailureKind, FileAccess, Finish, MessageSource,
    ToolErrorCode, TurnEndReason,
};
use curfew_engine::fold::Observed;
use curfew_engine::hash::sha256_hex;
use curfew_engine::projection::{Message, messages};
use curfew_engine::turn::io::{Delta, Input};
use curfew_engine::{Fold, Wire};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use world::fixture::{asks, is_safe};
use world::{Options, PlainWire, Seen, World, cases, header, play, tapes};

/// Walks the trace with the log as it was at each moment, and the state before what is seen.
fn walk(world: &World, mut judge: impl FnMut(&[Event], &Fold, &Seen)) {
    let mut log: Vec<Event> = Vec::new();
    let mut state = Fold::new(header());
    for seen in &world.trace {
        match seen {
            Seen::Logged(event) => {
                log.push(event.clone());
                judge(&log, &state, seen);
                state.apply(event).expect("folds");
            }
            Seen::Died { kept } => {
                log.truncate(*kept);
                state = Fold::of(header(), &log).expect("folds");
                judge(&log, &state, seen);
            }
            _ => judge(&log, &state, seen),
        }
    }
}

/// The messages that the log gave for every request that left.
fn requests(world: &World) -> Vec<Vec<Message>> {
    let mut found = Vec::new();
    let mut logged = Vec::new();
    walk(world, |_, state, seen| match seen {
        Seen::Logged(event) if matches!(event.body, Body::RequestSent(_)) => {
            logged = messages(state)
        }
        Seen::Sent { .. } => found.push(logged.clone()),
        _ => {}
    });
    found
}

fn notices<'a>(messages: &'a [Message], start: &'a str) -> impl Iterator<Item = &'a str> {
    messages.iter().filter_map(move |message| match message {
        Message::User { text } if text.contains(start) => Some(text.as_str()),
        _ => None,
    })
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn invariant_01_call_is_durable_before_it_runs(tape in tapes()) {
        let world = play(tape, Options::default());
        walk(&world, |log, _, seen| {
            let Seen::Started { call_id, name, arguments, durable } = seen else { return };
            let intent = log.iter().position(|event| matches!(&event.body, Body::ToolCall(call)
                if call.call_id == *call_id && call.name == *name && call.arguments == *arguments));
            assert!(intent.is_some_and(|at| (at as u64) < *durable), "{call_id} ran before its tool/call was durable");
        });
        // A result names its call, and the completion it shows.
        for (event, body) in world.bodies() {
            if let Body::ToolResult(result) = body {
                let source = event.source_event_seqs.as_ref().expect("sources")[0] as usize;
                let named = matches!(&world.log[source].body, Body::ToolCompleted(done) if done.call_id == result.call_id);
                prop_assert!(named);
            }
        }
    }

    #[test]
    fn invariant_02_every_call_has_a_result(tape in tapes()) {
        let world = play(tape, Options::default());
        for messages in requests(&world) {
            let mut owed: Vec<String> = Vec::new();
            for message in &messages {
                match message {
                    Message::Tool { call_id, .. } => {
                        prop_assert!(!owed.is_empty(), "a result without its call");
                        prop_assert_eq!(&owed.remove(0), call_id);
                    }
                    _ => prop_assert!(owed.is_empty(), "a call without its result"),
                }
                if let Message::Assistant { calls, .. } = message {
                    owed = calls.iter().map(|call| call.id.clone()).collect();
                }
            }
            prop_assert!(owed.is_empty(), "a call without its result");
        }
        // And in the log: no turn ends while a call lacks one.
        let mut open = 0usize;
        for (_, body) in world.bodies() {
            match body {
                Body::AssistantMessage(answer) => open += answer.calls.len(),
                Body::ToolResult(_) => open -= 1,
                Body::TurnEnd(_) => prop_assert_eq!(open, 0),
                _ => {}
            }
        }
    }

    #[test]
    fn invariant_03_results_commit_in_model_order(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut asked: Vec<String> = Vec::new();
        let mut completed: BTreeMap<String, String> = BTreeMap::new();
        let mut state = Fold::new(header());
        for (event, body) in world.bodies() {
            state.apply(event).expect("folds");
            match body {
                Body::AssistantMessage(answer) => asked.extend(answer.calls.iter().map(|call| call.call_id.clone())),
                Body::ToolCompleted(done) => {
                    completed.insert(done.call_id.clone(), done.content.clone());
                }
                Body::ToolResult(result) => {
                    prop_assert_eq!(asked.remove(0), result.call_id.clone());
                    let shown = messages(&state).pop();
                    let content = completed[&result.call_id].clone();
                    prop_assert_eq!(shown, Some(Message::Tool { call_id: result.call_id.clone(), content }));
                }
                _ => {}
            }
        }
        // Completions stand in the log in the order they came, whatever the model's order was.
        let mut fed: Option<&String> = None;
        for seen in &world.trace {
            match seen {
                Seen::FedCompletion { call_id, running: true } => fed = Some(call_id),
                Seen::Logged(Event { body: Body::ToolCompleted(done), .. }) => {
                    let own = done.error.is_some();
                    prop_assert!(own || fed == Some(&done.call_id), "a completion was not logged at once");
                }
                Seen::Logged(_) => {}
                _ => fed = None,
            }
        }
    }

    #[test]
    fn invariant_04_exclusive_unless_declared_safe(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut running: BTreeMap<String, String> = BTreeMap::new();
        walk(&world, |_, state, seen| match seen {
            Seen::Started { call_id, name, .. } => {
                if is_safe(name) {
                    assert!(running.values().all(|other| is_safe(other)), "{name} beside {running:?}");
                    assert!(running.len() < 4, "more than four at once");
                } else {
                    assert!(running.is_empty(), "{name} beside {running:?}");
                    let step = state.open_step().expect("a step");
                    let before = step.calls.iter().take_while(|call| call.call_id != *call_id);
                    let done = before.filter(|call| !matches!(call.stage, curfew_engine::fold::Stage::Completed(_)));
                    assert_eq!(done.count(), 0, "{name} overtook a call before it");
                }
                running.insert(call_id.clone(), name.clone());
            }
            Seen::Logged(Event { body: Body::ToolCompleted(done), .. }) => {
                running.remove(&done.call_id);
            }
            Seen::Died { .. } => running.clear(),
            _ => {}
        });
    }

    #[test]
    fn invariant_05_streams_assemble_by_index(
        pieces in prop::collection::vec((0u32..4, "[a-zé日\\\\\"{}]{0,40}", any::<bool>()), 1..60),
        long in 0usize..9000,
    ) {
        let mut world = World::new(Vec::new(), Options::default());
        world.prompt();
        world.feed(Seen::Durable { below: 3 }, Input::Persisted { seq: world.log.len() as u64 - 1 });
        let request = current_request(&mut world);
        let mut texts: BTreeMap<u32, String> = BTreeMap::new();
        let mut said = String::new();
        let mut seen_before = [false; 4];
        for (at, (index, piece, speaks)) in pieces.iter().enumerate() {
            let piece = if at == 0 { "é".repeat(long) } else { piece.clone() };
            let delta = if *speaks {
                said.push_str(&piece);
                Delta { block: Block::Text, text: piece }
            } else {
                texts.entry(*index).or_default().push_str(&piece);
                let first = !std::mem::replace(&mut seen_before[*index as usize], true);
                let name = first.then(|| "nope".to_owned());
                Delta { block: Block::Call { index: *index, id: name.clone(), name }, text: piece }
            };
            world.now += 7;
            let seen = Seen::FedDelta { request, delta: delta.clone(), current: true };
            world.feed(seen, Input::ModelDelta { request, delta });
        }
        let finish = Finish::ToolCalls;
        world.feed(Seen::FedEnd { request, finish, usage: None, current: true },
            Input::ModelEnd { request, finish, usage: None });
        let answer = world.log.iter().find(|event| matches!(event.body, Body::AssistantMessage(_)));
        if let Some(answer) = answer {
            let sources = answer.source_event_seqs.clone().expect("sources");
            let chunks = sources.iter().map(|seq| match &world.log[*seq as usize].body {
                Body::AssistantChunk(chunk) => (&chunk.block, chunk.text.as_str()),
                other => panic!("not a chunk: {other:?}"),
            });
            let whole = Assembled::from_pieces(chunks);
            prop_assert_eq!(&whole.text, &said);
            let assembled: BTreeMap<u32, String> =
                whole.calls.iter().map(|call| (call.index, call.arguments.clone())).collect();
            prop_assert_eq!(assembled, texts);
            prop_assert!(whole.calls.iter().all(|call| call.name == "nope"));
            prop_assert!(whole.calls.windows(2).all(|pair| pair[0].index < pair[1].index));
        } else {
            prop_assert!(said.trim().is_empty() && texts.is_empty());
        }
    }

    #[test]
    fn invariant_06_calls_of_a_cut_answer_are_dropped(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut streamed: Vec<u32> = Vec::new();
        for (_, body) in world.bodies() {
            match body {
                Body::RequestSent(_) | Body::ModelRetry(_) => streamed.clear(),
                Body::AssistantChunk(chunk) => if let Block::Call { index, .. } = chunk.block
                    && !streamed.contains(&index) {
                        streamed.push(index);
                },
                Body::AssistantMessage(answer) => {
                    let whole = matches!(answer.finish, Finish::Stop | Finish::ToolCalls);
                    prop_assert_eq!(answer.calls.len(), if whole { streamed.len() } else { 0 });
                    prop_assert_eq!(answer.calls.len() + answer.dropped_calls as usize, streamed.len());
                }
                _ => {}
            }
        }
        // The model is told before it is asked again.
        let mut cut = 0usize;
        let mut told = 0usize;
        for (_, body) in world.bodies() {
            match body {
                Body::AssistantMessage(answer) if answer.finish == Finish::Length && answer.dropped_calls > 0 => cut += 1,
                Body::UserMessage(message) if is_notice(&message.source, "dropped-calls") => told += 1,
                Body::TurnEnd(_) => { cut = 0; told = 0; }
                Body::RequestSent(_) => prop_assert_eq!(cut, told),
                _ => {}
            }
        }
    }

    #[test]
    fn invariant_07_nothing_follows_the_finish(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut late = false;
        let mut fed = 0u64;
        let mut deaths = false;
        for seen in &world.trace {
            match seen {
                Seen::FedDelta { current, .. } | Seen::FedEnd { current, .. } if !current => late = true,
                Seen::FedEnd { usage, .. } => {
                    late = false;
                    fed += usage.map_or(0, |usage| usage.input);
                }
                Seen::Logged(event) => prop_assert!(!late, "a late piece was logged as {event:?}"),
                Seen::Died { .. } => { late = false; deaths = true; }
                _ => late = false,
            }
        }
        // Usage came with the finish and is counted once.
        let logged: u64 = world.bodies().filter_map(|(_, body)| match body {
            Body::AssistantMessage(answer) => answer.usage.map(|usage| usage.input),
            _ => None,
        }).sum();
        prop_assert_eq!(world.engine.fold().usage().input, logged);
        prop_assert!(deaths || logged == fed);
        // In the log, no chunk stands behind the answer of its step.
        let mut answered = false;
        for (_, body) in world.bodies() {
            match body {
                Body::StepStart(_) => answered = false,
                Body::AssistantMessage(_) => answered = true,
                Body::AssistantChunk(_) => prop_assert!(!answered),
                _ => {}
            }
        }
    }

    #[test]
    fn invariant_08_empty_answer_is_a_failure(tape in tapes()) {
        let world = play(tape, Options::default());
        for (event, body) in world.bodies() {
            if let Body::AssistantMessage(answer) = body {
                let sources = event.source_event_seqs.clone().expect("sources");
                let chunks = sources.iter().filter_map(|seq| match &world.log[*seq as usize].body {
                    Body::AssistantChunk(chunk) => Some((&chunk.block, chunk.text.as_str())),
                    _ => None,
                });
                let whole = Assembled::from_pieces(chunks);
                let good = matches!(answer.finish, Finish::Stop | Finish::ToolCalls);
                prop_assert!(!(good && whole.is_empty()), "an empty answer passed for one");
            }
        }
        // It is retried with the same bytes, then it ends the turn as the provider's failure.
        for pair in world.trace.windows(2) {
            let Seen::FedEnd { finish: Finish::Stop, usage: None, current: true, .. } = &pair[0] else { continue };
            let Seen::Logged(event) = &pair[1] else { panic!("an empty answer was passed over: {:?}", pair[1]) };
            let retried = matches!(&event.body, Body::ModelRetry(retry) if retry.failure.kind == FailureKind::EmptyResponse);
            prop_assert!(retried || matches!(&event.body, Body::StepEnd(_)), "{event:?}");
        }
    }

    #[test]
    fn invariant_09_request_is_made_from_the_log(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut first: Option<(u64, u64, Vec<u8>)> = None;
        let mut made: Option<(usize, Vec<u8>)> = None;
        walk(&world, |log, state, seen| {
            if let Seen::Logged(Event { body: Body::RequestSent(_), .. }) = seen {
                let again = PlainWire.render(state.request_header().expect("header"), &messages(state));
                made = Some((log.len() - 1, again.bytes));
            }
            let Seen::Sent { turn, step, attempt, body, durable, .. } = seen else { return };
            let (at, again) = made.as_ref().expect("logged");
            assert_eq!(again, body);
            // And durable: a crash now would still let every byte be made again.
            assert!((*at as u64) < *durable, "sent before it was durable");
            let Body::RequestSent(sent) = &log[*at].body else { unreachable!() };
            assert_eq!(sent.sha256, sha256_hex(&[body]));
            assert_eq!((sent.turn, sent.step), (*turn, *step));
            if *attempt == 0 {
                first = Some((*turn, *step, body.clone()));
            } else {
                assert_eq!(first, Some((*turn, *step, body.clone())), "a retry sent other bytes");
            }
        });
    }

    #[test]
    fn invariant_10_empty_messages_are_not_sent(tape in tapes(), blank in "[ \\n\\t]{0,3}") {
        let world = play(tape, Options::default());
        for messages in requests(&world) {
            for message in messages {
                match message {
                    Message::User { text } => prop_assert!(!text.is_empty()),
                    Message::Assistant { text, calls } => {
                        prop_assert!(!text.trim().is_empty() || !calls.is_empty(), "an empty answer was sent");
                    }
                    Message::Tool { .. } => {}
                }
            }
        }
        // Such an answer is in the log, and only there.
        let mut world = World::new(Vec::new(), Options::default());
        world.prompt();
        world.feed(Seen::Durable { below: 3 }, Input::Persisted { seq: world.log.len() as u64 - 1 });
        let request = current_request(&mut world);
        let delta = Delta { block: Block::Text, text: blank };
        world.feed(Seen::FedCancel, Input::ModelDelta { request, delta });
        world.feed(Seen::FedCancel, Input::ModelEnd { request, finish: Finish::Length, usage: None });
        let logged = world.log.iter().any(|event| matches!(event.body, Body::AssistantMessage(_)));
        prop_assert!(logged);
        prop_assert_eq!(messages(world.engine.fold()).len(), 1);
    }

    #[test]
    fn invariant_11_only_allowed_once_grants(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut asked: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut granted: BTreeMap<String, String> = BTreeMap::new();
        walk(&world, |log, _, seen| match seen {
            Seen::Asked { call_id, arguments, digest, durable } => {
                let at = log.iter().position(|event| matches!(&event.body, Body::ApprovalAsked(question)
                    if question.call_id == *call_id && question.digest == *digest));
                assert!(at.is_some_and(|at| (at as u64) < *durable), "asked before it was durable");
                assert_eq!(*digest, sha256_hex(&[arguments.as_bytes()]));
                asked.insert(call_id.clone(), (arguments.clone(), digest.clone()));
            }
            Seen::FedAnswer { call_id, digest, outcome: ApprovalOutcome::AllowedOnce } => {
                granted.insert(call_id.clone(), digest.clone());
            }
            Seen::Started { call_id, name, arguments, durable } if asks(name) => {
                let digest = sha256_hex(&[arguments.as_bytes()]);
                assert_eq!(granted.remove(call_id), Some(digest.clone()), "{call_id} ran without a grant for its arguments");
                assert_eq!(asked.get(call_id), Some(&(arguments.clone(), digest.clone())));
                let decided = log[..*durable as usize].iter().any(|event| matches!(&event.body,
                    Body::ApprovalDecided(decided) if decided.call_id == *call_id && decided.digest == digest
                        && decided.outcome == ApprovalOutcome::AllowedOnce));
                assert!(decided, "the decision was not durable");
            }
            _ => {}
        });
        // Nobody there, a late answer, another digest: denied, and the model is told.
        let mut denied: Vec<String> = Vec::new();
        for (_, body) in world.bodies() {
            match body {
                Body::ApprovalDecided(decided) if decided.outcome != ApprovalOutcome::AllowedOnce => {
                    denied.push(decided.call_id.clone());
                }
                Body::ToolCompleted(done) if denied.contains(&done.call_id) => {
                    prop_assert!(matches!(done.error, Some(ToolErrorCode::ApprovalDenied
                        | ToolErrorCode::AbortedBeforeDispatch | ToolErrorCode::NotStarted)));
                }
                Body::ToolCall(call) => prop_assert!(!denied.contains(&call.call_id)),
                _ => {}
            }
        }
    }

    #[test]
    fn invariant_12_write_needs_the_file_as_it_was_read(tape in tapes()) {
        let world = play(tape, Options::default());
        // A slow second opinion on what the model has seen, at each call and at the end.
        let mut known: BTreeMap<String, (String, Vec<bool>)> = BTreeMap::new();
        let mut pending: Vec<curfew_engine::event::FileSeen> = Vec::new();
        let mut state = Fold::new(header());
        for (event, body) in world.bodies() {
            match body {
                Body::ToolCall(_) => assert_same_files(&state, &known),
                Body::ToolCompleted(done) => for file in &done.files {
                    if file.access == FileAccess::Read {
                        pending.push(file.clone());
                    } else {
                        known.insert(file.path.clone(), (file.sha256.clone(), lines(&file.seen)));
                        pending.retain(|read| read.path != file.path);
                    }
                },
                // The model has seen a read once its results are complete.
                Body::StepEnd(_) => for file in pending.drain(..) {
                    let (sha256, seen) = known.entry(file.path.clone()).or_insert((file.sha256.clone(), vec![false; 20]));
                    if *sha256 != file.sha256 {
                        *sha256 = file.sha256.clone();
                        *seen = vec![false; 20];
                    }
                    for (line, now) in seen.iter_mut().zip(lines(&file.seen)) {
                        *line |= now;
                    }
                },
                _ => {}
            }
            state.apply(event).expect("folds");
        }
        assert_same_files(world.engine.fold(), &known);
    }

    #[test]
    fn bite_1_a_call_that_never_ends_is_ended_by_the_dispatcher(tape in tapes()) {
        // Every call is silent: no tool ever reports back, whatever it declared.
        let world = play(tape, Options { silent_calls: 1, ..Options::default() });
        prop_assert!(world.engine.is_idle());
        let mut open: Vec<String> = Vec::new();
        for (_, body) in world.bodies() {
            match body {
                Body::ToolCall(call) => open.push(call.call_id.clone()),
                Body::ToolCompleted(done) => {
                    if let Some(at) = open.iter().position(|call_id| *call_id == done.call_id) {
                        open.remove(at);
                        prop_assert!(done.is_error, "a call that never ended is said to have succeeded");
                    }
                }
                _ => {}
            }
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn bite_2_steps_are_bounded(tape in tapes(), per_turn in 1u64..5, per_run in 1u64..8, stubborn in any::<bool>()) {
        let options = Options {
            max_steps_per_turn: per_turn,
            max_steps_per_run: per_run,
            stubborn_model: stubborn,
            deaths: false,
            ..Options::default()
        };
        let world = play(tape, options);
        let (mut in_turn, mut in_run, mut told) = (0, 0, false);
        for (_, body) in world.bodies() {
            match body {
                Body::TurnStart(_) => { in_turn = 0; told = false; }
                Body::UserMessage(message) => told |= is_notice(&message.source, "last-step"),
                Body::StepStart(_) => {
                    in_turn += 1;
                    in_run += 1;
                    prop_assert!(in_turn <= per_turn && in_run <= per_run, "the limit did not hold");
                }
                Body::RequestSent(_) => {
                    prop_assert_eq!(told, in_turn == per_turn || in_run == per_run, "told before the last step, and only then");
                }
                Body::TurnEnd(end) => {
                    let at_limit = in_turn == per_turn || in_run == per_run;
                    prop_assert!(end.reason != TurnEndReason::MaxSteps || at_limit);
                    prop_assert!(!stubborn || at_limit || end.reason != TurnEndReason::Completed);
                }
                _ => {}
            }
        }
    }
}

fn assert_same_files(state: &Fold, known: &BTreeMap<String, (String, Vec<bool>)>) {
    assert_eq!(state.files().len(), known.len());
    for (path, Observed { sha256, seen }) in state.files() {
        assert_eq!(sha256, &known[path].0);
        assert_eq!(lines(seen), known[path].1);
        let apart = seen.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
        assert!(apart, "ranges are not merged: {seen:?}");
    }
}

fn lines(ranges: &[(u64, u64)]) -> Vec<bool> {
    (0..20)
        .map(|line| {
            ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&line))
        })
        .collect()
}

fn is_notice(source: &MessageSource, wanted: &str) -> bool {
    matches!(source, MessageSource::Notice { name } if name == wanted)
}

/// The request on the wire; the world's own model is put aside.
fn current_request(world: &mut World) -> curfew_engine::turn::io::RequestId {
    world.take_model().expect("a request is on the wire")
}

/// The worlds are worth judging: together they reach every kind of thing.
#[test]
fn the_worlds_reach_everything() {
    let mut reached: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for round in 0..400 {
        let tape = tapes().new_tree(&mut runner).expect("a tape").current();
        let max_steps_per_turn = 1 + round % 6;
        let world = play(
            tape,
            Options {
                max_steps_per_turn,
                ..Options::default()
            },
        );
        for seen in &world.trace {
            *reached.entry(kind_of(seen)).or_default() += 1;
        }
        for messages in requests(&world) {
            *reached.entry("last-step notice").or_default() +=
                notices(&messages, "this is the last one").count() as u64;
            *reached.entry("dropped notice").or_default() +=
                notices(&messages, "cut by the length limit").count() as u64;
        }
    }
    println!("{reached:#?}");
    for kind in KINDS {
        assert!(
            reached.get(kind).is_some_and(|count| *count > 0),
            "never reached: {kind}; {reached:#?}"
        );
    }
}

const KINDS: [&str; 29] = [
    "retry",
    "ran",
    "killed",
    "asked",
    "denied approval",
    "granted",
    "died",
    "completed late",
    "late delta",
    "unknown tool",
    "invalid arguments",
    "aborted",
    "cancelled call",
    "timeout",
    "outcome unknown",
    "not started",
    "interrupted answer",
    "end completed",
    "end max-steps",
    "end cancelled",
    "end max-tokens",
    "end auth",
    "end provider",
    "end refusal",
    "end interrupted",
    "sandbox/denied",
    "cancel",
    "last-step notice",
    "dropped notice",
];

fn kind_of(seen: &Seen) -> &'static str {
    use curfew_engine::event::ErrorClass as Class;
    match seen {
        Seen::Started { .. } => "ran",
        Seen::Killed { .. } => "killed",
        Seen::Asked { .. } => "asked",
        Seen::Died { .. } => "died",
        Seen::FedCancel => "cancel",
        Seen::FedCompletion { running: false, .. } => "completed late",
        Seen::FedDelta { current: false, .. } => "late delta",
        Seen::Logged(event) => match &event.body {
            Body::ModelRetry(_) => "retry",
            Body::SandboxDenied(_) => "sandbox/denied",
            Body::ApprovalDecided(decided) if decided.outcome == ApprovalOutcome::AllowedOnce => {
                "granted"
            }
            Body::ApprovalDecided(_) => "denied approval",
            Body::AssistantMessage(answer) if answer.interrupted => "interrupted answer",
            Body::ToolCompleted(done) => match &done.error {
                Some(ToolErrorCode::UnknownTool) => "unknown tool",
                Some(ToolErrorCode::InvalidArguments) => "invalid arguments",
                Some(ToolErrorCode::AbortedBeforeDispatch) => "aborted",
                Some(ToolErrorCode::Cancelled) => "cancelled call",
                Some(ToolErrorCode::OutcomeUnknown) => "outcome unknown",
                Some(ToolErrorCode::NotStarted) => "not started",
                Some(ToolErrorCode::Tool(code)) if code == "timeout" => "timeout",
                _ => "other completion",
            },
            Body::TurnEnd(end) => match end.reason {
                TurnEndReason::Completed => "end completed",
                TurnEndReason::MaxSteps => "end max-steps",
                TurnEndReason::Cancelled => "end cancelled",
                TurnEndReason::MaxTokens => "end max-tokens",
                TurnEndReason::Interrupted => "end interrupted",
                TurnEndReason::Error(Class::Auth) => "end auth",
                TurnEndReason::Error(Class::Provider) => "end provider",
                TurnEndReason::Error(Class::Refusal) => "end refusal",
                _ => "other end",
            },
            _ => "other event",
        },
        _ => "other",
    }
}
