//! The API key: from the environment, a file, or a command of the user's. Read after the broker
//! has been started, so that no confinement's process ever existed beside it in memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use curfew_model::ApiKey;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::config::Config;
use crate::fault::{Fault, code};

/// A password manager may ask its user; it must not hang a night.
const KEY_COMMAND_MAX: Duration = Duration::from_secs(60);
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// The key that is configured, if any.
pub fn find(config: &Config) -> Result<Option<ApiKey>, Fault> {
    if let Some(value) = std::env::var_os("OPENAI_API_KEY").filter(|value| !value.is_empty()) {
        return Ok(Some(take(&value.to_string_lossy(), "OPENAI_API_KEY")?));
    }
    if let Some(file) = &config.key_file {
        return Ok(Some(from_file(file)?));
    }
    match &config.key_command {
        Some(command) => Ok(Some(from_command(command)?)),
        None => Ok(None),
    }
}

/// What to say when a server needs a key and there is none.
pub fn missing(endpoint: &str) -> Fault {
    Fault::new(code::AUTH, format!("no API key for {endpoint}"))
        .remedy("set OPENAI_API_KEY, or keyFile or keyCommand in config.toml")
}

fn take(text: &str, source: &str) -> Result<ApiKey, Fault> {
    ApiKey::new(text).map_err(|error| Fault::new(code::AUTH, format!("{source}: {error}")))
}

fn from_file(file: &Path) -> Result<ApiKey, Fault> {
    let source = format!("keyFile {}", file.display());
    let failed = |error: std::io::Error| {
        Fault::new(code::AUTH, format!("{source} cannot be read: {error}"))
            .remedy("correct keyFile in config.toml")
    };
    let meta = fs::metadata(file).map_err(failed)?;
    if !meta.is_file() || meta.len() > KEY_FILE_BYTES_MAX {
        return Err(Fault::new(
            code::AUTH,
            format!("{source} is not a file that holds a key alone"),
        ));
    }
    take(&fs::read_to_string(file).map_err(failed)?, &source)
}

fn from_command(command: &str) -> Result<ApiKey, Fault> {
    let failed = |why: String| {
        Fault::new(code::AUTH, format!("keyCommand {why}"))
            .remedy("run it by hand; correct keyCommand in config.toml")
    };
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    let Some(mut stdout) = child.stdout.take() else {
        return Err(failed(String::from("has no output")));
    };
    let mut text = Vec::new();
    let read = read_within(&mut stdout, &mut text);
    if !read {
        // It may have ended in the meantime; then there is nothing left to end.
        drop(child.kill());
    }
    let status = child
        .wait()
        .map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    if !read {
        return Err(failed(format!(
            "gave no key within {} s",
            KEY_COMMAND_MAX.as_secs()
        )));
    }
    if !status.success() {
        return Err(failed(format!("failed ({status})")));
    }
    take(&String::from_utf8_lossy(&text), "keyCommand")
}

/// Reads to the end, if it comes in time and is not too long.
fn read_within(source: &mut std::process::ChildStdout, text: &mut Vec<u8>) -> bool {
    let end = std::time::Instant::now() + KEY_COMMAND_MAX;
    let mut buffer = [0; 4096];
    loop {
        let left = end.saturating_duration_since(std::time::Instant::now());
        let wait = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        match poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&wait)) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return false,
        }
        match rustix::io::read(&*source, &mut buffer) {
            Ok(0) => return true,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
        if text.len() as u64 > KEY_FILE_BYTES_MAX {
            return false;
        }
    }
}
