//! M0 to M3 of the seed, by their own words.

use std::io::Read;
use std::sync::mpsc;

use curfew_tests::log::Log;
use curfew_tests::run::Curfew;
use curfew_tests::server::{
    Reply, Server, calls, data, finish, head, piece, raw_calls, send, text,
};
use serde_json::json;

use super::{resume, run, sound, tool_messages, world};

/// `-p "hi"` prints hi, and the log has the four events in their order.
#[test]
fn m0_echo_prints_the_prompt_and_logs_the_turn() {
    let world = world();
    let ran = Curfew::new(&world)
        .args(["run", "--provider", "echo", "-p", "hi"])
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert_eq!(ran.out().trim(), "hi");
    let log = Log::only(&world);
    log.assert_whole();
    let wanted = [
        "turn/start",
        "user/message",
        "assistant/message",
        "turn/end",
    ];
    assert!(log.has_in_order(&wanted), "{:?}", log.types());
}

/// An answer appears piece by piece: the second half is sent only after the first was seen.
#[test]
fn m1_answer_streams_as_it_comes() {
    let world = world();
    let (seen, wait) = mpsc::channel::<()>();
    let mut wait = Some(wait);
    let server = Server::start(move |_, _| {
        let wait = wait.take().expect("one request");
        Reply::Live(Box::new(move |stream| {
            head(stream);
            data(stream, &piece("first half,"));
            wait.recv().expect("the test looks at the first half");
            data(stream, &piece(" second half"));
            data(stream, &finish("stop"));
            send(stream, b"data: [DONE]\n\n");
        }))
    });
    let mut child = run(&world, &server, "explain SSE in three sentences").spawn();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = vec![0; "first half,".len()];
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(first, b"first half,");
    seen.send(()).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim_end(), " second half");
    assert!(child.wait().unwrap().success());
    let header = Log::only(&world).last("request/header").clone();
    assert_eq!(header["model"], "scripted");
    assert!(
        header["endpoint"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1"),
        "{header}"
    );
    assert!(
        header["contextWindow"]["tokens"].as_u64() > Some(0),
        "{header}"
    );
}

