//! Lines and windows of a file's bytes.

use crate::protocol::Seen;
use crate::read::Window;

/// Shown at the end of a line that was cut.
const CUT_MARK: &str = "…";

/// Lines of a content: every line feed ends one, and what follows the last is one too.
pub(crate) fn count_lines(content: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', content).count() as u64;
    ends + u64::from(content.last().is_some_and(|byte| *byte != b'\n'))
}

/// The line in which the byte at `at` stands, 1-based.
pub(crate) fn line_at(content: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &content[..at.min(content.len())]).count() as u64 + 1
}

/// A part of a file as it is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub text: String,
    /// First and last line; last is `first - 1` when there is none.
    pub first: u64,
    pub last: u64,
    pub more: bool,
    pub cut_lines: u64,
    pub lossy: bool,
    /// Lines shown whole.
    pub seen: Vec<Seen>,
}

/// Cuts the window out of `content`. A carriage return before a line feed is not shown; an edit
/// puts it back.
pub(crate) fn window(content: &[u8], window: Window) -> Shown {
    let first = window.offset.max(1);
    let mut shown = Shown {
        first,
        last: first - 1,
        ..Shown::default()
    };
    let mut lines = content
        .split_inclusive(|byte| *byte == b'\n')
        .skip(usize::try_from(first - 1).unwrap_or(usize::MAX));
    let mut seen: Vec<Seen> = Vec::new();
    for line in lines.by_ref() {
        let number = shown.last + 1;
        let line = one_line(line, &window);
        let full = number - first >= window.lines_max;
        let too_long = shown.text.len() as u64 + line.text.len() as u64 > window.bytes_max;
        if full || (too_long && number > first) {
            shown.more = true;
            break;
        }
        shown.last = number;
        shown.lossy |= line.lossy;
        shown.text.push_str(&line.text);
        if line.cut {
            shown.cut_lines += 1;
        } else {
            seen.push((number, number));
        }
    }
    shown.seen = crate::seen::normalize(seen);
    shown
}

struct Line {
    text: String,
    cut: bool,
    lossy: bool,
}

fn one_line(raw: &[u8], window: &Window) -> Line {
    let (body, end) = match raw.strip_suffix(b"\n") {
        Some(body) => (body.strip_suffix(b"\r").unwrap_or(body), "\n"),
        None => (raw, ""),
    };
    // More bytes than this cannot be shown, so they need not be decoded.
    let most = window.line_chars_max.saturating_mul(4).saturating_add(4);
    let looked = &body[..body.len().min(usize::try_from(most).unwrap_or(usize::MAX))];
    let (mut text, lossy) = match std::str::from_utf8(looked) {
        Ok(text) => (text.to_owned(), false),
        // The look may have ended inside a character; that alone is no damage.
        Err(error) if error.error_len().is_none() && looked.len() < body.len() => (
            String::from_utf8_lossy(&looked[..error.valid_up_to()]).into_owned(),
            false,
        ),
        Err(_) => (String::from_utf8_lossy(looked).into_owned(), true),
    };
    let cut =
        cut_at(&mut text, window.line_chars_max, window.bytes_max) || looked.len() < body.len();
    if cut {
        text.push_str(CUT_MARK);
    }
    text.push_str(end);
    Line { text, cut, lossy }
}

/// Cuts `text` to so many characters and bytes; whether anything was lost.
pub(crate) fn cut_at(text: &mut String, chars_max: u64, bytes_max: u64) -> bool {
    let chars_max = usize::try_from(chars_max).unwrap_or(usize::MAX);
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let by_chars = text
        .char_indices()
        .nth(chars_max)
        .map_or(text.len(), |(at, _)| at);
    let mut end = by_chars.min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let lost = end < text.len();
    text.truncate(end);
    lost
}

/// A name as one line of a list: control characters escaped, bytes that are no text replaced.
pub(crate) fn listed(path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    if !text.chars().any(char::is_control) {
        return text.into_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if c.is_control() => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
