//! Sessions that go on: after their end, after a kill, with less or with the same.

use serde_json::json;

use crate::bench::{Bench, calls, finish, of_type, says};

#[test]
fn a_killed_run_resumes_with_every_call_answered() {
    let bench = Bench::new();
    let file = bench.path("replay.jsonl");
    let command = "touch begun; sleep 1000";
    std::fs::write(&file, calls(&[("bash", json!({ "command": command }))])).unwrap();
    let provider = format!("replay:{}", file.display());
    let child = bench
        .command(&["run", "-p", "do", "--provider", &provider])
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while !bench.file("begun").exists() {
        assert!(begun.elapsed().as_secs() < 60, "the call never began");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    finish(child);
    let id = bench.sessions().remove(0);
    let ran = bench.run(&["resume", &id, "-p", "again", "--provider", "echo"]);
    assert_eq!(ran.ok().stdout, "again\n");
    assert!(ran.stderr.contains("interrupted"), "{}", ran.stderr);
    let log = bench.log();
    let unknown: Vec<_> = bench.completed();
    assert_eq!(unknown[0]["error"], "TOOL_OUTCOME_UNKNOWN");
    assert_eq!(of_type(&log, "turn/end")[0]["reason"], "interrupted");
    assert_eq!(of_type(&log, "result").len(), 2);
    bench.run(&["session", "verify", &id]).ok();
}

#[test]
fn continue_takes_the_newest_session_of_the_workspace() {
    let bench = Bench::new();
    bench.run(&["run", "-p", "one", "--provider", "echo"]).ok();
    bench
        .run(&["run", "-c", "-p", "two", "--provider", "echo"])
        .ok();
    let prompts: Vec<_> = of_type(&bench.log(), "user/message")
        .iter()
        .map(|data| data["text"].clone())
        .collect();
    assert_eq!(prompts, [json!("one"), json!("two")]);
}

#[test]
fn a_resume_keeps_the_sandbox_it_had_and_cannot_get_more() {
    let bench = Bench::new();
    bench
        .run(&["run", "-p", "one", "--provider", "echo", "-s", "read-only"])
        .ok();
    let id = bench.sessions().remove(0);
    let file = bench.path("replay.jsonl");
    std::fs::write(
        &file,
        [
            calls(&[("bash", json!({ "command": "touch x" }))]),
            says("no"),
        ]
        .concat(),
    )
    .unwrap();
    let provider = format!("replay:{}", file.display());
    bench
        .run(&["resume", &id, "-p", "two", "--provider", &provider])
        .ok();
    assert!(!bench.file("x").exists());
    let wider = bench.run(&[
        "resume",
        &id,
        "-p",
        "three",
        "--provider",
        "echo",
        "-s",
        "workspace-write",
    ]);
    assert_eq!(wider.code, Some(7), "{}", wider.stderr);
    assert!(wider.stderr.contains("widen"), "{}", wider.stderr);
}

#[test]
fn a_second_process_on_the_session_is_told_who_has_it() {
    let bench = Bench::new();
    let file = bench.path("replay.jsonl");
    std::fs::write(
        &file,
        calls(&[("bash", json!({ "command": "touch begun; sleep 1000" }))]),
    )
    .unwrap();
    let provider = format!("replay:{}", file.display());
    let mut first = bench
        .command(&["run", "-p", "do", "--provider", &provider])
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while !bench.file("begun").exists() {
        assert!(begun.elapsed().as_secs() < 60, "the call never began");
        std::thread::yield_now();
    }
    let id = bench.sessions().remove(0);
    let second = bench.run(&["resume", &id, "-p", "x", "--provider", "echo"]);
    assert_eq!(second.code, Some(11), "{}", second.stderr);
    assert!(
        second.stderr.contains(&first.id().to_string()),
        "{}",
        second.stderr
    );
    first.kill().unwrap();
    finish(first);
}

#[test]
fn what_a_file_was_read_as_survives_a_resume() {
    let bench = Bench::new();
    std::fs::write(bench.file("a"), "one\n").unwrap();
    bench
        .replay(
            &[calls(&[("read", json!({ "path": "a" }))]), says("read")],
            &[],
        )
        .ok();
    let file = bench.path("replay.jsonl");
    let write = calls(&[("write", json!({ "path": "a", "content": "two\n" }))]);
    std::fs::write(&file, [write, says("written")].concat()).unwrap();
    let provider = format!("replay:{}", file.display());
    bench
        .run(&["run", "-c", "-p", "write", "--provider", &provider])
        .ok();
    assert_eq!(std::fs::read_to_string(bench.file("a")).unwrap(), "two\n");
}
