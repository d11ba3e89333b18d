use super::*;
use crate::event::{
    AssistantChunk, AssistantMessage, CallRef, Finish, StepMark, ToolCall, TurnEnd,
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

/// A UI that has seen one answer with one call.
fn with_call(name: &str, arguments: &str) -> Ui {
    let mut ui = Ui::default();
    let block = Block::Call {
        index: 0,
        id: None,
        name: Some(name.to_owned()),
    };
    let (turn, step) = (1, 1);
    ui.apply(&event(Body::StepStart(StepMark { turn, step })));
    ui.apply(&event(Body::AssistantChunk(AssistantChunk {
        turn,
        step,
        attempt: 0,
        block,
        text: arguments.to_owned(),
    })));
    ui.apply(&event(Body::AssistantMessage(AssistantMessage {
        turn,
        step,
        finish: Finish::ToolCalls,
        calls: vec![CallRef {
            call_id: "call_1".to_owned(),
            index: 0,
        }],
        usage: None,
        interrupted: false,
        dropped_calls: 0,
    })));
    ui
}

fn ended(ui: &mut Ui, facts: CallFacts, error: Option<ToolErrorCode>) -> String {
    let completed = ToolCompleted {
        call_id: "call_1".to_owned(),
        content: String::new(),
        is_error: error.is_some(),
        error,
        facts,
        files: Vec::new(),
        blob: None,
    };
    line(&ui.apply(&event(Body::ToolCompleted(completed)))[0])
}

#[test]
fn a_call_is_one_line() {
    let mut ui = with_call(
        "bash",
        "{\"command\":\"cargo test\\ncargo doc\",\"timeout\":5}",
    );
    let call = ToolCall {
        turn: 1,
        step: 1,
        call_id: "call_1".to_owned(),
        model_id: None,
        name: "bash".to_owned(),
        arguments: String::new(),
    };
    let started = ui.apply(&event(Body::ToolCall(call)));
    assert_eq!(line(&started[0]), "bash cargo test ⏎ cargo doc");
    let facts = CallFacts {
        exit_code: Some(101),
        denied: 2,
        truncated: true,
        wall_us: Some(1_350_000),
        ..CallFacts::default()
    };
    assert_eq!(
        ended(&mut ui, facts, None),
        "bash cargo test ⏎ cargo doc · exit 101 · denied 2 · output cut · 1.3 s"
    );
}

#[test]
fn what_went_wrong_is_in_the_line() {
    let line = |name, arguments, facts, error| ended(&mut with_call(name, arguments), facts, error);
    let none = CallFacts::default;
    assert_eq!(
        line(
            "read",
            "{\"path\":\"a\"}",
            none(),
            Some(ToolErrorCode::Tool("stale".to_owned()))
        ),
        "read a · stale"
    );
    assert_eq!(
        line("", "x", none(), Some(ToolErrorCode::UnknownTool)),
        "(no tool) x · unknown tool"
    );
    assert_eq!(
        line(
            "bash",
            "{\"command\":\"sleep 9\"}",
            CallFacts {
                killed: true,
                timed_out: true,
                ..none()
            },
            None
        ),
        "bash sleep 9 · timed out"
    );
    assert_eq!(
        line("deploy", "{}", none(), Some(ToolErrorCode::ApprovalDenied)),
        "deploy · approval denied"
    );
    let long = format!("{{\"pattern\":\"{}\"}}", "x".repeat(200));
    assert_eq!(
        line("grep", &long, none(), None).chars().count(),
        "grep ".len() + MAIN_ARGUMENT_CHARS_MAX
    );
}

#[test]
fn terminals_only_show_it() {
    assert_eq!(
        inert("a\u{1b}[2Jb\r\u{7}\u{202e}c\n\td"),
        "a\\u{1b}[2Jb\\u{d}\\u{7}\\u{202e}c\n\td"
    );
    let mut ui = with_call("bash", "{\"command\":\"printf '\\u001b]0;x\\u0007'\"}");
    let shown = ended(&mut ui, CallFacts::default(), None);
    assert!(shown.chars().all(|c| !c.is_control()), "{shown}");
    let end = TurnEnd {
        turn: 1,
        reason: TurnEndReason::Completed,
        failure: None,
    };
    assert_eq!(line(&ui.apply(&event(Body::TurnEnd(end)))[0]), "completed");
}
