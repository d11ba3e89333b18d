//! From a freshly forked child of init to the confined command: the steps, in order.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{chdir, execve, setsid};
use rustix::fs::Mode;

use crate::fault::{At, broken};
use crate::filter::Listener;
use crate::frame::Channel;
use crate::limits::Counted;
use crate::plan::CallLimits;
use crate::protocol::{SetupFault, What};
use crate::session::Gear;
use crate::sys::{self, CloseRange, exit_now};
use crate::wire::{Order, Report};
use crate::{WorkerFn, caps, domain, limits};

/// What the child exits with when a step failed; the fault itself went over the report.
pub const NOT_RUN: i32 = 125;

/// A call as init has it.
pub struct Call {
    pub work: Work,
    pub limits: CallLimits,
    /// stdin, stdout, stderr.
    pub stdio: [OwnedFd; 3],
    /// Kept open by init until the broker has ended. A process closes what it has before its parent
    /// hears of its end, and the last close of a used inotify instance (20 ms,
    /// fsnotify_destroy_group) or of a mount namespace waits for a grace period of the kernel.
    /// `curfew sandbox` ends without these waits, because an init that nobody waits for has them.
    pub held: Vec<OwnedFd>,
}

impl Call {
    /// Takes an order apart.
    pub fn new(order: Order, mut fds: Vec<OwnedFd>, run: WorkerFn) -> Result<Call, SetupFault> {
        let Order::Call { what, limits, held } = order;
        let held = fds.split_off(fds.len().saturating_sub(held));
        let count = fds.len();
        let mut fds = fds.into_iter();
        let (Some(stdin), Some(stdout), Some(stderr)) = (fds.next(), fds.next(), fds.next()) else {
            let text = format!("{count} descriptors came with the call");
            return Err(broken("descriptors", None, libc::EBADF, text));
        };
        let work = Work::new(what, fds.next(), run)?;
        if fds.next().is_some() {
            let text = format!("{count} descriptors came with the call");
            return Err(broken("descriptors", None, libc::EBADF, text));
        }
        Ok(Call {
            work,
            limits,
            stdio: [stdin, stdout, stderr],
            held,
        })
    }
}

pub enum Work {
    Command {
        argv: Vec<CString>,
        env: Vec<CString>,
        cwd: PathBuf,
    },
    Worker {
        socket: OwnedFd,
        cwd: PathBuf,
        run: WorkerFn,
    },
}

impl Work {
    /// Takes a request apart; what execve(2) cannot carry is refused here.
    pub fn new(what: What, socket: Option<OwnedFd>, run: WorkerFn) -> Result<Work, SetupFault> {
        match (what, socket) {
            (What::Command { argv, env, cwd }, None) => {
                if !argv.first().is_some_and(|program| program.starts_with('/')) {
                    let text = "the program is not an absolute path";
                    return Err(broken("argv", None, libc::EINVAL, text));
                }
                let argv = argv.into_iter().map(|a| c_string(a, "argv"));
                let env = env
                    .into_iter()
                    .map(|(name, value)| c_string(format!("{name}={value}"), "env"));
                Ok(Work::Command {
                    argv: argv.collect::<Result<_, _>>()?,
                    env: env.collect::<Result<_, _>>()?,
                    cwd,
                })
            }
            (What::Worker { cwd }, Some(socket)) => Ok(Work::Worker { socket, cwd, run }),
            (what, _) => {
                let text = format!("wrong number of descriptors for {what:?}");
                Err(broken("descriptors", None, libc::EBADF, text))
            }
        }
    }

    fn cwd(&self) -> &Path {
        match self {
            Work::Command { cwd, .. } | Work::Worker { cwd, .. } => cwd,
        }
    }
}

fn c_string(text: String, step: &'static str) -> Result<CString, SetupFault> {
    CString::new(text).map_err(|e| {
        broken(
            step,
            None,
            libc::EINVAL,
            format!("NUL at byte {}", e.nul_position()),
        )
    })
}

