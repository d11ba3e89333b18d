//! PID 1 of a call: prepares what only the new namespaces can have, starts the command, reaps, and
//! ends when the command ends. The kernel then kills whatever is left in the PID namespace.
//!
//! It holds the report socket and nothing else. The broker's death is the end of that socket, and
//! a death signal besides. It drops its capabilities before the command exists, is not dumpable,
//! and stays outside the command's Landlock domain, whose scope keeps signals away from it.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::mount::MountAttrFlags;

use crate::WorkerFn;
use crate::call::{self, Call, NOT_RUN, Work};
use crate::caps;
use crate::fault::{At, broken, fault};
use crate::frame::{Channel, FrameError};
use crate::plan::CallLimits;
use crate::processes;
use crate::protocol::SetupFault;
use crate::session::{Gear, Session};
use crate::sys::{self, CloseRange, Reach, exit_now, mount_setattr};
use crate::tree;
use crate::wire::{Exit, Report};

/// What ends with the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A PID namespace: the kernel ends everything in it with its PID 1.
    Namespace,
    /// No namespace: everything that descends from here is looked for and killed.
    Descendants,
}

/// What an init is made with, before it is known for which call.
pub struct Seed {
    pub session: Session,
    /// What it prepares for. A call with other limits costs a second preparation.
    pub limits: CallLimits,
    pub worker: WorkerFn,
    pub report: Channel,
}

/// The whole life of an init; in the child that the broker cloned.
pub fn run(seed: Seed) -> ! {
    let Seed {
        session,
        limits,
        worker,
        mut report,
    } = seed;
    let code = match live(session, limits, worker, &mut report) {
        Ok(()) => 0,
        // A broker that cannot be told sees the end of this process.
        Err(fault) => match report.send_json(&Report::NotRun { fault }, &[]) {
            Ok(()) => NOT_RUN,
            Err(_) => NOT_RUN + 1,
        },
    };
    exit_now(code)
}

fn live(
    session: Session,
    limits: CallLimits,
    worker: WorkerFn,
    report: &mut Channel,
) -> Result<(), SetupFault> {
    let extent = session.extent();
    let gear = session.into_gear();
    prepare(extent, &limits)?;
    let of_gear = gear.iter().flat_map(|gear| gear.domain.descriptors());
    let keep: Vec<RawFd> = [0, 1, 2, report.as_fd().as_raw_fd()]
        .into_iter()
        .chain(of_gear)
        .collect();
    // Everything else the broker has open: its channel, other calls.
    sys::close_except(&keep, CloseRange::Close).at("close-descriptors")?;
    let call = match report.recv_json() {
        Ok((order, fds)) => Call::new(order, fds, worker)?,
        Err(FrameError::Closed) => return Ok(()), // no call, or no broker any more
        Err(e) => return Err(broken("order", None, libc::EPROTO, e.to_string())),
    };
    if extent == Extent::Namespace {
        adjust(&limits, &call.limits)?;
        caps::drop_all()?;
    }
    let drain = Duration::from_millis(call.limits.drain_ms);
    let holds = !call.held.is_empty();
    let Some(main) = start(gear, call, report)? else {
        return Ok(()); // its own set-up failed, and it has said so
    };
    let exit = attend(main, drain, extent, report)?;
    if holds && exit.background == 0 {
        // Nothing is ever sent here: this returns when the broker is gone.
        drop(report.recv_raw());
    }
    Ok(())
}

/// What only the new namespaces can have.
fn prepare(extent: Extent, limits: &CallLimits) -> Result<(), SetupFault> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).at("init-signals")?;
    match extent {
        Extent::Namespace => {
            prctl::set_pdeathsig(Signal::SIGKILL).at("init-death-signal")?;
            fresh_proc(limits.processes)?;
            fresh_shm(limits.shm_bytes)
        }
        Extent::Descendants => prctl::set_child_subreaper(true).at("subreaper"),
    }
}

/// Limits that are bound to mounts, where the call's differ from those prepared for.
fn adjust(prepared: &CallLimits, asked: &CallLimits) -> Result<(), SetupFault> {
    if prepared.processes != asked.processes {
        fresh_proc(asked.processes)?;
    }
    if prepared.shm_bytes != asked.shm_bytes {
        fresh_shm(asked.shm_bytes)?;
    }
    Ok(())
}

/// The running main process, and what init keeps to attend to it.
struct Main {
    pid: Pid,
    children: SignalFd,
}

