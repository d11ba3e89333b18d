//! PID 1 of a call: prepares what only the new namespaces can have, starts the command, reaps, and
//! ends when the command ends. The kernel then kills whatever is left in the PID namespace.
//!
//! It holds the report socket and nothing else. The broker's death is the end of that socket, and
//! a death signal besides. It drops its capabilities before the command exists, is not dumpable,
//! and stays outside the command's Landlock domain, whose scope keeps signals away from it.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
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

use crate::call::{self, After, Call, NOT_RUN};
use crate::caps;
use crate::fault::{At, broken, fault};
use crate::frame::Channel;
use crate::processes;
use crate::protocol::SetupFault;
use crate::session::Session;
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

/// The whole life of an init; in the child that the broker cloned.
pub fn run(session: Session, call: Call, mut report: Channel) -> ! {
    let extent = session.extent();
    let drain = Duration::from_millis(call.limits.drain_ms);
    let holds = matches!(call.after, After::Hold(_));
    let code = match start(session, call, &report, extent) {
        Ok(None) => NOT_RUN,
        Ok(Some(main)) => match attend(main, drain, extent, &mut report) {
            Ok(exit) => {
                if holds && exit.background == 0 {
                    // Nothing is ever sent here: this returns when the broker is gone.
                    drop(report.recv_raw());
                }
                0
            }
            Err(fault) => tell(&mut report, fault),
        },
        Err(fault) => tell(&mut report, fault),
    };
    exit_now(code)
}

fn tell(report: &mut Channel, fault: SetupFault) -> i32 {
    // A broker that cannot be told sees the end of this process.
    match report.send_json(&Report::NotRun { fault }, &[]) {
        Ok(()) => NOT_RUN,
        Err(_) => NOT_RUN + 1,
    }
}

/// The running main process, and what init keeps to attend to it.
struct Main {
    pid: Pid,
    children: SignalFd,
}

/// Sets up and starts; `None` when the command's own set-up failed and has reported it.
fn start(
    session: Session,
    call: Call,
    report: &Channel,
    extent: Extent,
) -> Result<Option<Main>, SetupFault> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).at("init-signals")?;
    match extent {
        Extent::Namespace => {
            prctl::set_pdeathsig(Signal::SIGKILL).at("init-death-signal")?;
            fresh_proc(call.limits.processes)?;
            fresh_shm(call.limits.shm_bytes)?;
            caps::drop_all()?;
        }
        Extent::Descendants => prctl::set_child_subreaper(true).at("subreaper")?,
    }
    let (mut started, starting) = std::io::pipe()
        .map(|(r, w)| (File::from(OwnedFd::from(r)), File::from(OwnedFd::from(w))))
        .at("init-pipe")?;
    let Some(child) = sys::clone_into(0).at("fork")? else {
        let report = match report.try_clone() {
            Ok(report) => report,
            Err(_) => exit_now(NOT_RUN + 1),
        };
        drop(started);
        call::become_command(session, call, report, starting);
    };
    let children = SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC)
        .at("init-signals")?;
    let mut keep = vec![
        report.as_fd().as_raw_fd(),
        started.as_raw_fd(),
        children.as_fd().as_raw_fd(),
    ];
    if let After::Hold(held) = &call.after {
        keep.extend(held.iter().map(AsRawFd::as_raw_fd));
    }
    // Everything else the broker had open: its channel, other calls, this call's output.
    sys::close_except(&keep, CloseRange::Close).at("close-descriptors")?;
    std::mem::forget((session, call, starting, child.pidfd));
    let mut byte = [0];
    let failed = match started.read(&mut byte) {
        Ok(read) => read > 0,
        Err(e) => return Err(fault("init-pipe", None, &e)),
    };
    let pid = Pid::from_raw(child.pid);
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
