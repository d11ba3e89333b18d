//! Each fact about what servers really send, over a real connection, with the bytes they sent.

use curfew_engine::event::{FailureKind, Finish, Usage};

use crate::ask::{Answered, answer_to};
use crate::server::{streamed, until_close, whole};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name))
    };
}

async fn stream(body: &str) -> Answered {
    let chunked = answer_to(streamed(body)).await;
    let closed = answer_to(until_close(
        "200 OK",
        "text/event-stream; charset=utf-8",
        body.as_bytes(),
    ))
    .await;
    assert_eq!(
        chunked.deltas, closed.deltas,
        "the framing of HTTP makes no difference"
    );
    assert_eq!(
        format!("{:?}", chunked.ended),
        format!("{:?}", closed.ended)
    );
    chunked
}

fn call(
    index: u32,
    id: &str,
    name: &str,
    arguments: &str,
) -> (u32, Option<String>, String, String) {
    (
        index,
        Some(id.to_owned()),
        name.to_owned(),
        arguments.to_owned(),
    )
}

fn usage(input: u64, output: u64, cache_read: Option<u64>) -> Option<Usage> {
    Some(Usage {
        input,
        output,
        cache_read,
    })
}

#[tokio::test]
async fn llama_server_sends_null_content_a_bare_id_and_a_first_piece_with_a_brace() {
    let answered = stream(fixture!("llama-server-tool.sse")).await;
    let arguments = r#"{"command": "ls"}"#;
    assert_eq!(
        answered.calls(),
        [call(
            0,
            "ZxyMbzL5BsuDOETBX0AaZ1qmYfCbHn8b",
            "shell",
            arguments
        )]
    );
    assert_eq!(answered.end().finish, Finish::ToolCalls);
}

#[tokio::test]
async fn llama_server_sends_usage_in_a_chunk_of_its_own_with_timings() {
    let answered = stream(fixture!("llama-server-tool.sse")).await;
    assert_eq!(answered.end().usage, usage(183, 20, Some(0)));
}

#[tokio::test]
async fn llama_server_sends_text_whose_length_was_spent() {
    let answered = stream(fixture!("llama-server-text.sse")).await;
    assert_eq!(answered.text(), "미욌드방에자처를");
    assert_eq!(answered.end().finish, Finish::Length);
    assert_eq!(answered.end().usage, usage(37, 24, Some(0)));
}

#[tokio::test]
async fn llama_server_sends_an_error_after_a_first_chunk_and_then_no_done() {
    let answered = stream(fixture!("llama-server-in-band-error.sse")).await;
    assert_eq!(answered.text(), "(XTj;");
    assert_eq!(answered.kind(), FailureKind::InBandError);
    assert!(
        answered
            .failure()
            .text
            .contains("does not match the expected"),
        "{:?}",
        answered.failure()
    );
}

