//! Connections that fail, break or lie, and what is sent over them.

use curfew_engine::event::{FailureKind, Finish};
use curfew_model::{Http, HttpError, Provider};
use tokio::net::TcpListener;

use crate::ask::{BODY, answer_to, ask, patient, provider};
use crate::server::{Act, Server, chunk, last_chunk, sse_head, streamed, until_close};

const WORD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_request_goes_to_chat_completions_below_the_base_url_with_exactly_the_body() {
    let server = Server::start(vec![streamed(&format!("{WORD}{STOP}data: [DONE]\n\n"))]).await;
    for slash in ["", "/"] {
        let base = format!("{}{slash}", server.base_url());
        assert_eq!(
            Http::new(&base, None, patient()).unwrap().endpoint(),
            server.base_url()
        );
    }
    assert_eq!(ask(&provider(&server, patient())).await.text(), "word");
    let request = server.requests().pop().unwrap();
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.ends_with(&format!("\r\n\r\n{BODY}")), "{request}");
    let lower = request.to_ascii_lowercase();
    assert!(
        lower.contains("\r\ncontent-type: application/json\r\n"),
        "{request}"
    );
    assert!(
        !lower.contains("authorization"),
        "no key, no header: {request}"
    );
}

#[tokio::test]
async fn a_request_can_run_on_a_task_of_its_own() {
    let server = Server::start(vec![streamed(&format!("{WORD}{STOP}data: [DONE]\n\n"))]).await;
    let provider = std::sync::Arc::new(provider(&server, patient()));
    let answered = tokio::spawn(async move { ask(&provider).await })
        .await
        .unwrap();
    assert_eq!(answered.text(), "word");
}

#[tokio::test]
async fn the_connection_is_used_again_for_the_next_request() {
    let answer = || streamed(&format!("{WORD}{STOP}data: [DONE]\n\n"));
    let server = Server::start(vec![answer(), answer()]).await;
    let provider = provider(&server, patient());
    for _ in 0..2 {
        assert_eq!(ask(&provider).await.end().finish, Finish::Stop);
    }
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn a_refusing_address_is_a_connect_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let http = Http::new(&format!("http://{address}/v1"), None, patient()).unwrap();
    let answered = ask(&Provider::Http(Box::new(http))).await;
    assert_eq!(answered.kind(), FailureKind::Connect);
    assert!(
        answered.failure().text.contains("refused"),
        "{:?}",
        answered.failure()
    );
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_a_connect_failure() {
    let http = Http::new("http://no-such-host.invalid/v1", None, patient()).unwrap();
    assert_eq!(
        ask(&Provider::Http(Box::new(http))).await.kind(),
        FailureKind::Connect
    );
}

#[tokio::test]
async fn a_server_of_another_protocol_is_not_a_model() {
    let ssh = vec![
        Act::Send(b"SSH-2.0-OpenSSH_9.2\r\nProtocol mismatch.\r\n".to_vec()),
        Act::Close,
    ];
    assert_eq!(answer_to(ssh).await.kind(), FailureKind::NotAModel);
}

#[tokio::test]
async fn a_plain_server_under_https_is_not_a_model() {
    let server = Server::start(vec![]).await;
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut peer, _) = plain.accept().await.unwrap();
        let mut hello = [0; 5];
        peer.read_exact(&mut hello).await.unwrap();
        peer.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        hello[0]
    });
    drop(server);
    let http = Http::new(&format!("https://{address}/v1"), None, patient()).unwrap();
    let answered = ask(&Provider::Http(Box::new(http))).await;
    assert_eq!(serving.await.unwrap(), 0x16, "a TLS hello was sent");
    assert_eq!(
        answered.kind(),
        FailureKind::NotAModel,
        "{:?}",
        answered.failure()
    );
}

#[tokio::test]
async fn a_connection_closed_before_any_byte_is_a_transport_failure() {
    assert_eq!(
        answer_to(vec![Act::Close]).await.kind(),
        FailureKind::Transport
    );
    assert_eq!(
        answer_to(vec![Act::Reset]).await.kind(),
        FailureKind::Transport
    );
}

