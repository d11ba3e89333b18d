//! Processes of this host, found by a mark in their arguments or environment.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// Pids whose arguments, environment, program or folder hold `mark`, ourselves and zombies aside.
pub fn marked(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != own && holds(*pid, mark))
        .collect()
}

fn holds(pid: u32, mark: &str) -> bool {
    // A process may end between the listing and the look.
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let found = |bytes: &[u8]| {
        bytes
            .windows(mark.len())
            .any(|window| window == mark.as_bytes())
    };
    let link = |name: &str| {
        let target = std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
        found(target.as_os_str().as_encoded_bytes())
    };
    // A zombie has no memory left to read, and no program.
    found(&read("cmdline")) || found(&read("environ")) || link("exe") || link("cwd")
}

/// The arguments of what is left, for a failing assertion.
pub fn told(mark: &str) -> Vec<String> {
    let arguments = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let left = marked(mark);
    left.iter()
        .map(|pid| format!("{pid}: {}", String::from_utf8_lossy(&arguments(pid))))
        .collect()
}

/// Whether all marked processes are gone within `limit`.
pub fn gone(mark: &str, limit: Duration) -> bool {
    wait::until(limit, || marked(mark).is_empty())
}

/// SIGKILL to one process that this test started, by its id.
pub fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).expect("a process of ours can be killed");
}

/// Pids of processes that run this very program file.
pub fn running(program: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let link = std::fs::read_link(format!("/proc/{pid}/exe"));
        link.is_ok_and(|link| link == std::path::Path::new(program))
    })
    .collect()
}

/// Resident memory of a process.
pub fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
