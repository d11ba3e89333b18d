//! The ten criteria of the seed for "usable alone", each by its number.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;

use curfew_tests::log::{Log, sessions, unpaired};
use curfew_tests::run::{Curfew, HANG_S, finish as collect};
use curfew_tests::server::{Reply, Server, calls, data, finish, head, piece, text};
use curfew_tests::{procs, wait};
use serde_json::{Value, json};

use super::{resume, run, sound, tool_messages, world};

/// 1: a single task runs to its end, and the exit code says how.
#[test]
fn accept01_one_task_to_its_end_with_an_exit_code() {
    for (check, code) in [("test -e made", 0), ("test -e absent", 1)] {
        let world = world();
        let server = Server::answering(vec![
            calls(&[("bash", json!({"command": "touch made"}))]),
            text("Made."),
        ]);
        let ran = run(&world, &server, "make a file")
            .args(["--check", check])
            .run();
        assert_eq!(ran.code, Some(code), "{check}: {}", ran.told());
        let log = sound(&world, &server, &ran);
        assert_eq!(log.last("check/result")["exitCode"], code);
    }
}

/// 2: the answer is seen letter by letter, not as a whole.
#[test]
fn accept02_streams_letter_by_letter() {
    let world = world();
    let (seen, wait) = mpsc::channel::<()>();
    let mut wait = Some(wait);
    let server = Server::start(move |_, _| {
        let wait = wait.take().expect("one request");
        Reply::Live(Box::new(move |stream| {
            head(stream);
            for letter in ["a", "b", "c"] {
                data(stream, &piece(letter));
                wait.recv().expect("the test looks at each letter");
            }
            data(stream, &finish("stop"));
        }))
    });
    let mut child = run(&world, &server, "spell").spawn();
    let mut stdout = child.stdout.take().unwrap();
    for letter in [b"a", b"b", b"c"] {
        let mut one = [0];
        stdout.read_exact(&mut one).unwrap();
        assert_eq!(&one, letter);
        seen.send(()).unwrap();
    }
    drop(seen);
    assert!(
        collect(child, Duration::from_secs(HANG_S), "spelling")
            .code
            .is_some()
    );
}

/// 3: reading, changing and running work one after the other in one task.
#[test]
fn accept03_reads_edits_and_runs_in_one_task() {
    let world = world();
    std::fs::write(world.ws.join("calc.py"), "print(6 * 6)\n").unwrap();
    let edit = json!({"path": "calc.py", "old_string": "6 * 6", "new_string": "6 * 7"});
    let server = Server::answering(vec![
        calls(&[("read", json!({"path": "calc.py"}))]),
        calls(&[("edit", edit)]),
        calls(&[("bash", json!({"command": "python3 calc.py"}))]),
        text("It prints 42."),
    ]);
    let ran = run(&world, &server, "make it print 42").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(tool_messages(&server, 3)[2].contains("42"));
    sound(&world, &server, &ran);
}

/// 4: a tool's error reaches the model, which puts it right.
#[test]
fn accept04_the_model_sees_an_error_and_corrects_it() {
    let world = world();
    std::fs::write(world.ws.join("a.txt"), "one\n").unwrap();
    let server = Server::start(|index, request| {
        Reply::Sse(match index {
            0 => calls(&[("read", json!({"path": "b.txt"}))]),
            1 => {
                let messages = request.messages();
                let said = messages.last().unwrap()["content"].as_str().unwrap();
                assert!(
                    said.contains("b.txt"),
                    "the error names what was asked: {said}"
                );
                calls(&[("read", json!({"path": "a.txt"}))])
            }
            _ => text("It says one."),
        })
    });
    let ran = run(&world, &server, "read the file").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let log = sound(&world, &server, &ran);
    let errors: Vec<bool> = log
        .all("tool/completed")
        .iter()
        .map(|done| done["isError"] == json!(true))
        .collect();
    assert_eq!(errors, [true, false]);
}

