//! A server that records what it receives: what the log gives back must be those bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::bench::{Bench, stream};

/// A request as it came: its head in lower case, its body.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// What a server says that still loads its model; sent with status 503.
const LOADING: &str = r#"{"error":{"message":"Loading model","code":503}}"#;

/// Answers each request with the next body, and keeps what was sent.
fn serve(bodies: Vec<String>) -> (String, Received) {
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

fn answer(socket: TcpStream, body: &str) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(socket);
    let (mut length, mut head) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        head += &line;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request).unwrap();
    let status = match body {
        LOADING => "503 Service Unavailable",
        _ => "200 OK",
    };
    let head_sent =
        format!("HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\nconnection: close\r\n");
    let reply = format!("{head_sent}content-length: {}\r\n\r\n{body}", body.len());
    reader.into_inner().write_all(reply.as_bytes()).unwrap();
    (head, request)
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
    for (step, (_, sent)) in (1..).zip(received.iter()) {
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
    let first = String::from_utf8_lossy(&received[0].1).into_owned();
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

fn bash(command: &str) -> String {
    let function =
        json!({ "name": "bash", "arguments": json!({ "command": command }).to_string() });
    stream(
        &[
            json!({ "delta": { "tool_calls": [{ "index": 0, "id": "x", "function": function }] }, "index": 0 }),
        ],
        "tool_calls",
    )
}

fn text(text: &str) -> String {
    stream(
        &[json!({ "delta": { "content": text }, "index": 0 })],
        "stop",
    )
}

#[test]
fn a_server_that_still_loads_is_asked_again_for_its_models() {
    let bench = Bench::new();
    let models = json!({ "data": [{ "id": "only" }] }).to_string();
    let (url, received) = serve(vec![LOADING.to_owned(), models, text("hello")]);
    let ran = bench.run(&["run", "-p", "hi", "--base-url", &url]);
    assert_eq!(ran.ok().stdout, "hello\n");
    assert!(ran.stderr.contains("again in"), "{}", ran.stderr);
    assert_eq!(received.lock().unwrap().len(), 3);
}

#[test]
fn a_key_is_sent_and_stands_in_no_call_and_no_log() {
    const KEY: &str = "sk-test-0123456789abcdef";
    let look = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'";
    let bench = Bench::new();
    let (url, received) = serve(vec![bash(look), text("nothing")]);
    let args = [
        "run",
        "-p",
        "go",
        "-m",
        "m",
        "--base-url",
        &url,
        "--env",
        "SEEN=1",
    ];
    let child = bench
        .command(&args)
        .env("OPENAI_API_KEY", KEY)
        .spawn()
        .unwrap();
    crate::bench::finish(child).ok();
    assert!(
        received.lock().unwrap()[0]
            .0
            .contains(&format!("Bearer {KEY}"))
    );
    assert!(
        bench.completed()[0]["content"]
            .as_str()
            .unwrap()
            .contains("SEEN=1")
    );
    assert!(
        !std::fs::read_to_string(bench.log_path())
            .unwrap()
            .contains(KEY)
    );
}

#[test]
fn keys_come_from_a_file_or_a_command_and_the_model_from_the_configuration() {
    for source in ["keyFile = \"{file}\"", "keyCommand = \"cat '{file}'\""] {
        let bench = Bench::new();
        let (url, received) = serve(vec![text("ok")]);
        let file = bench.path("key");
        std::fs::write(&file, "sk-from-file-123456\n").unwrap();
        let source = source.replace("{file}", file.to_str().unwrap());
        let config = format!("model = \"m\"\nbaseUrl = \"{url}\"\n{source}\n");
        std::fs::write(bench.path("curfew").join("config.toml"), config).unwrap();
        bench.run(&["run", "-p", "go"]).ok();
        assert!(
            received.lock().unwrap()[0]
                .0
                .contains("Bearer sk-from-file-123456")
        );
    }
}

#[test]
fn without_a_name_the_only_model_is_taken_and_many_are_listed() {
    let model = |name: &str| json!({ "id": name });
    let bench = Bench::new();
    let (url, received) = serve(vec![
        json!({ "data": [model("only")] }).to_string(),
        text("ok"),
    ]);
    bench.run(&["run", "-p", "go", "--base-url", &url]).ok();
    assert!(String::from_utf8_lossy(&received.lock().unwrap()[1].1).contains("\"model\":\"only\""));
    let (url, _) = serve(vec![
        json!({ "data": [model("one"), model("two")] }).to_string(),
    ]);
    let ran = bench.run(&["run", "-p", "go", "--base-url", &url]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr.contains("one, two") && ran.stderr.contains("--model"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_was_recorded_replays_with_the_same_effect() {
    let bench = Bench::new();
    let (url, _) = serve(vec![bash("echo again >> made"), text("recorded")]);
    let file = bench.path("recording");
    bench
        .run(&[
            "run",
            "-p",
            "go",
            "-m",
            "m",
            "--base-url",
            &url,
            "--record",
            file.to_str().unwrap(),
        ])
        .ok();
    let provider = format!("replay:{}", file.display());
    let ran = bench.run(&["run", "-p", "go", "--provider", &provider]);
    assert_eq!(ran.ok().stdout, "recorded\n");
    assert_eq!(
        std::fs::read_to_string(bench.file("made")).unwrap(),
        "again\nagain\n"
    );
}