/// Becomes the command, in the child that init made for it, which may share init's memory: nothing
/// here is taken, and what is allocated and lost by the exec is init's to keep, a few kilobytes.
/// `started` is close-on-exec and tells init by its end that the command runs, and by a byte that
/// it does not. Returns the exit code when it does not.
pub fn become_command(
    gear: Option<&Gear>,
    call: &Call,
    report: &mut Channel,
    started: &File,
) -> i32 {
    let fault = match confine(gear, call, report) {
        Ok(never) => match never {},
        Err(fault) => fault,
    };
    let told = report.send_json(&Report::NotRun { fault }, &[]);
    let mut started = started;
    let written = started.write_all(b"!");
    // Nobody is left to tell if both failed; init still sees the end of this process.
    if told.is_ok() && written.is_ok() {
        NOT_RUN
    } else {
        NOT_RUN + 1
    }
}

fn confine(
    gear: Option<&Gear>,
    call: &Call,
    report: &mut Channel,
) -> Result<Infallible, SetupFault> {
    setsid().at("new-session")?;
    // Signal actions are at their defaults since the broker started.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).at("signals")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let counted = match gear {
        Some(_) => Counted::InSession,
        None => Counted::OnHost,
    };
    limits::apply(&call.limits, counted)?;
    place_stdio(&call.stdio)?;
    let cwd = call.work.cwd();
    chdir(cwd).at_path("cwd", cwd)?;
    match &call.work {
        Work::Command { argv, env, .. } => {
            if let Some(gear) = gear {
                enter_fence(gear, Audience::Command, report)?;
            }
            // Descriptors that were left open over the broker's own exec, and any other.
            sys::close_except(&[0, 1, 2], CloseRange::OnExec).at("close-descriptors")?;
            let program = &argv[0];
            let path = PathBuf::from(String::from_utf8_lossy(program.as_bytes()).into_owned());
            execve(program, argv, env).at_path("exec", &path)
        }
        Work::Worker { socket, cwd, run } => {
            if let Some(gear) = gear {
                enter_fence(gear, Audience::Worker, report)?;
            }
            let socket = rustix::io::fcntl_dupfd_cloexec(socket, 3).at("worker-socket")?;
            let keep: [RawFd; 4] = [0, 1, 2, socket.as_raw_fd()];
            // The end of `started` is closed with the rest: for init that is the start.
            sys::close_except(&keep, CloseRange::Close).at("close-descriptors")?;
            exit_now(run(socket, cwd))
        }
    }
}

/// Whose filter to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Command,
    Worker,
}

/// The one-way door: no capabilities, Landlock, syscall filter.
fn enter_fence(gear: &Gear, who: Audience, report: &mut Channel) -> Result<(), SetupFault> {
    caps::assert_none()?;
    domain::enter(&gear.domain)?;
    match who {
        Audience::Worker => sys::seccomp::install(&gear.worker_filter()?.program).at("seccomp"),
        Audience::Command if gear.listener == Listener::Absent => {
            sys::seccomp::install(&gear.command_filter.program).at("seccomp")
        }
        Audience::Command => {
            let program = &gear.command_filter.program;
            let listener = sys::seccomp::install_with_listener(program).at("seccomp")?;
            // The filter must let this sendmsg pass without a notification: nobody listens yet.
            report
                .send_json(&Report::Listener, &[listener.as_fd()])
                .map_err(|e| broken("listener", None, libc::EPIPE, e.to_string()))
        }
    }
}

/// Puts the call's descriptors on 0, 1 and 2.
fn place_stdio(stdio: &[OwnedFd; 3]) -> Result<(), SetupFault> {
    // Above 2 first: one of them could stand where another is about to go.
    let mut high: Vec<OwnedFd> = Vec::with_capacity(3);
    for fd in stdio {
        high.push(rustix::io::fcntl_dupfd_cloexec(fd, 3).at("stdio")?);
    }
    for (fd, number) in high.iter().zip(0..) {
        dup_onto(fd.as_fd(), number)?;
    }
    Ok(())
}

fn dup_onto(fd: BorrowedFd<'_>, number: RawFd) -> Result<(), SetupFault> {
    match number {
        0 => nix::unistd::dup2_stdin(fd).at("stdio")?,
        1 => nix::unistd::dup2_stdout(fd).at("stdio")?,
        _ => nix::unistd::dup2_stderr(fd).at("stdio")?,
    }
    Ok(())
}