/// 5: Ctrl-C stops it, the log says so, and the next request is valid.
#[test]
fn accept05_interrupt_stops_and_leaves_a_valid_history() {
    let world = world();
    let day = format!("86400.5{}", std::process::id());
    let command = format!("touch running; sleep {day}");
    let server = Server::answering(vec![calls(&[
        ("bash", json!({"command": command})),
        ("bash", json!({"command": "touch second"})),
    ])]);
    let child = run(&world, &server, "sleep").spawn();
    let marker = world.ws.join("running");
    assert!(
        wait::until(Duration::from_secs(30), || marker.exists()),
        "the call does not start"
    );
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = collect(child, Duration::from_secs(HANG_S), "an interrupted run");
    assert_eq!(ran.code, Some(130), "{}", ran.told());
    assert!(
        procs::gone(&day, Duration::from_secs(1)),
        "the call is still there"
    );
    assert!(
        !world.ws.join("second").exists(),
        "the second call was dispatched"
    );
    let log = sound(&world, &server, &ran);
    assert_eq!(log.last("turn/end")["reason"], "cancelled");
    let codes: Vec<&Value> = log
        .all("tool/completed")
        .iter()
        .map(|done| &done["error"])
        .collect();
    assert!(
        codes.contains(&&json!("ABORTED_BEFORE_DISPATCH")),
        "{codes:?}"
    );
    let back = Server::answering(vec![text("Stopped.")]);
    let ran = resume(&world, &back, log.id(), "what happened?").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let broken = unpaired(&back.requests()[0].messages());
    assert!(broken.is_empty(), "{broken:?}");
}

/// 6: killed, resumed, and the model sees what it had seen before.
#[test]
fn accept06_killed_and_resumed_with_the_same_history() {
    let world = world();
    let day = format!("86400.6{}", std::process::id());
    let command = format!("touch running; sleep {day}");
    let server = Server::answering(vec![
        calls(&[("bash", json!({"command": "echo first"}))]),
        calls(&[("bash", json!({"command": command}))]),
    ]);
    let mut child = run(&world, &server, "go").spawn();
    let marker = world.ws.join("running");
    assert!(
        wait::until(Duration::from_secs(30), || marker.exists()),
        "the call does not start"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        procs::gone(&day, Duration::from_secs(1)),
        "the call is still there"
    );
    let id = Log::only(&world).id().to_owned();
    let back = Server::answering(vec![text("Going on.")]);
    let ran = resume(&world, &back, &id, "go on").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let before = server.requests()[1].messages();
    let after = back.requests()[0].messages();
    assert_eq!(
        after[..before.len()],
        before,
        "the history before the kill is the same"
    );
    let broken = unpaired(&after);
    assert!(broken.is_empty(), "{broken:?}");
    let log = Log::only(&world);
    log.assert_whole();
    let codes: Vec<&Value> = log
        .all("tool/completed")
        .iter()
        .map(|done| &done["error"])
        .collect();
    assert!(codes.contains(&&json!("TOOL_OUTCOME_UNKNOWN")), "{codes:?}");
}

/// 7: a write outside is refused by the kernel, and the refusal is in the log.
#[test]
fn accept07_write_outside_is_refused_and_logged() {
    let world = world();
    let target = world.out.join("new");
    let server = Server::answering(vec![
        calls(&[(
            "bash",
            json!({"command": format!("echo x > {}", target.display())}),
        )]),
        calls(&[(
            "write",
            json!({"path": target.to_str().unwrap(), "content": "x"}),
        )]),
        text("I could not."),
    ]);
    let ran = run(&world, &server, "write outside").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(!target.exists());
    let log = sound(&world, &server, &ran);
    for call in log.all("tool/call") {
        let denied = log.all("sandbox/denied");
        let mine: Vec<_> = denied
            .iter()
            .filter(|d| d["callId"] == call["callId"])
            .collect();
        assert!(!mine.is_empty(), "{call} has no denial: {denied:?}");
        assert!(mine.iter().any(|denial| {
            denial["path"].as_str() == target.to_str() && denial["layer"].as_str() != Some("")
        }));
    }
    // With the grant the same run writes.
    let again = super::world();
    let server = Server::answering(vec![
        calls(&[(
            "bash",
            json!({"command": format!("echo x > {}/new", again.out.display())}),
        )]),
        text("Done."),
    ]);
    let grant = again.out.to_str().unwrap().to_owned();
    let ran = run(&again, &server, "write outside")
        .args(["--add-dir", &grant])
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(again.out.join("new").exists());
}

