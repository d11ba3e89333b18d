//! How fast a session is appended to, read, checked and opened, in events and bytes a second.
//!
//! `cargo run --release -p curfew-store --example append_rate -- DIR [EVENTS]`; DIR decides the
//! file system. Prints one figure a line; takes no part in any test.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Duration;

use curfew_engine::event::*;
use curfew_store::{Barrier, Note, Store};

/// One barrier for so many events of a bulk append.
const EVENTS_PER_BARRIER: usize = 1000;
const CHUNKS_PER_TURN: usize = 200;
const PIECE: &str =
    "fn divide(xs: &[f64]) -> f64 { xs.iter().sum::<f64>() / xs.len() as f64 } // é";

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| "/dev/shm".to_owned());
    let events: usize = args.next().map_or(300_000, |text| text.parse().unwrap());
    let dir = tempfile::Builder::new()
        .prefix("curfew-bench-")
        .tempdir_in(dir)
        .unwrap();
    let store = Store::new(dir.path());

    let script = script(events);
    let payload: usize = script.iter().map(event_payload).sum();
    for name in ["warm-up", "bulk"] {
        let took = append(&store, name, &script, EVENTS_PER_BARRIER);
        rate(
            &format!("append, a barrier each {EVENTS_PER_BARRIER} events ({name})"),
            events,
            took,
        );
    }
    let each = (events / 100).clamp(100, 5000);
    let took = append_and_wait(&store, &script[..each]);
    println!(
        "append and wait for Durable, one at a time: {:.1} us each",
        took.wall.as_secs_f64() * 1e6 / each as f64
    );

    let bytes = size(dir.path(), "bulk");
    println!(
        "log: {bytes} bytes, {:.0} a record, {:.2} times the payload",
        bytes as f64 / events as f64,
        bytes as f64 / payload as f64
    );

    let begun = Clock::now();
    store.read("bulk").unwrap().check().unwrap();
    rate("read and check the chain", events, begun.elapsed());
    let begun = Clock::now();
    let mut fold = curfew_engine::Fold::new(header("bulk"));
    script.iter().for_each(|event| fold.apply(event).unwrap());
    rate("fold alone", events, begun.elapsed());
    let begun = Clock::now();
    let (_writer, loaded) = store
        .open_with("bulk", 1, Box::new(|_| {}), &mut drop)
        .unwrap();
    rate("open (read, check, fold)", events, begun.elapsed());
    assert!(
        loaded.fold.open_run().is_none(),
        "the repair closed the run"
    );
    println!("peak resident memory: {} KiB", peak_kib());
}

fn rate(what: &str, events: usize, took: Took) {
    let (wall, cpu) = (took.wall.as_secs_f64(), took.cpu.as_secs_f64());
    println!(
        "{what}: {:.0} events/s ({wall:.3} s; {cpu:.3} s of processor, {:.0} events/s of it)",
        events as f64 / wall,
        events as f64 / cpu
    );
}

/// On a machine that does other things, the processor time says more than the clock.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    cpu: Duration,
}

struct Clock {
    wall: std::time::Instant,
    cpu: Duration,
}

impl Clock {
    fn now() -> Clock {
        Clock {
            wall: std::time::Instant::now(),
            cpu: cpu_time(),
        }
    }

    fn elapsed(&self) -> Took {
        Took {
            wall: self.wall.elapsed(),
            cpu: cpu_time() - self.cpu,
        }
    }
}

fn cpu_time() -> Duration {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
}

/// From the first submit to the log being closed, flushed.
fn append(store: &Store, id: &str, script: &[Event], per_barrier: usize) -> Took {
    let writer = store.create(&header(id), Box::new(|_| {})).unwrap();
    let events: Vec<Event> = script.to_vec();
    let begun = Clock::now();
    for (n, event) in events.into_iter().enumerate() {
        let barrier = if n % per_barrier == per_barrier - 1 {
            Barrier::Flush
        } else {
            Barrier::None
        };
        writer.submit(vec![event], barrier).unwrap();
    }
    let closed = writer.close().unwrap();
    assert!(closed.fault.is_none());
    begun.elapsed()
}

fn append_and_wait(store: &Store, script: &[Event]) -> Took {
    let (tell, told) = std::sync::mpsc::channel();
    let notify = Box::new(move |note: Note<'_>| {
        if let Note::Durable { seq } = note {
            tell.send(seq).unwrap();
        }
    });
    let writer = store.create(&header("waits"), notify).unwrap();
    let begun = Clock::now();
    for event in script {
        writer.submit(vec![event.clone()], Barrier::Flush).unwrap();
        assert_eq!(told.recv().unwrap(), event.seq);
    }
    begun.elapsed()
}

