use super::*;
use curfew_engine::event::{
    AssistantChunk, AssistantMessage, Block, CallFacts, CallRef, Finish, ModelFailure,
    ToolCompleted,
};

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

fn lines(bodies: Vec<Body>) -> Vec<String> {
    let mut ui = Ui::default();
    let shown = bodies.into_iter().flat_map(|body| ui.event(&event(body)));
    shown
        .map(|shown| match shown {
            Shown::Detail(text) => text,
            Shown::Line { text, .. } | Shown::Answer(text) | Shown::Prompt { text, .. } => text,
        })
        .collect()
}

fn event_of_call(name: &str, arguments: &str) -> Vec<Body> {
    let (id, name) = (None, Some(name.to_owned()));
    vec![
        chunk(0, Block::Call { index: 0, id, name }, arguments),
        message(vec![CallRef {
            call_id: String::from("call_1"),
            index: 0,
        }]),
    ]
}

fn chunk(attempt: u32, block: Block, text: &str) -> Body {
    Body::AssistantChunk(AssistantChunk {
        turn: 1,
        step: 1,
        attempt,
        block,
        text: text.to_owned(),
    })
}

fn message(calls: Vec<CallRef>) -> Body {
    let finish = Finish::Stop;
    Body::AssistantMessage(AssistantMessage {
        turn: 1,
        step: 1,
        finish,
        calls,
        usage: None,
        interrupted: false,
        dropped_calls: 0,
    })
}

fn completed(facts: CallFacts, error: Option<ToolErrorCode>) -> Body {
    Body::ToolCompleted(ToolCompleted {
        call_id: String::from("call_1"),
        content: String::new(),
        is_error: error.is_some(),
        error,
        facts,
        files: Vec::new(),
        blob: None,
    })
}

#[test]
fn a_call_is_one_line_with_id_name_argument_outcome_and_time() {
    let facts = CallFacts {
        exit_code: Some(1),
        wall_us: Some(1_234_000),
        denied: 2,
        ..CallFacts::default()
    };
    let mut bodies = event_of_call("bash", r#"{"command":"make test"}"#);
    bodies.push(completed(facts, None));
    assert_eq!(
        lines(bodies),
        ["call_1  bash make test · exit 1 · denied 2 · 1.2 s"]
    );
}

#[test]
fn arguments_that_are_no_json_are_shown_inert() {
    let mut bodies = event_of_call("bash", "\u{1b}[31m");
    bodies.push(completed(
        CallFacts::default(),
        Some(ToolErrorCode::InvalidArguments),
    ));
    let shown = lines(bodies);
    assert!(
        !shown[0].contains('\u{1b}')
            && shown[0].contains("[31m")
            && shown[0].contains("invalid arguments")
    );
}

#[test]
fn a_denial_says_denied_and_its_layer() {
    let denial = SandboxDenied {
        call_id: String::from("call_1"),
        op: String::from("open-write"),
        path: Some(String::from("/etc/passwd")),
        address: None,
        errno: 30,
        layer: String::from("mounts"),
        rule: String::from("write-fence"),
        remedy: String::from("use --add-dir"),
        trust: String::from("kernel"),
        count: 1,
    };
    let shown = lines(vec![Body::SandboxDenied(denial)]);
    assert!(
        shown[0].contains("denied: open-write /etc/passwd") && shown[0].contains("mounts"),
        "{shown:?}"
    );
}

#[test]
fn a_retry_says_why_and_when() {
    let failure = ModelFailure {
        kind: FailureKind::CutStream,
        status: None,
        retry_after_ms: None,
        text: String::from("gone"),
    };
    let retry = ModelRetry {
        turn: 1,
        step: 1,
        failure,
        attempt: 1,
        attempts_max: 6,
        delay_ms: 500,
    };
    let shown = lines(vec![
        chunk(0, Block::Text, "he"),
        Body::ModelRetry(retry),
        chunk(1, Block::Text, "hello"),
    ]);
    assert_eq!(
        shown,
        [
            "he",
            "stream was cut: gone; retry 1 of 6 in 500 ms",
            "hello"
        ]
    );
}
