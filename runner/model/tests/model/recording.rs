//! What is recorded replays the same, and a replay is judged by the very same path.

use std::path::Path;

use curfew_engine::event::FailureKind;
use curfew_model::{Http, Provider, RecordError, Recorder, Replay, ReplayError, Stopped, retry};

use crate::ask::{Answered, ask, patient};
use crate::server::{Act, Server, chunk, sse_head, streamed, until_close, whole};

const TOOL: &str = include_str!("../fixtures/llama-server-tool.sse");
const KOREAN: &str = include_str!("../fixtures/llama-server-text.sse");

fn replay(text: &str) -> Provider {
    Provider::Replay(Replay::parse(Path::new("a.jsonl"), text).unwrap())
}

fn same(live: &Answered, replayed: &Answered) {
    assert_eq!(live.deltas, replayed.deltas);
    match (&live.ended, &replayed.ended) {
        (Ok(live), Ok(replayed)) => assert_eq!(live, replayed),
        (Err(Stopped::Failed(live)), Err(Stopped::Failed(replayed))) => {
            assert_eq!(
                (live.kind, live.status, live.retry_after_ms),
                (replayed.kind, replayed.status, replayed.retry_after_ms)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_recorded_run_replays_the_same_deltas_ends_and_failures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let mut pieces = vec![sse_head()];
    pieces.extend(KOREAN.as_bytes().chunks(7).map(chunk));
    let server = Server::start(vec![
        streamed(TOOL),
        pieces.into_iter().chain([Act::Pause, Act::Reset]).collect(),
        whole(
            "429 Too Many Requests",
            "retry-after: 2\r\n",
            r#"{"error":{"message":"slow down"}}"#,
        ),
        vec![Act::Close],
        until_close("200 OK", "text/event-stream", b"data: \xff\n\n"),
    ])
    .await;
    let http = Http::new(&server.base_url(), None, patient()).unwrap();
    let provider = Provider::Http(Box::new(
        http.with_recorder(Recorder::create(&path).unwrap()),
    ));
    server.go_on();
    let mut live = Vec::new();
    for _ in 0..5 {
        live.push(ask(&provider).await);
    }
    let recording = Replay::open(&path).unwrap();
    assert_eq!(recording.len(), 5);
    let recorded = Provider::Replay(recording);
    for live in &live {
        same(live, &ask(&recorded).await);
    }
    assert_eq!(live[3].kind(), FailureKind::Transport);
}

#[tokio::test]
async fn running_out_of_records_is_a_failure_that_is_not_retried() {
    let record = serde_json::json!({"status": 200, "body": TOOL}).to_string();
    let provider = replay(&record);
    ask(&provider).await.end();
    let answered = ask(&provider).await;
    assert!(
        answered
            .failure()
            .text
            .contains("has 1 responses and request 2 came"),
        "{:?}",
        answered.failure()
    );
    assert_eq!(retry::decide(answered.failure(), 0, 0, 0.5), None);
}

#[tokio::test]
async fn changing_one_recorded_argument_changes_the_call() {
    let record = serde_json::json!({"status": 200, "body": TOOL}).to_string();
    let changed = record.replace(r#"\"arguments\":\"ls\""#, r#"\"arguments\":\"pwd\""#);
    assert_ne!(record, changed);
    assert_eq!(
        ask(&replay(&record)).await.calls()[0].3,
        r#"{"command": "ls"}"#
    );
    assert_eq!(
        ask(&replay(&changed)).await.calls()[0].3,
        r#"{"command": "pwd"}"#
    );
}

#[tokio::test]
async fn a_hand_written_record_may_say_how_the_body_was_cut_and_how_it_ended() {
    let word = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\u{ac00}\"}}]}\n\n";
    let reset =
        serde_json::json!({"status": 200, "body": word, "chunks": [1, 50, 1, 1], "end": "reset"})
            .to_string();
    let answered = ask(&replay(&reset)).await;
    assert_eq!(
        (answered.kind(), answered.text().as_str()),
        (FailureKind::Transport, "\u{ac00}")
    );
    let refused = r#"{"failure":{"kind":"connect","text":"connection refused"}}"#;
    assert_eq!(ask(&replay(refused)).await.kind(), FailureKind::Connect);
    let limited = r#"{"status":429,"headers":{"retry-after":"4"},"body":"{}"}"#;
    assert_eq!(
        ask(&replay(limited)).await.failure().retry_after_ms,
        Some(4000)
    );
}

#[test]
fn a_damaged_recording_is_located() {
    let parse = |text: &str| Replay::parse(Path::new("a.jsonl"), text).unwrap_err();
    let good = r#"{"status":200,"body":""}"#;
    assert!(matches!(
        parse(&format!("{good}\n{{\"status\"")),
        ReplayError::Parse { line: 2, .. }
    ));
    assert!(matches!(
        parse(&format!("{good}\n\n{{\"body\":\"\"}}")),
        ReplayError::Record { line: 3, .. }
    ));
    assert!(matches!(
        parse(r#"{"status":200,"bodyHex":"0g"}"#),
        ReplayError::Record { line: 1, .. }
    ));
    assert!(matches!(
        parse(r#"{"status":200,"boddy":""}"#),
        ReplayError::Parse { line: 1, .. }
    ));
    assert!(matches!(
        Replay::open(Path::new("/no/such/file")),
        Err(ReplayError::Read { .. })
    ));
}

#[test]
fn a_recording_is_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    Recorder::create(&path).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(matches!(
        Recorder::create(&path),
        Err(RecordError::Create { .. })
    ));
}

#[tokio::test]
async fn echo_says_the_last_user_message_back() {
    let answered = ask(&Provider::Echo).await;
    assert_eq!(answered.text(), "what a request looks like");
    assert!(answered.deltas.len() > 1, "it streams");
}
