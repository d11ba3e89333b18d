use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use curfew_store::StoreError;

use crate::child::{Role, command};
use crate::support::*;

#[test]
fn a_second_opener_in_this_process_is_refused() {
    let place = Place::new();
    let writer = place.store.create(&header("held"), silent()).unwrap();
    let error = place.store.open("held", NOW_MS, silent()).err().unwrap();
    let StoreError::Locked {
        holder: Some(holder),
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(holder.pid, std::process::id());
    drop(writer);
    place.store.open("held", NOW_MS, silent()).unwrap();
}

#[test]
fn a_second_process_is_told_who_holds_it_and_what_to_do() {
    let place = Place::new();
    place.finished("held", 1);
    let (_writer, loaded) = place.store.open("held", NOW_MS, silent()).unwrap();
    let said = Role::spawn(command("open", place.store.root()))
        .line()
        .unwrap();
    for part in [
        &format!("process {}", std::process::id()),
        "since 20",
        "wait",
        "or end it",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // Looking is not writing.
    assert_eq!(
        place.store.inspect("held").unwrap().events.len(),
        loaded.events.len()
    );
    assert_eq!(place.store.list().unwrap().len(), 1);
}

#[test]
fn a_lock_goes_with_its_process_however_that_ends() {
    let place = Place::new();
    place.finished("held", 1);
    for end in ["kill", "exit"] {
        let mut role = Role::spawn(command("hold", place.store.root()));
        assert_eq!(role.line().as_deref(), Some("held"));
        let error = place.store.open("held", NOW_MS, silent()).err().unwrap();
        assert!(
            matches!(
                error,
                StoreError::Locked {
                    holder: Some(_),
                    ..
                }
            ),
            "{error}"
        );
        if end == "kill" {
            role.kill();
        }
        drop(role);
        place.store.open("held", NOW_MS, silent()).unwrap();
    }
}

/// A process that is being made shares every descriptor until it calls exec. It must not keep the
/// lock of a session that was closed meanwhile.
#[test]
fn a_lock_is_free_once_its_writer_is_closed_whatever_is_being_started() {
    let place = Place::new();
    place.finished("held", 1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        let opened: Vec<_> = (0..300)
            .map(|_| place.store.open("held", NOW_MS, silent()).map(drop))
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert!(
            opened.iter().all(Result::is_ok),
            "{:?}",
            opened.iter().find(|opened| opened.is_err())
        );
    });
}
