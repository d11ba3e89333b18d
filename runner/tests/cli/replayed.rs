//! Recorded answers drive real tools in a real confinement.

use serde_json::json;

use crate::bench::{Bench, calls, calls_raw, of_type, read, says};

#[test]
fn read_edit_and_run_in_one_task() {
    let bench = Bench::new();
    std::fs::write(bench.file("foo.py"), "def bar():\n    return 1\n").unwrap();
    let ran = bench.replay(
        &[
            calls(&[("read", json!({ "path": "foo.py" }))]),
            calls(&[(
                "edit",
                json!({ "path": "foo.py", "old_string": "bar", "new_string": "baz" }),
            )]),
            calls(&[("bash", json!({ "command": "grep -c baz foo.py; false" }))]),
            says("done"),
        ],
        &[],
    );
    assert_eq!(ran.ok().stdout, "done\n");
    assert_eq!(read(&bench.file("foo.py")), "def baz():\n    return 1\n");
    let completed = bench.completed();
    assert!(
        completed[0]["content"]
            .as_str()
            .unwrap()
            .contains("1\tdef bar():"),
        "{}",
        completed[0]
    );
    assert_eq!(completed[2]["facts"]["exitCode"], 1);
    assert_eq!(completed[2]["isError"], true);
    assert!(
        completed[2]["content"].as_str().unwrap().starts_with("1\n"),
        "{}",
        completed[2]
    );
    assert_eq!(
        of_type(&bench.log(), "result")[0]["changed"][0].as_str(),
        bench.file("foo.py").to_str()
    );
}

#[test]
fn a_write_outside_is_refused_by_the_kernel_from_bash_and_from_write() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    std::fs::write(&outside, "mine").unwrap();
    let ran = bench.replay(
        &[
            calls(&[(
                "bash",
                json!({ "command": format!("echo theirs > {}", outside.display()) }),
            )]),
            calls(&[(
                "write",
                json!({ "path": "/etc/curfew-was-here", "content": "x" }),
            )]),
            says("refused"),
        ],
        &[],
    );
    ran.ok();
    assert_eq!(read(&outside), "mine");
    assert!(!std::path::Path::new("/etc/curfew-was-here").exists());
    let denied = of_type(&bench.log(), "sandbox/denied");
    assert!(
        denied
            .iter()
            .any(|denial| denial["path"] == "/etc/curfew-was-here"),
        "{denied:?}"
    );
    assert!(ran.stderr.contains("denied"), "{}", ran.stderr);
    let why = bench.run(&["why", "call_2"]);
    assert!(
        why.ok().stdout.contains("denied") && why.stdout.contains("layer"),
        "{}",
        why.stdout
    );
}

#[test]
fn writing_what_was_not_read_is_refused_and_survives_what_bash_changed() {
    let bench = Bench::new();
    std::fs::write(bench.file("a"), "one\n").unwrap();
    bench
        .replay(
            &[
                calls(&[("write", json!({ "path": "a", "content": "two\n" }))]),
                calls(&[("read", json!({ "path": "a" }))]),
                calls(&[("bash", json!({ "command": "echo three > a" }))]),
                calls(&[("write", json!({ "path": "a", "content": "four\n" }))]),
                says("stale"),
            ],
            &[],
        )
        .ok();
    let codes: Vec<_> = bench
        .completed()
        .iter()
        .map(|done| done["error"].clone())
        .collect();
    assert_eq!(
        codes,
        [json!("not-read"), json!(null), json!(null), json!("stale")]
    );
    assert_eq!(read(&bench.file("a")), "three\n");
}

#[test]
fn a_long_output_is_cut_counted_and_can_be_paged() {
    let bench = Bench::new();
    let first = bench.replay(
        &[
            calls(&[("bash", json!({ "command": "seq 1 5000" }))]),
            says("long"),
        ],
        &[],
    );
    first.ok();
    let done = bench.completed().remove(0);
    let content = done["content"].as_str().unwrap();
    let whole: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    let omitted = whole.len() - 4096 - 1024;
    assert!(
        content.starts_with(&whole[..4096]) && content.contains(&whole[whole.len() - 1024..]),
        "{content}"
    );
    assert!(
        content.contains(&format!("{omitted} of {} characters", whole.len())),
        "{content}"
    );
    assert_eq!(
        (&done["facts"]["truncated"], &done["blob"]["bytes"]),
        (&json!(true), &json!(whole.len()))
    );
    let id = &done["blob"]["sha256"].as_str().unwrap()[..16];
    assert!(content.contains(&format!("blob:{id}")));
    let file = bench.path("replay.jsonl");
    let page = calls(&[(
        "read",
        json!({ "path": format!("blob:{id}"), "offset": 4321, "limit": 2 }),
    )]);
    std::fs::write(&file, [page, says("paged")].concat()).unwrap();
    let provider = format!("replay:{}", file.display());
    bench
        .run(&["run", "-c", "-p", "page", "--provider", &provider])
        .ok();
    let content = bench.completed()[1]["content"].clone();
    assert_eq!(content, "4321\t4321\n4322\t4322\n[go on with offset 4323]");
}

