//! A broker and the supervisor's end of it: starts, ends, deaths.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use std::path::{Path, PathBuf};
use std::time::Instant;

use common::{PATIENCE, World, broker};
use curfew_cell::protocol::FromBroker;
use curfew_policy::{Guarantee, Mode, State};
use curfew_sandbox::client::{BrokerEvent, Client, StartError};
use curfew_sandbox::{canary, compile, probe, report};
use curfew_worker::protocol::Response;

/// Host processes whose command line holds `mark`.
fn processes(mark: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark)
        })
        .collect()
}

/// Waits for a state of the host that must come; polled, because nothing announces it.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn the_canary_proves_what_the_design_promises() {
    let world = World::new();
    let session = world.session(Mode::WorkspaceWrite);
    let request = canary::request(&session.confinement);
    let Response::Canary { findings } = session.ask(&request, &[]).0 else {
        panic!("no canary")
    };
    for row in report(&session.confinement, session.client.facts(), &findings) {
        let expected = match row.name {
            Guarantee::ProtectedNames | Guarantee::Limits => State::Partial,
            _ => State::Enforced,
        };
        assert_eq!(row.state, expected, "{row:?} from {findings:?}");
    }
}

#[test]
fn a_dead_broker_loses_its_calls_and_says_so() {
    let world = World::new();
    let session = world.session(Mode::WorkspaceWrite);
    let mark = "86401.25";
    let call = session.next_call();
    let _pipes = session
        .client
        .command(call, session.line(&["sleep", mark]), session.limits)
        .unwrap();
    loop {
        match session.event() {
            BrokerEvent::Said(FromBroker::Started { call: started }) if started == call => break,
            BrokerEvent::Said(_) => {}
            BrokerEvent::Lost { .. } => panic!("lost too early"),
        }
    }
    until("the sleep shows", || !processes(mark).is_empty());
    let broker = rustix::process::Pid::from_raw(session.client.pid() as i32).unwrap();
    rustix::process::kill_process(broker, rustix::process::Signal::KILL).unwrap();
    loop {
        if let BrokerEvent::Lost { calls } = session.event() {
            assert_eq!(calls, [call]);
            break;
        }
    }
    until("the call is gone", || processes(mark).is_empty());
    assert!(
        session
            .client
            .command(9, session.line(&["true"]), session.limits)
            .is_err()
    );
}

#[test]
fn a_dropped_client_leaves_no_process() {
    let world = World::new();
    let session = world.session(Mode::WorkspaceWrite);
    let mark = "86402.25";
    let script = format!("(setsid sleep {mark} &) ; exec sleep {mark}");
    let call = session.next_call();
    let _pipes = session
        .client
        .command(call, session.line(&["sh", "-c", &script]), session.limits)
        .unwrap();
    until("both run", || processes(mark).len() >= 2);
    drop(session);
    until("both are gone", || processes(mark).is_empty());
}

#[test]
fn a_plan_that_no_longer_fits_is_a_typed_fault() {
    let world = World::new();
    let confinement = world.confinement(Mode::WorkspaceWrite);
    let plan = compile(&confinement, &probe(&confinement).unwrap()).unwrap();
    std::fs::rename(&world.workspace, world.workspace.with_extension("moved")).unwrap();
    std::fs::create_dir(&world.workspace).unwrap();
    match Client::start(&broker(), &plan, Box::new(drop)) {
        Err(StartError::Setup(fault)) => {
            assert_eq!(fault.step, "grab");
            assert_eq!(fault.path.as_deref(), Some(world.workspace.as_path()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_broker_is_reported_as_dead() {
    let world = World::new();
    let confinement = world.confinement(Mode::WorkspaceWrite);
    let plan = compile(&confinement, &probe(&confinement).unwrap()).unwrap();
    assert!(matches!(
        Client::start(Path::new("/bin/true"), &plan, Box::new(drop)),
        Err(StartError::Died { .. } | StartError::Frame(_))
    ));
    assert!(matches!(
        Client::start(Path::new("/nonexistent"), &plan, Box::new(drop)),
        Err(StartError::Io { .. })
    ));
}