#[tokio::test]
async fn a_broken_connection_in_mid_stream_keeps_what_came_before() {
    for end in [Act::Close, Act::Reset] {
        let answered = answer_to(vec![sse_head(), chunk(WORD.as_bytes()), Act::Pause, end]).await;
        assert_eq!(
            (answered.kind(), answered.text().as_str()),
            (FailureKind::Transport, "word")
        );
    }
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_finish_reason_is_a_good_end() {
    for end in [Act::Close, Act::Reset] {
        let acts = vec![
            sse_head(),
            chunk(WORD.as_bytes()),
            chunk(STOP.as_bytes()),
            Act::Pause,
            end,
        ];
        let answered = answer_to(acts).await;
        assert_eq!(
            (answered.text().as_str(), answered.end().finish),
            ("word", Finish::Stop)
        );
    }
}

#[tokio::test]
async fn a_body_shorter_than_its_length_is_a_transport_failure() {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
        WORD.len() + 100
    );
    let acts = vec![
        Act::Send(head.into_bytes()),
        Act::Send(WORD.as_bytes().to_vec()),
        Act::Close,
    ];
    let answered = answer_to(acts).await;
    assert_eq!(
        (answered.kind(), answered.text().as_str()),
        (FailureKind::Transport, "word")
    );
}

#[tokio::test]
async fn half_a_line_at_a_clean_end_is_a_cut() {
    let body =
        format!("{WORD}data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"\u{ac00}");
    for cut in [body.len(), body.len() - 1, body.len() - 9, WORD.len() + 3] {
        let answered = answer_to(until_close(
            "200 OK",
            "text/event-stream",
            &body.as_bytes()[..cut],
        ))
        .await;
        assert_eq!(
            (answered.kind(), answered.text().as_str()),
            (FailureKind::CutStream, "word"),
            "{cut}"
        );
    }
}

#[tokio::test]
async fn events_split_at_every_byte_of_the_connection_are_the_same_events() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\u{ac00}\u{1f600}\"},\"finish_reason\":\"stop\"}]}\n\n";
    let mut acts = vec![sse_head()];
    acts.extend(body.as_bytes().chunks(1).map(chunk));
    acts.push(last_chunk());
    assert_eq!(answer_to(acts).await.text(), "\u{ac00}\u{1f600}");
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_malformed() {
    let mut body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"".to_vec();
    body.extend_from_slice(b"\xff\xfe\"}}]}\n\ndata: [DONE]\n\n");
    let answered = answer_to(until_close("200 OK", "text/event-stream", &body)).await;
    assert_eq!(answered.kind(), FailureKind::Malformed);
}

#[test]
fn base_urls_that_cannot_be_used_say_why_and_never_show_a_password() {
    let new = |url: &str| Http::new(url, None, patient()).unwrap_err();
    assert!(matches!(
        new("127.0.0.1:8080/v1"),
        HttpError::NotAUrl { .. }
    ));
    assert!(matches!(new("ftp://host/v1"), HttpError::Scheme { .. }));
    assert!(matches!(
        new("http://host/v1?key=1"),
        HttpError::Query { .. }
    ));
    let credentials = new("http://user:hunter2@host/v1");
    assert!(matches!(credentials, HttpError::Credentials));
    for fault in [
        credentials,
        new("ftp://user:hunter2@host"),
        new("http://user:hunter2@host:99999/v1"),
    ] {
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    }
}

/// The environment of a process cannot be changed safely while it runs, so this test runs itself
/// again with proxies set.
#[tokio::test]
async fn proxies_of_the_environment_are_used_but_never_for_loopback() {
    const CHILD: &str = "CURFEW_MODEL_TEST_BASE_URL";
    const NAME: &str = "transport::proxies_of_the_environment_are_used_but_never_for_loopback";
    if let Ok(base_url) = std::env::var(CHILD) {
        let http = Http::new(&base_url, None, patient()).unwrap();
        assert_eq!(ask(&Provider::Http(Box::new(http))).await.text(), "word");
        return;
    }
    let answer = || streamed(&format!("{WORD}{STOP}data: [DONE]\n\n"));
    for (base_url, through_proxy) in [(None, false), (Some("http://model.example/v1"), true)] {
        let proxy = Server::start(vec![answer()]).await;
        let model = Server::start(vec![answer()]).await;
        let base_url = base_url.map_or_else(|| model.base_url(), str::to_owned);
        let proxy_url = format!("http://{}", proxy.address);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, &base_url);
        for name in [
            "http_proxy",
            "HTTP_PROXY",
            "https_proxy",
            "all_proxy",
            "ALL_PROXY",
        ] {
            child.env(name, &proxy_url);
        }
        for name in ["no_proxy", "NO_PROXY", "REQUEST_METHOD"] {
            child.env_remove(name);
        }
        let ended = tokio::task::spawn_blocking(move || child.output())
            .await
            .unwrap()
            .unwrap();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stdout)
        );
        assert_eq!(
            (proxy.requests().len(), model.requests().len()),
            (usize::from(through_proxy), usize::from(!through_proxy))
        );
        if through_proxy {
            let request = proxy.requests().pop().unwrap();
            assert!(
                request.starts_with("POST http://model.example/v1/chat/completions "),
                "{request}"
            );
        }
    }
}
