use super::*;
use crate::event::{
    AgentPreset, Body, MessageSource, ToolCompleted, TurnEnd, TurnEndReason, TurnStart, UserMessage,
};

fn header() -> Header {
    Header {
        version: 1,
        id: "s1".to_owned(),
        created_at: 5,
        cwd: "/w".to_owned(),
        parent_session: None,
        seed_length: None,
        origin: None,
        delegation_depth: 0,
        agent_preset: AgentPreset {
            name: "default".to_owned(),
            digest: "00".to_owned(),
        },
        profile: "default".to_owned(),
        curfew: "0.1.0".to_owned(),
        host: "h".to_owned(),
    }
}

fn event(seq: u64, body: Body) -> Event {
    Event {
        seq,
        time: 7,
        body,
        surface_op: None,
        source_event_seqs: None,
        ignorable: false,
    }
}

fn foreign(seq: u64, kind: &str, ignorable: bool) -> Event {
    let data = RawValue::from_string("{\"a\": [1,  2]}".to_owned()).unwrap();
    Event {
        ignorable,
        ..event(
            seq,
            Body::Unknown {
                kind: kind.to_owned(),
                data,
            },
        )
    }
}

fn text(line: &[u8]) -> &str {
    std::str::from_utf8(line).unwrap()
}

fn log(events: &[Event]) -> Vec<Vec<u8>> {
    let mut chain = Chain::new();
    let mut lines = vec![encode_header(&mut chain, &header()).unwrap()];
    lines.extend(
        events
            .iter()
            .map(|event| encode_event(&mut chain, event).unwrap()),
    );
    lines
}

fn file(lines: &[Vec<u8>]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| line.iter().copied().chain([b'\n']))
        .collect()
}

/// The shape is the contract with every other reader, so it is spelled out here.
#[test]
fn lines_are_spelled_like_this() {
    let said = UserMessage {
        source: MessageSource::User,
        text: "hi \"you\"\n".to_owned(),
    };
    let mut message = event(1, Body::UserMessage(said));
    message.surface_op = Some(SurfaceOp::Replace { start: 3, end: 4 });
    message.source_event_seqs = Some(vec![3, 4]);
    let lines = log(&[event(0, Body::TurnStart(TurnStart { turn: 1 })), message]);
    let head = "{\"type\":\"session\",\"version\":1,\"id\":\"s1\",\"createdAt\":5,\"cwd\":\"/w\",\"delegationDepth\":0,\
                \"agentPreset\":{\"name\":\"default\",\"digest\":\"00\"},\"profile\":\"default\",\"curfew\":\"0.1.0\",\
                \"host\":\"h\"";
    assert!(
        text(&lines[0]).starts_with(&format!("{head},\"hash\":\"")),
        "{}",
        text(&lines[0])
    );
    assert!(text(&lines[1]).starts_with(
        "{\"seq\":0,\"time\":7,\"type\":\"turn/start\",\"data\":{\"turn\":1},\"hash\":\""
    ));
    let third = "{\"seq\":1,\"time\":7,\"type\":\"user/message\",\"data\":{\"source\":{\"kind\":\"user\"},\
                 \"text\":\"hi \\\"you\\\"\\n\"},\"surfaceOp\":{\"op\":\"replace\",\"start\":3,\"end\":4},\
                 \"sourceEventSeqs\":[3,4],\"hash\":\"";
    assert!(text(&lines[2]).starts_with(third), "{}", text(&lines[2]));
}

/// As anyone would check it with sha256sum.
#[test]
fn the_hash_is_over_the_hash_before_and_the_bytes_of_the_line() {
    let lines = log(&[event(0, Body::TurnStart(TurnStart { turn: 1 }))]);
    let mut before = "0".repeat(64);
    for line in &lines {
        let (covered, hash) = text(line).rsplit_once(",\"hash\":").unwrap();
        let expected = sha256_hex(&[before.as_bytes(), covered.as_bytes()]);
        assert_eq!(hash, format!("\"{expected}\"}}"));
        before = expected;
    }
}

