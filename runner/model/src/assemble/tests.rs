use proptest::prelude::*;

use super::*;
use crate::wire::chunk::Chunk;

fn assemble(deltas: &[serde_json::Value]) -> (Vec<Delta>, Assembler) {
    let mut assembler = Assembler::default();
    let mut out = Vec::new();
    for delta in deltas {
        let chunk = serde_json::json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
        for choice in Chunk::parse(&chunk).unwrap().choices.unwrap() {
            assembler.choice(choice, &mut out).unwrap();
        }
    }
    (out, assembler)
}

/// Arguments by index, as the engine will put them together.
fn arguments(deltas: &[Delta]) -> Vec<(u32, String)> {
    let mut calls: std::collections::BTreeMap<u32, String> = Default::default();
    for delta in deltas {
        if let Block::Call { index, .. } = &delta.block {
            calls.entry(*index).or_default().push_str(&delta.text);
        }
    }
    calls.into_iter().collect()
}

#[test]
fn a_name_that_comes_late_still_opens_the_call() {
    let (out, _) = assemble(&[
        serde_json::json!({"tool_calls": [{"index": 0, "id": "a"}]}),
        serde_json::json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\""}}]}),
        serde_json::json!({"tool_calls": [{"index": 0, "function": {"name": "bash", "arguments": ":1}"}}]}),
    ]);
    let block = Block::Call {
        index: 0,
        id: Some("a".into()),
        name: Some("bash".into()),
    };
    assert_eq!(
        out,
        [Delta {
            block,
            text: "{\"a\":1}".into()
        }]
    );
}

#[test]
fn a_call_without_a_name_is_given_out_at_the_end() {
    let (mut out, mut assembler) =
        assemble(&[serde_json::json!({"tool_calls": [{"index": 0, "id": "a"}]})]);
    assert_eq!(out, []);
    let last = Chunk::parse(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#).unwrap();
    assembler
        .choice(last.choices.unwrap().remove(0), &mut out)
        .unwrap();
    let block = Block::Call {
        index: 0,
        id: Some("a".into()),
        name: Some(String::new()),
    };
    assert_eq!(
        out,
        [Delta {
            block,
            text: String::new()
        }]
    );
}

#[test]
fn other_choices_than_the_first_are_not_ours() {
    let mut assembler = Assembler::default();
    let mut out = Vec::new();
    let chunk = r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"},{"index":0,"delta":{"content":"yes"}}]}"#;
    for choice in Chunk::parse(chunk).unwrap().choices.unwrap() {
        assembler.choice(choice, &mut out).unwrap();
    }
    assert_eq!(
        out,
        [Delta {
            block: Block::Text,
            text: "yes".into()
        }]
    );
    assert_eq!(assembler.finish(), None);
}

#[test]
fn an_older_function_call_is_a_call() {
    let (out, _) = assemble(&[
        serde_json::json!({"function_call": {"name": "bash", "arguments": "{"}}),
        serde_json::json!({"function_call": {"arguments": "}"}}),
    ]);
    assert_eq!(arguments(&out), [(0, "{}".into())]);
}

#[test]
fn a_random_id_in_each_piece_does_not_split_a_call() {
    let (out, _) = assemble(&[
        serde_json::json!({"tool_calls": [{"index": 0, "id": "r1", "function": {"name": "bash", "arguments": "{\"a\":"}}]}),
        serde_json::json!({"tool_calls": [{"index": 0, "id": "r2", "function": {"arguments": "1"}}]}),
        serde_json::json!({"tool_calls": [{"index": 0, "id": "r3", "function": {"name": "bash", "arguments": "}"}}]}),
    ]);
    assert_eq!(arguments(&out), [(0, "{\"a\":1}".into())]);
}

#[test]
fn too_many_calls_are_refused() {
    let mut assembler = Assembler::default();
    let calls: Vec<_> = (0..=CALLS_MAX)
        .map(|index| serde_json::json!({"index": index, "function": {"name": "x"}}))
        .collect();
    let chunk = serde_json::json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string();
    let choice = Chunk::parse(&chunk).unwrap().choices.unwrap().remove(0);
    assert!(matches!(
        assembler.choice(choice, &mut Vec::new()),
        Err(AssembleFault::TooManyCalls)
    ));
}

#[test]
fn refusals_are_text() {
    let (out, _) = assemble(&[serde_json::json!({"refusal": "I will not"})]);
    assert_eq!(
        out,
        [Delta {
            block: Block::Text,
            text: "I will not".into()
        }]
    );
}

proptest! {
    /// Invariant 5 of the log: pieces are grouped by index, concatenated and never assigned; however
    /// the pieces of several calls are interleaved and cut, each call gets exactly its own.
    #[test]
    fn interleaved_pieces_reach_their_own_call(
        calls in prop::collection::vec(prop::collection::vec("[ -~]{0,8}", 1..6), 1..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 30),
        repeat_names: bool,
    ) {
        let mut left: Vec<_> = calls.iter().map(|pieces| pieces.iter().peekable()).collect();
        let mut started = vec![false; calls.len()];
        let mut deltas = Vec::new();
        for pick in order.iter().map(Some).chain(std::iter::repeat_n(None, 30)) {
            let open: Vec<usize> = (0..left.len()).filter(|at| left[*at].peek().is_some()).collect();
            let Some(at) = open.get(pick.map_or(0, |pick| pick.index(open.len().max(1)))) else { break };
            let piece = left[*at].next().unwrap();
            let mut call = serde_json::json!({"index": at, "function": {"arguments": piece}});
            if !started[*at] || repeat_names {
                call["id"] = format!("id{at}").into();
                call["function"]["name"] = "bash".into();
                started[*at] = true;
            }
            deltas.push(serde_json::json!({"tool_calls": [call]}));
        }
        let (out, _) = assemble(&deltas);
        let expected: Vec<(u32, String)> = calls.iter().enumerate().map(|(at, pieces)| (at as u32, pieces.concat())).collect();
        prop_assert_eq!(arguments(&out), expected);
    }
}
