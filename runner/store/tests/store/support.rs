//! What every test needs: a store in a directory of its own, legal events, collected notes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use curfew_engine::event::*;
use curfew_store::{Note, Notify, Store, Writer};

pub const NOW_MS: u64 = 1_800_000_000_000;

pub fn header(id: &str) -> Header {
    Header {
        version: 1,
        id: id.to_owned(),
        created_at: NOW_MS,
        cwd: "/home/me/project".to_owned(),
        parent_session: None,
        seed_length: None,
        origin: None,
        delegation_depth: 0,
        agent_preset: AgentPreset {
            name: "default".to_owned(),
            digest: "0".repeat(64),
        },
        profile: "default".to_owned(),
        curfew: "0.1.0".to_owned(),
        host: "here".to_owned(),
    }
}

/// Writes legal events: runs of turns, each with one step.
#[derive(Default)]
pub struct Script {
    pub next_seq: u64,
    turn: u64,
    run: u64,
    run_is_open: bool,
    header_stands: bool,
    /// Seqs of the open step's chunks.
    chunks: Vec<u64>,
}

impl Script {
    /// Goes on after these, which close their last run.
    pub fn after(events: &[Event]) -> Script {
        let mut script = Script {
            next_seq: events.len() as u64,
            ..Script::default()
        };
        for event in events {
            match &event.body {
                Body::TurnStart(start) => script.turn = start.turn,
                Body::SandboxConfinement(_) => script.run += 1,
                Body::RequestHeader(_) => script.header_stands = true,
                _ => {}
            }
        }
        script
    }

    pub fn event(&mut self, body: Body) -> Event {
        let seq = self.next_seq;
        self.next_seq += 1;
        let surface_op = match body {
            Body::UserMessage(_) | Body::AssistantMessage(_) => Some(SurfaceOp::Append),
            _ => None,
        };
        Event {
            seq,
            time: NOW_MS + seq,
            body,
            surface_op,
            source_event_seqs: None,
            ignorable: false,
        }
    }

    fn begin_run(&mut self) -> Vec<Event> {
        if self.run_is_open {
            return Vec::new();
        }
        self.run_is_open = true;
        self.run += 1;
        let reason = match self.header_stands {
            true => HeaderReason::Resume,
            false => HeaderReason::Initial,
        };
        self.header_stands = true;
        let confinement = serde_json::from_str(CONFINEMENT).unwrap();
        let header = RequestHeader {
            reason,
            endpoint: "http://localhost/v1".to_owned(),
            model: "m".to_owned(),
            wire: "openai-chat/1".to_owned(),
            sampling: Sampling::default(),
            context_window: None,
            system: "Be brief.".to_owned(),
            tools: Vec::new(),
        };
        vec![
            self.event(Body::SandboxConfinement(Box::new(confinement))),
            self.event(Body::RequestHeader(Box::new(header))),
        ]
    }

    /// A turn whose answer has begun to arrive.
    pub fn open_turn(&mut self, text: &str) -> Vec<Event> {
        let mut events = self.begin_run();
        self.turn += 1;
        self.chunks.clear();
        let turn = self.turn;
        let message = UserMessage {
            source: MessageSource::User,
            text: text.to_owned(),
        };
        let sent = RequestSent {
            turn,
            step: 1,
            sha256: "0".repeat(64),
            bytes: 2,
            prefix_sha256: "0".repeat(64),
        };
        events.push(self.event(Body::TurnStart(TurnStart { turn })));
        events.push(self.event(Body::UserMessage(message)));
        events.push(self.event(Body::StepStart(StepMark { turn, step: 1 })));
        events.push(self.event(Body::RequestSent(sent)));
        events.push(self.chunk("It is "));
        events
    }

    pub fn chunk(&mut self, text: &str) -> Event {
        let turn = self.turn;
        let chunk = AssistantChunk {
            turn,
            step: 1,
            attempt: 0,
            block: Block::Text,
            text: text.to_owned(),
        };
        self.chunks.push(self.next_seq);
        self.event(Body::AssistantChunk(chunk))
    }

    /// A whole turn: one question, one answer in two chunks.
    pub fn turn(&mut self, text: &str) -> Vec<Event> {
        let mut events = self.open_turn(text);
        events.push(self.chunk("done. ✓"));
        events.extend(self.close_turn(TurnEndReason::Completed));
        events
    }

    fn close_turn(&mut self, reason: TurnEndReason) -> Vec<Event> {
        let turn = self.turn;
        let message = AssistantMessage {
            turn,
            step: 1,
            finish: if reason == TurnEndReason::Completed {
                Finish::Stop
            } else {
                Finish::Cut
            },
            calls: Vec::new(),
            usage: Some(Usage {
                input: 10,
                output: 3,
                cache_read: None,
            }),
            interrupted: reason != TurnEndReason::Completed,
            dropped_calls: 0,
        };
        let mut message = self.event(Body::AssistantMessage(message));
        message.source_event_seqs = Some(self.chunks.clone());
        vec![
            message,
            self.event(Body::StepEnd(StepMark { turn, step: 1 })),
            self.event(Body::TurnEnd(TurnEnd {
                turn,
                reason,
                failure: None,
            })),
        ]
    }

