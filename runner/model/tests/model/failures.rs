//! Statuses and bodies of errors, and what they are called.

use curfew_engine::event::FailureKind;

use crate::ask::{Answered, answer_to};
use crate::server::{streamed, until_close, whole};

async fn error(status: &str, headers: &str, body: &str) -> Answered {
    answer_to(whole(status, headers, body)).await
}

async fn kind(status: &str, body: &str) -> FailureKind {
    error(status, "content-type: application/json\r\n", body)
        .await
        .kind()
}

#[tokio::test]
async fn a_refused_key_is_auth() {
    let body = r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#;
    assert_eq!(kind("401 Unauthorized", body).await, FailureKind::Auth);
    assert_eq!(kind("403 Forbidden", "no").await, FailureKind::Auth);
    assert_eq!(kind("401 Unauthorized", "").await, FailureKind::Auth);
}

#[tokio::test]
async fn a_rate_limit_says_when_to_return() {
    let body = r#"{"error":{"message":"Rate limit reached, try again in 7s","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#;
    for (headers, wait_ms) in [
        ("retry-after: 2\r\n", Some(2000)),
        ("retry-after: 2\r\nretry-after-ms: 1500\r\n", Some(1500)),
        ("retry-after: 0.25\r\n", Some(250)),
        ("", Some(7000)),
    ] {
        let answered = error("429 Too Many Requests", headers, body).await;
        assert_eq!(answered.kind(), FailureKind::RateLimit);
        assert_eq!(answered.failure().retry_after_ms, wait_ms, "{headers}");
    }
}

#[tokio::test]
async fn a_spent_quota_is_no_rate_limit() {
    let body = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    assert_eq!(
        kind("429 Too Many Requests", body).await,
        FailureKind::Quota
    );
    assert_eq!(kind("402 Payment Required", "{}").await, FailureKind::Quota);
    let passing = r#"[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 20.5s.","status":"RESOURCE_EXHAUSTED"}}]"#;
    let answered = error("429 Too Many Requests", "", passing).await;
    assert_eq!(
        (answered.kind(), answered.failure().retry_after_ms),
        (FailureKind::RateLimit, Some(20_500))
    );
}

#[tokio::test]
async fn a_full_context_is_known_by_code_and_as_a_last_resort_by_words() {
    let by_code = r#"{"error":{"message":"too much","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    assert_eq!(
        kind("400 Bad Request", by_code).await,
        FailureKind::ContextWindow
    );
    let by_words = r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#;
    assert_eq!(
        kind("400 Bad Request", by_words).await,
        FailureKind::ContextWindow
    );
    let other = r#"{"error":{"message":"temperature must be at most 2"}}"#;
    assert_eq!(
        kind("400 Bad Request", other).await,
        FailureKind::BadRequest
    );
}

