use curfew_engine::event::HeaderReason;
use proptest::prelude::*;

use super::*;

fn header() -> RequestHeader {
    RequestHeader {
        reason: HeaderReason::Initial,
        endpoint: "http://127.0.0.1:8081/v1".into(),
        model: "m".into(),
        wire: NAME.into(),
        sampling: Sampling {
            temperature: Some(0.0),
            max_tokens: Some(128),
            seed: Some(1),
            reasoning_effort: None,
        },
        context_window: None,
        system: "You are \"careful\".".into(),
        tools: vec![ToolSchema {
            name: "bash".into(),
            description: "Run a command".into(),
            parameters: RawValue::from_string(r#"{"type": "object",  "z":1,"a":1.50}"#.into())
                .unwrap(),
        }],
    }
}

fn conversation() -> Vec<Message> {
    vec![
        Message::User {
            text: "list\nfiles \u{ac00}\u{1f600}".into(),
        },
        Message::Assistant {
            text: String::new(),
            calls: vec![
                MessageCall {
                    id: "call_1".into(),
                    name: "bash".into(),
                    arguments: r#"{"command":"ls"}"#.into(),
                },
                MessageCall {
                    id: "call_2".into(),
                    name: "bash".into(),
                    arguments: "{}".into(),
                },
            ],
        },
        Message::Tool {
            call_id: "call_1".into(),
            content: "a\u{1b}[31m\u{0}b".into(),
        },
        Message::Tool {
            call_id: "call_2".into(),
            content: String::new(),
        },
        Message::Assistant {
            text: "Two files.".into(),
            calls: vec![],
        },
    ]
}

/// Released: this text never changes.
#[test]
fn the_body_is_frozen_byte_for_byte() {
    let body = OpenAiChat.render(&header(), &conversation());
    let golden = include_str!("../../../tests/golden/openai-chat-1.json");
    assert_eq!(
        String::from_utf8(body.bytes).unwrap(),
        golden.trim_end_matches('\n')
    );
}

#[test]
fn what_is_absent_is_not_sent() {
    let mut header = header();
    header.sampling = Sampling::default();
    header.system = String::new();
    header.tools = vec![];
    let body = OpenAiChat.render(&header, &[Message::User { text: "hi".into() }]);
    let expected = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(String::from_utf8(body.bytes).unwrap(), expected);
}

#[test]
fn the_bytes_of_a_tool_schema_are_kept() {
    let body = OpenAiChat.render(&header(), &[]);
    let text = String::from_utf8(body.bytes).unwrap();
    assert!(
        text.contains(r#""parameters":{"type": "object",  "z":1,"a":1.50}}}]"#),
        "{text}"
    );
}

#[test]
fn the_wire_is_named_after_its_release() {
    assert_eq!(OpenAiChat.name(), "openai-chat/1");
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = "\\PC{0,20}";
    prop_oneof![
        text.prop_map(|text| Message::User { text }),
        (
            text,
            prop::collection::vec(("[a-z]{1,5}", "\\PC{0,10}"), 0..3)
        )
            .prop_map(|(text, calls)| {
                let call = |(id, arguments)| MessageCall {
                    id,
                    name: "bash".into(),
                    arguments,
                };
                Message::Assistant {
                    text,
                    calls: calls.into_iter().map(call).collect(),
                }
            }),
        ("[a-z]{1,5}", text).prop_map(|(call_id, content)| Message::Tool { call_id, content }),
    ]
}

proptest! {
    /// Everything fixed first, messages last: a step is a byte prefix of the next.
    #[test]
    fn a_body_begins_with_the_prefix_of_the_one_before(messages in prop::collection::vec(any_message(), 0..8), more in prop::collection::vec(any_message(), 0..4)) {
        let mut next = messages.clone();
        next.extend(more);
        let (body, next) = (OpenAiChat.render(&header(), &messages), OpenAiChat.render(&header(), &next));
        prop_assert_eq!(&next.bytes[..body.prefix_len], &body.bytes[..body.prefix_len]);
        prop_assert!(next.prefix_len >= body.prefix_len);
        prop_assert_eq!(&body.bytes[body.prefix_len..], b"]}");
    }

    #[test]
    fn a_body_is_json_that_holds_every_message(messages in prop::collection::vec(any_message(), 0..8)) {
        let body = OpenAiChat.render(&header(), &messages);
        let value: serde_json::Value = serde_json::from_slice(&body.bytes).unwrap();
        prop_assert_eq!(value["messages"].as_array().unwrap().len(), messages.len() + 1);
        prop_assert_eq!(OpenAiChat.render(&header(), &messages), body);
    }
}