#[test]
fn bytes_that_are_no_text_are_kept_raw() {
    let bench = Bench::new();
    bench
        .replay(
            &[
                calls(&[("bash", json!({ "command": r"printf 'a\377b'" }))]),
                says("ok"),
            ],
            &[],
        )
        .ok();
    let done = bench.completed().remove(0);
    assert!(
        done["content"].as_str().unwrap().starts_with("a\u{fffd}b"),
        "{done}"
    );
    let sha256 = done["blob"]["sha256"].as_str().unwrap();
    let blob = bench.log_path().with_file_name("blobs").join(sha256);
    assert_eq!(std::fs::read(blob).unwrap(), b"a\xffb");
}

#[test]
fn arguments_nobody_can_run_come_back_as_results() {
    let bench = Bench::new();
    let ran = bench.replay(
        &[
            calls_raw(&[
                ("bash", String::from("not json")),
                ("bash", String::from(r#"{"command":"ls","cwd":"/"}"#)),
                ("read", String::from(r#"{"path":"a\u0000b"}"#)),
                ("frobnicate", String::from("{}")),
            ]),
            says("sorry"),
        ],
        &[],
    );
    assert_eq!(ran.ok().stdout, "sorry\n");
    let codes: Vec<_> = bench
        .completed()
        .iter()
        .map(|done| done["error"].clone())
        .collect();
    let invalid = json!("INVALID_ARGUMENTS");
    assert_eq!(
        codes,
        [
            invalid.clone(),
            invalid.clone(),
            invalid,
            json!("UNKNOWN_TOOL")
        ]
    );
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_its_children_too() {
    let bench = Bench::new();
    let command = "echo begun; (sleep 1000; touch survived) & sleep 1000";
    let ran = bench.replay(
        &[
            calls(&[("bash", json!({ "command": command, "timeout": 1 }))]),
            says("late"),
        ],
        &[],
    );
    ran.ok();
    let done = bench.completed().remove(0);
    assert_eq!(done["facts"]["timedOut"], true, "{done}");
    assert!(
        done["content"]
            .as_str()
            .unwrap()
            .starts_with("begun\n[killed after 1 s]"),
        "{done}"
    );
    assert!(!bench.file("survived").exists());
}

#[test]
fn one_changed_argument_changes_the_real_effect() {
    for name in ["first", "second"] {
        let bench = Bench::new();
        bench
            .replay(
                &[
                    calls(&[("write", json!({ "path": name, "content": name }))]),
                    says("ok"),
                ],
                &[],
            )
            .ok();
        assert_eq!(read(&bench.file(name)), name);
    }
}

#[test]
fn read_only_refuses_every_write() {
    let bench = Bench::new();
    let ran = bench.replay(
        &[
            calls(&[("write", json!({ "path": "a", "content": "x" }))]),
            calls(&[("bash", json!({ "command": "touch b" }))]),
            says("none"),
        ],
        &["-s", "read-only"],
    );
    ran.ok();
    assert_eq!(std::fs::read_dir(&bench.workspace).unwrap().count(), 0);
    assert!(bench.completed().iter().all(|done| done["isError"] == true));
}

#[test]
fn full_access_is_said_and_has_no_fence() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    let ran = bench.replay(
        &[
            calls(&[(
                "bash",
                json!({ "command": format!("echo x > {}", outside.display()) }),
            )]),
            says("ok"),
        ],
        &["-s", "danger-full-access"],
    );
    assert!(ran.ok().stderr.contains("DANGER"));
    assert_eq!(read(&outside), "x\n");
}

#[test]
fn what_tools_outside_would_obey_is_quarantined_and_told() {
    let bench = Bench::new();
    let plant = "mkdir -p .git/hooks; echo 'touch /owned' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit";
    let ran = bench.replay(
        &[
            calls(&[("bash", json!({ "command": plant }))]),
            says("planted"),
        ],
        &[],
    );
    assert!(ran.ok().stderr.contains("denied"), "{}", ran.stderr);
    assert!(!bench.file(".git/hooks/pre-commit").exists());
    let denied = of_type(&bench.log(), "sandbox/denied");
    assert!(
        denied
            .iter()
            .any(|denial| denial["rule"] == "protected-names"),
        "{denied:?}"
    );
    let content = bench.completed()[0]["content"].as_str().unwrap().to_owned();
    assert!(content.contains("protected-names"), "{content}");
}
