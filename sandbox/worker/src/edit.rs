//! edit: replace one literal, unique piece of text the model has seen.

use std::borrow::Cow;
use std::path::Path;

use memchr::memmem;

use crate::fault::Fault;
use crate::file::{self, Access};
use crate::protocol::{ErrorCode, FileFact, Observation, Response, Seen};
use crate::text::{count_lines, line_at};
use crate::{Answer, FILE_BYTES_MAX, place, seen};

/// Places that are named when a text is found more than once.
const PLACES_SHOWN_MAX: usize = 10;
/// Matches that are counted before "more" is said.
const MATCHES_COUNTED_MAX: usize = 10_000;

pub(crate) fn edit(path: &Path, old: &[u8], new: &[u8], observations: &[Observation]) -> Answer {
    let mut opened = file::open(path, Access::Read)?;
    let present = opened.content()?;
    let before_sha256 = file::sha256(&present);
    // Asked of the kernel first: "denied" is the better answer where both hold.
    drop(file::open(&opened.real, Access::Write)?);
    let ranges = seen::known("edit", &opened.real, &before_sha256, observations)?;
    let change = find(&present, old, new).map_err(|miss| miss.fault(&opened.real))?;
    let (first, last) = change.lines(&present);
    if let Some(line) = seen::first_gap(&ranges, first, last) {
        return Err(seen::not_seen("edit", &opened.real, line));
    }
    let content = change.applied(&present);
    if content.len() as u64 > FILE_BYTES_MAX {
        let text = format!(
            "the result would be larger than {} MiB",
            FILE_BYTES_MAX >> 20
        );
        return Err(Fault::new(ErrorCode::TooLarge, "edit", &opened.real, text));
    }
    place::replace(&mut opened, &present, &content)?;
    let file = FileFact {
        path: opened.real.to_string_lossy().into_owned(),
        sha256: file::sha256(&content),
        bytes: content.len() as u64,
        lines: count_lines(&content),
        seen: change.seen_after(&present, &content, &ranges),
    };
    let response = Response::Edited {
        file,
        before_sha256,
        at: first,
    };
    Ok((response, Vec::new()))
}

/// One replacement, found and unique.
#[derive(Debug, PartialEq, Eq)]
struct Change<'a> {
    at: usize,
    old: Cow<'a, [u8]>,
    new: Cow<'a, [u8]>,
}

/// Why there is no such replacement.
#[derive(Debug, PartialEq, Eq)]
enum Miss {
    EmptyOld,
    Same,
    None { hint: Option<String> },
    Many { count: usize, lines: Vec<u64> },
}

/// Finds `old`. The model is shown lines without their carriage returns, so in a file that has
/// them a text with bare line feeds is looked for with them, and its replacement gets them.
fn find<'a>(content: &[u8], old: &'a [u8], new: &'a [u8]) -> Result<Change<'a>, Miss> {
    if old.is_empty() {
        return Err(Miss::EmptyOld);
    }
    if old == new {
        return Err(Miss::Same);
    }
    let line_feeds = memchr::memchr_iter(b'\n', content).count();
    let with_returns = memmem::find_iter(content, b"\r\n").count();
    let uniform = line_feeds > 0 && with_returns == line_feeds;
    let as_is = places(content, old);
    if !as_is.is_empty() {
        let new = if uniform {
            returned(new)
        } else {
            Cow::Borrowed(new)
        };
        return unique(content, as_is).map(|at| Change {
            at,
            old: Cow::Borrowed(old),
            new,
        });
    }
    let old_returned = returned(old);
    if with_returns > 0 && old_returned != old {
        let found = places(content, &old_returned);
        if !found.is_empty() {
            return unique(content, found).map(|at| Change {
                at,
                old: old_returned,
                new: returned(new),
            });
        }
    }
    Err(Miss::None {
        hint: hint(content, old),
    })
}

/// Where `old` stands, overlapping places included: "aa" stands twice in "aaa".
fn places(content: &[u8], old: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() < MATCHES_COUNTED_MAX
        && let Some(at) = finder.find(&content[from..])
    {
        found.push(from + at);
        from += at + 1;
    }
    found
}

