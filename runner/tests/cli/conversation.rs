//! The conversation, on a terminal of its own.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use crate::bench::{Bench, DEADLINE, finish, of_type};

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
        let wait = Timespec::try_from(DEADLINE).unwrap();
        let mut seen = String::new();
        let mut byte = [0];
        while !seen.ends_with(what) {
            let mut end = [PollFd::new(&self.ours, PollFlags::IN)];
            let ready = poll(&mut end, Some(&wait)).unwrap();
            assert_eq!(ready, 1, "{what:?} is not shown: {seen:?}");
            self.ours.read_exact(&mut byte).unwrap();
            seen.push(char::from(byte[0]));
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
