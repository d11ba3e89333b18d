//! Laws of the log, the fold, the repair and the loop that hold in every world.

// Helpers of a test fail it by panicking; clippy's own exception covers test functions only.
#![allow(clippy::expect_used, clippy::print_stdout)]

mod world;

use curfew_engine::codec::{Cause, Chain, decode, encode_event, encode_header};
use curfew_engine::event::{Body, ErrorClass, Event, MessageSource, TurnEndReason};
use curfew_engine::outcome::ExitCode;
use curfew_engine::projection::messages;
use curfew_engine::turn::REPEATS_MAX;
use curfew_engine::verify::{VerifyError, request_of_step, verify};
use curfew_engine::{Fold, Wire, repair};
use proptest::prelude::*;
use world::{Options, PlainWire, Seen, World, cases, header, play, tapes};

fn encode(events: &[Event]) -> Vec<u8> {
    let mut chain = Chain::new();
    let mut bytes = encode_header(&mut chain, &header()).expect("header");
    bytes.push(b'\n');
    for event in events {
        bytes.extend(encode_event(&mut chain, event).expect("event"));
        bytes.push(b'\n');
    }
    bytes
}

fn wires() -> [&'static dyn Wire; 1] {
    [&PlainWire]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn incremental_fold_is_the_fold_of_the_whole(tape in tapes()) {
        let world = play(tape, Options::default());
        let whole = Fold::of(header(), &world.log).expect("folds");
        prop_assert_eq!(world.engine.fold(), &whole);
    }

    #[test]
    fn every_prefix_folds_and_can_be_closed(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut fold = Fold::new(header());
        for event in &world.log {
            fold.apply(event).expect("every prefix folds");
            let before = fold.clone();
            let mut closed = fold.clone();
            for event in repair::plan(&fold, 5).expect("can be closed") {
                closed.apply(&event).expect("what closes it folds");
            }
            prop_assert!(closed.open_turn().is_none() && closed.open_run().is_none());
            prop_assert!(repair::plan(&closed, 6).expect("closed").is_empty(), "closing is done once");
            prop_assert_eq!(&fold, &before);
        }
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded(tape in tapes()) {
        let world = play(tape, Options::default());
        let bytes = encode(&world.log);
        let decoded = decode(&bytes).expect("decodes");
        prop_assert_eq!(&decoded.fault, &None);
        prop_assert_eq!(decoded.good_bytes, bytes.len());
        prop_assert_eq!(encode(&decoded.events), bytes.clone());
        let verified = verify(decoded.header, &decoded.events, &wires()).expect("verifies");
        let sent = decoded.events.iter().filter(|event| matches!(event.body, Body::RequestSent(_))).count();
        prop_assert_eq!(verified.requests, sent as u64);
    }

    #[test]
    fn any_flipped_byte_is_found(tape in prop::collection::vec(any::<u16>(), 0..150), at in any::<prop::sample::Index>(), flip in 1u8..=255) {
        let world = play(tape, Options::default());
        let mut bytes = encode(&world.log);
        let at = at.index(bytes.len());
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        bytes[at] ^= flip;
        match decode(&bytes) {
            Err(fault) => prop_assert_eq!(fault.line, 1),
            Ok(decoded) => {
                let fault = decoded.fault.expect("found");
                prop_assert_eq!(fault.line, line, "located: {}", fault);
                prop_assert_eq!(fault.seq, Some(line - 2));
            }
        }
    }

    #[test]
    fn a_cut_anywhere_is_torn_or_a_shorter_log(tape in prop::collection::vec(any::<u16>(), 0..150), at in any::<prop::sample::Index>()) {
        let world = play(tape, Options::default());
        let whole = encode(&world.log);
        let bytes = &whole[..at.index(whole.len())];
        match decode(bytes) {
            Err(fault) => prop_assert!(fault.is_torn_tail() && fault.line == 1),
            Ok(decoded) => {
                prop_assert_eq!(&bytes[..decoded.good_bytes], encode(&decoded.events));
                match decoded.fault {
                    None => prop_assert_eq!(decoded.good_bytes, bytes.len()),
                    Some(fault) => prop_assert!(fault.is_torn_tail()),
                }
            }
        }
    }

    #[test]
    fn lines_cannot_be_moved_doubled_or_left_out(tape in prop::collection::vec(any::<u16>(), 0..150), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(), kind in 0..3) {
        let world = play(tape, Options::default());
        let bytes = encode(&world.log);
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let (a, b) = (a.index(lines.len()), b.index(lines.len()));
        match kind {
            0 => lines.swap(a, b),
            1 => lines.insert(a, lines[b]),
            _ => { lines.remove(a); }
        }
        let changed = lines.concat();
        prop_assume!(!bytes.starts_with(&changed));
        let fault = match decode(&changed) {
            Err(fault) => Some(fault),
            Ok(decoded) => decoded.fault,
        };
        prop_assert!(fault.is_some_and(|fault| !fault.is_torn_tail()));
    }

    #[test]
    fn a_log_does_not_go_on_with_lines_of_another(
        tape in prop::collection::vec(any::<u16>(), 0..150),
        other in prop::collection::vec(any::<u16>(), 0..150),
        at in any::<prop::sample::Index>(),
    ) {
        let (ours, theirs) = (encode(&play(tape, Options::default()).log), encode(&play(other, Options::default()).log));
        let ours: Vec<&[u8]> = ours.split_inclusive(|byte| *byte == b'\n').collect();
        let theirs: Vec<&[u8]> = theirs.split_inclusive(|byte| *byte == b'\n').collect();
        let at = 1 + at.index(ours.len().min(theirs.len()) - 1);
        prop_assume!(ours[..at] != theirs[..at]);
        let spliced = [&ours[..at], &theirs[at..]].concat().concat();
        let fault = decode(&spliced).expect("the header is ours").fault.expect("found");
        prop_assert_eq!(fault.line, at as u64 + 1);
        let told = matches!(fault.cause, Cause::BadHash { .. });
        prop_assert!(told, "{}", fault);
    }

    #[test]
    fn each_request_begins_with_the_one_before(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut before: Option<Vec<u8>> = None;
        for seen in &world.trace {
            let Seen::Sent { body, .. } = seen else { continue };
            if let Some(before) = before {
                prop_assert!(body.starts_with(&before), "the prefix broke");
            }
            before = Some(body[..body.len() - "end\n".len()].to_vec());
        }
    }

    #[test]
    fn every_step_can_be_replayed(tape in tapes()) {
        let world = play(tape, Options::default());
        let mut state = Fold::new(header());
        for event in &world.log {
            if matches!(event.body, Body::RequestSent(_)) {
                let body = request_of_step(header(), &world.log, state.steps(), &wires()).expect("replays");
                let again = PlainWire.render(state.request_header().expect("header"), &messages(&state));
                prop_assert_eq!(body, again);
            }
            state.apply(event).expect("folds");
        }
        let step = state.steps();
        let beyond = request_of_step(header(), &world.log, step + 1, &wires());
        prop_assert_eq!(beyond, Err(VerifyError::NoSuchStep { step: step + 1, steps: step }));
    }

    #[test]
    fn a_changed_text_is_found_by_what_was_sent(tape in tapes(), pick in any::<prop::sample::Index>()) {
        let mut world = play(tape, Options::default());
        let last_sent = world.log.iter().rposition(|event| matches!(event.body, Body::RequestSent(_)));
        let prompts: Vec<usize> = world.log.iter().enumerate().filter(|(at, event)| {
            matches!(&event.body, Body::UserMessage(message) if message.source == MessageSource::User)
                && last_sent.is_some_and(|sent| *at < sent)
        }).map(|(at, _)| at).collect();
        prop_assume!(!prompts.is_empty());
        let at = prompts[pick.index(prompts.len())];
        if let Body::UserMessage(message) = &mut world.log[at].body {
            message.text.push('!');
        }
        // The whole chain is made anew, as a forger would; the bodies still tell.
        let decoded = decode(&encode(&world.log)).expect("decodes");
        let verdict = verify(decoded.header, &decoded.events, &wires());
        let told = matches!(verdict, Err(VerifyError::NotWhatWasSent { .. }));
        prop_assert!(told, "{verdict:?}");
    }

    #[test]
    fn the_same_tape_makes_the_same_bytes(tape in tapes()) {
        let first = play(tape.clone(), Options::default());
        let second = play(tape, Options::default());
        prop_assert_eq!(encode(&first.log), encode(&second.log));
    }

    #[test]
    fn no_prompt_is_lost(tape in tapes()) {
        let world = play(tape, Options { deaths: false, ..Options::default() });
        let mut given: Vec<String> = Vec::new();
        let mut kept: Vec<String> = Vec::new();
        for seen in &world.trace {
            match seen {
                Seen::FedPrompt { text } => given.push(text.clone()),
                Seen::TurnEnded { unclaimed, .. } => kept.extend(unclaimed.clone()),
                Seen::Logged(event) => if let Body::UserMessage(message) = &event.body
                    && message.source == MessageSource::User {
                        kept.push(message.text.clone());
                },
                _ => {}
            }
        }
        given.sort();
        kept.sort();
        prop_assert_eq!(given, kept);
    }

    #[test]
    fn after_a_failed_write_nothing_more_is_done(tape in tapes()) {
        let world = play(tape, Options { storage_failures: true, deaths: false, ..Options::default() });
        let failed = world.trace.iter().position(|seen| matches!(seen, Seen::FedPersistFailed));
        let Some(failed) = failed else { return Ok(()) };
        prop_assert!(world.engine.is_stopped());
        let mut running = 0i64;
        for seen in &world.trace[..failed] {
            match seen {
                Seen::Started { .. } => running += 1,
                Seen::Killed { .. } | Seen::Logged(Event { body: Body::ToolCompleted(_), .. }) if running > 0 => running -= 1,
                _ => {}
            }
        }
        let mut ended = false;
        for seen in &world.trace[failed + 1..] {
            match seen {
                Seen::TurnEnded { reason, .. } => {
                    ended = true;
                    prop_assert_eq!(*reason, TurnEndReason::Error(ErrorClass::Storage));
                    prop_assert_eq!(ExitCode::of_reason(*reason).code(), 11);
                }
                Seen::Killed { .. } | Seen::ModelCancelled => {}
                other => prop_assert!(false, "it still did {other:?}"),
            }
        }
        prop_assert!(ended || world.engine.fold().open_turn().is_none());
    }

    #[test]
    fn a_session_ends_in_one_result(tape in tapes()) {
        let mut world = play(tape, Options::default());
        let result = world.end_run();
        prop_assert_eq!(result.session_id.as_str(), "s1");
        let results = world.log.iter().filter(|event| matches!(event.body, Body::Result(_))).count() as u64;
        prop_assert_eq!(result.run, results, "one result for each run, the dead ones too");
        let last = world.log.last().expect("events");
        let ended = matches!(&last.body, Body::Result(logged) if **logged == result);
        prop_assert!(ended);
    }

    #[test]
    fn a_death_at_any_event_leaves_a_session_that_goes_on(tape in tapes(), at in any::<prop::sample::Index>()) {
        let mut world = play(tape, Options { deaths: false, ..Options::default() });
        let kept = at.index(world.log.len() + 1);
        world.die_keeping(kept);
        world.prompt();
        world.rest();
        prop_assert!(verify(header(), &world.log, &wires()).is_ok());
        // No call of the dead process is dangling: each has exactly one result.
        let mut owed: Vec<&str> = Vec::new();
        for event in &world.log {
            match &event.body {
                Body::AssistantMessage(answer) => owed.extend(answer.calls.iter().map(|call| call.call_id.as_str())),
                Body::ToolResult(result) => prop_assert_eq!(owed.remove(0), result.call_id.as_str()),
                _ => {}
            }
        }
        prop_assert!(owed.is_empty());
    }
}

/// The stubborn model calls the same thing for ever and always gets the same result.
#[test]
fn no_progress_is_reminded_and_then_stopped() {
    let options = Options {
        max_steps_per_turn: 50,
        max_steps_per_run: 50,
        stubborn_model: true,
        ..Options::default()
    };
    let mut world = World::new(Vec::new(), options);
    world.prompt();
    world.rest();
    let mut steps = 0;
    let mut reminded_after = Vec::new();
    for event in &world.log {
        match &event.body {
            Body::StepEnd(_) => steps += 1,
            Body::UserMessage(message) => {
                if matches!(&message.source, MessageSource::Notice { name } if name == "repeat") {
                    reminded_after.push(steps);
                }
            }
            _ => {}
        }
    }
    assert_eq!(reminded_after, [3, 5, 8]);
    assert_eq!(steps, u64::from(REPEATS_MAX));
    let end = world.log.iter().find_map(|event| match &event.body {
        Body::TurnEnd(end) => Some(end.reason),
        _ => None,
    });
    assert_eq!(end, Some(TurnEndReason::Error(ErrorClass::NoProgress)));
    assert_eq!(world.end_run().exit_code, 9);
}

/// A log whose version is newer says so, whatever else is in it.
#[test]
fn a_newer_log_is_refused_by_its_version() {
    let line = b"{\"type\":\"session\",\"version\":2,\"shape\":\"new\"}\n";
    let fault = decode(line).expect_err("refused");
    assert_eq!(fault.cause, Cause::NewerVersion { version: 2 });
}

/// Whatever a broken or hostile writer puts together: if it folds, then it pairs, and it can be closed.
mod whatever_folds {
    use std::collections::BTreeMap;

    use curfew_engine::event::{Event, SurfaceOp};
    use curfew_engine::projection::{Message, messages};
    use curfew_engine::{Fold, repair};
    use proptest::prelude::*;

    use super::{Options, cases, header, play, tapes};

    /// Leaves events out, doubles them and moves them.
    fn edit(events: &[Event], edits: &[(usize, usize, u8)]) -> Vec<Event> {
        let mut events = events.to_vec();
        for (a, b, kind) in edits {
            if events.is_empty() {
                break;
            }
            let (a, b) = (a % events.len(), b % events.len());
            match kind % 3 {
                0 => drop(events.remove(a)),
                1 => events.insert(a, events[b].clone()),
                _ => events.swap(a, b),
            }
        }
        events
    }

    /// Folds what it can, numbered anew, with sources that follow their events.
    fn fold_what_folds(events: &[Event]) -> Fold {
        let mut fold = Fold::new(header());
        let mut now: BTreeMap<u64, u64> = BTreeMap::new();
        for old in events {
            let mut event = old.clone();
            event.seq = fold.next_seq();
            for source in event.source_event_seqs.iter_mut().flatten() {
                *source = now.get(source).copied().unwrap_or(*source);
            }
            let before = fold.clone();
            match fold.apply(&event) {
                Ok(()) => drop(now.insert(old.seq, event.seq)),
                Err(_) => assert_eq!(fold, before, "a refused event left a trace"),
            }
        }
        fold
    }

    /// Now and then a summary takes the place of some nodes.
    fn summarise(fold: &Fold, first: usize, count: usize) -> Option<Event> {
        let nodes = fold.surface().nodes();
        let first = first % nodes.len().max(1);
        let covered = nodes
            .get(first..(first + 1 + count % 6).min(nodes.len()))
            .filter(|some| !some.is_empty())?;
        let text = "summary".to_owned();
        let source = curfew_engine::event::MessageSource::Notice {
            name: "summary".to_owned(),
        };
        Some(Event {
            seq: fold.next_seq(),
            time: 0,
            body: curfew_engine::event::Body::UserMessage(curfew_engine::event::UserMessage {
                source,
                text,
            }),
            surface_op: Some(SurfaceOp::Replace {
                start: covered[0],
                end: covered[covered.len() - 1],
            }),
            source_event_seqs: Some(covered.to_vec()),
            ignorable: false,
        })
    }

    fn assert_pairs(fold: &Fold) {
        let mut owed: Vec<String> = Vec::new();
        for message in messages(fold) {
            match message {
                Message::Tool { call_id, .. } => assert_eq!(owed.remove(0), call_id),
                Message::Assistant { calls, .. } => {
                    assert!(owed.is_empty());
                    owed = calls.into_iter().map(|call| call.id).collect();
                }
                Message::User { .. } => assert!(owed.is_empty()),
            }
        }
        assert!(owed.is_empty());
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn pairs(
            tape in tapes(),
            edits in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..4),
            summaries in prop::collection::vec((any::<usize>(), any::<usize>()), 0..6),
        ) {
            let world = play(tape, Options::default());
            let mut fold = fold_what_folds(&edit(&world.log, &edits));
            for (first, count) in &summaries {
                if let Some(event) = summarise(&fold, *first, *count) {
                    let before = fold.clone();
                    if fold.apply(&event).is_err() {
                        prop_assert_eq!(&fold, &before);
                    }
                }
            }
            for event in repair::plan(&fold, 5).expect("can be closed") {
                fold.apply(&event).expect("what closes it folds");
            }
            assert_pairs(&fold);
        }
    }
}
