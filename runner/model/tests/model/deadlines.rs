//! Each deadline on its own, and a cancellation at each point. No test asserts how long anything
//! took: a server that holds its end shows that it was the client who left.

use std::time::Duration;

use curfew_engine::event::FailureKind;
use curfew_model::{Deadlines, Http, Provider, Stopped};
use tokio_util::sync::CancellationToken;

use crate::ask::{Answered, ask, ask_until, patient, provider};
use crate::server::{Act, Server, chunk, sse_head};

const WORD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const SHORT: Duration = Duration::from_millis(120);

/// Asks a server that plays `acts` and then holds; returns after the server saw the client leave.
async fn held(mut acts: Vec<Act>, deadlines: Deadlines) -> Answered {
    acts.push(Act::Hold);
    let server = Server::start(vec![acts]).await;
    let provider = provider(&server, deadlines);
    let answered = ask(&provider).await;
    server.wait_until_gone().await;
    answered
}

#[tokio::test]
async fn a_busy_server_that_sends_no_byte_hits_the_first_byte_deadline() {
    let answered = held(
        vec![],
        Deadlines {
            first_byte: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(answered.kind(), FailureKind::FirstByteTimeout);
}

#[tokio::test]
async fn headers_alone_do_not_meet_the_first_byte_deadline() {
    let answered = held(
        vec![sse_head()],
        Deadlines {
            first_byte: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(answered.kind(), FailureKind::FirstByteTimeout);
    let answered = held(
        vec![sse_head(), chunk(b"\n\n")],
        Deadlines {
            first_byte: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(
        answered.kind(),
        FailureKind::FirstByteTimeout,
        "nor do blank lines"
    );
}

#[tokio::test]
async fn a_server_that_falls_silent_in_mid_stream_hits_the_idle_deadline() {
    let answered = held(
        vec![sse_head(), chunk(WORD.as_bytes())],
        Deadlines {
            idle: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(
        (answered.kind(), answered.text().as_str()),
        (FailureKind::IdleTimeout, "word")
    );
}

#[tokio::test]
async fn the_idle_deadline_does_not_run_before_the_first_byte() {
    let server = Server::start(vec![vec![
        Act::Pause,
        sse_head(),
        chunk(WORD.as_bytes()),
        Act::Hold,
    ]])
    .await;
    let provider = provider(
        &server,
        Deadlines {
            idle: Duration::ZERO,
            ..patient()
        },
    );
    let answer_late = async {
        server.wait_until_paused().await;
        server.go_on();
    };
    let (answered, ()) = tokio::join!(ask(&provider), answer_late);
    assert_eq!(
        (answered.kind(), answered.text().as_str()),
        (FailureKind::IdleTimeout, "word")
    );
}

#[tokio::test]
async fn silence_after_the_finish_reason_is_a_good_end() {
    let acts = vec![sse_head(), chunk(WORD.as_bytes()), chunk(STOP.as_bytes())];
    let answered = held(
        acts,
        Deadlines {
            idle: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(answered.text(), "word");
    answered.end();
}

#[tokio::test]
async fn a_server_that_keeps_the_connection_after_done_is_a_good_end() {
    let acts = vec![
        sse_head(),
        chunk(format!("{WORD}{STOP}data: [DONE]\n\n").as_bytes()),
    ];
    held(acts, patient()).await.end();
}

#[tokio::test]
async fn the_total_deadline_ends_a_stream_that_never_ends() {
    let mut acts = vec![sse_head()];
    acts.extend((0..50).map(|_| chunk(WORD.as_bytes())));
    let answered = held(
        acts,
        Deadlines {
            total: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(answered.kind(), FailureKind::TotalTimeout);
    let answered = held(
        vec![],
        Deadlines {
            total: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(answered.kind(), FailureKind::TotalTimeout);
}

#[tokio::test]
async fn an_error_body_that_never_ends_is_still_the_error() {
    let head =
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 500\r\n\r\n{\"err"
            .to_vec();
    let answered = held(
        vec![Act::Send(head)],
        Deadlines {
            idle: SHORT,
            ..patient()
        },
    )
    .await;
    assert_eq!(
        (answered.kind(), answered.failure().retry_after_ms),
        (FailureKind::RateLimit, Some(3000))
    );
}

#[tokio::test]
async fn a_connection_that_is_never_accepted_hits_the_connect_deadline() {
    // A listener with a full queue does not answer: Linux drops the SYN.
    let listener = tokio::net::TcpSocket::new_v4().unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(SHORT, tokio::net::TcpStream::connect(address)).await
    {
        queued.push(stream);
    }
    let deadlines = Deadlines {
        connect: SHORT,
        ..patient()
    };
    let http = Http::new(&format!("http://{address}/v1"), None, deadlines).unwrap();
    let answered = ask(&Provider::Http(Box::new(http))).await;
    assert_eq!(answered.kind(), FailureKind::Connect);
}

#[tokio::test]
async fn cancelling_at_any_point_drops_the_connection() {
    let points: [fn() -> Vec<Act>; 4] = [
        Vec::new,
        || vec![sse_head()],
        || vec![sse_head(), chunk(WORD.as_bytes())],
        || vec![sse_head(), chunk(WORD.as_bytes()), chunk(STOP.as_bytes())],
    ];
    for point in points {
        let mut acts = point();
        acts.extend([Act::Pause, Act::Hold]);
        let server = Server::start(vec![acts]).await;
        let provider = provider(&server, patient());
        let cancel = CancellationToken::new();
        let stop = async {
            server.wait_until_paused().await;
            cancel.cancel();
            server.go_on();
            server.wait_until_gone().await;
        };
        let (answered, ()) = tokio::join!(ask_until(&provider, &cancel), stop);
        assert!(
            matches!(answered.ended, Err(Stopped::Cancelled)),
            "{:?}",
            answered.ended
        );
    }
}

#[tokio::test]
async fn a_request_that_is_cancelled_before_it_starts_is_never_sent() {
    let server = Server::start(vec![]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let answered = ask_until(&provider(&server, patient()), &cancel).await;
    assert!(matches!(answered.ended, Err(Stopped::Cancelled)));
    assert_eq!(server.requests().len(), 0);
}
