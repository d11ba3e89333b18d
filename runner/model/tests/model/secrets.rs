//! Keys and requests never show up where they do not belong.

use curfew_model::{ApiKey, FAILURE_TEXT_CHARS_MAX, Http, Provider, Recorder};

use crate::ask::{Answered, BODY, ask, patient};
use crate::server::{Act, Server, streamed, whole};

const KEY: &str = "sk-live-0123456789abcdef";

async fn ask_with_key(acts: Vec<Act>) -> (Answered, Server, Provider) {
    let server = Server::start(vec![acts]).await;
    let http = Http::new(
        &server.base_url(),
        Some(ApiKey::new(KEY).unwrap()),
        patient(),
    )
    .unwrap();
    let provider = Provider::Http(Box::new(http));
    (ask(&provider).await, server, provider)
}

#[tokio::test]
async fn the_key_is_sent_in_one_header_and_printed_nowhere() {
    let (answered, server, provider) = ask_with_key(whole("500 Oops", "", "")).await;
    let request = server.requests().pop().unwrap().to_ascii_lowercase();
    assert!(
        request.contains(&format!("\r\nauthorization: bearer {KEY}\r\n")),
        "{request}"
    );
    assert_eq!(request.matches(KEY).count(), 1);
    for printed in [format!("{provider:?}"), format!("{:?}", answered.ended)] {
        assert!(!printed.contains("0123456789"), "{printed}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_get_it_into_a_message() {
    for body in [
        format!(r#"{{"error":{{"message":"bad key {KEY}, get one"}}}}"#),
        r#"{"error":{"message":"Incorrect API key provided: sk-live-0***********cdef. Get one."}}"#
            .to_owned(),
        format!("{}{KEY}", "x".repeat(FAILURE_TEXT_CHARS_MAX - 20)),
    ] {
        let (answered, ..) = ask_with_key(whole("401 Unauthorized", "", &body)).await;
        let text = &answered.failure().text;
        assert!(
            !text.contains("sk-live") && !text.contains("cdef"),
            "{text}"
        );
    }
    let stream = format!("data: {{\"error\":{{\"message\":\"key {KEY}\"}}}}\n\n");
    let (answered, ..) = ask_with_key(streamed(&stream)).await;
    assert!(
        answered.failure().text.contains("key [key]"),
        "{:?}",
        answered.failure()
    );
}

#[tokio::test]
async fn a_server_that_repeats_the_request_does_not_get_it_into_a_message() {
    for body in [
        format!("cannot parse {BODY}"),
        serde_json::json!({"error": {"message": format!("invalid request: {BODY}")}}).to_string(),
        serde_json::json!({"detail": [{"loc": ["body"], "msg": "field required", "input": BODY}]})
            .to_string(),
    ] {
        let (answered, ..) = ask_with_key(whole("422 Unprocessable Content", "", &body)).await;
        let text = &answered.failure().text;
        assert!(!text.contains("what a request"), "{text}");
    }
}

#[tokio::test]
async fn texts_are_bounded_and_inert() {
    let long = format!(
        r#"{{"error":{{"message":"\u001b]0;title\u0007\u202e{}"}}}}"#,
        "é".repeat(20_000)
    );
    let (answered, ..) = ask_with_key(whole("500 Oops", "", &long)).await;
    let text = &answered.failure().text;
    assert!(
        text.chars().count() <= FAILURE_TEXT_CHARS_MAX,
        "{}",
        text.len()
    );
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
}

#[tokio::test]
async fn a_recording_holds_neither_the_key_nor_the_request_nor_a_cookie() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let acts = whole(
        "200 OK",
        "set-cookie: session=secret\r\nx-request-id: 7\r\n",
        "{}",
    );
    let server = Server::start(vec![acts]).await;
    let http = Http::new(
        &server.base_url(),
        Some(ApiKey::new(KEY).unwrap()),
        patient(),
    )
    .unwrap();
    let provider = Provider::Http(Box::new(
        http.with_recorder(Recorder::create(&path).unwrap()),
    ));
    ask(&provider).await;
    let recorded = std::fs::read_to_string(&path).unwrap();
    for secret in [KEY, "secret", "what a request", "x-request-id"] {
        assert!(!recorded.contains(secret), "{recorded}");
    }
}