    /// The end of a run, its last turn over.
    pub fn result(&mut self) -> Event {
        self.run_is_open = false;
        self.event(Body::Result(Box::new(RunResult {
            status: "finished".to_owned(),
            exit_code: 0,
            reason: "completed".to_owned(),
            session_id: "x".to_owned(),
            run: self.run,
            steps: 1,
            usage: Usage::default(),
            cost_usd: None,
            duration_ms: 5,
            final_message: None,
            checks: Vec::new(),
            denials: 0,
            changed: Vec::new(),
            logged: true,
        })))
    }

    /// Ends an open turn and its run the way a run does that can go no further.
    pub fn closers(&mut self) -> Vec<Event> {
        let mut events = self.close_turn(TurnEndReason::Error(ErrorClass::Storage));
        events.push(self.result());
        events
    }

    /// A run of one turn, from beginning to end.
    pub fn run(&mut self, text: &str) -> Vec<Event> {
        let mut events = self.turn(text);
        events.push(self.result());
        events
    }
}

const CONFINEMENT: &str = r#"{"confinement":{"mode":"workspace-write","profile":"default","workspace":"/w",
"write":["/w"],"read":[],"closed":[],"mask":[],"protect":[],"net":"off","env":[],
"limits":{"wallMs":1,"memoryBytes":1,"processes":1,"outputBytes":1,"privateBytes":1},"evidence":true},
"digest":"d","enforcement":{"tier":"full","abi":7,"guarantees":[]}}"#;

/// Notes as they came, to be looked at from the test's thread.
#[derive(Clone, Default)]
pub struct Notes {
    inner: Arc<(Mutex<Vec<Seen>>, Condvar)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Written(u64, String),
    Durable(u64),
    Failed(String),
}

impl Notes {
    pub fn notify(&self) -> Notify {
        let inner = Arc::clone(&self.inner);
        Box::new(move |note| {
            let seen = match note {
                Note::Written { seq, line } => {
                    Seen::Written(seq, String::from_utf8(line.to_vec()).unwrap())
                }
                Note::Durable { seq } => Seen::Durable(seq),
                Note::Failed { fault } => Seen::Failed(fault.to_string()),
            };
            inner.0.lock().unwrap().push(seen);
            inner.1.notify_all();
        })
    }

    /// Waits until the notes satisfy a condition; a minute is a hang.
    pub fn wait(&self, what: &str, ready: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let notes = self.inner.0.lock().unwrap();
        let (notes, timeout) = self
            .inner
            .1
            .wait_timeout_while(notes, Duration::from_secs(60), |notes| !ready(notes))
            .unwrap();
        assert!(!timeout.timed_out(), "no {what} among {:?}", notes.last());
        notes.clone()
    }

    pub fn wait_durable(&self, seq: u64) -> Vec<Seen> {
        self.wait("durable", |notes| {
            notes
                .iter()
                .any(|note| matches!(note, Seen::Durable(at) if *at >= seq))
        })
    }

    pub fn all(&self) -> Vec<Seen> {
        self.inner.0.lock().unwrap().clone()
    }
}

pub fn silent() -> Notify {
    Box::new(|_| {})
}

/// A store in a directory that goes with it.
pub struct Place {
    pub store: Store,
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::Builder::new()
            .prefix("curfew-store-")
            .tempdir()
            .unwrap();
        Place {
            store: Store::new(dir.path().join("state/sessions")),
            dir,
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn session(&self, id: &str) -> PathBuf {
        self.store.root().join(id)
    }

    pub fn log(&self, id: &str) -> PathBuf {
        self.session(id).join("log.jsonl")
    }

    /// A session of whole turns, closed.
    pub fn finished(&self, id: &str, turns: usize) -> Vec<u8> {
        let mut script = Script::default();
        let writer = self.store.create(&header(id), silent()).unwrap();
        for n in 0..turns {
            submit(&writer, script.turn(&format!("question {n}")));
        }
        submit(&writer, vec![script.result()]);
        let closed = writer.close().unwrap();
        assert!(closed.fault.is_none(), "{closed:?}");
        fs::read(self.log(id)).unwrap()
    }
}

/// Puts other bytes in a file's place. ext4 flushes a file that is truncated and written again
/// (auto_da_alloc); a new one it does not, and tests write thousands.
pub fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

pub fn submit(writer: &Writer, events: Vec<Event>) {
    writer.submit(events, curfew_store::Barrier::Flush).unwrap();
}

/// Events compare by what they are on disk.
pub fn lines_of(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}

/// Every file below a directory, with what a write would change.
pub fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            todo.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let bytes = if meta.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        found.insert(path, (meta.mode(), meta.mtime(), meta.mtime_nsec(), bytes));
    }
    found
}
