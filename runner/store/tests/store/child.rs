//! Second processes: this test binary once more, told by its environment what to be.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use curfew_store::{Barrier, Note, Store};

use crate::support::*;

const ROLE: &str = "CURFEW_STORE_TEST_ROLE";
const ROOT: &str = "CURFEW_STORE_TEST_ROOT";

/// A role's process. Killed and reaped when dropped.
pub struct Role {
    child: Child,
    out: BufReader<ChildStdout>,
}

/// The command that runs a role; a test may wrap it.
pub fn command(role: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "child::a_role_or_nothing",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(ROLE, role).env(ROOT, root);
    command
}

impl Role {
    pub fn spawn(mut command: Command) -> Role {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Role { child, out }
    }

    /// The next line that the role itself wrote; `None` when it is gone.
    pub fn line(&mut self) -> Option<String> {
        loop {
            let mut line = Vec::new();
            if self.out.read_until(b'\n', &mut line).unwrap() == 0 {
                return None;
            }
            // A line without its end was cut by a kill.
            let text = String::from_utf8_lossy(&line).into_owned();
            if let Some((_, text)) = text
                .strip_suffix('\n')
                .and_then(|text| text.split_once("role: "))
            {
                return Some(text.to_owned());
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("role: {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

#[test]
fn a_role_or_nothing() {
    let (Ok(role), Some(root)) = (std::env::var(ROLE), std::env::var_os(ROOT)) else {
        return;
    };
    let store = Store::new(root);
    match role.as_str() {
        "hold" => hold(&store),
        "open" => open(&store),
        "append" => append(&store),
        "fill" => crate::full::fill_the_disk(&store),
        other => panic!("no role {other}"),
    }
}

/// Holds the session `held` until stdin closes.
fn hold(store: &Store) {
    let _writer = store.open("held", NOW_MS, silent()).unwrap();
    say("held");
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

/// Says how opening the session `held` goes.
fn open(store: &Store) {
    match store.open("held", NOW_MS, silent()) {
        Ok(_) => say("opened"),
        Err(e) => say(&e.to_string()),
    }
}

/// Appends to the session `killed`, a few events ahead of the disk, and says what is durable. Waits
/// for its end when it has written so much that the test would take long.
fn append(store: &Store) {
    const AHEAD_MAX: u64 = 12;
    const TURNS_MAX: usize = 300;
    let durable = Arc::new((Mutex::new(0), Condvar::new()));
    let told = Arc::clone(&durable);
    let notify = Box::new(move |note: Note<'_>| {
        if let Note::Durable { seq } = note {
            say(&format!("durable {seq}"));
            *told.0.lock().unwrap() = seq;
            told.1.notify_all();
        }
    });
    let (writer, loaded) = store.open("killed", NOW_MS, notify).unwrap();
    let mut script = Script::after(&loaded.events);
    *durable.0.lock().unwrap() = script.next_seq;
    for n in 0..TURNS_MAX {
        let size = [10, 300, 2000, 9000, 10, 300, 2000, 60_000][n % 8];
        for (at, event) in script.turn(&"x".repeat(size)).into_iter().enumerate() {
            let seq = event.seq;
            let barrier = if at % 3 == 0 {
                Barrier::Flush
            } else {
                Barrier::None
            };
            writer.submit(vec![event], barrier).unwrap();
            let seen = durable.0.lock().unwrap();
            drop(
                durable
                    .1
                    .wait_while(seen, |seen| *seen + AHEAD_MAX < seq)
                    .unwrap(),
            );
        }
    }
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}