#[tokio::test]
async fn aimock_sends_empty_arguments_first_and_then_pieces() {
    let answered = stream(fixture!("aimock-tool.sse")).await;
    assert_eq!(
        answered.calls(),
        [call(0, "call_a1", "bash", r#"{"command":"ls -la"}"#)]
    );
    assert_eq!(answered.end().usage, usage(120, 18, None));
}

#[tokio::test]
async fn aimock_sends_parallel_calls_by_index() {
    let answered = stream(fixture!("aimock-parallel.sse")).await;
    let arguments: Vec<_> = answered
        .calls()
        .into_iter()
        .map(|call| (call.0, call.3))
        .collect();
    let expected = [
        (0, r#"{"command":"echo one"}"#.to_owned()),
        (1, r#"{"command":"echo two"}"#.to_owned()),
    ];
    assert_eq!(arguments, expected);
}

#[tokio::test]
async fn aimock_sends_text_and_then_a_call() {
    let answered = stream(fixture!("aimock-texttool.sse")).await;
    assert_eq!(answered.text(), "Let me look first.");
    assert_eq!(answered.calls()[0].3, r#"{"command":"pwd"}"#);
}

#[tokio::test]
async fn aimock_sends_reasoning_content() {
    let answered = stream(fixture!("aimock-reason.sse")).await;
    assert_eq!(
        (answered.reasoning().as_str(), answered.text().as_str()),
        ("I think about it for a while.", "42")
    );
    assert_eq!(answered.end().finish, Finish::Stop);
}

#[tokio::test]
async fn aimock_stops_at_the_length() {
    assert_eq!(
        stream(fixture!("aimock-length.sse")).await.end().finish,
        Finish::Length
    );
}

#[tokio::test]
async fn llmock_sends_pieces_cut_mid_word_and_usage_null_in_each_chunk() {
    let answered = stream(fixture!("llmock-tool.sse")).await;
    assert_eq!(answered.calls()[0].2, "shell");
    assert_eq!(answered.calls()[0].3, r#"{"command": "mock-command"}"#);
    assert_eq!(answered.end().usage, usage(25, 6, None));
}

#[tokio::test]
async fn llmock_sends_text_word_by_word() {
    let answered = stream(fixture!("llmock-text.sse")).await;
    assert!(
        answered.text().starts_with("Hello! "),
        "{}",
        answered.text()
    );
    assert!(answered.deltas.len() > 2);
}

#[tokio::test]
async fn a_clean_end_without_finish_reason_and_done_is_a_cut() {
    assert_eq!(
        stream(fixture!("llmock-truncate.sse")).await.kind(),
        FailureKind::CutStream
    );
    assert_eq!(
        stream(fixture!("aimock-truncate.sse")).await.kind(),
        FailureKind::CutStream
    );
}

#[tokio::test]
async fn a_malformed_chunk_is_a_failure_though_the_stream_goes_on() {
    let answered = stream(fixture!("llmock-malformed.sse")).await;
    assert_eq!(answered.kind(), FailureKind::Malformed);
    assert_eq!(
        answered.calls()[0].3,
        r#"{"command": "#,
        "what came before it is kept"
    );
}

#[tokio::test]
async fn litellm_sends_done_after_half_the_arguments() {
    let answered = stream(fixture!("litellm-cut-then-done.sse")).await;
    assert_eq!(answered.kind(), FailureKind::CutStream);
    assert_eq!(answered.calls(), [call(0, "call_9", "bash", r#"{"comma"#)]);
}

#[tokio::test]
async fn litellm_sends_an_error_whose_code_is_a_string() {
    let answered = stream(fixture!("litellm-in-band-error.sse")).await;
    assert_eq!(answered.kind(), FailureKind::InBandError);
    assert!(
        answered.failure().text.contains("500"),
        "{:?}",
        answered.failure()
    );
}

#[tokio::test]
async fn litellm_calls_a_cut_upstream_a_stop_with_half_the_arguments() {
    let answered = stream(fixture!("litellm-cut-then-stop.sse")).await;
    assert_eq!(answered.kind(), FailureKind::CutStream);
    assert_eq!(answered.calls()[0].3, r#"{"command": "#);
}

#[tokio::test]
async fn litellm_repeats_the_type_and_sends_usage_beside_an_empty_delta() {
    let answered = stream(fixture!("litellm-tool.sse")).await;
    assert_eq!(
        answered.calls(),
        [call(0, "call_a1", "bash", r#"{"command":"ls -la"}"#)]
    );
    assert_eq!(answered.end().usage, usage(120, 18, None));
}

#[tokio::test]
async fn litellm_passes_reasoning_on() {
    let answered = stream(fixture!("litellm-reason.sse")).await;
    assert_eq!(answered.reasoning(), "I think about it for a while.");
    assert_eq!(answered.end().usage, usage(2, 1, None));
}

#[tokio::test]
async fn litellm_names_a_context_overflow_in_words_only() {
    let answered = answer_to(whole(
        "400 Bad Request",
        "",
        fixture!("litellm-context.json"),
    ))
    .await;
    assert_eq!(answered.kind(), FailureKind::ContextWindow);
}

#[tokio::test]
async fn litellm_calls_a_spent_quota_throttling() {
    let answered = answer_to(whole(
        "429 Too Many Requests",
        "",
        fixture!("litellm-quota.json"),
    ))
    .await;
    assert_eq!(answered.kind(), FailureKind::Quota);
}

#[tokio::test]
async fn llama_cpp_python_repeats_id_and_name_in_every_piece_and_sends_no_usage() {
    let answered = stream(fixture!("llama-cpp-python-tool.sse")).await;
    let expected = call(0, "call__0_bash_cmpl-1", "bash", r#"{"command":"echo hi"}"#);
    assert_eq!(answered.calls(), [expected]);
    assert_eq!(answered.end().usage, None);
}

#[tokio::test]
async fn llama_cpp_python_sends_an_empty_body_when_the_context_overflows() {
    let answered = answer_to(until_close("200 OK", "text/event-stream", b"")).await;
    assert_eq!(answered.kind(), FailureKind::EmptyResponse);
    let answered = answer_to(whole("200 OK", "content-type: text/event-stream\r\n", "")).await;
    assert_eq!(answered.kind(), FailureKind::EmptyResponse);
}

#[tokio::test]
async fn calls_without_an_index_are_told_apart_by_id() {
    let answered = stream(fixture!("no-index.sse")).await;
    let expected = [
        call(0, "a", "read", r#"{"path":"a"}"#),
        call(1, "b", "read", r#"{"path":"b"}"#),
        call(2, "c", "bash", r#"{"command":"ls"}"#),
    ];
    assert_eq!(answered.calls(), expected);
}

#[tokio::test]
async fn whole_calls_that_share_an_index_are_told_apart_by_id() {
    let answered = stream(fixture!("same-index.sse")).await;
    let expected = [
        call(0, "a", "read", r#"{"path":"a"}"#),
        call(1, "b", "read", r#"{"path":"b"}"#),
    ];
    assert_eq!(answered.calls(), expected);
    assert_eq!(
        answered.end().finish,
        Finish::Stop,
        "a stop beside calls stays what the server said"
    );
}

#[tokio::test]
async fn pieces_of_several_calls_are_put_together_by_index() {
    let answered = stream(fixture!("interleaved.sse")).await;
    let expected = [
        call(0, "a", "bash", r#"{"command":"ls"}"#),
        call(1, "b", "glob", r#"{"pattern":"*"}"#),
    ];
    assert_eq!(answered.calls(), expected);
}

#[tokio::test]
async fn a_byte_order_mark_crlf_comments_and_split_events_are_read() {
    let answered = stream(fixture!("framing.sse")).await;
    assert_eq!(answered.text(), "가나다");
}

#[tokio::test]
async fn a_finish_reason_without_done_is_a_good_end() {
    let answered = stream(fixture!("no-done.sse")).await;
    assert_eq!(
        (answered.text().as_str(), answered.end().finish),
        ("well", Finish::Stop)
    );
}

#[tokio::test]
async fn cached_tokens_are_taken_out_of_the_input_and_a_second_finish_reason_is_ignored() {
    let answered = stream(fixture!("usage-null.sse")).await;
    assert_eq!(answered.end().usage, usage(6, 3, Some(4)));
}

#[tokio::test]
async fn content_in_parts_is_text_and_thinking() {
    let answered = stream(fixture!("content-parts.sse")).await;
    assert_eq!(
        (answered.reasoning().as_str(), answered.text().as_str()),
        ("hm", "so")
    );
}

#[tokio::test]
async fn the_other_name_of_reasoning_is_read() {
    let answered = stream(fixture!("reasoning-field.sse")).await;
    assert_eq!(
        (answered.reasoning().as_str(), answered.text().as_str()),
        ("think", "done")
    );
}

#[tokio::test]
async fn arguments_that_are_an_object_and_an_empty_id_are_read() {
    let answered = stream(fixture!("arguments-object.sse")).await;
    assert_eq!(
        answered.calls(),
        [(0, None, "bash".to_owned(), r#"{"command":"ls"}"#.to_owned())]
    );
}

#[tokio::test]
async fn content_and_finish_reason_in_one_chunk_are_both_taken() {
    let answered = stream(fixture!("finish-with-content.sse")).await;
    assert_eq!(
        (answered.text().as_str(), answered.end().finish),
        ("all in one", Finish::Stop)
    );
}

#[tokio::test]
async fn content_after_the_finish_reason_is_malformed() {
    let answered = stream(fixture!("after-finish.sse")).await;
    assert_eq!(
        (answered.text().as_str(), answered.kind()),
        ("a", FailureKind::Malformed)
    );
}

#[tokio::test]
async fn a_whole_json_answer_of_a_server_that_does_not_stream_is_taken() {
    let answered = answer_to(until_close(
        "200 OK",
        "application/json",
        fixture!("whole-answer.json").as_bytes(),
    ))
    .await;
    assert_eq!(answered.text(), "One moment.");
    assert_eq!(
        answered.calls(),
        [call(0, "call_1", "bash", r#"{"command":"ls"}"#)]
    );
    assert_eq!(answered.end().usage, usage(5, 7, None));
}

#[tokio::test]
async fn content_types_lie_and_the_first_byte_decides() {
    let body = fixture!("aimock-tool.sse").as_bytes();
    for content_type in [
        "text/plain",
        "application/json",
        "application/octet-stream",
        "TEXT/EVENT-STREAM;charset=UTF-8",
    ] {
        let answered = answer_to(until_close("200 OK", content_type, body)).await;
        assert_eq!(answered.end().finish, Finish::ToolCalls, "{content_type}");
    }
}

#[tokio::test]
async fn a_503_while_loading_is_a_server_failure() {
    let body = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
    let answered = answer_to(whole("503 Service Unavailable", "", body)).await;
    assert_eq!(
        (answered.kind(), answered.failure().status),
        (FailureKind::Server, Some(503))
    );
    assert!(answered.failure().text.contains("Loading model"));
}

#[tokio::test]
async fn llama_server_says_how_full_the_context_is_and_no_code_for_it() {
    let answered = answer_to(whole(
        "400 Bad Request",
        "",
        fixture!("llama-server-overflow.json"),
    ))
    .await;
    assert_eq!(answered.kind(), FailureKind::ContextWindow);
    assert!(answered.failure().text.contains("2031 tokens"));
}

#[tokio::test]
async fn a_poisoned_history_is_answered_with_500() {
    let answered = answer_to(whole(
        "500 Internal Server Error",
        "",
        fixture!("llama-server-poisoned-history.json"),
    ))
    .await;
    assert_eq!(answered.kind(), FailureKind::Server);
}
