//! The conversation, on a terminal of its own.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use crate::bench::{Bench, finish, of_type};

/// A conversation and our end of its terminal.
struct Talk {
    child: Child,
    ours: File,
    theirs: OwnedFd,
}

impl Talk {
    fn start(bench: &Bench, args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = open(
            name.as_c_str(),
            OFlags::RDWR | OFlags::NOCTTY,
            Mode::empty(),
        )
        .unwrap();
        let end = || theirs.try_clone().unwrap();
        let child = bench
            .command(args)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Talk {
            child,
            ours: File::from(ours),
            theirs,
        }
    }

    /// Reads until this is shown.
    fn shows(&mut self, what: &str) {
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).ends_with(what) {
            self.ours.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
    }
}

#[test]
fn a_conversation_that_waits_is_ended_by_a_signal_and_by_its_time() {
    for (args, signal, code) in [
        (&["--timeout", "60s"][..], Some(Signal::TERM), 143),
        (&["--timeout", "1500ms"], None, 3),
    ] {
        let bench = Bench::new();
        let mut talk = Talk::start(&bench, &[&["--provider", "echo"], args].concat());
        let cooked = |end: &OwnedFd| {
            tcgetattr(end)
                .unwrap()
                .local_modes
                .contains(LocalModes::ECHO)
        };
        assert!(cooked(&talk.theirs));
        talk.shows("> ");
        assert!(!cooked(&talk.theirs), "the editor has the terminal");
        if let Some(signal) = signal {
            kill_process(Pid::from_child(&talk.child), signal).unwrap();
        }
        let ran = finish(talk.child);
        assert_eq!(ran.code, Some(code));
        assert!(cooked(&talk.theirs), "the terminal was not given back");
        let log = bench.log();
        assert_eq!(log.last().unwrap()["type"], "result");
        assert_eq!(of_type(&log, "result")[0]["exitCode"], json!(code));
    }
}

#[test]
fn an_interrupt_at_the_prompt_does_not_end_the_next_turn() {
    use std::io::Write as _;
    let bench = Bench::new();
    let mut talk = Talk::start(&bench, &["--provider", "echo"]);
    talk.shows("> ");
    kill_process(Pid::from_child(&talk.child), Signal::INT).unwrap();
    talk.ours.write_all(b"hello\r").unwrap();
    talk.shows("\nhello");
    talk.shows("> ");
    talk.ours.write_all(b"/exit\r").unwrap();
    // The editor writes until it is gone; a full terminal would stop it.
    let mut ours = talk.ours.try_clone().unwrap();
    let reader =
        std::thread::spawn(move || while ours.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {});
    let ran = finish(talk.child);
    drop(talk.theirs);
    reader.join().unwrap();
    assert_eq!(ran.code, Some(0));
    assert_eq!(of_type(&bench.log(), "turn/end")[0]["reason"], "completed");
}
