//! Standard streams that have a name on the host are no way to the host's metadata.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::{World, broker, state_of};
use curfew_policy::Mode;

/// What a descriptor lets a process change without writing.
const TRIES: &str = "
import os, sys
fd = int(sys.argv[1])
def attempt(what):
    try: what()
    except OSError: pass
attempt(lambda: os.fchmod(fd, 0o640))
attempt(lambda: os.fchown(fd, os.getuid(), os.getgid()))
attempt(lambda: os.utime(fd, (1, 1)))
attempt(lambda: os.setxattr(fd, 'user.planted', b'x'))
print('tried')
";

/// The same below a directory.
const TRIES_BELOW: &str = "cd /dev/fd/$1
chmod 640 victim; touch -d @1 victim; mv victim moved; echo tried";

fn tried(world: &World, mode: &str, fd: i32, stream: File) {
    let is_directory = stream.metadata().unwrap().is_dir();
    let [shell, script] = match is_directory {
        true => ["sh", TRIES_BELOW],
        false => ["python3", TRIES],
    };
    let mut command = Command::new(broker());
    command
        .args(["--mode", mode, "--ws"])
        .arg(&world.workspace)
        .args(["--", shell, "-c", script, &fd.to_string(), &fd.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    match fd {
        0 => command.stdin(stream),
        _ => command.stderr(stream),
    };
    let output = command.output().unwrap();
    assert_eq!(output.stdout, b"tried\n");
}

/// What a person can redirect from: a file, a directory, a device where one can be made.
fn named(world: &World) -> Vec<PathBuf> {
    let mut named = vec![world.outside.join("victim")];
    let node = world.outside.join("node");
    let made = Command::new("mknod")
        .arg(&node)
        .args(["c", "1", "3"])
        .stderr(Stdio::null())
        .status();
    if made.is_ok_and(|status| status.success()) && File::open(&node).is_ok() {
        named.push(node);
    }
    named
}

#[test]
fn a_stream_with_a_name_changes_nothing_outside() {
    let world = World::new();
    for path in named(&world) {
        for fd in [0, 2] {
            let before = state_of(&world.outside);
            tried(&world, "workspace-write", fd, File::open(&path).unwrap());
            assert_eq!(
                state_of(&world.outside),
                before,
                "{} on {fd}",
                path.display()
            );
            tried(&world, "danger-full-access", fd, File::open(&path).unwrap());
            assert_ne!(
                state_of(&world.outside),
                before,
                "{} on {fd}",
                path.display()
            );
        }
    }
}

#[test]
fn a_directory_is_no_way_past_the_mounts() {
    let world = World::new();
    let before = state_of(&world.outside);
    tried(
        &world,
        "workspace-write",
        2,
        File::open(&world.outside).unwrap(),
    );
    assert_eq!(state_of(&world.outside), before);
    tried(
        &world,
        "danger-full-access",
        2,
        File::open(&world.outside).unwrap(),
    );
    assert_ne!(state_of(&world.outside), before);
}

/// The client hands over its own `/dev/null`, which is the host's.
#[test]
fn the_null_device_of_a_session_is_not_the_hosts() {
    let world = World::new();
    let session = world.session(Mode::WorkspaceWrite);
    // Its mode stays even if this should succeed.
    let ran = session.command(&[
        "python3",
        "-c",
        "import os, stat; os.fchmod(0, stat.S_IMODE(os.fstat(0).st_mode))",
    ]);
    assert!(ran.stderr.contains("Read-only") || !owns_null(), "{ran:#?}");
}

fn owns_null() -> bool {
    rustix::process::geteuid().is_root() // of /dev/null, on every host
}

/// The twin: what a stream is for still works, from where the caller stopped reading.
#[test]
fn a_stream_is_read_from_where_it_stands() {
    let world = World::new();
    let mut file = File::open(world.outside.join("victim")).unwrap();
    file.read_exact(&mut [0; 3]).unwrap();
    let output = Command::new(broker())
        .arg("--ws")
        .arg(&world.workspace)
        .args(["--", "cat"])
        .stdin(file)
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"tim\n");
}
