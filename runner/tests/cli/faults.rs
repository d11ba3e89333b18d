//! What goes wrong before a turn is made still says so: one line, one code, one result.

use std::net::TcpListener;
use std::path::Path;

use serde_json::json;

use crate::bench::{Bench, Ran, finish, of_type};

/// One `result`, the last line of stdout, with the code of the process.
fn one_result(ran: &Ran, code: i32) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    let objects = ran.objects();
    assert_eq!(of_type(&objects, "result").len(), 1, "{}", ran.stdout);
    let last = objects.last().unwrap();
    assert_eq!(
        (&last["type"], &last["data"]["exitCode"]),
        (&json!("result"), &json!(code))
    );
}

/// A server that takes a connection and says nothing, and a name for when it did.
fn silent(reached: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let reached = reached.to_owned();
    std::thread::spawn(move || {
        let taken = listener.accept().unwrap();
        std::fs::write(reached, "").unwrap();
        std::thread::park();
        drop(taken);
    });
    url
}

#[test]
fn a_session_that_cannot_be_opened_ends_json_in_a_result() {
    let bench = Bench::new();
    bench.run(&["run", "-p", "x", "--provider", "echo"]).ok();
    let id = bench.sessions().remove(0);
    let log = bench.log_path();
    let whole = std::fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let resume = ["resume", &id, "-p", "y", "--provider", "echo"];
    let ran = bench.run(&[&resume[..], &["--json"]].concat());
    one_result(&ran, 11);
    let result = &ran.objects()[0]["data"];
    assert_eq!(
        (&result["sessionId"], &result["logged"]),
        (&json!(id), &json!(false))
    );
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("from a copy"), "{}", ran.stderr);
    let document = bench.run(&[&resume[..], &["--output-format", "json"]].concat());
    assert_eq!(document.objects()[0], *result);
    assert_eq!(bench.run(&resume).stdout, "");
    assert_eq!(std::fs::read(&log).unwrap(), damaged);
    std::fs::write(&log, whole).unwrap();
    bench.run(&resume).ok();
}

#[test]
fn time_and_signals_count_while_the_models_are_asked_for() {
    let bench = Bench::new();
    let url = silent(&bench.path("reached"));
    let run = ["run", "--json", "-p", "x", "--base-url", &url];
    let ran = bench.run(&[&run[..], &["--timeout", "300ms"]].concat());
    one_result(&ran, 3);
    assert!(ran.stderr.contains("--timeout"), "{}", ran.stderr);
    let bench = Bench::new();
    let reached = bench.path("reached");
    let url = silent(&reached);
    let child = bench
        .command(&["run", "--json", "-p", "x", "--base-url", &url])
        .spawn()
        .unwrap();
    while !reached.exists() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    one_result(&finish(child), 143);
    let id = bench.sessions().remove(0);
    bench.run(&["session", "verify", &id]).ok();
}

#[test]
fn a_link_is_no_workspace_with_a_slash_behind_it_either() {
    let bench = Bench::new();
    std::os::unix::fs::symlink(&bench.workspace, bench.path("link")).unwrap();
    for end in ["", "/", "//", "/."] {
        let link = format!("{}{end}", bench.path("link").display());
        let ran = bench.run(&["run", "-p", "x", "--provider", "echo", "-C", &link]);
        assert_eq!(ran.code, Some(2), "{link}: {}", ran.stderr);
        assert!(ran.stderr.contains("symlink"), "{}", ran.stderr);
    }
    let real = format!("{}/", bench.workspace.display());
    bench
        .run(&["run", "-p", "x", "--provider", "echo", "-C", &real])
        .ok();
}

#[test]
fn nobody_is_offered_what_was_typed() {
    let bench = Bench::new();
    for args in [
        &["run", "-p", "x", "--max-steps", "0"][..],
        &["sandbox", "--json", "--", "true"],
        &["run", "-p", "x", "--json", "--output-format", "json"],
    ] {
        let ran = bench.run(args);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(!ran.stderr.contains("did you mean"), "{}", ran.stderr);
    }
    let verb = bench.run(&["quue", "add"]);
    assert_eq!(verb.code, Some(2));
    assert!(
        verb.stderr.contains("unknown verb 'quue'"),
        "{}",
        verb.stderr
    );
    let two = bench.run(&["resume", "one", "-r", "two", "-p", "x"]);
    assert_eq!(two.code, Some(2));
    assert!(two.stderr.contains("one session"), "{}", two.stderr);
}
