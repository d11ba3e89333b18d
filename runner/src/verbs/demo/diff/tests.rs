use curfew_engine::event::{CallFacts, ToolCompleted};
use serde_json::json;

use super::*;

fn event(body: Body) -> Event {
    Event {
        seq: 0,
        time: 0,
        body,
        surface_op: None,
        source_event_seqs: None,
        ignorable: false,
    }
}

/// A call and its completion; `after` is the file's content then.
fn call(
    id: &str,
    name: &str,
    arguments: serde_json::Value,
    content: &str,
    after: &str,
) -> [Event; 2] {
    let access = match name {
        "read" => FileAccess::Read,
        _ => FileAccess::Changed,
    };
    let seen = FileSeen {
        path: String::from("/ws/a"),
        sha256: sha256_hex(&[after.as_bytes()]),
        bytes: 0,
        lines: 0,
        seen: Vec::new(),
        before_sha256: None,
        access,
    };
    let called = ToolCall {
        turn: 1,
        step: 1,
        call_id: id.to_owned(),
        model_id: None,
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    let done = ToolCompleted {
        call_id: id.to_owned(),
        content: content.to_owned(),
        is_error: false,
        error: None,
        facts: CallFacts::default(),
        files: vec![seen],
        blob: None,
    };
    [
        event(Body::ToolCall(called)),
        event(Body::ToolCompleted(done)),
    ]
}

#[test]
fn what_was_read_edited_and_written_becomes_one_diff() {
    let read = call(
        "call_1",
        "read",
        json!({ "path": "a" }),
        "1\tone\n2\ttwo",
        "one\ntwo\n",
    );
    let arguments = json!({ "path": "a", "old_string": "two", "new_string": "three" });
    let edit = call("call_2", "edit", arguments, "edited", "one\nthree\n");
    let arguments = json!({ "path": "a", "content": "one\nfour\n" });
    let write = call("call_3", "write", arguments, "written", "one\nfour\n");
    let changed = of(&[read, edit, write].concat());
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].calls, ["call_2", "call_3"]);
    let lines = changed[0].lines.clone().unwrap();
    assert!(lines.contains(&String::from("-two")), "{lines:?}");
    assert!(lines.contains(&String::from("+four")), "{lines:?}");
    assert!(
        !lines.iter().any(|line| line.contains("three")),
        "{lines:?}"
    );
}

#[test]
fn a_content_that_does_not_have_the_logged_digest_is_not_shown() {
    let read = call("call_1", "read", json!({ "path": "a" }), "1\tone", "one\n");
    let arguments = json!({ "path": "a", "content": "two\n" });
    let write = call("call_2", "write", arguments, "written", "something else\n");
    let changed = of(&[read, write].concat());
    assert_eq!(changed[0].lines, None);
}
