//! read: a window of a text file.

use std::path::Path;

use crate::fault::Fault;
use crate::file::{self, Access};
use crate::protocol::{ErrorCode, FileFact, Response};
use crate::{Answer, text};

/// What is asked for. `offset` is a 1-based line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub offset: u64,
    pub lines_max: u64,
    pub line_chars_max: u64,
    pub bytes_max: u64,
}

/// The text follows as bulk: plain lines, without numbers.
pub(crate) fn read(path: &Path, window: Window) -> Answer {
    let mut opened = file::open(path, Access::Read)?;
    let content = opened.content()?;
    let shown_path = opened.real.display();
    if memchr::memchr(0, &content).is_some() {
        let text = format!("{shown_path} is not text: it holds NUL bytes");
        return Err(Fault::new(ErrorCode::NotText, "read", &opened.real, text));
    }
    let lines = text::count_lines(&content);
    if window.offset > lines.max(1) {
        let text = format!(
            "{shown_path} has {lines} lines; offset {} is behind its end",
            window.offset
        );
        return Err(Fault::new(
            ErrorCode::BadRequest,
            "read",
            &opened.real,
            text,
        ));
    }
    let shown = text::window(&content, window);
    let file = FileFact {
        path: opened.real.to_string_lossy().into_owned(),
        sha256: file::sha256(&content),
        bytes: content.len() as u64,
        lines,
        seen: shown.seen,
    };
    let bulk = shown.text.into_bytes();
    let response = Response::Read {
        file,
        first: shown.first,
        last: shown.last,
        more: shown.more,
        cut_lines: shown.cut_lines,
        lossy: shown.lossy,
        bytes: bulk.len() as u64,
    };
    Ok((response, bulk))
}

#[cfg(test)]
mod tests;
