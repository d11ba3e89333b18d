//! Processes: nothing outside is seen or touched, nothing inside survives.

use std::io::Read;
use std::process::Command;
use std::time::Instant;

use curfew_cell::plan::CallLimits;

use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Folder, as_who, eventually, mark, processes_with};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("host_processes_are_out_of_reach", host_processes);
    tests.for_each_uid("init_cannot_be_reached", init);
    tests.for_each_uid("only_0_1_2_are_open", descriptors);
    tests.add(
        "a_process_of_the_same_uid_cannot_look_into_a_broker",
        looked_into,
    );
    tests.for_each_uid("no_capability_is_left", capabilities);
    tests.for_each_uid("signals_mask_and_umask_are_plain", plain_state);
    tests.for_each_uid("a_daemon_ends_with_its_call", daemon);
    tests.for_each_uid("a_call_returns_while_a_child_holds_stdout", held_output);
    tests.for_each_uid("output_written_during_the_drain_arrives", drain);
    tests.for_each_uid("the_wall_limit_ends_what_ignores_signals", wall);
    tests.for_each_uid("the_wall_limit_ends_a_stopped_child", stopped);
    tests.for_each_uid("a_killed_call_ends_whole", killed);
    tests.for_each_uid("exit_codes_and_signals_are_told_apart", exits);
    tests.for_each_uid("nothing_survives_the_broker", broker_killed);
    tests.for_each_uid("nothing_survives_the_supervisor", supervisor_gone);
    tests.for_each_uid("the_process_limit_holds", process_limit);
    tests.for_each_uid("the_memory_limit_holds", memory_limit);
    tests.for_each_uid("calls_run_side_by_side", side_by_side);
    tests.for_each_uid("a_call_with_other_limits_gets_them", other_limits);
    tests.for_each_uid("calls_leave_no_process_behind", nothing_piles_up);
    tests.for_each_uid(
        "a_waiting_init_that_dies_costs_no_call",
        waiting_init_killed,
    );
}

fn host_processes(who: Who) {
    let folder = Folder::new(who);
    let mut command = Command::new("/bin/sleep");
    let mut victim = as_who(&mut command, who).arg("300").spawn().unwrap();
    let pid = victim.id();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "kill -9 {pid}; kill -STOP {pid}; kill -9 -1; echo never"
    ));
    // kill -1 reaches everything the call has, itself included when it is not spared.
    assert!(
        done.out == "never\n" || done.end.signal.is_some(),
        "{done:?}"
    );
    let done = broker.sh(&format!(
        "ls /proc | grep -c '^[0-9]'; cat /proc/{pid}/cmdline; sleep 300 & kill -9 $! && echo own"
    ));
    assert!(done.out.ends_with("own\n"), "{done:?}");
    let seen: u32 = done.out.lines().next().unwrap().parse().unwrap();
    assert!(seen <= 4, "{done:?}");
    assert!(
        victim.try_wait().unwrap().is_none(),
        "the host's process was ended"
    );
    victim.kill().unwrap();
    victim.wait().unwrap();
}

fn init(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh("kill -9 1; kill -STOP 1; kill -TERM 1; \
         for f in environ mem maps fd/0 fd/3 root/etc/passwd cwd/etc/passwd auxv stack syscall; do \
           head -c 1 /proc/1/$f >/dev/null 2>&1 && echo read $f; done; \
         readlink /proc/1/exe /proc/1/root; \
         echo x > /proc/1/mem; echo 10 > /proc/1/oom_score_adj; \
         perl -e 'my $l = pack(q(QQ)); print qq(traced\\n) if syscall(101, 16, 1, 0, 0) != -1; \
           print qq(limit\\n) if syscall(302, 1, 7, 0, $l) != -1'; echo end");
    assert_eq!(done.out, "end\n", "{done:?}");
    assert_eq!(done.code(), 0);
}

fn descriptors(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    for _ in 0..3 {
        // Builtins without a glob: a pipe, a redirection or a listing is a descriptor of its own.
        let done = broker.sh(
            "n=0; while [ $n -lt 1024 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done",
        );
        assert_eq!(done.out, "0\n1\n2\n", "{done:?}");
    }
    let done = broker.sh(
        "perl -e 'for (3..1023) { open(F, q(<&=), $_) and -e F and print qq($_\\n) }'; readlink /proc/self/fd/0",
    );
    assert_eq!(done.out, "/dev/null\n");
}

