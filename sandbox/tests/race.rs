//! A file tool and somebody who swaps a directory for a symlink, at full speed, 10,000 times.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Session, World, state_of};
use curfew_policy::Mode;
use curfew_worker::protocol::{Observation, Request, Response};
use rustix::fs::{CWD, RenameFlags, renameat_with};

const ROUNDS: u32 = 10_000;

/// Swaps `ws/dir` (a directory) and `ws/link` (a symlink to the outside) while `attack` runs.
fn while_swapping(world: &World, attack: impl FnOnce()) -> u64 {
    let (dir, link) = (world.workspace.join("dir"), world.workspace.join("link"));
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        attack();
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
    let swaps = while_swapping(&world, || {
        for round in 0..ROUNDS {
            let path = format!("dir/new{round}");
            let text = b"x\n";
            let request = Request::Write {
                path,
                bytes: text.len() as u64,
                observations: Vec::new(),
            };
            tally.count(&session.ask(&request, &[text]).0);
        }
    });
    assert_eq!(state_of(&world.outside), before, "an escape");
    assert!(
        tally.done > 0 && tally.refused > 0 && swaps > u64::from(ROUNDS),
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
    let swaps = while_swapping(&world, || {
        for round in 0..ROUNDS {
            let (old, new) = if round % 2 == 0 {
                ("old line", "new line")
            } else {
                ("new line", "old line")
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
            }
        }
    });
    assert_eq!(state_of(&world.outside), before, "an escape");
    assert!(
        tally.done > 0 && tally.refused > 0 && swaps > u64::from(ROUNDS),
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
