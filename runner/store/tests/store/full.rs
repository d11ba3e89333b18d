//! A full disk, for real: a small tmpfs in a mount namespace of a child's own.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use curfew_store::{Barrier, Store, StoreError, Takes, WriteFault};

use crate::child::{self, Role};
use crate::support::*;

/// Runs a role with a tmpfs of 8 MiB mounted on the directory. The namespace, and the mount with
/// it, goes with the process.
fn on_a_small_disk(role: &str, dir: &Path) -> Option<Role> {
    let root = rustix::process::geteuid().is_root();
    let flags = if root { "-m" } else { "-Urm" };
    let probe = Command::new("unshare").args([flags, "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("not run: a full disk, no mount namespace to be had on this host");
        return None;
    }
    let inner = child::command(role, &dir.join("sessions"));
    let mut command = Command::new("unshare");
    command.args([
        flags,
        "sh",
        "-c",
        "mount -t tmpfs -o size=8m none \"$0\" && exec \"$@\"",
    ]);
    command
        .arg(dir)
        .arg(inner.get_program())
        .args(inner.get_args());
    for (key, value) in inner.get_envs() {
        command.env(key, value.unwrap());
    }
    Some(Role::spawn(command))
}

#[test]
fn a_run_on_a_full_disk_ends_with_a_valid_log() {
    let place = Place::new();
    let Some(mut role) = on_a_small_disk("fill", place.dir()) else {
        return;
    };
    assert_eq!(role.line().as_deref(), Some("closed by its own events"));
    assert_eq!(role.line().as_deref(), Some("closed by repair"));
    assert_eq!(
        role.line().as_deref(),
        Some("closed after a record too long for the reserve")
    );
    assert_eq!(
        role.line().as_deref(),
        Some("nothing is made on a full disk")
    );
    assert_eq!(role.line(), None);
}

/// The role. Panics when something does not hold.
pub fn fill_the_disk(store: &Store) {
    let disk = store.root().parent().unwrap();
    for (id, how) in [
        ("own", "by its own events"),
        ("repair", "by repair"),
        ("long", "after a record too long for the reserve"),
    ] {
        let notes = Notes::default();
        let mut script = Script::default();
        let writer = store.create(&header(id), notes.notify()).unwrap();
        submit(&writer, script.turn("fill it"));
        notes.wait_durable(script.next_seq - 1);
        let ballast = fill(disk);
        // The run hears of it once. Its own events close it when it goes at the disk's pace;
        // otherwise, or with records too long for the reserve, it is ahead of the disk by then.
        let size = if id == "long" { 900 << 10 } else { 4000 };
        while !notes
            .all()
            .iter()
            .any(|note| matches!(note, Seen::Failed(_)))
        {
            let turn = script.turn(&"x".repeat(size));
            let seq = turn[turn.len() - 1].seq;
            if writer.submit(turn, Barrier::Flush).is_err() {
                break;
            }
            if id == "own" {
                notes.wait("durable", |notes| notes.contains(&Seen::Durable(seq)));
            }
        }
        let heard = notes.wait("failure", |notes| {
            notes.iter().any(|note| matches!(note, Seen::Failed(_)))
        });
        assert_eq!(
            heard
                .iter()
                .filter(|note| matches!(note, Seen::Failed(_)))
                .count(),
            1
        );
        match id {
            "own" => {
                let result = script.result();
                let last = result.seq;
                writer.submit_closing(vec![result]).unwrap();
                notes.wait_durable(last);
            }
            _ => writer.submit_storage_end(NOW_MS).unwrap(),
        }
        assert_ne!(writer.status().takes, Takes::Nothing);
        let closed = writer.close().unwrap();
        assert!(
            matches!(closed.fault, Some(WriteFault::NoSpace)),
            "{closed:?}"
        );
        verify(store, id, closed.next_seq);
        fs::remove_file(ballast).unwrap();
        verify(store, id, closed.next_seq);
        // With room again it goes on, and there is nothing left to repair.
        let (writer, loaded) = store.open(id, NOW_MS, silent()).unwrap();
        assert_eq!(loaded.notes, []);
        let mut script = Script::after(&loaded.events);
        submit(&writer, script.run("goes on"));
        assert!(writer.close().unwrap().fault.is_none());
        child::say(&format!("closed {how}"));
    }
    fill(disk);
    let error = store.create(&header("none"), silent()).err().unwrap();
    assert!(
        matches!(
            error,
            StoreError::Write {
                fault: WriteFault::NoSpace,
                ..
            } | StoreError::Io { .. }
        ),
        "{error}"
    );
    assert_eq!(store.list().unwrap().len(), 3);
    assert_eq!(
        fs::read_dir(store.root()).unwrap().count(),
        3,
        "a half-made session is left"
    );
    child::say("nothing is made on a full disk");
}

fn verify(store: &Store, id: &str, events: u64) {
    let read = store.inspect(id).unwrap();
    assert_eq!(
        (read.events.len() as u64, read.tail),
        (events, curfew_store::Tail::Clean)
    );
}

/// Takes every byte that is left.
fn fill(disk: &Path) -> std::path::PathBuf {
    let path = disk.join("ballast");
    let mut file = File::create(&path).unwrap();
    for size in [1 << 16, 4096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    path
}
