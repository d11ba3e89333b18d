//! danger-full-access: no fence, but processes, environment and limits are held.

use std::fs;
use std::io::Read;
use std::process::Command;

use curfew_cell::plan::CallLimits;

use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Folder, as_who, eventually, mark, processes_with};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("without_a_fence_nothing_is_refused", nothing_refused);
    tests.for_each_uid("without_a_fence_daemons_still_end", daemon);
    tests.for_each_uid("without_a_fence_the_wall_limit_holds", wall);
    tests.for_each_uid(
        "without_a_fence_nothing_survives_the_supervisor",
        supervisor_gone,
    );
    tests.for_each_uid("without_a_fence_nothing_survives_the_broker", broker_killed);
    tests.for_each_uid("without_a_fence_killing_init_changes_nothing", init_killed);
}

fn nothing_refused(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib", "host\n");
    let mut victim = as_who(&mut Command::new("/bin/sleep"), who)
        .arg("300")
        .spawn()
        .unwrap();
    let mut broker = Broker::start(who, &plans::unfenced(&folder.ws()));
    let done = broker.sh(&format!(
        "echo x >> {0}; chmod 0600 {0}; kill -9 {1}; id -u; echo ${{CURFEW_LEAK-none}}",
        outside.display(),
        victim.id()
    ));
    assert_eq!(done.out, format!("{}\nnone\n", who.uid()), "{done:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\nx\n");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&victim.wait().unwrap()),
        Some(9)
    );
    assert!(done.denials.is_empty());
}

fn start_daemons(mark: &str) -> String {
    format!(
        "(setsid sh -c 'trap \"\" HUP TERM INT; while :; do sleep 1; done; : {mark}' \
           >/dev/null 2>&1 </dev/null &); echo up"
    )
}

fn daemon(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::unfenced(&folder.ws()));
    let done = broker.sh(&start_daemons(&mark));
    assert_eq!(done.out, "up\n");
    assert!(
        done.end.background >= 1 && done.end.survivors == 0,
        "{done:?}"
    );
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
}

fn wall(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let limits = CallLimits {
        wall_ms: 200,
        ..plans::limits()
    };
    let mut broker = Broker::start(who, &plans::unfenced(&folder.ws()));
    let script = format!(
        "{}; trap '' TERM; while :; do sleep 1; done",
        start_daemons(&mark)
    );
    let done = broker.sh_within(&script, limits);
    assert!(done.end.timed_out && done.end.signal == Some(9), "{done:?}");
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
    assert_eq!(broker.sh("echo fine").out, "fine\n");
}

fn running(broker: &mut Broker, mark: &str) {
    let script = format!(
        "{}; trap '' TERM; while :; do sleep 1; done",
        start_daemons(mark)
    );
    let (id, mut out, _err) = broker.launch_sh(&script);
    let mut up = [0; 3];
    out.read_exact(&mut up).unwrap();
    broker.wait_started(id);
    eventually("the daemon runs", || !processes_with(mark).is_empty());
}

fn supervisor_gone(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::unfenced(&folder.ws()));
    running(&mut broker, &mark);
    assert_eq!(broker.close(), 0);
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
}

fn broker_killed(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::unfenced(&folder.ws()));
    running(&mut broker, &mark);
    broker.process.kill().unwrap();
    broker.process.wait().unwrap();
    eventually("everything gone", || processes_with(&mark).is_empty());
}

fn init_killed(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::unfenced(&folder.ws()));
    let done = broker.sh(&format!(
        "{}; kill -9 $PPID; sleep 300",
        start_daemons(&mark)
    ));
    assert_eq!(done.end.signal, Some(9), "{done:?}");
    assert!(done.end.background >= 2, "{done:?}");
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
    assert_eq!(broker.sh("echo fine").out, "fine\n");
}
