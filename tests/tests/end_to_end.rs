//! Whole runs against a scripted server: the milestones, the ten acceptance criteria, bad input.

mod acceptance;
mod bad_input;
mod milestones;

use curfew_tests::log::{Log, unpaired};
use curfew_tests::run::{Curfew, Ran};
use curfew_tests::server::Server;
use curfew_tests::world::{World, own_uid};

/// A world of our own uid.
pub fn world() -> World {
    World::new(own_uid())
}

/// `curfew run -p PROMPT` against a server, with more arguments behind.
pub fn run(world: &World, server: &Server, prompt: &str) -> Curfew {
    against(Curfew::new(world).args(["run", "-p", prompt]), server)
}

pub fn resume(world: &World, server: &Server, id: &str, prompt: &str) -> Curfew {
    against(
        Curfew::new(world).args(["resume", id, "-p", prompt]),
        server,
    )
}

pub fn against(command: Curfew, server: &Server) -> Curfew {
    let base = server.base_url();
    command
        .args(["--base-url", &base, "-m", "scripted"])
        .env("OPENAI_API_KEY", "sk-of-this-test")
}

/// What must be true after any run: the log is whole, says how the run ended, agrees with the exit
/// code, `session verify` agrees, every step replays to the bytes the server received, and no
/// request held a call without its answer.
pub fn sound(world: &World, server: &Server, ran: &Ran) -> Log {
    let log = Log::only(world);
    log.assert_whole();
    let result = log.last("result");
    assert_eq!(
        result["exitCode"].as_i64(),
        ran.code.map(i64::from),
        "{}",
        ran.told()
    );
    assert_eq!(log.types().last(), Some(&"result"), "{:?}", log.types());
    let verified = Curfew::new(world)
        .args(["session", "verify", log.id()])
        .run();
    assert_eq!(verified.code, Some(0), "{}", verified.told());
    replays(world, server, &log);
    for request in server.requests() {
        let broken = unpaired(&request.messages());
        assert!(broken.is_empty(), "{broken:?} in {:#}", request.json());
    }
    log
}

/// Every step's body, rebuilt from the log, is what the server received; retries resend it.
fn replays(world: &World, server: &Server, log: &Log) {
    let mut received: Vec<Vec<u8>> = server.requests().into_iter().map(|r| r.body).collect();
    received.dedup();
    assert_eq!(
        log.all("request/sent").len(),
        received.len(),
        "one body a step"
    );
    for (index, body) in received.iter().enumerate() {
        let step = (index + 1).to_string();
        let replayed = Curfew::new(world)
            .args(["session", "replay", log.id(), "--step", &step])
            .run();
        assert_eq!(replayed.code, Some(0), "step {step}: {}", replayed.told());
        assert_eq!(&replayed.stdout, body, "step {step} replays to other bytes");
    }
}

/// The content of the tool messages of a request.
pub fn tool_messages(server: &Server, request: usize) -> Vec<String> {
    let messages = server.requests()[request].messages();
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}
