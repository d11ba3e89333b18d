//! Measurements, on demand: `cargo test --release -p curfew-cell --test cell bench_calls`.
//! Each prints figures and asserts nothing about time.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Folder, as_who, own_binary};

const ROUNDS: usize = 400;

pub fn register(tests: &mut Tests) {
    for who in [Who::Root, Who::Nobody] {
        tests.on_demand(format!("bench_calls/{who:?}"), move || calls(who));
        tests.on_demand(format!("bench_one/{who:?}"), move || one(who));
        tests.on_demand(format!("bench_open/{who:?}"), move || open(who));
    }
}

fn report(name: &str, mut us: Vec<f64>) {
    us.sort_by(f64::total_cmp);
    let at = |q: f64| us[((us.len() - 1) as f64 * q) as usize];
    println!(
        "{name:<28} n={} p50={:.0} p90={:.0} p95={:.0} p99={:.0} us",
        us.len(),
        at(0.5),
        at(0.9),
        at(0.95),
        at(0.99)
    );
}

fn bare() -> f64 {
    let began = Instant::now();
    let mut command = Command::new("/bin/true");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .env_clear()
        .process_group(0);
    command.status().unwrap();
    began.elapsed().as_secs_f64() * 1e6
}

/// `true` in a call against a bare spawn, taken in turns.
fn calls(who: Who) {
    let folder = Folder::new(who);
    folder.write(who, "ws/.git/config", "");
    folder.write(who, "ws/.git/hooks/x", "");
    let mut kinds = vec![("call", plans::write_mode(who, &folder.ws()).0)];
    let mut without = plans::write_mode(who, &folder.ws());
    without.fence_mut().evidence = false;
    kinds.push(("call, no listener", without.0));
    let mut no_filter = plans::write_mode(who, &folder.ws());
    no_filter.fence_mut().syscalls.clear();
    no_filter.fence_mut().evidence = false;
    kinds.push(("call, no filter", no_filter.0));
    kinds.push(("call, no fence", plans::unfenced(&folder.ws())));
    let mut brokers: Vec<_> = kinds
        .iter()
        .map(|(n, p)| (*n, Broker::start(who, p), vec![], vec![]))
        .collect();
    let mut bare_us = Vec::new();
    for _ in 0..ROUNDS {
        bare_us.push(bare());
        for (_, broker, whole, wall) in &mut brokers {
            let began = Instant::now();
            let (id, _out, _err) = broker.launch(vec!["/bin/true".into()], plans::limits());
            let (end, _) = broker.wait_end(id).unwrap();
            whole.push(began.elapsed().as_secs_f64() * 1e6);
            wall.push(end.wall_us as f64);
        }
    }
    report("bare", bare_us);
    for (name, _, whole, wall) in brokers {
        report(name, whole);
        report(&format!("  {name}, broker's wall"), wall);
    }
}

/// The whole process of `curfew sandbox -- true`, in small.
fn one(who: Who) {
    let folder = Folder::new(who);
    let plan = plans::write_mode(who, &folder.ws());
    let file = folder.join("plan.json");
    std::fs::write(&file, serde_json::to_vec(&plan.0).unwrap()).unwrap();
    let (mut exec_us, mut one_us) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (mode, into) in [("__exec", &mut exec_us), ("__one", &mut one_us)] {
            let mut command = Command::new(own_binary());
            as_who(&mut command, who).arg(mode);
            if mode == "__one" {
                command.arg(&file);
            }
            command.arg("/bin/true").stdin(Stdio::null());
            let began = Instant::now();
            assert!(command.status().unwrap().success());
            into.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    report("process that spawns true", exec_us);
    report("process that confines true", one_us);
}

/// A write-open and close in a loop, native and notified, outside and inside the write roots.
fn open(who: Who) {
    let folder = Folder::new(who);
    let script = |path: &str, flag: u32| {
        format!(
            "use Time::HiRes qw(time); my $n = 20000; my $p = q({path}); my $t = time; \
             for (1..$n) {{ sysopen(F, $p, {flag}); close F }} printf q(%.2f), (time - $t) / $n * 1e6"
        )
    };
    folder.write(who, "ws/own", "");
    let own = folder.join("ws/own").display().to_string();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    for (name, path, flag) in [
        ("write-open in workspace", own.as_str(), 1),
        ("write-open relative", "own", 1),
        ("write-open outside", "/etc/passwd", 1),
        ("read-open", own.as_str(), 0),
    ] {
        for _ in 0..3 {
            let program = script(path, flag);
            let native = Command::new("perl")
                .args(["-e", &program])
                .current_dir(folder.ws())
                .output()
                .unwrap();
            let argv = vec!["/usr/bin/perl".into(), "-e".into(), program];
            let call = broker.command(argv, plans::limits()).unwrap();
            println!(
                "{name:<28} native {} us, in a call {} us",
                String::from_utf8_lossy(&native.stdout),
                call.out
            );
        }
    }
}
