//! Processes of a call, as /proc shows them: bounded, counted and, without a PID namespace, ended
//! one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, write};

use crate::fault::{At, fault};
use crate::protocol::SetupFault;

/// The kernel refuses less (PIDS_PER_CPU and RESERVED_PIDS in kernel/pid.c).
const PID_MAX_MIN: u64 = 301;
/// Kill rounds before what is left counts as surviving.
const ROUNDS_MAX: u32 = 400;
const ROUND: Duration = Duration::from_millis(5);

/// Bounds the number of processes and threads of the PID namespace that `proc` shows. Since Linux
/// 6.14 pid_max belongs to a namespace; before, this is a write to the host's and refused, and
/// RLIMIT_NPROC alone holds.
pub fn limit(proc: BorrowedFd<'_>, processes: u64) -> Result<(), SetupFault> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let max = processes.max(PID_MAX_MIN).to_string();
    let written = openat(proc, "sys/kernel/pid_max", flags, Mode::empty())
        .and_then(|file| write(file, max.as_bytes()));
    match written {
        Ok(_) | Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::ROFS) => Ok(()),
        Err(e) => Err(fault("pid-max", None, &e.into())),
    }
}

/// Whether pid_max belongs to a PID namespace (Linux 6.14). By version: trying takes a PID
/// namespace, and the tests try. `proc` is any /proc.
pub fn has_own_pid_max(proc: BorrowedFd<'_>) -> Result<bool, SetupFault> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut text = [0; 64];
    let length = openat(proc, "sys/kernel/osrelease", flags, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut text))
        .at("pid-max")?;
    let release = String::from_utf8_lossy(&text[..length]);
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    Ok(matches!((major, minor), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 14)))
}

/// Processes other than the caller in its PID namespace.
pub fn others() -> u32 {
    let pids = all();
    pids.len().saturating_sub(1).try_into().unwrap_or(u32::MAX)
}

/// What [`end_descendants`] met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub found: u32,
    pub left: u32,
}

/// Kills everything that descends from the caller, a subreaper, until nothing is left: a parent
/// that ends hands its children up to us, so none can leave the tree. `spare` and what descends
/// from it stays.
pub fn end_descendants(spare: &[i32]) -> Ended {
    let own = std::process::id() as i32;
    let mut found = BTreeSet::new();
    let mut left = 0;
    for _ in 0..ROUNDS_MAX {
        let living = descendants(own, spare);
        left = living.len() as u32;
        if living.is_empty() {
            break;
        }
        for pid in living {
            found.insert(pid);
            // A failure is counted below: what does not die is in the next round.
            if let Err(nix::errno::Errno::EPERM) = kill(Pid::from_raw(pid), Signal::SIGKILL) {
                continue;
            }
        }
        reap_except(spare);
        std::thread::sleep(ROUND);
    }
    Ended {
        found: found.len() as u32,
        left,
    }
}

fn reap_except(spare: &[i32]) {
    for (pid, parent) in table() {
        if parent.0 == std::process::id() as i32 && !spare.contains(&pid) {
            let gone = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
            debug_assert!(gone.is_ok() || gone == Err(nix::errno::Errno::ECHILD));
        }
    }
}

/// Living descendants, zombies left out.
fn descendants(root: i32, spare: &[i32]) -> Vec<i32> {
    let table = table();
    let mut living = Vec::new();
    for (pid, (parent, zombie)) in &table {
        let mut at = *pid;
        let mut up = *parent;
        // Bounded by the table: a pid that was reused while we read could close a circle.
        for _ in 0..table.len() {
            if spare.contains(&at) {
                break;
            }
            if up == root {
                if !zombie {
                    living.push(*pid);
                }
                break;
            }
            at = up;
            match table.get(&at) {
                Some((parent, _)) => up = *parent,
                None => break,
            }
        }
    }
    living
}

/// pid to (parent, is a zombie).
fn table() -> BTreeMap<i32, (i32, bool)> {
    all()
        .into_iter()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name may hold anything, a closing parenthesis too (proc_pid_stat(5)).
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            Some((pid, (parent, state == "Z" || state == "X")))
        })
        .collect()
}

fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}
