//! Sessions of a real model, as they were recorded: see fixtures/real-model/README.md. Their logs
//! replay for ever, and their tapes have the same effects again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use curfew_tests::log::Log;
use curfew_tests::run::{Curfew, Ran};
use curfew_tests::tree;
use curfew_tests::world::{World, own_uid};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Folders of the fixtures and the flags, behind the prompt, that each was recorded with.
const SESSIONS: [(&str, &[&str]); 3] = [
    (
        "calc",
        &["--check", "python3 test_calc.py", "--max-steps", "6"],
    ),
    ("hello", &["--max-steps", "6"]),
    ("till", &["--check", "sh test.sh", "--max-steps", "6"]),
];

/// Its effect is the length of the host's account file, so only its log is held against the present.
const OF_ITS_HOST: &str = "lines";

fn fixture(name: &str) -> PathBuf {
    tree::root().join("tests/fixtures/real-model").join(name)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Digests of the request bodies that the recording proxy received, in order.
fn received(name: &str) -> Vec<String> {
    let text = fs::read_to_string(fixture(name).join("received.sha256")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn recorded_logs_verify_and_every_step_replays_to_what_the_proxy_received() {
    let world = World::new(own_uid());
    let names = SESSIONS.map(|(name, _)| name);
    for name in names.into_iter().chain([OF_ITS_HOST]) {
        let recorded = Log::read(&fixture(name).join("log.jsonl"));
        recorded.assert_whole();
        let folder = world.home.join(".curfew/sessions").join(recorded.id());
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join("log.jsonl");
        fs::copy(&recorded.path, &log).unwrap();
        let verified = Curfew::new(&world)
            .args(["session", "verify", recorded.id()])
            .run();
        assert_eq!(verified.code, Some(0), "{name}: {}", verified.told());
        let received = received(name);
        assert_eq!(recorded.all("request/sent").len(), received.len(), "{name}");
        for (step, wanted) in (1_u64..).zip(&received) {
            let replayed = Curfew::new(&world)
                .args(["session", "replay", recorded.id(), "--step"])
                .args([step.to_string()])
                .run();
            assert_eq!(replayed.code, Some(0), "{name}: {}", replayed.told());
            assert_eq!(&sha256(&replayed.stdout), wanted, "{name}, step {step}");
        }
        assert_eq!(
            fs::read(&log).unwrap(),
            fs::read(&recorded.path).unwrap(),
            "reading changes nothing"
        );
    }
}

/// Plays a tape in a workspace as it was before.
fn play(world: &World, name: &str, tape: &Path, more: &[&str]) -> (Ran, Log) {
    for (file, bytes) in files(&fixture(name).join("before")) {
        fs::write(world.ws.join(file), bytes).unwrap();
    }
    let prompt = Log::read(&fixture(name).join("log.jsonl")).all("user/message")[0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    let ran = Curfew::new(world)
        .args(["run", "-p", &prompt, "--provider"])
        .args([format!("replay:{}", tape.display())])
        .args(more)
        .run();
    (ran, Log::only(world))
}

/// Files directly in a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Name and arguments of every call.
fn calls(log: &Log) -> Vec<(&Value, &Value)> {
    log.all("tool/call")
        .into_iter()
        .map(|call| (&call["name"], &call["arguments"]))
        .collect()
}

/// What was refused, outside the workspace, by which layer and rule.
fn denials(log: &Log) -> Vec<[&Value; 4]> {
    log.all("sandbox/denied")
        .into_iter()
        .map(|denial| ["op", "path", "layer", "rule"].map(|key| &denial[key]))
        .collect()
}

#[test]
fn a_recorded_tape_has_the_same_effects_again() {
    let passwd = fs::read("/etc/passwd").unwrap();
    for (name, more) in SESSIONS {
        let world = World::new(own_uid());
        let (ran, log) = play(&world, name, &fixture(name).join("tape.jsonl"), more);
        let recorded = Log::read(&fixture(name).join("log.jsonl"));
        assert_eq!(calls(&log), calls(&recorded), "{name}: {}", ran.told());
        assert_eq!(denials(&log), denials(&recorded), "{name}: {}", ran.told());
        let mut now = files(&world.ws);
        now.remove("x");
        assert_eq!(now, files(&fixture(name).join("after")), "{name}");
        let (again, then) = (log.last("result"), recorded.last("result"));
        assert_eq!(again["reason"], then["reason"], "{name}: {}", ran.told());
    }
    assert_eq!(fs::read("/etc/passwd").unwrap(), passwd);
}

/// How many of the demo's answers are the model's; the one behind them is scripted and says so.
const DEMO_RECORDED: usize = 3;

#[test]
fn the_demo_plays_what_the_model_answered_and_says_where_that_ends() {
    let demo = tree::root().join("runner/src/verbs/demo");
    let played = fs::read_to_string(demo.join("task.jsonl")).unwrap();
    let recorded = fs::read_to_string(fixture("till").join("tape.jsonl")).unwrap();
    let (played, recorded): (Vec<&str>, Vec<&str>) =
        (played.lines().collect(), recorded.lines().collect());
    assert_eq!(played[..DEMO_RECORDED], recorded[..DEMO_RECORDED]);
    assert_eq!(played.len(), DEMO_RECORDED + 1);
    assert!(played[DEMO_RECORDED].contains("Scripted: the recording is cut here"));
    for file in ["calc.sh", "test.sh"] {
        let before = fs::read(fixture("till").join("before").join(file)).unwrap();
        assert_eq!(fs::read(demo.join("project").join(file)).unwrap(), before);
    }
}

#[test]
fn one_changed_argument_of_the_recorded_tape_changes_the_real_effect() {
    let tape = fs::read_to_string(tree::root().join("runner/src/verbs/demo/task.jsonl")).unwrap();
    for (sign, sum, code) in [("+", "$1 + $2", 0), ("*", "$1 * $2", 1)] {
        let world = World::new(own_uid());
        let file = world.out.join("tape.jsonl");
        fs::write(&file, changed(&tape, sign)).unwrap();
        let (ran, log) = play(&world, "till", &file, &["--check", "sh test.sh"]);
        let now = fs::read_to_string(world.ws.join("calc.sh")).unwrap();
        assert!(now.contains(&format!("echo $(({sum}))")), "{now}");
        assert_eq!(ran.code, Some(code), "{}", ran.told());
        assert_eq!(log.last("check/result")["exitCode"], code);
    }
}

/// The tape with another operator in the model's edit: the one piece of its stream that is ` +`.
fn changed(tape: &str, sign: &str) -> String {
    let piece = "\\\"arguments\\\":\\\" +\\\"";
    assert_eq!(tape.matches(piece).count(), 1, "the piece with the plus");
    tape.replace(piece, &piece.replace('+', sign))
}
