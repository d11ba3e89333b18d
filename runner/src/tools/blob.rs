//! `read` of `blob:ID`: the whole of a cut output, page by page, from the session's own directory.

use std::collections::BTreeSet;

use curfew_engine::event::ToolErrorCode;
use curfew_store::{BLOB_PAGE_BYTES_MAX, Blobs, StoreError};

use super::args::ReadArgs;
use super::render::Rendered;
use super::{LINE_CHARS_MAX, LINES_MAX, WINDOW_BYTES_MAX};

/// What a path of the `read` tool begins with when it means a blob.
pub const PREFIX: &str = "blob:";
/// How much of its hash names a blob to the model.
pub const ID_CHARS: usize = 16;

/// The name a model is given.
pub fn id_of(sha256: &str) -> &str {
    sha256.get(..ID_CHARS).unwrap_or(sha256)
}

/// The blobs a model may name.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeSet<String>);

impl Known {
    pub fn add(&mut self, sha256: &str) {
        self.0.insert(sha256.to_owned());
    }

    /// The only blob whose hash begins like this.
    fn find(&self, id: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|sha256| sha256.starts_with(id));
        match (found.next(), found.next()) {
            (Some(only), None) if !id.is_empty() => Some(only),
            _ => None,
        }
    }
}

/// One page. Long lines are folded, so that output without line breaks has pages too.
pub fn read(args: &ReadArgs, known: &Known, blobs: &Blobs) -> Rendered {
    let id = args.path.trim_start_matches(PREFIX);
    let Some(sha256) = known.find(id) else {
        let text = format!(
            "No output is kept as {}. Copy the id from the line that says where output was cut.",
            args.path
        );
        return Rendered::failed(ToolErrorCode::Tool(String::from("not-found")), text);
    };
    let first = args.offset.unwrap_or(1).max(1);
    let lines_max = args.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX);
    match page(blobs, sha256, first, lines_max) {
        Ok(page) => page.rendered(id, first),
        Err(error) => Rendered::failed(ToolErrorCode::Tool(String::from("io")), error.to_string()),
    }
}

#[derive(Debug, Default)]
struct Page {
    text: String,
    /// Number of the line that is being filled.
    number: u64,
    chars: u64,
    last: u64,
    more: bool,
}

impl Page {
    fn rendered(self, id: &str, first: u64) -> Rendered {
        let mut notes = Vec::new();
        if self.text.is_empty() {
            notes.push(format!("[{PREFIX}{id} has no line {first}]"));
        } else if self.more {
            notes.push(format!("[go on with offset {}]", self.last + 1));
        }
        Rendered {
            body: self.text.into_bytes(),
            notes,
            error: None,
            files: Vec::new(),
        }
    }

    /// Takes one character of the blob; says whether the page wants more.
    fn take(&mut self, symbol: char, first: u64, last: u64) -> bool {
        let folded = self.chars == LINE_CHARS_MAX && symbol != '\n';
        if folded {
            self.end_line(first, last);
        }
        let wanted = (first..=last).contains(&self.number);
        if self.number > last || (wanted && self.text.len() as u64 >= WINDOW_BYTES_MAX) {
            self.more = true;
            return false;
        }
        if wanted && self.chars == 0 && symbol != '\n' {
            self.text.push_str(&format!("{}\t", self.number));
        }
        if symbol == '\n' {
            self.end_line(first, last);
        } else {
            self.chars += 1;
            if wanted {
                self.text.push(symbol);
                self.last = self.number;
            }
        }
        true
    }

    fn end_line(&mut self, first: u64, last: u64) {
        if (first..=last).contains(&self.number) {
            if self.chars == 0 {
                self.text.push_str(&format!("{}\t", self.number));
            }
            self.text.push('\n');
            self.last = self.number;
        }
        self.number += 1;
        self.chars = 0;
    }
}

fn page(blobs: &Blobs, sha256: &str, first: u64, lines_max: u64) -> Result<Page, StoreError> {
    let last = first.saturating_add(lines_max - 1);
    let mut page = Page {
        number: 1,
        ..Page::default()
    };
    let (mut offset, mut carry) = (0, Vec::new());
    loop {
        let read = blobs.read(sha256, offset, BLOB_PAGE_BYTES_MAX)?;
        offset += read.len() as u64;
        let ended = read.is_empty();
        carry.extend_from_slice(&read);
        // The end of a page may be the middle of a character: it waits for the next page.
        let whole = if ended {
            carry.len()
        } else {
            whole_chars(&carry)
        };
        let rest = carry.split_off(whole);
        let text = String::from_utf8_lossy(&carry).into_owned();
        carry = rest;
        if ended && text.is_empty() || !text.chars().all(|symbol| page.take(symbol, first, last)) {
            return Ok(page);
        }
    }
}

/// How much of `bytes` does not end in the middle of a character.
fn whole_chars(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let start = (tail..bytes.len()).rev().find(|at| bytes[*at] >= 0xc0);
    match start {
        Some(at)
            if std::str::from_utf8(&bytes[at..])
                .is_err_and(|error| error.error_len().is_none()) =>
        {
            at
        }
        _ => bytes.len(),
    }
}
