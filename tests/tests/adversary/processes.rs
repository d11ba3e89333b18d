//! Other processes, and what may outlive a call.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use curfew_tests::run::Curfew;
use curfew_tests::world::{NOBODY, World, own_uid};
use curfew_tests::{procs, wait};

use super::{Act, MODES, PPP, Scene, Twin, row};

#[test]
fn fs21_process_of_the_parent() {
    fn held(scene: &Scene) -> bool {
        ["root", "root-write", "cwd", "fd", "mem", "map_files"]
            .iter()
            .any(|what| scene.did(what))
    }
    // The parent hides from its own uid even where nothing is fenced: it may hold a key.
    row(&[
        Act::new("through /proc", "{probe} process $PPID {out}/victim", held).twin(Twin::RootOnly),
    ]);
}

#[test]
fn fs22_only_the_standard_descriptors() {
    fn only_three(scene: &Scene) -> bool {
        let out = scene.ran.out();
        let born: Vec<&str> = out
            .lines()
            .filter_map(|line| line.strip_prefix("FD "))
            .collect();
        let standard = |row: &&str| ["0 ", "1 ", "2 "].iter().any(|fd| row.starts_with(fd));
        born.len() == 3 && born.iter().all(standard)
    }
    row(&[
        Act::new("of a program", "{probe} descriptors", only_three).expect(PPP),
        Act::new("of the shell", "ls -1 /proc/$$/fd", |scene| {
            let out = scene.ran.out();
            let held: Vec<&str> = out
                .lines()
                .filter(|line| line.parse::<u32>().is_ok())
                .collect();
            held == ["0", "1", "2"]
        })
        .expect(PPP),
    ]);
}

#[test]
fn ex15_process_one() {
    fn held(scene: &Scene) -> bool {
        [
            "root",
            "root-write",
            "cwd",
            "fd",
            "mem",
            "environ",
            "ptrace",
        ]
        .iter()
        .any(|what| scene.did(what))
    }
    row(&[Act::new(
        "through /proc",
        "{probe} process 1 {out}/victim",
        held,
    )]);
    // The kernel gives PID 1 no signal it has no handler for: the call goes on and ends as usual.
    row(&[Act::new(
        "stop and kill it",
        "{probe} signal 1 SIGSTOP SIGKILL; echo went-on",
        |scene| scene.ran.out().contains("went-on") && scene.ran.code == Some(0),
    )
    .expect(PPP)]);
}

#[test]
fn re08_wall_limit_of_a_stubborn_process() {
    each_mode(|world, mode| {
        let day = unique("86400.");
        let ways = [
            format!("trap '' TERM INT HUP QUIT; echo up; sleep {day}; sleep {day}"),
            format!("sleep {day} & echo up; kill -STOP $!; kill -STOP $$"),
        ];
        for way in ways {
            let ran = Curfew::new(world)
                .args([
                    "sandbox",
                    "--mode",
                    mode,
                    "--timeout",
                    "3s",
                    "--",
                    "sh",
                    "-c",
                    &way,
                ])
                .run_within(Duration::from_secs(60));
            assert!(ran.out().contains("up"), "{way}, {mode}: {}", ran.told());
            assert_ne!(ran.code, Some(0), "{way}, {mode}: {}", ran.told());
            let gone = procs::gone(&day, Duration::from_secs(1));
            assert!(gone, "{way}, {mode}: {:?}", procs::told(&day));
        }
    });
}

#[test]
fn re09_daemon_that_left_its_session() {
    // Not in a PID namespace of the test: that would end the daemon, and prove nothing.
    each_mode(|world, mode| {
        let mark = unique("re09");
        let port = free_port();
        let script = format!(
            "python3 {}/probe.py daemon {port} {mark}",
            world.ws.display()
        );
        let ran = Curfew::sandbox(world, mode, &["sh", "-c", &script]).run();
        assert!(
            ran.out().contains("DID listening"),
            "{mode}: {}",
            ran.told()
        );
        assert!(
            procs::gone(&mark, Duration::from_secs(1)),
            "{mode}: the daemon is still there"
        );
        std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free again");
    });
}

#[test]
fn re10_background_process_that_holds_stdout() {
    each_mode(|world, mode| {
        let day = unique("86400.");
        let script = format!("sleep {day} & echo main-is-done");
        // `run` waits for the process and for its pipes: a held pipe is a hang.
        let ran = Curfew::sandbox(world, mode, &["sh", "-c", &script])
            .run_within(Duration::from_secs(30));
        assert_eq!(ran.code, Some(0), "{mode}: {}", ran.told());
        assert!(ran.out().contains("main-is-done"), "{mode}: {}", ran.told());
        assert!(
            procs::gone(&day, Duration::from_secs(1)),
            "{mode}: the sleeper is still there"
        );
    });
}

#[test]
fn re15_supervisor_killed_in_a_call() {
    each_mode(|world, mode| {
        let day = unique("86400.");
        // A daemon in its own session, a child, and the main process.
        let script = format!("setsid sleep {day} & sleep {day} & echo up; exec sleep {day}");
        let mut child = Curfew::sandbox(world, mode, &["sh", "-c", &script]).spawn();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "up\n", "{mode}: the call did not start");
        assert!(wait::until(Duration::from_secs(10), || procs::marked(&day)
            .len()
            >= 3));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            procs::gone(&day, Duration::from_secs(1)),
            "{mode}: {:?}",
            procs::marked(&day)
        );
    });
}

fn each_mode(check: impl Fn(&World, &str)) {
    let uids = if own_uid() == 0 {
        vec![0, NOBODY]
    } else {
        vec![own_uid()]
    };
    for uid in uids {
        for mode in MODES {
            let world = World::new(uid);
            let probe = include_str!("probe.py");
            std::fs::write(world.ws.join("probe.py"), probe).unwrap();
            world.give();
            check(&world, mode);
        }
    }
}

/// A word that no other process of this host has.
fn unique(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{prefix}{}0{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
