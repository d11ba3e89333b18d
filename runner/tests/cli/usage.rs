//! What is mistyped ends on one line, with 2, before anything is started.

use std::io::Write as _;
use std::process::Stdio;

use crate::bench::{Bench, Ran, finish};

fn one_line(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    words
        .iter()
        .for_each(|word| assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr));
}

#[test]
fn unknown_flags_verbs_and_keys_get_the_nearest_match() {
    let bench = Bench::new();
    one_line(
        &bench.run(&["run", "--promt", "x"]),
        2,
        &["--promt", "--prompt"],
    );
    one_line(&bench.run(&["rnu"]), 2, &["rnu", "'run'"]);
    one_line(
        &bench.run(&["run", "-p", "x", "--provider", "ecko"]),
        2,
        &["ecko", "echo"],
    );
    std::fs::write(bench.path("curfew").join("config.toml"), "modle = \"x\"\n").unwrap();
    one_line(
        &bench.run(&["run", "-p", "x", "--provider", "echo"]),
        2,
        &["modle", "model", "config.toml"],
    );
    assert!(!bench.path("curfew").join("sessions").exists());
}

#[test]
fn a_profile_key_that_does_not_exist_is_refused() {
    let bench = Bench::new();
    std::fs::write(bench.path("p.toml"), "raed = []\n").unwrap();
    let profile = bench.path("p.toml");
    let args = [
        "run",
        "-p",
        "x",
        "--provider",
        "echo",
        "--profile",
        profile.to_str().unwrap(),
    ];
    one_line(&bench.run(&args), 2, &["raed", "read"]);
}

#[test]
fn a_profile_in_the_workspace_is_refused() {
    let bench = Bench::new();
    std::fs::write(bench.file("p.toml"), "net = \"full\"\n").unwrap();
    one_line(
        &bench.run(&[
            "run",
            "-p",
            "x",
            "--provider",
            "echo",
            "--profile",
            "./p.toml",
        ]),
        2,
        &["workspace"],
    );
}

#[test]
fn workspaces_that_cannot_be_are_named() {
    let bench = Bench::new();
    let link = bench.path("link");
    std::os::unix::fs::symlink(&bench.workspace, &link).unwrap();
    let (home, link) = (bench.path("home"), link);
    for (dir, word) in [
        ("/nowhere/at/all", "does not exist"),
        ("/", "root of the file system"),
        (home.to_str().unwrap(), "home directory"),
        (link.to_str().unwrap(), "symlink"),
    ] {
        one_line(
            &bench.run(&["run", "-p", "x", "--provider", "echo", "-C", dir]),
            2,
            &[word],
        );
    }
}

#[test]
fn no_prompt_is_no_run_and_stdin_is_not_waited_for() {
    let bench = Bench::new();
    let open = bench
        .command(&["run", "--provider", "echo"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    one_line(&finish(open), 2, &["-p"]);
    let open = bench
        .command(&["run", "-p", "hi", "--provider", "echo"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(finish(open).ok().stdout, "hi\n");
    one_line(&bench.run::<&str>(&[]), 2, &["terminal"]);
}

#[test]
fn a_dash_reads_the_prompt_from_stdin() {
    let bench = Bench::new();
    let mut child = bench
        .command(&["run", "--provider", "echo", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all("from stdin".as_bytes())
        .unwrap();
    assert_eq!(finish(child).ok().stdout, "from stdin\n");
}

#[test]
fn a_missing_key_ends_with_6_and_a_remedy_in_a_result() {
    let bench = Bench::new();
    let ran = bench.run(&[
        "run",
        "--json",
        "-p",
        "x",
        "-m",
        "m",
        "--base-url",
        "https://192.0.2.1/v1",
    ]);
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
    assert!(ran.stderr.contains("OPENAI_API_KEY"));
    let result = ran.objects().pop().unwrap();
    assert_eq!(
        (&result["type"], &result["data"]["exitCode"]),
        (&"result".into(), &6.into())
    );
}

#[test]
fn help_teaches() {
    let bench = Bench::new();
    let help = bench.run(&["--help"]);
    for word in [
        "Exit codes",
        "Examples",
        "Units",
        "--provider",
        "curfew sandbox",
    ] {
        assert!(help.ok().stdout.contains(word), "{word}");
    }
    assert_eq!(help.stderr, "");
}
