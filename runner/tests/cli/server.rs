//! A server that records what it receives: what the log gives back must be those bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::bench::{Bench, stream};

/// Answers each request with the next body, and keeps what was sent.
fn serve(bodies: Vec<String>) -> (String, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&received);
    std::thread::spawn(move || {
        for body in bodies {
            let (socket, _) = listener.accept().unwrap();
            kept.lock().unwrap().push(answer(socket, &body));
        }
    });
    (url, received)
}

fn answer(socket: TcpStream, body: &str) -> Vec<u8> {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request).unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    let reply = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    reader.into_inner().write_all(reply.as_bytes()).unwrap();
    request
}

#[test]
fn replay_gives_the_bytes_the_server_received() {
    let bench = Bench::new();
    std::fs::write(bench.file("AGENTS.md"), "Be brief.\n").unwrap();
    let function = json!({ "name": "bash", "arguments": "{\"command\":\"echo 한국어\"}" });
    let call = json!({ "delta": { "tool_calls": [{ "index": 0, "id": "x", "function": function }] }, "index": 0 });
    let text = json!({ "delta": { "content": "done" }, "index": 0 });
    let (url, received) = serve(vec![stream(&[call], "tool_calls"), stream(&[text], "stop")]);
    bench
        .run(&["run", "-p", "go", "-m", "m", "--base-url", &url])
        .ok();
    let id = bench.sessions().remove(0);
    let received = received.lock().unwrap();
    assert_eq!(received.len(), 2);
    for (step, sent) in (1..).zip(received.iter()) {
        let replayed = bench
            .command(&["session", "replay", &id, "--step", &step.to_string()])
            .output()
            .unwrap();
        assert_eq!(replayed.status.code(), Some(0));
        assert_eq!(
            String::from_utf8_lossy(&replayed.stdout),
            String::from_utf8_lossy(sent)
        );
    }
    let first = String::from_utf8_lossy(&received[0]).into_owned();
    assert!(first.contains("Be brief."), "{first}");
    bench.run(&["session", "verify", &id]).ok();
    assert_eq!(
        bench.run(&["session", "replay", &id, "--step", "3"]).code,
        Some(2)
    );
}

#[test]
fn instructions_that_are_no_plain_file_are_refused_with_a_note() {
    let bench = Bench::new();
    let key = bench.path("key");
    std::fs::write(&key, "SECRET").unwrap();
    std::os::unix::fs::symlink(&key, bench.file("AGENTS.md")).unwrap();
    let ran = bench.run(&[
        "run",
        "-p",
        "hi",
        "--provider",
        "echo",
        "-s",
        "danger-full-access",
    ]);
    assert!(
        ran.ok().stderr.contains("AGENTS.md is not used"),
        "{}",
        ran.stderr
    );
    assert!(
        !std::fs::read_to_string(bench.log_path())
            .unwrap()
            .contains("SECRET")
    );
}

#[test]
fn instructions_that_never_end_are_not_waited_for() {
    for target in ["/dev/zero", "fifo"] {
        let bench = Bench::new();
        let agents = bench.file("AGENTS.md");
        if target == "fifo" {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, &agents, mode).unwrap();
        } else {
            std::os::unix::fs::symlink(target, &agents).unwrap();
        }
        let ran = bench.run(&["run", "-p", "hi", "--provider", "echo"]);
        assert!(
            ran.ok().stderr.contains("AGENTS.md is not used"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_server_that_is_not_there_ends_with_5_and_a_result() {
    let bench = Bench::new();
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{unused}/v1");
    let ran = bench.run(&[
        "run",
        "--output-format",
        "json",
        "-p",
        "x",
        "-m",
        "m",
        "--base-url",
        &url,
    ]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert_eq!(ran.objects()[0]["reason"], "provider");
}
