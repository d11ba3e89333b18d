//! write: make a file, or replace one the model has seen whole.

use std::path::Path;

use crate::fault::Fault;
use crate::file::{self, Access};
use crate::protocol::{ErrorCode, FileFact, Observation, Response};
use crate::{Answer, place, seen, text};

pub(crate) fn write(path: &Path, content: &[u8], observations: &[Observation]) -> Answer {
    let (real, before) = match file::open(path, Access::Read) {
        Ok(opened) => (
            opened.real.clone(),
            Some(over(opened, content, observations)?),
        ),
        Err(Fault(error)) if error.code == ErrorCode::NotFound => {
            place::create(path, content)?;
            (made(path)?, None)
        }
        Err(fault) => return Err(fault),
    };
    let lines = text::count_lines(content);
    let file = FileFact {
        path: real.to_string_lossy().into_owned(),
        sha256: file::sha256(content),
        bytes: content.len() as u64,
        lines,
        seen: if lines == 0 {
            Vec::new()
        } else {
            vec![(1, lines)]
        },
    };
    let response = Response::Written {
        file,
        created: before.is_none(),
        before_sha256: before,
    };
    Ok((response, Vec::new()))
}

/// Replaces a file that exists; the hash of what stood there.
fn over(
    mut opened: file::Opened,
    content: &[u8],
    observations: &[Observation],
) -> Result<String, Fault> {
    let present = opened.content()?;
    let sha256 = file::sha256(&present);
    // Asked of the kernel first: "denied" is the better answer where both hold.
    drop(file::open(&opened.real, Access::Write)?);
    let ranges = seen::known("write", &opened.real, &sha256, observations)?;
    if let Some(line) = seen::first_gap(&ranges, 1, text::count_lines(&present)) {
        return Err(seen::not_seen("write", &opened.real, line));
    }
    place::replace(&mut opened, &present, content)?;
    Ok(sha256)
}

/// The real path of what was just made.
fn made(path: &Path) -> Result<std::path::PathBuf, Fault> {
    file::open(path, Access::Read).map(|opened| opened.real)
}

#[cfg(test)]
mod tests;
