//! SIGKILL of the supervisor at every barrier. The log says where each fell; the resumed session
//! is whole, what is sent next pairs, and no process is left.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use curfew_tests::log::{Log, sessions, unpaired};
use curfew_tests::run::Curfew;
use curfew_tests::server::{Reply, Server, calls, data, head, piece, text};
use curfew_tests::world::{World, own_uid};
use curfew_tests::{procs, wait};
use serde_json::json;

const KILLS: usize = 60;
const EACH: usize = 3;
const ROUNDS: usize = 20;

/// Where a run is when it is killed. Most are held there until it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// The header is durable; nothing else has to be.
    Begun,
    /// The n-th request (from 0) has arrived and is not answered.
    Request(usize),
    /// Half an answer has come.
    HalfAnswer,
    /// A command runs.
    Call,
    /// One of two calls at once has ended, the other runs.
    Completed,
    /// The first of two commands has ended, the second runs.
    SecondCall,
    /// The turn has ended, the check runs.
    Check,
    /// The first check has its result, the second runs.
    SecondCheck,
    /// As soon as this record is in the log, wherever that is by then.
    Record(&'static str),
}

const AIMS: &[Aim] = &[
    Aim::Begun,
    Aim::Request(0),
    Aim::Request(1),
    Aim::Request(2),
    Aim::HalfAnswer,
    Aim::Call,
    Aim::Completed,
    Aim::SecondCall,
    Aim::Check,
    Aim::Record("assistant/message"),
    Aim::Record("tool/result"),
    Aim::SecondCheck,
];

/// The last record of the log after a kill, at every barrier: before a request, in an answer,
/// before a call's effect, before a result is shown, before a check and before the end.
const BARRIERS: &[&str] = &[
    "session",
    "request/sent",
    "assistant/chunk",
    "tool/call",
    "tool/completed",
    "tool/result",
    "turn/end",
    "check/result",
];

/// The kills go round the aims until each aim and each barrier has its share.
#[test]
fn supervisor_killed_at_every_barrier() {
    let mut aimed: BTreeMap<String, usize> = BTreeMap::new();
    let mut fallen: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..ROUNDS {
        for aim in AIMS {
            if let Some(fell) = one_kill(*aim) {
                *aimed.entry(format!("{aim:?}")).or_default() += 1;
                *fallen.entry(fell).or_default() += 1;
            }
        }
        let shared = |kind: &str| fallen.get(kind).is_some_and(|count| *count >= EACH);
        let done =
            fallen.values().sum::<usize>() >= KILLS && BARRIERS.iter().all(|kind| shared(kind));
        if done && round + 1 >= EACH {
            break;
        }
    }
    println!(
        "{} kills, aimed {aimed:?}, fell at {fallen:?}",
        fallen.values().sum::<usize>()
    );
    for barrier in BARRIERS {
        let count = fallen.get(*barrier).copied().unwrap_or(0);
        assert!(count >= EACH, "{count} kills fell at {barrier}: {fallen:?}");
    }
    assert!(fallen.values().sum::<usize>() >= KILLS, "{fallen:?}");
}

/// Holds a run where the aim is: an answer or a command that does not end by itself.
fn script(aim: Aim, held: Receiver<()>) -> Server {
    let mut held = Some(held);
    Server::start(move |index, _| {
        if aim == Aim::Request(index) || (aim == Aim::HalfAnswer && index == 2) {
            let held = held.take().expect("one answer is held");
            return Reply::Live(Box::new(move |stream| {
                if aim == Aim::HalfAnswer {
                    head(stream);
                    // More than one chunk, so that the first is written while the answer goes on.
                    data(
                        stream,
                        &piece(&"Half of what there is to say. ".repeat(200)),
                    );
                }
                // Ends when the test lets go.
                held.recv().ok();
            }));
        }
        let quick = json!({"command": "echo effect >> effects"});
        let slow = json!({"command": "touch running; sleep 86400"});
        Reply::Sse(match (index, aim) {
            (0, Aim::Completed) => calls(&[
                ("grep", json!({"pattern": "(a|aa)+$", "path": "big"})),
                ("read", json!({"path": "x"})),
            ]),
            (0, _) => calls(&[
                ("read", json!({"path": "x"})),
                ("glob", json!({"pattern": "*"})),
            ]),
            (1, Aim::Call) => calls(&[("bash", slow)]),
            (1, Aim::SecondCall) => calls(&[("bash", quick), ("bash", slow)]),
            (1, _) => calls(&[
                ("bash", quick),
                ("write", json!({"path": "new", "content": "made\n"})),
            ]),
            _ => text("All of it is done now, in words that take some pieces."),
        })
    })
}

