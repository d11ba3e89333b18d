//! The file tools: read, write, edit, glob, grep, and the workspace manifest.
//!
//! Runs inside a call, so the kernel judges every path; nothing here looks at a path to decide
//! whether it is allowed. Speaks frames on one socket, one request, one response. Safe code only.
//!
//! Start with [`serve`]. [`file`] opens without ever blocking, [`place`] puts bytes in place of
//! others, [`seen`] is what the model knows of a file.

mod canary;
mod edit;
mod fault;
mod file;
mod glob;
mod grep;
mod manifest;
mod place;
pub mod protocol;
mod read;
mod seen;
mod sweep;
mod text;
mod walk;
mod write;

use std::os::fd::OwnedFd;
use std::path::Path;

use curfew_cell::frame::{Channel, FrameError};

use fault::{Fault, bad_request};
use protocol::{Request, Response};

/// The most bytes of one file that are read, hashed, replaced or written.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// What follows a response as raw frames.
type Answer = Result<(Response, Vec<u8>), Fault>;

/// Serves one request on `socket` and returns the exit code of the process: 0 when it was
/// answered, 1 when the channel failed. `cwd` is where relative paths begin.
pub fn serve(socket: OwnedFd, cwd: &Path) -> i32 {
    let mut channel = Channel::from(socket);
    match exchange(&mut channel, cwd) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn exchange(channel: &mut Channel, cwd: &Path) -> Result<(), FrameError> {
    let answer = match channel.recv_json::<Request>() {
        Ok((request, _)) => answer(channel, request, cwd)?,
        Err(FrameError::Json(error)) => Err(bad_request(format!("not a request: {error}"))),
        Err(error) => return Err(error),
    };
    let (response, bulk) =
        answer.unwrap_or_else(|Fault(error)| (Response::Error { error }, Vec::new()));
    channel.send_json(&response, &[])?;
    channel.send_bulk(&bulk)
}

fn answer(channel: &mut Channel, request: Request, cwd: &Path) -> Result<Answer, FrameError> {
    Ok(match request {
        Request::Read {
            path,
            offset,
            lines_max,
            line_chars_max,
            bytes_max,
        } => {
            let window = read::Window {
                offset,
                lines_max,
                line_chars_max,
                bytes_max,
            };
            file::absolute(cwd, &path).and_then(|path| read::read(&path, window))
        }
        Request::Write {
            path,
            bytes,
            observations,
        } => {
            let content = channel.recv_bulk(bytes, FILE_BYTES_MAX)?;
            let path = file::absolute(cwd, &path);
            path.and_then(|path| write::write(&path, &content, &observations))
        }
        Request::Edit {
            path,
            old_bytes,
            new_bytes,
            observations,
        } => {
            let old = channel.recv_bulk(old_bytes, FILE_BYTES_MAX)?;
            let new = channel.recv_bulk(new_bytes, FILE_BYTES_MAX)?;
            let path = file::absolute(cwd, &path);
            path.and_then(|path| edit::edit(&path, &old, &new, &observations))
        }
        Request::Glob {
            pattern,
            path,
            entries_max,
        } => file::absolute(cwd, &path)
            .and_then(|base| glob::glob(&pattern, &base, cwd, entries_max)),
        Request::Grep {
            pattern,
            path,
            matches_max,
            line_chars_max,
        } => {
            let caps = grep::Caps {
                matches_max,
                line_chars_max,
            };
            file::absolute(cwd, &path).and_then(|base| grep::grep(&pattern, &base, cwd, caps))
        }
        Request::Manifest { roots, entries_max } => manifest::manifest(&roots, cwd, entries_max),
        Request::Sweep {
            roots,
            names,
            known,
        } => {
            let swept = sweep::sweep(&roots, &names, &known);
            Ok((Response::Swept { swept }, Vec::new()))
        }
        Request::Canary { outside, home } => {
            let findings = canary::try_all(&outside, home.as_deref());
            Ok((Response::Canary { findings }, Vec::new()))
        }
    })
}

#[cfg(test)]
mod tests;