/// A rate limit is waited for, an overlong context is named, an empty answer is tried again.
#[test]
fn m1_failures_have_names() {
    let limited = world();
    let server = Server::start(|index, _| match index {
        0 => Reply::Status(429, vec![("retry-after", "1".into())], "{}".into()),
        1 => Reply::Sse(vec![finish("stop")]),
        _ => Reply::Sse(text("served")),
    });
    let ran = run(&limited, &server, "go").run();
    assert_eq!(
        (ran.code, ran.out().trim()),
        (Some(0), "served"),
        "{}",
        ran.told()
    );
    let log = sound(&limited, &server, &ran);
    let kinds: Vec<&str> = log
        .all("model/retry")
        .iter()
        .map(|r| r["failure"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["rate-limit", "empty-response"]);

    let long = world();
    let server = Server::start(|_, _| {
        let error = json!({"error": {"code": "context_length_exceeded", "message": "too long"}});
        Reply::Status(400, vec![], error.to_string())
    });
    let ran = run(&long, &server, "go").run();
    assert_eq!(ran.code, Some(8), "{}", ran.told());
    assert_eq!(
        server.requests().len(),
        1,
        "what cannot succeed is not tried again"
    );
    sound(&long, &server, &ran);
}

/// "Read README.md and say what the project does": read is really called.
#[test]
fn m2_reads_a_file() {
    let world = world();
    std::fs::write(world.ws.join("README.md"), "It counts sheep.\n").unwrap();
    let server = Server::answering(vec![
        calls(&[("read", json!({"path": "README.md"}))]),
        text("It counts sheep."),
    ]);
    let ran = run(
        &world,
        &server,
        "read README.md and say what the project does",
    )
    .run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(tool_messages(&server, 1)[0].contains("It counts sheep."));
    sound(&world, &server, &ran);
}

/// "Change bar to baz in foo.py": read, then edit.
#[test]
fn m2_reads_then_edits() {
    let world = world();
    std::fs::write(world.ws.join("foo.py"), "def bar():\n    return 1\n").unwrap();
    let edit = json!({"path": "foo.py", "old_string": "bar", "new_string": "baz"});
    let server = Server::answering(vec![
        calls(&[("read", json!({"path": "foo.py"}))]),
        calls(&[("edit", edit)]),
        text("Done."),
    ]);
    let ran = run(&world, &server, "change bar to baz in foo.py").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let now = std::fs::read_to_string(world.ws.join("foo.py")).unwrap();
    assert_eq!(now, "def baz():\n    return 1\n");
    let log = sound(&world, &server, &ran);
    let changed = log.last("result")["changed"].as_array().unwrap().clone();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(
        changed[0].as_str().unwrap().ends_with("foo.py"),
        "{changed:?}"
    );
}

/// "Run false": the failure goes back to the model, and the turn goes on.
#[test]
fn m2_failing_command_goes_back_to_the_model() {
    let world = world();
    let server = Server::answering(vec![
        calls(&[("bash", json!({"command": "false"}))]),
        text("It exited with 1."),
    ]);
    let ran = run(&world, &server, "run false and tell me the result").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let log = sound(&world, &server, &ran);
    assert_eq!(log.last("tool/completed")["facts"]["exitCode"], 1);
    assert_eq!(log.last("turn/end")["reason"], "completed");
}

/// The network goes away in the middle of a call's turn; the resumed history is whole.
#[test]
fn m2_resumes_after_the_network_was_gone() {
    let world = world();
    let answers = [calls(&[(
        "bash",
        json!({"command": "echo once >> effects"}),
    )])];
    let server = Server::start(move |index, _| match index {
        0 => Reply::Sse(answers[0].clone()),
        // Cut before any byte, each time it is tried again.
        1..=20 => Reply::Live(Box::new(|_| {})),
        _ => Reply::Sse(text("never")),
    });
    let ran = run(&world, &server, "do it").run();
    assert_eq!(ran.code, Some(5), "{}", ran.told());
    let id = Log::only(&world).id().to_owned();
    let back = Server::answering(vec![text("Done before.")]);
    let ran = resume(&world, &back, &id, "go on").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let broken = curfew_tests::log::unpaired(&back.requests()[0].messages());
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(
        std::fs::read_to_string(world.ws.join("effects")).unwrap(),
        "once\n"
    );
    Log::only(&world).assert_whole();
}

/// "Delete everything below ~/Documents" in workspace-write: refused, and the turn ends well.
#[test]
fn m3_deleting_outside_is_refused() {
    let world = world();
    let documents = world.home.join("Documents");
    std::fs::create_dir(&documents).unwrap();
    std::fs::write(documents.join("thesis"), "years of work\n").unwrap();
    let command = format!("rm -rf {}/*", documents.display());
    let server = Server::answering(vec![
        calls(&[("bash", json!({"command": command}))]),
        text("I could not."),
    ]);
    let ran = run(&world, &server, "delete everything below ~/Documents").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let kept = std::fs::read_to_string(documents.join("thesis")).unwrap();
    assert_eq!(kept, "years of work\n");
    let log = sound(&world, &server, &ran);
    assert_eq!(log.last("turn/end")["reason"], "completed");
}

/// In read-only every write is refused, by tool and by shell.
#[test]
fn m3_read_only_refuses_writes() {
    let world = world();
    let server = Server::answering(vec![
        calls(&[("write", json!({"path": "new", "content": "x"}))]),
        calls(&[("bash", json!({"command": "echo x > new2"}))]),
        text("I could not."),
    ]);
    let ran = run(&world, &server, "write")
        .args(["--mode", "read-only"])
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(!world.ws.join("new").exists() && !world.ws.join("new2").exists());
    let log = sound(&world, &server, &ran);
    let first = log.all("tool/completed")[0];
    assert_eq!(first["isError"], true, "{first}");
    assert!(!log.all("sandbox/denied").is_empty(), "{:?}", log.types());
}

/// Arguments that are no JSON go back as an error; the request that follows is valid JSON still.
#[test]
fn m2_broken_arguments_do_not_poison_the_history() {
    let world = world();
    let broken = r#"{"command": "ls"#;
    let server = Server::answering(vec![raw_calls(&[("bash", broken)]), text("Sorry.")]);
    let ran = run(&world, &server, "go").run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let sent = server.requests()[1].messages();
    let call = sent
        .iter()
        .find(|message| message["tool_calls"].is_array())
        .unwrap();
    let arguments = call["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap();
    serde_json::from_str::<serde_json::Value>(arguments).expect("what is sent is JSON");
    let log = sound(&world, &server, &ran);
    assert_eq!(
        log.arguments(0),
        broken,
        "the log keeps what the model wrote"
    );
}
