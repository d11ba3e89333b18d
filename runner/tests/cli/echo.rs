//! Seed M0: a prompt goes in, its echo comes out, and the log says so.

use crate::bench::{Bench, of_type};

#[test]
fn m0_hi_is_echoed_and_logged_in_order() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "-p", "hi", "--provider", "echo"]);
    assert_eq!(ran.ok().stdout, "hi\n");
    let log = bench.log();
    let wanted = [
        "turn/start",
        "user/message",
        "assistant/message",
        "turn/end",
    ];
    let mut kinds = log.iter().map(|event| event["type"].as_str().unwrap());
    assert!(
        wanted.iter().all(|kind| kinds.any(|found| found == *kind)),
        "{log:?}"
    );
    assert_eq!(log[0]["type"], "session");
    assert_eq!(log[1]["type"], "sandbox/confinement");
    assert_eq!(log.last().unwrap()["type"], "result");
}

#[test]
fn a_bare_curfew_with_a_prompt_runs_it() {
    let bench = Bench::new();
    assert_eq!(
        bench.run(&["-p", "hi", "--provider", "echo"]).ok().stdout,
        "hi\n"
    );
}

#[test]
fn stream_json_is_the_log_line_by_line_and_ends_in_one_result() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "--json", "-p", "hi", "--provider", "echo"]);
    assert_eq!(
        ran.ok().stdout,
        std::fs::read_to_string(bench.log_path()).unwrap()
    );
    let lines = ran.objects();
    assert_eq!(
        lines.iter().filter(|line| line["type"] == "result").count(),
        1
    );
    assert_eq!(lines.last().unwrap()["type"], "result");
}

#[test]
fn json_is_the_result_alone() {
    let bench = Bench::new();
    let ran = bench.run(&[
        "run",
        "--output-format",
        "json",
        "-p",
        "hi",
        "--provider",
        "echo",
    ]);
    let documents = ran.ok().objects();
    assert_eq!(documents, of_type(&bench.log(), "result"));
    assert_eq!(documents[0]["finalMessage"], "hi");
    assert_eq!(documents[0]["status"], "finished");
    assert_eq!(documents[0]["logged"], true);
    assert!(documents[0].get("costUsd").is_none());
}

#[test]
fn escapes_are_shown_inert_and_logged_as_they_are() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "-p", "a\u{1b}]0;x", "--provider", "echo"]);
    assert_eq!(ran.ok().stdout, "a\\x1b]0;x\n");
    assert_eq!(
        of_type(&bench.log(), "result")[0]["finalMessage"],
        "a\u{1b}]0;x"
    );
}

#[test]
fn the_last_answer_goes_to_a_file_and_never_through_a_link() {
    let bench = Bench::new();
    let (target, link) = (bench.path("target"), bench.file("out"));
    std::fs::write(&target, "untouched").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    bench
        .run(&["run", "-p", "hi", "--provider", "echo", "-o", "out"])
        .ok();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched");
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "hi\n");
}

#[test]
fn a_reader_that_leaves_ends_the_run_without_a_word() {
    let bench = Bench::new();
    let mut child = bench
        .command(&["run", "--json", "-p", "hi", "--provider", "echo"])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = crate::bench::finish(child);
    assert!(
        !ran.stderr.contains("panic") && !ran.stderr.contains("Broken pipe"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        bench.run(&["session", "verify", &bench.sessions()[0]]).code,
        Some(0)
    );
}
