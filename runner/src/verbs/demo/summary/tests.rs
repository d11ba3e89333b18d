use curfew_engine::event::{Body, Event, SandboxDenied, ToolCall};

use super::{Refused, hostile};

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

fn call(turn: u64, id: &str) -> Event {
    event(Body::ToolCall(ToolCall {
        turn,
        step: 1,
        call_id: id.to_owned(),
        model_id: None,
        name: String::from("bash"),
        arguments: String::from("{}"),
    }))
}

fn denied(id: &str) -> Event {
    event(Body::SandboxDenied(SandboxDenied {
        call_id: id.to_owned(),
        op: String::from("open-write"),
        path: None,
        address: None,
        errno: 30,
        layer: String::from("mounts"),
        rule: String::from("write-fence"),
        remedy: String::new(),
        trust: String::from("kernel"),
        count: 1,
    }))
}

#[test]
fn an_attack_that_nothing_refused_is_seen() {
    let events = [
        call(1, "call_1"),
        call(2, "call_2"),
        denied("call_2"),
        call(2, "call_3"),
    ];
    let wanted = [
        (String::from("call_2"), Refused::Yes),
        (String::from("call_3"), Refused::No),
    ];
    assert_eq!(hostile(&events), wanted);
}