#[tokio::test]
async fn a_request_the_server_will_never_take_is_a_bad_request() {
    for status in [
        "400 Bad Request",
        "404 Not Found",
        "413 Content Too Large",
        "422 Unprocessable Content",
        "501 Not Implemented",
    ] {
        assert_eq!(
            kind(status, r#"{"error":{"message":"no"}}"#).await,
            FailureKind::BadRequest,
            "{status}"
        );
    }
}

#[tokio::test]
async fn what_a_retry_may_cure_is_a_server_failure() {
    for status in [
        "408 Request Timeout",
        "409 Conflict",
        "425 Too Early",
        "500 Oops",
        "502 Bad Gateway",
        "503 Busy",
        "504 Late",
        "529 Overloaded",
    ] {
        let answered = error(status, "", "").await;
        assert_eq!(answered.kind(), FailureKind::Server, "{status}");
        assert_eq!(answered.failure().status, status[..3].parse().ok());
    }
    let answered = error("503 Busy", "retry-after: 1\r\n", "").await;
    assert_eq!(answered.failure().retry_after_ms, Some(1000));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_not_a_model() {
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let answered = error(
            status,
            "location: http://127.0.0.1:9/elsewhere?token=abc\r\n",
            "",
        )
        .await;
        assert_eq!(answered.kind(), FailureKind::NotAModel);
        assert!(
            answered.failure().text.contains("127.0.0.1:9/elsewhere"),
            "{:?}",
            answered.failure()
        );
        assert!(
            !answered.failure().text.contains("abc"),
            "{:?}",
            answered.failure()
        );
    }
}

#[tokio::test]
async fn a_page_is_not_a_model_whatever_its_status() {
    let page = "\r\n<!DOCTYPE html><html><body>It works!</body></html>";
    assert_eq!(kind("200 OK", page).await, FailureKind::NotAModel);
    assert_eq!(kind("404 Not Found", page).await, FailureKind::NotAModel);
    assert_eq!(
        kind("200 OK", "Hello from nginx").await,
        FailureKind::NotAModel
    );
    assert_eq!(
        kind("200 OK", r#"{"status":"ok"}"#).await,
        FailureKind::NotAModel
    );
    assert_eq!(kind("200 OK", "[1,2,3]").await, FailureKind::NotAModel);
    assert_eq!(
        kind("200 OK", "{ this is not JSON }").await,
        FailureKind::NotAModel
    );
}

#[tokio::test]
async fn an_error_under_a_200_is_what_it_says() {
    let wrapped = r#"{"error":{"message":"no such key","type":"authentication_error","code":401}}"#;
    assert_eq!(kind("200 OK", wrapped).await, FailureKind::Auth);
    let listed = r#"[{"error":{"code":500,"message":"oops"}}]"#;
    assert_eq!(kind("200 OK", listed).await, FailureKind::InBandError);
}

#[tokio::test]
async fn a_json_answer_that_is_cut_is_a_cut() {
    let cut = r#"{"choices":[{"index":0,"message":{"content":"hel"#;
    let answered = answer_to(until_close("200 OK", "application/json", cut.as_bytes())).await;
    assert_eq!(answered.kind(), FailureKind::CutStream);
}

#[tokio::test]
async fn an_error_in_the_stream_is_told_by_its_code() {
    for (error, expected) in [
        (
            r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
            FailureKind::ContextWindow,
        ),
        (
            r#"{"error":{"message":"the prompt is too long","code":400}}"#,
            FailureKind::ContextWindow,
        ),
        (
            r#"{"error":{"message":"m","code":429}}"#,
            FailureKind::RateLimit,
        ),
        (
            r#"{"error":{"message":"m","type":"rate_limit_error"}}"#,
            FailureKind::RateLimit,
        ),
        (
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"429"}}"#,
            FailureKind::Quota,
        ),
        (
            r#"{"error":{"message":"m","code":"401"}}"#,
            FailureKind::Auth,
        ),
        (
            r#"{"error":{"message":"m","code":"invalid_api_key"}}"#,
            FailureKind::Auth,
        ),
        (
            r#"{"error":{"message":"m","code":422}}"#,
            FailureKind::BadRequest,
        ),
        (
            r#"{"error":{"message":"m","code":503}}"#,
            FailureKind::InBandError,
        ),
        (r#"{"error":"words only"}"#, FailureKind::InBandError),
        (
            r#"{"object":"error","message":"m","code":500}"#,
            FailureKind::InBandError,
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"error":{"message":"m","code":502},"finish_reason":"error"}]}"#,
            FailureKind::InBandError,
        ),
    ] {
        let first = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
        let answered = answer_to(streamed(&format!("data: {first}\n\ndata: {error}\n\n"))).await;
        assert_eq!(answered.kind(), expected, "{error}");
        assert_eq!(answered.text(), "a");
    }
}

#[tokio::test]
async fn an_event_named_error_is_an_error() {
    let answered = answer_to(streamed(
        "event: error\ndata: {\"message\":\"gone\",\"code\":500}\n\n",
    ))
    .await;
    assert_eq!(answered.kind(), FailureKind::InBandError);
    let answered = answer_to(streamed("event: error\ndata: plain words\n\n")).await;
    assert!(
        answered.failure().text.contains("plain words"),
        "{:?}",
        answered.failure()
    );
}

#[tokio::test]
async fn an_answer_without_a_word_or_a_call_is_empty() {
    let stop = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"#;
    assert_eq!(
        answer_to(streamed(stop)).await.kind(),
        FailureKind::EmptyResponse
    );
    assert_eq!(
        answer_to(streamed(": ping\n\n: ping\n\n")).await.kind(),
        FailureKind::EmptyResponse
    );
    assert_eq!(
        answer_to(streamed("data: [DONE]\n\n")).await.kind(),
        FailureKind::EmptyResponse
    );
    assert_eq!(
        answer_to(streamed("\n\n\n")).await.kind(),
        FailureKind::EmptyResponse
    );
}

#[tokio::test]
async fn chunks_that_are_not_what_they_should_be_are_malformed() {
    for bad in [
        "data: {\"choices\":[{\"delta\":{\"content\":7}}]}\n\n",
        "data: {\"choices\":{}}\n\n",
        "data: nonsense\n\n",
        "data: \"a string\"\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"id\":\"a\"}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"who_knows\"}]}\n\n",
    ] {
        let rest = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        let answered = answer_to(streamed(&format!("{bad}{rest}"))).await;
        assert_eq!(answered.kind(), FailureKind::Malformed, "{bad}");
    }
}