#[test]
fn faults_are_located_and_named() {
    let lines = log(&[
        event(0, Body::TurnStart(TurnStart { turn: 1 })),
        event(1, Body::TurnStart(TurnStart { turn: 2 })),
    ]);
    let fault = |bytes: &[u8]| decode(bytes).unwrap().fault.unwrap();
    let whole = file(&lines);

    let torn = fault(&whole[..whole.len() - 9]);
    assert!(torn.is_torn_tail());
    assert_eq!((torn.line, torn.seq), (3, Some(1)));

    let mut zeros = file(&lines[..2]);
    zeros.extend([0; 40]);
    let zeros = fault(&zeros);
    assert_eq!(
        zeros.cause,
        Cause::NulRun {
            offset: 0,
            bytes: 40,
            to_end: true
        }
    );
    assert!(zeros.is_torn_tail());

    let flipped = text(&whole).replace("\"turn\":2", "\"turn\":3");
    let flipped = fault(flipped.as_bytes());
    assert!(matches!(flipped.cause, Cause::BadHash { .. }) && !flipped.is_torn_tail());
    assert!(
        flipped.to_string().starts_with("line 3 (seq 1): bad hash"),
        "{flipped}"
    );

    assert_eq!(
        fault(&file(&[lines[0].clone(), b"{}".to_vec()])).cause,
        Cause::NoHash
    );
    let spaced = fault(&file(&[
        lines[0].clone(),
        lines[1].clone(),
        Vec::new(),
        lines[2].clone(),
    ]));
    assert_eq!(spaced.cause, Cause::NoHash);
}

/// Whoever re-seals a line can only make consistent ones; these are what a broken writer makes.
#[test]
fn a_good_hash_does_not_excuse_the_rest() {
    let sealed = |covered: &str| {
        let lines = log(&[]);
        let mut decoder = Decoder::new();
        decoder.line(&lines[0], LineEnd::Newline).unwrap();
        let line = decoder
            .chain()
            .clone()
            .seal(covered.as_bytes().to_vec())
            .unwrap();
        decoder.line(&line, LineEnd::Newline).unwrap_err().cause
    };
    let bad_seq = sealed("{\"seq\":1,\"time\":7,\"type\":\"turn/start\",\"data\":{\"turn\":1}");
    assert_eq!(
        bad_seq,
        Cause::BadSeq {
            found: 1,
            expected: 0
        }
    );
    let unknown = sealed("{\"seq\":0,\"time\":7,\"type\":\"new/thing\",\"data\":{}");
    assert_eq!(
        unknown,
        Cause::UnknownRequired {
            kind: "new/thing".to_owned()
        }
    );
    let extra =
        sealed("{\"seq\":0,\"time\":7,\"type\":\"turn/start\",\"data\":{\"turn\":1,\"more\":2}");
    assert!(matches!(extra, Cause::BadData { .. }));
    let member =
        sealed("{\"seq\":0,\"time\":7,\"type\":\"turn/start\",\"data\":{\"turn\":1},\"more\":2");
    assert!(matches!(member, Cause::BadJson { .. }));
    let twice =
        sealed("{\"seq\":0,\"seq\":0,\"time\":7,\"type\":\"turn/start\",\"data\":{\"turn\":1}");
    assert!(matches!(twice, Cause::BadJson { .. }));
    let op = sealed(
        "{\"seq\":0,\"time\":7,\"type\":\"turn/start\",\"data\":{\"turn\":1},\"surfaceOp\":\"prepend\"",
    );
    assert!(matches!(op, Cause::BadJson { .. }));
    let source = sealed(
        "{\"seq\":0,\"time\":7,\"type\":\"user/message\",\"data\":{\"source\":{\"kind\":\"notice\",\"name\":\"n\",\"more\":1},\
         \"text\":\"\"},\"surfaceOp\":\"append\"",
    );
    assert!(matches!(source, Cause::BadData { .. }), "{source:?}");
}