/// One run that is killed. Where it fell, or nothing when the run was over first.
fn one_kill(aim: Aim) -> Option<String> {
    let world = World::new(own_uid());
    if aim == Aim::Completed {
        std::fs::write(world.ws.join("big"), "aaaaaaaaaaaaaaab\n".repeat(4 << 20)).unwrap();
    }
    let (let_go, held) = channel();
    let server = script(aim, held);
    let base = server.base_url();
    let slow = "touch running; sleep 86400";
    let checks = match aim {
        Aim::Check => vec!["--check", slow],
        Aim::SecondCheck => vec!["--check", "true", "--check", slow],
        _ => vec!["--check", "true"],
    };
    let mut child = Curfew::new(&world)
        .args(["run", "-p", "do it", "--base-url", &base, "-m", "scripted"])
        .args(&checks)
        .env("OPENAI_API_KEY", "sk-of-this-test")
        .spawn();
    let there = wait_for(aim, &mut child, &world, &server);
    child.kill().unwrap();
    let killed = child.wait().unwrap().code().is_none();
    drop(let_go);
    let mark = world.path().to_str().unwrap().to_owned();
    assert!(
        procs::gone(&mark, Duration::from_secs(1)),
        "{aim:?} left {:?}",
        procs::told(&mark)
    );
    if !there || !killed {
        return None;
    }
    let path = sessions(&world).pop()?.join("log.jsonl");
    let fell = Log::read(&path).types().last()?.to_string();
    assert_resumes(&world, &path, &format!("{aim:?}, {fell}"));
    Some(fell)
}

/// Waits until the run is where it is to be killed. Whether it came there.
fn wait_for(aim: Aim, child: &mut Child, world: &World, server: &Server) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    let running = world.ws.join("running");
    let log = || sessions(world).pop().map(|folder| folder.join("log.jsonl"));
    let holds = |kind: &str| {
        let needle = format!("\"type\":\"{kind}\"");
        let text = log()
            .and_then(|path| std::fs::read(path).ok())
            .unwrap_or_default();
        String::from_utf8_lossy(&text).contains(&needle)
    };
    loop {
        let there = match aim {
            Aim::Begun => log().is_some(),
            Aim::Request(index) => server.requests().len() > index,
            Aim::HalfAnswer => {
                server.requests().len() > 2 && {
                    let text = log()
                        .and_then(|path| std::fs::read(path).ok())
                        .unwrap_or_default();
                    String::from_utf8_lossy(&text).contains("Half of what")
                }
            }
            Aim::Call | Aim::SecondCall | Aim::Check | Aim::SecondCheck => running.exists(),
            Aim::Completed => holds("tool/completed"),
            Aim::Record(kind) => holds(kind),
        };
        if there {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(Instant::now() < deadline, "{aim:?} is not reached");
        wait::blink();
    }
}

fn assert_resumes(world: &World, path: &Path, fell: &str) {
    let id = Log::read(path).id().to_owned();
    let back = Server::answering(vec![text("Went on.")]);
    let base = back.base_url();
    let ran = Curfew::new(world)
        .args([
            "resume",
            &id,
            "-p",
            "go on",
            "--base-url",
            &base,
            "-m",
            "scripted",
        ])
        .env("OPENAI_API_KEY", "sk-of-this-test")
        .run();
    assert_eq!(ran.code, Some(0), "killed at {fell}: {}", ran.told());
    let log = Log::read(path);
    log.assert_whole();
    let verified = Curfew::new(world).args(["session", "verify", &id]).run();
    assert_eq!(
        verified.code,
        Some(0),
        "killed at {fell}: {}",
        verified.told()
    );
    let broken = unpaired(&back.requests()[0].messages());
    assert!(broken.is_empty(), "killed at {fell}: {broken:?}");
    // A call whose outcome is not known is not run again.
    let effects = std::fs::read_to_string(world.ws.join("effects")).unwrap_or_default();
    assert!(effects.lines().count() <= 1, "killed at {fell}: {effects}");
}
