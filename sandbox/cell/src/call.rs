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
use crate::plan::CallLimits;
use crate::protocol::{SetupFault, What};
use crate::session::{Fenced, Session};
use crate::sys::{self, CloseRange, exit_now};
use crate::wire::Report;
use crate::{WorkerFn, caps, domain, limits};

/// What the child exits with when a step failed; the fault itself went over the report.
pub const NOT_RUN: i32 = 125;

/// A call as the broker prepared it, before any process exists.
pub struct Call {
    pub work: Work,
    pub after: After,
    pub limits: CallLimits,
    /// stdin, stdout, stderr.
    pub stdio: [OwnedFd; 3],
}

/// What init does once the main process has ended and nothing else is left.
#[derive(Debug)]
pub enum After {
    Exit,
    /// Waits for the broker's end and holds these until then. A process closes what it has before
    /// its parent hears of its end, and the last close of a used inotify instance (20 ms,
    /// fsnotify_destroy_group) or of a mount namespace waits for a grace period of the kernel.
    /// `curfew sandbox` ends without these waits, because an init that nobody waits for has them.
    Hold(Vec<OwnedFd>),
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

/// Becomes the command; in the child that init forked for it. `started` is close-on-exec and tells
/// init by its end that the command runs, and by a byte that it does not.
pub fn become_command(session: Session, call: Call, mut report: Channel, started: File) -> ! {
    let fault = match confine(session, call, &mut report, &started) {
        Ok(never) => match never {},
        Err(fault) => fault,
    };
    let told = report.send_json(&Report::NotRun { fault }, &[]);
    let written = (&started).write_all(b"!");
    // Nobody is left to tell if both failed; init still sees the end of this process.
    exit_now(if told.is_ok() && written.is_ok() {
        NOT_RUN
    } else {
        NOT_RUN + 1
    })
}

fn confine(
    session: Session,
    call: Call,
    report: &mut Channel,
    started: &File,
) -> Result<Infallible, SetupFault> {
    setsid().at("new-session")?;
    // Signal actions are at their defaults since the broker started.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).at("signals")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    limits::apply(&call.limits)?;
    place_stdio(&call.stdio)?;
    let cwd = call.work.cwd();
    chdir(cwd).at_path("cwd", cwd)?;
    match call.work {
        Work::Command { argv, env, .. } => {
            if let Some(fenced) = session.fence {
                enter_fence(fenced, Audience::Command, report)?;
            }
            // Descriptors that were left open over the broker's own exec, and any other.
            sys::close_except(&[0, 1, 2], CloseRange::OnExec).at("close-descriptors")?;
            let program = &argv[0];
            let path = PathBuf::from(String::from_utf8_lossy(program.as_bytes()).into_owned());
            execve(program, &argv, &env).at_path("exec", &path)
        }
        Work::Worker { socket, cwd, run } => {
            if let Some(fenced) = session.fence {
                enter_fence(fenced, Audience::Worker, report)?;
            }
            let keep: [RawFd; 4] = [0, 1, 2, socket.as_raw_fd()];
            // The end of `started` is closed with the rest: for init that is the start.
            let _ = started;
            sys::close_except(&keep, CloseRange::Close).at("close-descriptors")?;
            exit_now(run(socket, &cwd))
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
fn enter_fence(fenced: Fenced, who: Audience, report: &mut Channel) -> Result<(), SetupFault> {
    caps::assert_none()?;
    let Fenced { domain, .. } = &fenced;
    domain::enter(domain)?;
    match who {
        Audience::Worker => sys::seccomp::install(&fenced.worker_filter()?.program).at("seccomp"),
        Audience::Command if fenced.listener == Listener::Absent => {
            sys::seccomp::install(&fenced.command_filter.program).at("seccomp")
        }
        Audience::Command => {
            let program = &fenced.command_filter.program;
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