fn size(root: &Path, id: &str) -> u64 {
    std::fs::metadata(root.join(id).join("log.jsonl"))
        .unwrap()
        .len()
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap_or(0)
}

fn event_payload(event: &Event) -> usize {
    match &event.body {
        Body::UserMessage(message) => message.text.len(),
        Body::AssistantChunk(chunk) => chunk.text.len(),
        _ => 0,
    }
}

fn header(id: &str) -> Header {
    Header {
        version: 1,
        id: id.to_owned(),
        created_at: 0,
        cwd: "/w".to_owned(),
        parent_session: None,
        seed_length: None,
        origin: None,
        delegation_depth: 0,
        agent_preset: AgentPreset {
            name: "default".to_owned(),
            digest: "0".repeat(64),
        },
        profile: "default".to_owned(),
        curfew: "bench".to_owned(),
        host: "here".to_owned(),
    }
}

/// One run of turns, each a question and an answer in chunks.
fn script(events: usize) -> Vec<Event> {
    let mut script: Vec<Event> = Vec::with_capacity(events + CHUNKS_PER_TURN);
    let confinement = serde_json::from_str(CONFINEMENT).unwrap();
    push(&mut script, Body::SandboxConfinement(Box::new(confinement)));
    push(
        &mut script,
        Body::RequestHeader(Box::new(serde_json::from_str(REQUEST).unwrap())),
    );
    for turn in 1.. {
        if script.len() + CHUNKS_PER_TURN + 8 > events {
            break;
        }
        whole_turn(&mut script, turn, CHUNKS_PER_TURN);
    }
    let last = TurnStart {
        turn: 1 + script
            .iter()
            .filter(|event| matches!(event.body, Body::TurnStart(_)))
            .count() as u64,
    };
    push(&mut script, Body::TurnStart(last));
    while script.len() < events {
        let text = PIECE.to_owned();
        push(
            &mut script,
            Body::UserMessage(UserMessage {
                source: MessageSource::User,
                text,
            }),
        );
    }
    script
}

fn whole_turn(script: &mut Vec<Event>, turn: u64, chunks: usize) {
    let mark = StepMark { turn, step: 1 };
    push(script, Body::TurnStart(TurnStart { turn }));
    push(
        script,
        Body::UserMessage(UserMessage {
            source: MessageSource::User,
            text: PIECE.to_owned(),
        }),
    );
    push(script, Body::StepStart(mark));
    let sha256 = "0".repeat(64);
    push(
        script,
        Body::RequestSent(RequestSent {
            turn,
            step: 1,
            sha256: sha256.clone(),
            bytes: 2,
            prefix_sha256: sha256,
        }),
    );
    let first = script.len() as u64;
    for _ in 0..chunks {
        let text = PIECE.to_owned();
        push(
            script,
            Body::AssistantChunk(AssistantChunk {
                turn,
                step: 1,
                attempt: 0,
                block: Block::Text,
                text,
            }),
        );
    }
    let message = AssistantMessage {
        turn,
        step: 1,
        finish: Finish::Stop,
        calls: Vec::new(),
        usage: None,
        interrupted: false,
        dropped_calls: 0,
    };
    push(script, Body::AssistantMessage(message));
    if let Some(message) = script.last_mut() {
        message.source_event_seqs = Some((first..first + chunks as u64).collect());
    }
    push(script, Body::StepEnd(mark));
    push(
        script,
        Body::TurnEnd(TurnEnd {
            turn,
            reason: TurnEndReason::Completed,
            failure: None,
        }),
    );
}

fn push(script: &mut Vec<Event>, body: Body) {
    let seq = script.len() as u64;
    let node = matches!(body, Body::UserMessage(_) | Body::AssistantMessage(_));
    let surface_op = node.then_some(SurfaceOp::Append);
    script.push(Event {
        seq,
        time: 1_800_000_000_000,
        body,
        surface_op,
        source_event_seqs: None,
        ignorable: false,
    });
}

const REQUEST: &str = r#"{"reason":"initial","endpoint":"http://localhost/v1","model":"m","wire":"openai-chat/1",
"sampling":{},"system":"Be brief.","tools":[]}"#;
const CONFINEMENT: &str = r#"{"confinement":{"mode":"workspace-write","profile":"default","workspace":"/w",
"write":["/w"],"read":[],"closed":[],"mask":[],"protect":[],"net":"off","env":[],
"limits":{"wallMs":1,"memoryBytes":1,"processes":1,"outputBytes":1,"privateBytes":1},"evidence":true},
"digest":"d","enforcement":{"tier":"full","abi":7,"guarantees":[]}}"#;