fn unique(content: &[u8], places: Vec<usize>) -> Result<usize, Miss> {
    match places.as_slice() {
        [at] => Ok(*at),
        _ => {
            let lines = places
                .iter()
                .take(PLACES_SHOWN_MAX)
                .map(|at| line_at(content, *at))
                .collect();
            Err(Miss::Many {
                count: places.len(),
                lines,
            })
        }
    }
}

/// With a carriage return before each line feed that has none.
fn returned(text: &[u8]) -> Cow<'_, [u8]> {
    let bare = memchr::memchr_iter(b'\n', text)
        .filter(|at| *at == 0 || text[at - 1] != b'\r')
        .count();
    if bare == 0 {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + bare);
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || text[at - 1] != b'\r') {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    Cow::Owned(out)
}

/// What usually went wrong when a text is not found.
fn hint(content: &[u8], old: &[u8]) -> Option<String> {
    let first = old
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty())?;
    let digits = first
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits > 0 && first.get(digits) == Some(&b'\t') {
        return Some("leave out the line numbers that read puts before each line".to_owned());
    }
    let at = memmem::find(content, first)?;
    Some(format!(
        "its first line stands at line {}; blanks or later lines differ",
        line_at(content, at)
    ))
}

impl Miss {
    fn fault(self, real: &Path) -> Fault {
        let shown = real.display();
        let (code, text) = match self {
            Miss::EmptyOld => (
                ErrorCode::BadRequest,
                "old_string is empty; say what to replace, or use write for a new file".to_owned(),
            ),
            Miss::Same => (
                ErrorCode::BadRequest,
                "old_string and new_string are the same".to_owned(),
            ),
            Miss::None { hint } => {
                let hint = hint.map_or(String::new(), |hint| format!(": {hint}"));
                (
                    ErrorCode::NoMatch,
                    format!("old_string does not stand in {shown}{hint}"),
                )
            }
            Miss::Many { count, lines } => {
                let more = if count > lines.len() { " …" } else { "" };
                let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
                let text = format!(
                    "old_string stands {count} times in {shown} (lines {}{more}); add lines around it until it is unique",
                    lines.join(", ")
                );
                (ErrorCode::ManyMatches, text)
            }
        };
        Fault::new(code, "edit", real, text)
    }
}

impl Change<'_> {
    fn end(&self) -> usize {
        self.at + self.old.len()
    }

    /// First and last line of `content` that hold a replaced byte.
    fn lines(&self, content: &[u8]) -> (u64, u64) {
        (line_at(content, self.at), line_at(content, self.end() - 1))
    }

    fn applied(&self, content: &[u8]) -> Vec<u8> {
        let mut result = Vec::with_capacity(content.len() - self.old.len() + self.new.len());
        result.extend_from_slice(&content[..self.at]);
        result.extend_from_slice(&self.new);
        result.extend_from_slice(&content[self.end()..]);
        result
    }

    /// What the model knows of the result: what it had seen, shifted, and the lines it wrote. A
    /// line that now begins with its text and ends with one it had not seen does not count.
    fn seen_after(&self, before: &[u8], after: &[u8], ranges: &[Seen]) -> Vec<Seen> {
        let feeds = |text: &[u8]| memchr::memchr_iter(b'\n', text).count() as u64;
        let (added, removed) = (feeds(&self.new), feeds(&self.old));
        let (first, last) = self.lines(before);
        let shift = |line: u64| line.saturating_add(added).saturating_sub(removed);
        let kept_before = ranges
            .iter()
            .map(|(from, to)| (*from, (*to).min(first - 1)));
        let kept_after = ranges
            .iter()
            .filter(|(_, to)| *to > last)
            .map(|(from, to)| (shift((*from).max(last + 1)), shift(*to)));
        let to_the_end = self.end() == before.len();
        let written_to = if to_the_end {
            count_lines(after)
        } else {
            shift(last)
        };
        seen::normalize(kept_before.chain(kept_after).chain([(first, written_to)]))
    }
}

#[cfg(test)]
mod tests;
