//! What stands outside a workspace is the same before and after.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use common::{World, state_of};
use curfew_policy::Mode;

/// Each must fail on the outside, by whatever name it is reached.
fn attempts(outside: &str, home: &str) -> Vec<String> {
    let victim = format!("{outside}/victim");
    vec![
        format!("echo x > {outside}/new"),
        format!("echo x >> {victim}"),
        format!("ln -s {outside} l1; echo x > l1/new; ln -s l1 l2; echo x > l2/new2"),
        format!("ln -s {outside}/later dangling; echo x > dangling"),
        format!("ln {victim} hard && echo x >> hard"),
        format!("mv {victim} ."),
        format!("touch mine; mv mine {outside}/"),
        format!("rm -rf {outside}"),
        format!("chmod 777 {victim}; chmod 777 {outside}"),
        format!("touch -d 1990-01-01 {victim} {outside}"),
        format!("truncate -s 0 {victim}"),
        format!("mkdir {outside}/d; mkfifo {outside}/p; ln -s x {outside}/s"),
        format!("echo x > /proc/self/root{outside}/new; echo x > /proc/self/cwd/../outside/new"),
        format!("echo x > ../outside/new; cd ..; echo x > outside/new"),
        format!("python3 -c \"import os; os.setxattr('{victim}', 'user.a', b'1')\""),
        format!("python3 -c \"import os; os.fchmod(os.open('{victim}', os.O_RDONLY), 0o777)\""),
        format!("python3 -c \"import os; os.open('{victim}', os.O_RDONLY | os.O_TRUNC)\""),
        format!("cp /bin/true {home}/x; echo x >> {home}/.ssh/id_rsa; mkdir -p {home}/.config"),
        format!("rm -rf {home}; mv {home} ./h"),
    ]
}

#[test]
fn nothing_outside_changes() {
    for mode in [Mode::WorkspaceWrite, Mode::ReadOnly] {
        let world = World::new();
        let session = world.session(mode);
        let before = (state_of(&world.outside), state_of(&world.home));
        for script in attempts(
            world.outside.to_str().unwrap(),
            world.home.to_str().unwrap(),
        ) {
            let ran = session.shell(&script);
            assert_eq!(state_of(&world.outside), before.0, "{script}: {ran:?}");
            assert_eq!(state_of(&world.home), before.1, "{script}: {ran:?}");
        }
    }
}

#[test]
fn the_twin_without_fences_changes_it() {
    let world = World::new();
    world
        .run(
            Mode::DangerFullAccess,
            &format!("echo x > {}/new", world.outside.display()),
        )
        .ok();
    assert!(world.outside.join("new").exists());
}

#[test]
fn a_workspace_is_written_or_kept_as_the_mode_says() {
    let world = World::new();
    world
        .run(Mode::WorkspaceWrite, "echo hi > inside && cat inside")
        .ok();
    assert_eq!(
        std::fs::read_to_string(world.workspace.join("inside")).unwrap(),
        "hi\n"
    );
    let before = state_of(&world.workspace);
    let ran = world
        .run(
            Mode::ReadOnly,
            "cat inside; echo x > inside; rm inside; touch new; chmod 777 .; true",
        )
        .ok();
    assert_eq!(ran.stdout, "hi\n");
    assert_eq!(state_of(&world.workspace), before);
}

#[test]
fn private_areas_are_the_sessions_own() {
    let world = World::new();
    let name = format!("curfew-test-{}", std::process::id());
    let session = world.session(Mode::WorkspaceWrite);
    let script = format!("for d in /tmp /var/tmp /dev/shm; do echo x > $d/{name} || exit 1; done");
    session.shell(&script).ok();
    for area in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!std::path::Path::new(area).join(&name).exists(), "{area}");
    }
    // Of the session: /tmp stays. Of the call: /dev/shm does not.
    session
        .shell(&format!("test -e /tmp/{name} && test ! -e /dev/shm/{name}"))
        .ok();
    world
        .run(Mode::WorkspaceWrite, &format!("test ! -e /tmp/{name}"))
        .ok();
}

#[test]
fn a_closed_home_holds_no_secret() {
    let world = World::new();
    let home = world.home.display();
    let ran = world.run(
        Mode::WorkspaceWrite,
        &format!("cat {home}/.ssh/id_rsa /proc/self/root{home}/.ssh/id_rsa; ln -s {home}/.ssh s; cat s/id_rsa; ls -A {home}"),
    );
    assert!(!ran.stdout.contains("SECRET"), "{ran:?}");
    assert_eq!(ran.stdout.trim(), "", "{ran:?}");
    let twin = world
        .run(Mode::DangerFullAccess, &format!("cat {home}/.ssh/id_rsa"))
        .ok();
    assert!(twin.stdout.contains("SECRET"));
}

/// Root may open the host's event buffers without a capability, and reading them takes from them.
#[test]
fn the_hosts_traces_cannot_be_read() {
    let world = World::new();
    let script =
        "ls -A /sys/kernel/tracing /sys/kernel/debug | grep -v : | grep . ; ls -d /sys/kernel/mm";
    let ran = world.session(Mode::WorkspaceWrite).shell(script).ok();
    assert_eq!(ran.stdout, "/sys/kernel/mm\n", "{ran:#?}");
}
