//! What runs in a broker process, and the broker inside `curfew sandbox`.
//!
//! Both must be entered before this process has a second thread, and before it has read a key.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use curfew_cell::broker::{run_one, serve};
use curfew_cell::frame::{Channel, Rights};
use curfew_cell::plan::Plan;
use curfew_cell::protocol::{CallEnd, Denial, SetupFault, What};

use crate::client::CommandLine;

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
    #[error("{} ({})", .0.step, .0.text)]
    Setup(Box<SetupFault>),
}

/// Runs one command under `plan` in this process, on its own standard streams, and waits.
pub fn run_in_place(plan: &Plan, line: CommandLine) -> Result<(CallEnd, Vec<Denial>), RunError> {
    let stdio = [
        io::stdin().as_fd().try_clone_to_owned()?,
        io::stdout().as_fd().try_clone_to_owned()?,
        io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let CommandLine { argv, env, cwd } = line;
    run_one(plan, What::Command { argv, env, cwd }, stdio)
        .map_err(|fault| RunError::Setup(Box::new(fault)))
}