/// Starts the main process; `None` when its own set-up failed and has reported it.
fn start(gear: Option<Gear>, call: Call, report: &mut Channel) -> Result<Option<Main>, SetupFault> {
    let (started, starting) = std::io::pipe().at("init-pipe")?;
    let mut started = File::from(OwnedFd::from(started));
    let starting = File::from(OwnedFd::from(starting));
    let mut become_it = || call::become_command(gear.as_ref(), &call, report, &starting);
    let pid = match call.work {
        // Not a copy of this process: half of the cost of a call would be page tables.
        Work::Command { .. } => sys::spawn_sharing_memory(&mut become_it).at("fork")?,
        // It goes on as our own code and is hostile from then on: it gets a memory of its own.
        Work::Worker { .. } => match sys::clone_into(0).at("fork")? {
            Some(child) => child.pid,
            None => exit_now(become_it()),
        },
    };
    let children = SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC)
        .at("init-signals")?;
    let mut keep = vec![
        report.as_fd().as_raw_fd(),
        started.as_raw_fd(),
        children.as_fd().as_raw_fd(),
    ];
    keep.extend(call.held.iter().map(AsRawFd::as_raw_fd));
    // Also the call's output, whose reader waits for its end, and 0, 1 and 2.
    sys::close_except(&keep, CloseRange::Close).at("close-descriptors")?;
    std::mem::forget((gear, call, starting));
    let mut byte = [0];
    let failed = started.read(&mut byte).at("init-pipe")? > 0;
    let pid = Pid::from_raw(pid);
    Ok((!failed).then_some(Main { pid, children }))
}

/// A /proc of the new PID namespace, read-only as a whole: uid 0 without a capability could
/// otherwise write core_pattern and the like, which belong to kuid 0.
fn fresh_proc(processes: u64) -> Result<(), SetupFault> {
    let path = Path::new("/proc");
    let attributes = tree::HARMLESS | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = tree::make("proc", &[], attributes).at_path("proc", path)?;
    processes::limit(proc.as_fd(), processes)?;
    let rdonly = MountAttrFlags::MOUNT_ATTR_RDONLY;
    mount_setattr(proc.as_fd(), Reach::One, rdonly, MountAttrFlags::empty())
        .at_path("proc", path)?;
    let place = tree::open_path(path).at_path("proc", path)?;
    tree::attach(proc.as_fd(), place.as_fd()).at_path("proc", path)
}

fn fresh_shm(bytes: u64) -> Result<(), SetupFault> {
    const INODES: u64 = 16 << 10;
    let path = Path::new("/dev/shm");
    let shm = tree::tmpfs(bytes, INODES, 0o1777).at_path("shm", path)?;
    let place = tree::open_path(path).at_path("shm", path)?;
    tree::attach(shm.as_fd(), place.as_fd()).at_path("shm", path)
}

/// Reaps until the main process has ended and the drain is over, or the broker is gone.
fn attend(
    main: Main,
    drain: Duration,
    extent: Extent,
    report: &mut Channel,
) -> Result<Exit, SetupFault> {
    report
        .send_json(&Report::Started, &[])
        .map_err(|e| broken("report", None, libc::EPIPE, e.to_string()))?;
    let mut ended: Option<(Exit, Instant)> = None;
    loop {
        let children = reap(main.pid, &mut ended);
        if let Some((exit, until)) = ended
            && (children == Children::None || Instant::now() >= until + drain)
        {
            let exit = count_background(exit, children, extent);
            return report
                .send_json(&Report::Exited { exit }, &[])
                .map(|()| exit)
                .map_err(|e| broken("report", None, libc::EPIPE, e.to_string()));
        }
        let left = ended.map(|(_, at)| (at + drain).saturating_duration_since(Instant::now()));
        if wait(&main.children, report, left)? == Broker::Gone {
            if extent == Extent::Descendants {
                processes::end_descendants(&[]);
            }
            exit_now(0);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

/// Collects ended children; init gets everybody's orphans.
fn reap(main: Pid, ended: &mut Option<(Exit, Instant)>) -> Children {
    loop {
        let exit = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Children::Some,
            Err(Errno::EINTR) => continue,
            Err(_) => return Children::None,
            Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, Some(signal as i32)),
            Ok(_) => continue,
        };
        if let (pid, exit_code, signal) = exit
            && pid == main
        {
            let exit = Exit {
                exit_code,
                signal,
                ..Exit::default()
            };
            *ended = Some((exit, Instant::now()));
        }
    }
}

fn count_background(mut exit: Exit, children: Children, extent: Extent) -> Exit {
    if children == Children::None {
        return exit;
    }
    match extent {
        Extent::Namespace => exit.background = processes::others(),
        Extent::Descendants => {
            let ended = processes::end_descendants(&[]);
            exit.background = ended.found;
            exit.survivors = ended.left;
        }
    }
    exit
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broker {
    There,
    Gone,
}

/// Sleeps until a child changes, the broker is gone or asks for the end, or the time is over.
fn wait(
    children: &SignalFd,
    report: &Channel,
    left: Option<Duration>,
) -> Result<Broker, SetupFault> {
    let timeout = match left {
        // Rounded up: waking a moment early would turn the rest of the drain into a busy loop.
        Some(left) => PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX),
        None => PollTimeout::NONE,
    };
    let mut fds = [
        PollFd::new(children.as_fd(), PollFlags::POLLIN),
        PollFd::new(report.as_fd(), PollFlags::POLLIN),
    ];
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(e) => return Err(fault("init-poll", None, &e.into())),
    }
    if fds[1].any() == Some(true) {
        return Ok(Broker::Gone);
    }
    if fds[0].any() == Some(true) {
        children.read_signal().at("init-signals")?;
    }
    Ok(Broker::There)
}
