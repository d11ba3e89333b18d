//! Worker calls: our own code in the confined child, without an exec.

use std::fs;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use curfew_cell::frame::{Channel, Rights};
use curfew_cell::protocol::{CallEnd, FromBroker, ToBroker, What};

use crate::modes::{Ask, Told};
use crate::plans::{self, Who, Workspace};
use crate::runner::Tests;
use crate::support::{Broker, Folder};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("a_worker_is_confined_like_a_command", confined);
    tests.for_each_uid("a_worker_call_without_its_socket_is_refused", no_socket);
}

fn ask(broker: &mut Broker, id: u64, path: &str) -> (Told, CallEnd) {
    let (mut ours, theirs) = Channel::pair(Rights::Refused).unwrap();
    let null = fs::File::open("/dev/null").unwrap();
    let call = ToBroker::Call {
        call: id,
        what: What::Worker {
            cwd: broker.cwd.clone(),
        },
        limits: plans::limits(),
    };
    let fds = [null.as_fd(), null.as_fd(), null.as_fd(), theirs.as_fd()];
    broker.channel.send_json(&call, &fds).unwrap();
    drop(theirs);
    ours.set_deadline(Some(Instant::now() + Duration::from_secs(20)));
    ours.send_json(&Ask::Append { path: path.into() }, &[])
        .unwrap();
    let (told, _) = ours.recv_json::<Told>().unwrap();
    let (end, _) = broker.wait_end(id).unwrap();
    (told, end)
}

fn confined(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib", "host\n");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let (
        Told::Appended {
            errno,
            descriptors,
            cwd,
        },
        end,
    ) = ask(&mut broker, 1, "own");
    assert_eq!((errno, end.exit_code), (0, Some(3)));
    // 0, 1, 2, the frame socket, and the directory that was being listed.
    assert_eq!(descriptors.len(), 5, "{descriptors:?}");
    let ws = folder.ws().display().to_string();
    assert_eq!(cwd, format!("{ws} {ws}"));
    assert_eq!(
        fs::read_to_string(folder.join("ws/own")).unwrap(),
        "worker\n"
    );
    let (Told::Appended { errno, .. }, _) = ask(&mut broker, 2, outside.to_str().unwrap());
    assert_eq!(errno, libc::EROFS);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\n");
    let plan = plans::fenced(who, &folder.ws(), Workspace::ReadOnly);
    let (Told::Appended { errno, .. }, _) = ask(&mut Broker::start(who, &plan), 1, "own");
    assert_eq!(errno, libc::EROFS);
    // Without a fence it writes what its uid may.
    let mut free = Broker::start(who, &plans::unfenced(&folder.ws()));
    let (Told::Appended { errno, .. }, end) = ask(&mut free, 1, outside.to_str().unwrap());
    assert_eq!((errno, end.exit_code), (0, Some(3)));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\nworker\n");
}

fn no_socket(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let null = fs::File::open("/dev/null").unwrap();
    for fds in [vec![null.as_fd(); 3], vec![null.as_fd(); 2], vec![]] {
        let call = ToBroker::Call {
            call: 1,
            what: What::Worker { cwd: folder.ws() },
            limits: plans::limits(),
        };
        broker.channel.send_json(&call, &fds).unwrap();
        let (answer, _) = broker.channel.recv_json::<FromBroker>().unwrap();
        let FromBroker::NotRun { call: 1, fault } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(fault.step, "descriptors");
    }
    assert_eq!(broker.sh("echo fine").out, "fine\n");
}