#[test]
fn unknown_events_are_kept_verbatim_if_they_may_be_ignored() {
    let lines = log(&[foreign(0, "vendor/thing", true)]);
    assert!(text(&lines[1]).contains("\"data\":{\"a\": [1,  2]},\"ignorable\":true,\"hash\":"));
    let decoded = decode(&file(&lines)).unwrap();
    assert!(decoded.fault.is_none());
    let mut chain = Chain::new();
    encode_header(&mut chain, &decoded.header).unwrap();
    assert_eq!(
        encode_event(&mut chain, &decoded.events[0]).unwrap(),
        lines[1]
    );
}

/// What a reader would refuse is not written.
#[test]
fn writers_use_the_readers_vocabulary() {
    let mut chain = Chain::new();
    let refused = encode_event(&mut chain, &foreign(0, "vendor/thing", false));
    assert!(matches!(refused, Err(EncodeError::UnknownRequired { .. })));
    let untyped = encode_event(&mut chain, &foreign(0, "turn/start", true));
    assert!(matches!(untyped, Err(EncodeError::Untyped { .. })));
    let data = RawValue::from_string("{\n}".to_owned()).unwrap();
    let broken = Event {
        ignorable: true,
        ..event(
            0,
            Body::Unknown {
                kind: "x/y".to_owned(),
                data,
            },
        )
    };
    assert!(matches!(
        encode_event(&mut chain, &broken),
        Err(EncodeError::LineBreak)
    ));
    let newer = encode_header(
        &mut chain,
        &Header {
            version: 2,
            ..header()
        },
    );
    assert!(matches!(newer, Err(EncodeError::Version { version: 2 })));
    assert_eq!(
        chain,
        Chain::new(),
        "a refused record does not move the chain"
    );
}

#[test]
fn a_record_has_a_bound() {
    let content = "x".repeat(LINE_BYTES_MAX);
    let long = ToolCompleted {
        call_id: "call_1".to_owned(),
        content,
        is_error: false,
        error: None,
        facts: Default::default(),
        files: Vec::new(),
        blob: None,
    };
    let mut chain = Chain::new();
    assert!(matches!(
        encode_event(&mut chain, &event(0, Body::ToolCompleted(long))),
        Err(EncodeError::TooLong { .. })
    ));
    assert_eq!(chain, Chain::new());
}

#[test]
fn reasons_are_words_or_classes() {
    let end = |reason| {
        event(
            0,
            Body::TurnEnd(TurnEnd {
                turn: 1,
                reason,
                failure: None,
            }),
        )
    };
    let class = TurnEndReason::Error(crate::event::ErrorClass::NoProgress);
    assert!(text(&log(&[end(class)])[1]).contains("\"reason\":{\"error\":\"no-progress\"}"));
    assert!(text(&log(&[end(TurnEndReason::MaxSteps)])[1]).contains("\"reason\":\"max-steps\""));
}

#[test]
fn a_log_that_is_none_is_refused() {
    assert!(matches!(
        decode(b"").unwrap_err().cause,
        Cause::Torn { bytes: 0 }
    ));
    assert!(decode(b"hello\n").is_err());
    let mut chain = Chain::new();
    let line = encode_event(
        &mut chain,
        &event(0, Body::TurnStart(TurnStart { turn: 1 })),
    )
    .unwrap();
    assert!(matches!(
        decode(&file(&[line])).unwrap_err().cause,
        Cause::NotAHeader { .. }
    ));
}

#[test]
fn a_chain_goes_on_where_it_was_left() {
    let lines = log(&[event(0, Body::TurnStart(TurnStart { turn: 1 }))]);
    let mut whole = Chain::new();
    encode_header(&mut whole, &header()).unwrap();
    let mut later = Chain::at(whole.head()).unwrap();
    assert_eq!(
        encode_event(
            &mut later,
            &event(0, Body::TurnStart(TurnStart { turn: 1 }))
        )
        .unwrap(),
        lines[1]
    );
    assert_eq!(Chain::at("xyz"), None);
}
