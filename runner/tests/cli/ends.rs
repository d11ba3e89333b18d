//! How runs end: checks, limits, signals.

use serde_json::json;

use crate::bench::{Bench, calls, of_type, says};

#[test]
fn a_check_decides() {
    for (command, code) in [("test -f made", 0), ("test -f missing", 1)] {
        let bench = Bench::new();
        let ran = bench.replay(
            &[
                calls(&[("write", json!({ "path": "made", "content": "x" }))]),
                says("done, tests pass"),
            ],
            &["--check", command],
        );
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        let log = bench.log();
        let check = &of_type(&log, "check/result")[0];
        assert_eq!(
            (&check["exitCode"], &check["command"]),
            (&json!(code), &json!(command))
        );
        assert_eq!(of_type(&log, "result")[0]["checks"][0], *check);
    }
}

#[test]
fn a_check_sees_no_private_area_of_the_agent() {
    let bench = Bench::new();
    let ran = bench.replay(
        &[
            calls(&[("bash", json!({ "command": "touch /tmp/forged" }))]),
            says("ok"),
        ],
        &["--check", "test ! -e /tmp/forged"],
    );
    ran.ok();
}

#[test]
fn the_step_limit_is_announced_to_model_and_user() {
    let bench = Bench::new();
    let call = |n: u32| calls(&[("bash", json!({ "command": format!("echo {n}") }))]);
    let ran = bench.replay(&[call(1), call(2), call(3)], &["--max-steps", "2"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("limit reached: 2 steps"),
        "{}",
        ran.stderr
    );
    let log = bench.log();
    let notices = of_type(&log, "user/message");
    assert!(
        notices.iter().any(|message| message["text"]
            .as_str()
            .unwrap()
            .contains("limit of 2 steps")),
        "{notices:?}"
    );
    assert_eq!(of_type(&log, "turn/end")[0]["reason"], "max-steps");
}

#[test]
fn a_run_that_is_out_of_time_ends_with_3() {
    let bench = Bench::new();
    let ran = bench.replay(
        &[
            calls(&[("bash", json!({ "command": "sleep 1000" }))]),
            says("never"),
        ],
        &["--timeout", "1500ms"],
    );
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let log = bench.log();
    assert_eq!(
        of_type(&log, "turn/end")[0]["reason"],
        json!({ "error": "budget" })
    );
    assert_eq!(of_type(&log, "result")[0]["reason"], "budget");
}

#[test]
fn an_interrupt_kills_the_call_and_leaves_a_log_that_goes_on() {
    let bench = Bench::new();
    let file = bench.path("replay.jsonl");
    let command = "touch begun; sleep 1000";
    let two = calls(&[
        ("bash", json!({ "command": command })),
        ("bash", json!({ "command": "touch never" })),
    ]);
    std::fs::write(&file, [two, says("unreached")].concat()).unwrap();
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
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = crate::bench::finish(child);
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let codes: Vec<_> = bench
        .completed()
        .iter()
        .map(|done| done["error"].clone())
        .collect();
    assert!(
        codes.contains(&json!("ABORTED_BEFORE_DISPATCH")) && codes.contains(&json!("CANCELLED")),
        "{codes:?}"
    );
    assert_eq!(of_type(&bench.log(), "result")[0]["status"], "cancelled");
    assert!(!bench.file("never").exists());
    let id = bench.sessions().remove(0);
    bench.run(&["session", "verify", &id]).ok();
    bench
        .run(&["resume", &id, "-p", "more", "--provider", "echo"])
        .ok();
}

#[test]
fn what_a_host_cannot_give_ends_with_7_before_any_model_call() {
    let bench = Bench::new();
    let ran = bench.run(&[
        "run",
        "--json",
        "-p",
        "hi",
        "--provider",
        "echo",
        "--require",
        "protected-names",
    ]);
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("protected-names"), "{}", ran.stderr);
    let log = ran.objects();
    assert_eq!(of_type(&log, "request/sent").len(), 0);
    assert_eq!(of_type(&log, "result")[0]["reason"], "sandbox");
}