fn capabilities(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u");
    let zero = "0000000000000000";
    let inner = if who == Who::Root { 1000 } else { who.uid() };
    let expected = format!(
        "CapInh:\t{zero}\nCapPrm:\t{zero}\nCapEff:\t{zero}\nCapBnd:\t{zero}\nCapAmb:\t{zero}\n\
         NoNewPrivs:\t1\nSeccomp:\t2\n{inner}\n"
    );
    assert_eq!(done.out, expected);
}

fn plain_state(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; pwd; \
         perl -e 'print getpgrp() == $$ || getpgrp() == getppid() ? qq(own group\\n) : q()'; \
         yes | head -n 1");
    let zero = "0000000000000000";
    let expected = format!(
        "SigBlk:\t{zero}\nSigIgn:\t{zero}\n0022\n{}\nown group\ny\n",
        folder.ws().display()
    );
    assert_eq!(done.out, expected);
}

fn daemon(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "setsid sh -c 'touch a; sleep 300; : {mark}' >/dev/null 2>&1 </dev/null & \
         (setsid sh -c 'trap \"\" HUP TERM; touch b; while :; do sleep 1; done; : {mark}' \
           >/dev/null 2>&1 &); \
         until [ -e a ] && [ -e b ]; do :; done; echo started"
    ));
    assert_eq!(done.out, "started\n", "{done:?}");
    assert!(done.end.background >= 2, "{done:?}");
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
}

fn held_output(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let began = Instant::now();
    let done = broker.sh("sleep 300 & echo done");
    assert_eq!((done.out.as_str(), done.end.background), ("done\n", 1));
    assert!(
        began.elapsed().as_secs() < 100,
        "the reader waited for the child"
    );
}

fn drain(who: Who) {
    let folder = Folder::new(who);
    let mut limits = plans::limits();
    limits.drain_ms = 10_000;
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh_within("(sleep 0.1; echo late) & echo early", limits);
    assert_eq!(
        (done.out.as_str(), done.end.background),
        ("early\nlate\n", 0)
    );
}

fn short(wall_ms: u64) -> CallLimits {
    CallLimits {
        wall_ms,
        ..plans::limits()
    }
}

fn wall(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh_within(
        &format!("trap '' TERM INT HUP; sh -c 'trap \"\" TERM; while :; do sleep 1; done; : {mark}' & while :; do sleep 1; done"),
        short(150),
    );
    assert!(done.end.timed_out && done.end.signal == Some(9), "{done:?}");
    assert_eq!(done.end.exit_code, None);
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
    assert!(!broker.sh("true").end.timed_out);
}

fn stopped(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh_within("kill -STOP $$; echo never", short(150));
    assert!(done.end.timed_out && done.out.is_empty(), "{done:?}");
}

fn killed(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let (id, mut out, _err) =
        broker.launch_sh(&format!("sh -c 'sleep 300; : {mark}' & echo up; wait"));
    let mut up = [0; 3];
    out.read_exact(&mut up).unwrap();
    broker.wait_started(id);
    broker.kill(id);
    let (end, _) = broker.wait_end(id).unwrap();
    assert!(
        end.killed && !end.timed_out && end.signal == Some(9),
        "{end:?}"
    );
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
}

fn exits(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    assert_eq!(broker.sh("exit 7").end.exit_code, Some(7));
    let done = broker.sh("kill -SEGV $$");
    assert_eq!((done.end.exit_code, done.end.signal), (None, Some(11)));
    let missing = vec!["/no/such/program".to_owned()];
    let fault = broker.command(missing, plans::limits()).unwrap_err();
    assert_eq!((fault.step.as_str(), fault.errno), ("exec", libc::ENOENT));
    let relative = vec!["true".to_owned()];
    let fault = broker.command(relative, plans::limits()).unwrap_err();
    assert_eq!(fault.step, "argv");
    let nul = vec!["/bin/echo".to_owned(), "a\0b".to_owned()];
    assert_eq!(
        broker.command(nul, plans::limits()).unwrap_err().step,
        "argv"
    );
    assert_eq!(broker.sh("echo fine").out, "fine\n");
}

fn long_running(broker: &mut Broker, mark: &str) {
    let script = format!(
        "(setsid sh -c 'trap \"\" HUP TERM INT; while :; do sleep 1; done; : {mark}' &); \
         trap '' TERM; echo up; while :; do sleep 1; done"
    );
    let (id, mut out, _err) = broker.launch_sh(&script);
    let mut up = [0; 3];
    out.read_exact(&mut up).unwrap();
    broker.wait_started(id);
}

fn broker_killed(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    long_running(&mut broker, &mark);
    assert!(!processes_with(&mark).is_empty());
    broker.process.kill().unwrap();
    broker.process.wait().unwrap();
    eventually("everything gone", || processes_with(&mark).is_empty());
}

