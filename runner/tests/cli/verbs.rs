//! Verbs that need no model: sandbox, doctor, session.

use crate::bench::Bench;

#[test]
fn sandbox_passes_the_code_through_and_confines() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    let write = format!("touch inside; touch {}; exit 7", outside.display());
    assert_eq!(
        bench.run(&["sandbox", "--", "sh", "-c", &write]).code,
        Some(7)
    );
    assert!(bench.file("inside").exists() && !outside.exists());
    assert_eq!(bench.run(&["sandbox", "--", "true"]).code, Some(0));
    assert_eq!(
        bench.run(&["sandbox", "--", "no-such-command"]).code,
        Some(127)
    );
    std::fs::write(bench.file("plain"), "text").unwrap();
    assert_eq!(bench.run(&["sandbox", "--", "./plain"]).code, Some(126));
    assert_eq!(
        bench.run(&["sandbox", "--", "sh", "-c", "kill -9 $$"]).code,
        Some(137)
    );
    assert_eq!(
        bench
            .run(&["sandbox", "--timeout", "1s", "--", "sleep", "1000"])
            .code,
        Some(124)
    );
}

#[test]
fn sandbox_full_access_is_the_positive_twin() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    let ran = bench.run(&[
        "sandbox",
        "--mode",
        "danger-full-access",
        "--",
        "touch",
        outside.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0));
    assert!(outside.exists() && ran.stderr.contains("DANGER"));
}

#[test]
fn sandbox_passes_its_streams() {
    use std::io::Write as _;
    let bench = Bench::new();
    let mut child = bench
        .command(&["sandbox", "--", "cat"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(crate::bench::finish(child).ok().stdout, "through");
}

#[test]
fn doctor_names_a_layer_behind_each_guarantee() {
    let bench = Bench::new();
    let human = bench.run(&["doctor"]);
    for word in ["write-fence", "mounts", "seccomp", "enforced"] {
        assert!(human.ok().stdout.contains(word), "{word}: {}", human.stdout);
    }
    let document = bench.run(&["doctor", "--json"]).objects().remove(0);
    assert_eq!(document["met"], true);
    assert_eq!(document["guarantees"].as_array().unwrap().len(), 9);
    assert_eq!(
        bench.run(&["doctor", "--require", "protected-names"]).code,
        Some(7)
    );
}

#[test]
fn a_flipped_byte_is_found_placed_and_hides_no_other_session() {
    let bench = Bench::new();
    bench.run(&["run", "-p", "one", "--provider", "echo"]).ok();
    let path = bench.log_path();
    bench.run(&["run", "-p", "two", "--provider", "echo"]).ok();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"one\"", "\"owe\"", 1)).unwrap();
    let id = path
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let verified = bench.run(&["session", "verify", &id]);
    assert_eq!(verified.code, Some(11), "{}", verified.stdout);
    assert!(verified.stderr.contains("line"), "{}", verified.stderr);
    let listed = bench.run(&["session", "list", "--json"]).objects();
    let damaged: Vec<_> = listed
        .iter()
        .map(|object| (object["id"] == *id, object["damaged"] == true))
        .collect();
    assert_eq!(damaged, [(false, false), (true, true)]);
    assert_eq!(
        bench
            .run(&["resume", &id, "-p", "x", "--provider", "echo"])
            .code,
        Some(11)
    );
}

#[test]
fn show_folds_and_raw_is_the_log() {
    let bench = Bench::new();
    bench
        .run(&["run", "-p", "hello", "--provider", "echo"])
        .ok();
    let id = bench.sessions().remove(0);
    let shown = bench.run(&["session", "show", &id]);
    assert!(
        shown.ok().stdout.contains("> hello") && shown.stdout.contains("finished"),
        "{}",
        shown.stdout
    );
    let raw = bench.run(&["session", "show", "--raw", &id]);
    assert_eq!(
        raw.ok().stdout,
        std::fs::read_to_string(bench.log_path()).unwrap()
    );
}