/// 8: an overlong output is cut, and the model can see that it was.
#[test]
fn accept08_long_output_is_cut_and_says_so() {
    let world = world();
    let server = Server::answering(vec![
        calls(&[(
            "bash",
            json!({"command": "printf START; head -c 100000 /dev/zero | tr '\\0' x; printf END"}),
        )]),
        text("It is long."),
    ]);
    let ran = run(&world, &server, "print much").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let seen = &tool_messages(&server, 1)[0];
    assert!(seen.len() < 8192, "{} bytes", seen.len());
    assert!(
        seen.contains("START") && seen.contains("END"),
        "head and tail are kept"
    );
    assert!(
        seen.contains("100008"),
        "the exact count is told: {}",
        &seen[4000..4400]
    );
    let log = sound(&world, &server, &ran);
    let done = log.last("tool/completed");
    assert_eq!(done["facts"]["outputBytes"], 100008);
    assert_eq!(done["facts"]["truncated"], true);
    let name = done["blob"]["sha256"]
        .as_str()
        .expect("the whole output is a blob");
    let folder = sessions(&world).pop().unwrap();
    let blobs = curfew_tests::world::walk(&folder);
    let blob = blobs
        .iter()
        .find(|path| path.ends_with(name))
        .expect("the blob is in the session");
    let meta = std::fs::metadata(blob).unwrap();
    assert_eq!(meta.len(), 100008);
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
}

/// 9: the log can be read alone, by eye and by any JSON reader.
#[test]
fn accept09_the_log_is_read_alone() {
    let world = world();
    let server = Server::answering(vec![
        calls(&[("bash", json!({"command": "echo the-effect"}))]),
        text("the-answer"),
    ]);
    let ran = run(&world, &server, "the-prompt").run();
    let log = sound(&world, &server, &ran);
    let whole = std::fs::read_to_string(&log.path).unwrap();
    for word in ["the-prompt", "the-effect", "the-answer", "echo the-effect"] {
        assert!(whole.contains(word), "{word} is not to be found in the log");
    }
    assert!(!whole.contains("sk-of-this-test"), "the key is in the log");
    let meta = std::fs::metadata(&log.path).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    let shown = Curfew::new(&world)
        .args(["session", "show", log.id()])
        .run();
    for word in ["the-prompt", "the-effect", "the-answer"] {
        assert!(shown.out().contains(word), "{word}: {}", shown.told());
    }
}

/// 10: the step limit ends the turn aloud, for the model and for the user.
#[test]
fn accept10_step_limit_is_announced() {
    let world = world();
    let server = Server::start(|index, _| {
        Reply::Sse(calls(&[(
            "bash",
            json!({"command": format!("echo {index}")}),
        )]))
    });
    let ran = run(&world, &server, "never stop")
        .args(["--max-steps", "3"])
        .run();
    assert_eq!(ran.code, Some(3), "{}", ran.told());
    assert_eq!(server.requests().len(), 3);
    assert!(
        ran.err().contains("step"),
        "the user is not told: {}",
        ran.told()
    );
    let log = sound(&world, &server, &ran);
    assert_eq!(log.last("turn/end")["reason"], "max-steps");
    let back = Server::answering(vec![text("I see.")]);
    let ran = resume(&world, &back, log.id(), "why did you stop?").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let told = back.requests()[0].messages().iter().any(|message| {
        message["role"] == "user"
            && message["content"]
                .as_str()
                .is_some_and(|c| c.contains("step"))
    });
    let told_before = server.requests()[2].messages().iter().any(|message| {
        message["content"]
            .as_str()
            .is_some_and(|content| content.contains("step"))
    });
    assert!(
        told || told_before,
        "the model is not told: {:#?}",
        back.requests()[0].messages()
    );
}