fn supervisor_gone(who: Who) {
    let folder = Folder::new(who);
    let mark = mark();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    long_running(&mut broker, &mark);
    assert_eq!(broker.close(), 0);
    assert_eq!(processes_with(&mark), Vec::<i32>::new());
}

fn process_limit(who: Who) {
    let folder = Folder::new(who);
    let mut limits = plans::limits();
    limits.processes = 350;
    limits.drain_ms = 0;
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh_within(
        "perl -e 'my $n = 0; for (1..1000) { my $p = fork; last unless defined $p; \
           if (!$p) { sleep 300; exit } $n++ } print $n'",
        limits,
    );
    let made: u32 = done.out.parse().unwrap();
    assert!((100..=350).contains(&made), "{made} processes");
    assert_eq!(done.end.background, made);
    assert_eq!(broker.sh("echo fine").out, "fine\n");
}

fn memory_limit(who: Who) {
    let folder = Folder::new(who);
    let mut limits = plans::limits();
    limits.memory_bytes = 128 << 20;
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let allocate = |mib: u32| format!("perl -e 'my $x = q(a) x ({mib} << 20); print length $x'");
    let done = broker.sh_within(&allocate(400), limits);
    assert_eq!(done.out, "", "{done:?}");
    let done = broker.sh_within(&allocate(8), limits);
    assert_eq!(done.out, (8 << 20).to_string());
}

fn side_by_side(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    // Each waits for the other: a fifo has two ends.
    broker.sh("mkfifo one two");
    let (a, _out_a, _err_a) = broker.launch_sh("echo x > one; read y < two; exit 3");
    let (b, _out_b, _err_b) = broker.launch_sh("read x < one; echo y > two; exit 4");
    let mut codes = std::collections::BTreeMap::new();
    while codes.len() < 2 {
        use curfew_cell::protocol::FromBroker;
        match broker.channel.recv_json::<FromBroker>().unwrap().0 {
            FromBroker::Ended { call, end } => {
                codes.insert(call, end.exit_code);
            }
            FromBroker::Started { .. } | FromBroker::Denied { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((codes[&a], codes[&b]), (Some(3), Some(4)));
}

/// An init waits with the plan's limits; this call has others.
fn other_limits(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let script =
        "df -k /dev/shm | tail -n 1 | tr -s ' ' | cut -d' ' -f2; cat /proc/sys/kernel/pid_max";
    let plain = broker.sh(script);
    if !broker.facts.pid_max {
        // Before Linux 6.14 it is the host's.
        assert!(plain.out.starts_with("16384\n"), "{plain:?}");
        return;
    }
    assert_eq!(plain.out, "16384\n400\n", "{plain:?}");
    let limits = CallLimits {
        processes: 500,
        shm_bytes: 4 << 20,
        ..plans::limits()
    };
    let other = broker.sh_within(script, limits);
    assert_eq!(other.out, "4096\n500\n", "{other:?}");
    assert_eq!(broker.sh(script).out, plain.out);
}

fn children_of(pid: u32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace()
        .map(|p| p.parse().unwrap())
        .collect()
}

fn nothing_piles_up(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    for n in 0..30 {
        assert_eq!(broker.sh(&format!("exit {n}")).code(), n);
    }
    // One init waits for the next call, and the last may still be on its way out.
    eventually("old inits are gone", || {
        children_of(broker.process.id()).len() <= 1
    });
}

fn waiting_init_killed(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    eventually("one waits", || children_of(broker.process.id()).len() == 1);
    let pid = children_of(broker.process.id())[0];
    let kill = Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    eventually("it is dead", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|s| s.contains(") Z "))
    });
    assert_eq!(broker.sh("echo fine").out, "fine\n");
}

/// From the host, as the broker's own uid; root looks into everything.
fn looked_into() {
    let who = Who::Nobody;
    let folder = Folder::new(who);
    let broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let read = |pid: u32| {
        let script = format!("head -c 1 /proc/{pid}/maps >/dev/null 2>&1 && echo seen");
        let output = as_who(&mut Command::new("/bin/sh"), who)
            .args(["-c", &script])
            .output();
        output.unwrap().stdout
    };
    let mut twin = as_who(&mut Command::new("/bin/sleep"), who)
        .arg("300")
        .spawn()
        .unwrap();
    assert_eq!(read(twin.id()), b"seen\n");
    twin.kill().unwrap();
    twin.wait().unwrap();
    assert_eq!(read(broker.process.id()), b"");
    for pid in children_of(broker.process.id()) {
        assert_eq!(read(pid as u32), b"");
    }
}
