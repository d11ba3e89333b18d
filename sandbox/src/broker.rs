//! What runs in a broker process, and the broker inside `curfew sandbox`.
//!
//! Both must be entered before this process has a second thread, and before it has read a key.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use curfew_cell::broker::{InPlace, serve};
use curfew_cell::frame::{Channel, Rights};
use curfew_cell::plan::Plan;
use curfew_cell::protocol::{CallEnd, Denial, SetupFault, What};

use curfew_worker::protocol::{Response, Swept};

use crate::client::CommandLine;
use crate::denial::inert;
use crate::sweep;

/// For the two ends of a sweep's exchange.
const SWEEP: Duration = Duration::from_secs(60);
/// A broker that was not given a socket.
const NO_SOCKET: i32 = 2;

/// The whole life of a broker process: its channel is its stdin. Returns the exit code.
pub fn broker_main() -> i32 {
    match io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => serve(
            Channel::new(UnixStream::from(socket), Rights::Accepted),
            worker,
        ),
        Err(_) => NO_SOCKET,
    }
}

/// What a worker call runs, confined, in the forked child.
fn worker(socket: OwnedFd, cwd: &Path) -> i32 {
    curfew_worker::serve(socket, cwd)
}

/// Why a command was not run in place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("standard streams: {0}")]
    Stdio(#[from] io::Error),
    /// Before the command ran.
    #[error("{} ({})", .0.step, .0.text)]
    Setup(Box<SetupFault>),
}

/// The command has run; what it left was not swept.
#[derive(Debug, thiserror::Error)]
#[error("new protected names were not looked after ({text}): {}", names.join(", "))]
pub struct SweepError {
    pub text: String,
    pub names: Vec<String>,
}

/// What became of a command that ran in place.
#[derive(Debug)]
pub struct InPlaceEnd {
    pub end: CallEnd,
    pub denials: Vec<Denial>,
    /// Protected names that appeared.
    pub swept: Result<Swept, SweepError>,
}

/// Runs one command under `plan` in this process, on its own standard streams, waits, and sweeps.
pub fn run_in_place(plan: &Plan, line: CommandLine) -> Result<InPlaceEnd, RunError> {
    let CommandLine { argv, env, cwd } = line;
    let mut session = InPlace::open(plan, worker).map_err(setup)?;
    // Only now: opening the session replaces what the host's mounts are reached by.
    let stdio = vec![
        io::stdin().as_fd().try_clone_to_owned()?,
        io::stdout().as_fd().try_clone_to_owned()?,
        io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let what = What::Command {
        argv,
        env,
        cwd: cwd.clone(),
    };
    let (end, denials) = session.run(what, stdio).map_err(setup)?;
    let swept = sweep(&mut session, plan, cwd);
    session.leave();
    Ok(InPlaceEnd {
        end,
        denials,
        swept,
    })
}

fn setup(fault: SetupFault) -> RunError {
    RunError::Setup(Box::new(fault))
}

/// A worker call of its own, made only where a name appeared.
fn sweep(session: &mut InPlace, plan: &Plan, cwd: PathBuf) -> Result<Swept, SweepError> {
    let appeared = session
        .appeared()
        .map_err(|fault| failed(&[], &fault.text))?;
    let found = !appeared.names.is_empty();
    let Some(request) = sweep::request(plan, &session.facts).filter(|_| found) else {
        return Ok(Swept {
            cut: appeared.cut,
            ..Swept::default()
        });
    };
    let appeared = appeared.names;
    let text = |error: &dyn std::fmt::Display| failed(&appeared, &error.to_string());
    let (ours, theirs) = UnixStream::pair().map_err(|error| text(&error))?;
    let mut ours = Channel::new(ours, Rights::Refused);
    // Nobody reads yet: what does not fit the socket's buffer is an error and not a wait.
    ours.set_deadline(Instant::now().checked_add(SWEEP));
    ours.send_json(&request, &[])
        .map_err(|error| text(&error))?;
    let null = || {
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null");
        file.map(OwnedFd::from).map_err(|error| text(&error))
    };
    let fds = vec![null()?, null()?, null()?, theirs.into()];
    session
        .run(What::Worker { cwd }, fds)
        .map_err(|fault| text(&fault.text))?;
    match ours.recv_json::<Response>() {
        Ok((Response::Swept { swept }, _)) => Ok(swept),
        Ok((other, _)) => Err(text(&format!("{other:?}"))),
        Err(error) => Err(text(&error)),
    }
}

fn failed(appeared: &[PathBuf], text: &str) -> SweepError {
    let names = appeared
        .iter()
        .map(|path| inert(&path.to_string_lossy()))
        .collect();
    SweepError {
        text: text.to_owned(),
        names,
    }
}
