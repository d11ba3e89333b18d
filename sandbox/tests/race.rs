//! A file tool and somebody who swaps a directory for a symlink, at full speed: 10,000 swaps at
//! least, with a request under way the whole time.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Session, World, state_of};
use curfew_policy::Mode;
use curfew_worker::protocol::{Observation, Request, Response};
use rustix::fs::{CWD, RenameFlags, renameat_with};

const SWAPS_MIN: u64 = 10_000;
const REQUESTS_MIN: u32 = 400;

/// Two races at a time would share the processors of a small machine.
static ALONE: Mutex<()> = Mutex::new(());

/// Swaps `ws/dir` (a directory) and `ws/link` (a symlink to the outside) while requests are made,
/// until there were enough of both.
fn while_swapping(world: &World, mut request: impl FnMut(u32)) -> u64 {
    let _alone = ALONE.lock().unwrap();
    let (dir, link) = (world.workspace.join("dir"), world.workspace.join("link"));
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut round = 0;
        while round < REQUESTS_MIN || swaps.load(Ordering::Relaxed) < SWAPS_MIN {
            request(round);
            round += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    swaps.into_inner()
}

fn world() -> World {
    let world = World::new();
    std::fs::create_dir(world.workspace.join("dir")).unwrap();
    std::os::unix::fs::symlink(&world.outside, world.workspace.join("link")).unwrap();
    for place in [world.workspace.join("dir"), world.outside.clone()] {
        std::fs::write(place.join("file"), "old line\n").unwrap();
    }
    world
}

#[derive(Clone, Copy)]
enum Turn {
    There,
    Back,
}

impl Turn {
    fn other(self) -> Self {
        match self {
            Turn::There => Turn::Back,
            Turn::Back => Turn::There,
        }
    }
}

#[derive(Default, Debug)]
struct Tally {
    done: u32,
    refused: u32,
}

impl Tally {
    fn count(&mut self, response: &Response) {
        match response {
            Response::Written { .. } | Response::Edited { .. } => self.done += 1,
            Response::Error { .. } => self.refused += 1,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn writes_race_a_swapped_symlink() {
    let world = world();
    let session = world.session(Mode::WorkspaceWrite);
    let before = state_of(&world.outside);
    let mut tally = Tally::default();
    let swaps = while_swapping(&world, |round| {
        let path = format!("dir/new{round}");
        let text = b"x\n";
        let request = Request::Write {
            path,
            bytes: text.len() as u64,
            observations: Vec::new(),
        };
        tally.count(&session.ask(&request, &[text]).0);
    });
    assert_eq!(state_of(&world.outside), before, "an escape");
    assert!(
        tally.done > 0 && tally.refused > 0,
        "no race: {tally:?}, {swaps} swaps"
    );
}

#[test]
fn edits_race_a_swapped_symlink() {
    let world = world();
    let session = world.session(Mode::WorkspaceWrite);
    let before = state_of(&world.outside);
    let mut seen = vec![
        observed(&session, "dir/file"),
        observed(&session, "link/file"),
    ];
    let mut tally = Tally::default();
    let mut turn = Turn::There;
    let swaps = while_swapping(&world, |_| {
        // What was edited last time decides what can be edited now; a refused edit changes nothing.
        let (old, new) = match turn {
            Turn::There => ("old line", "new line"),
            Turn::Back => ("new line", "old line"),
        };
        let request = Request::Edit {
            path: "dir/file".to_owned(),
            old_bytes: old.len() as u64,
            new_bytes: new.len() as u64,
            observations: seen.clone(),
        };
        let response = session.ask(&request, &[old.as_bytes(), new.as_bytes()]).0;
        tally.count(&response);
        if let Response::Edited { file, .. } = response {
            seen.retain(|known| known.path != file.path);
            seen.push(Observation {
                path: file.path,
                sha256: file.sha256,
                seen: file.seen,
            });
            turn = turn.other();
        }
    });
    assert_eq!(state_of(&world.outside), before, "an escape");
    assert!(
        tally.done > 0 && tally.refused > 0,
        "no race: {tally:?}, {swaps} swaps"
    );
}

/// Both the file inside and the one outside are read first, so that only the kernel is in the way.
fn observed(session: &Session, path: &str) -> Observation {
    let request = Request::Read {
        path: path.to_owned(),
        offset: 1,
        lines_max: 10,
        line_chars_max: 100,
        bytes_max: 1000,
    };
    match session.ask(&request, &[]).0 {
        Response::Read { file, .. } => {
            assert!(Path::new(&file.path).is_absolute());
            Observation {
                path: file.path,
                sha256: file.sha256,
                seen: file.seen,
            }
        }
        other => panic!("{other:?}"),
    }
}

/// Without fences the same race is lost: it is the kernel that wins it above.
#[test]
fn the_twin_without_fences_loses_the_race() {
    let world = world();
    let session = world.session(Mode::DangerFullAccess);
    let before = state_of(&world.outside);
    while_swapping(&world, |round| {
        let request = Request::Write {
            path: format!("dir/new{round}"),
            bytes: 2,
            observations: Vec::new(),
        };
        session.ask(&request, &[b"x\n"]);
    });
    assert_ne!(state_of(&world.outside), before);
}
