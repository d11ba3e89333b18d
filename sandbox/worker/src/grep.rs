//! grep: lines that match a regular expression, by ripgrep's engine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use crate::Answer;
use crate::fault::Fault;
use crate::file::{self, Access};
use crate::glob::{List, directory, relative};
use crate::protocol::{ErrorCode, Response};
use crate::text::cut_at;
use crate::walk::{self, Go, Skip};

/// Files held at once, before they are sorted and searched in order.
const FILES_MAX: usize = 200_000;
/// Memory a compiled expression and its automaton may take. The engine is linear in the text; this
/// bounds what a pattern such as `(a{1000}){1000}` costs before the first byte.
const REGEX_BYTES_MAX: usize = 4 << 20;
/// The longest line that is searched; a file with a longer one is left where it stands.
const LINE_BYTES_MAX: usize = 16 << 20;
/// A longer pattern is no pattern.
const PATTERN_BYTES_MAX: usize = 16 << 10;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub matches_max: u64,
    pub line_chars_max: u64,
}

/// `path:line:text` for each matching line below `base` (or in it, if it is a file), by path and
/// line.
pub(crate) fn grep(pattern: &str, base: &Path, cwd: &Path, caps: Caps) -> Answer {
    let matcher = compile(pattern, base)?;
    let deadline = walk::deadline();
    let (files, whole) = files(base, deadline)?;
    let mut searcher = searcher();
    let mut found = Hits {
        list: List::default(),
        caps,
        cut: !whole,
    };
    let mut with_matches = 0;
    for path in &files {
        if found.full() || Instant::now() > deadline {
            found.cut = true;
            break;
        }
        let before = found.list.count;
        found.search(&mut searcher, &matcher, path, &relative(path, cwd));
        with_matches += u64::from(found.list.count > before);
    }
    let response = Response::Grep {
        count: found.list.count,
        cut: found.cut,
        files: with_matches,
        bytes: found.list.bytes.len() as u64,
    };
    Ok((response, found.list.bytes))
}

fn compile(pattern: &str, base: &Path) -> Result<RegexMatcher, Fault> {
    let bad = |text: String| Fault::new(ErrorCode::BadPattern, "grep", base, text);
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
        return Err(bad("the pattern is empty or too long".to_owned()));
    }
    RegexMatcherBuilder::new()
        // `$` also stands before a carriage return and a line feed.
        .crlf(true)
        // `^` and `$` are about lines, not about the whole file.
        .multi_line(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .build(pattern)
        .map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            bad(format!("{pattern} is no regular expression: {last}; put a backslash before a literal ( [ {{ . * + ? |"))
        })
}

/// The files to search, in order.
fn files(base: &Path, deadline: Instant) -> Result<(Vec<PathBuf>, bool), Fault> {
    match file::open(base, Access::Read) {
        Ok(_) => return Ok((vec![base.to_path_buf()], true)),
        Err(Fault(error)) if error.code == ErrorCode::NotAFile && base.is_dir() => directory(base)?,
        Err(fault) => return Err(fault),
    }
    let mut files = Vec::new();
    let whole = walk::walk(base, Skip::Ignored, deadline, &mut |entry| {
        if entry.kind.is_file() {
            files.push(entry.path);
        }
        if files.len() < FILES_MAX {
            Go::On
        } else {
            Go::Stop
        }
    });
    files.sort();
    Ok((files, whole))
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        // A file with NUL is no text, and its lines are no lines.
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LINE_BYTES_MAX))
        .build()
}

struct Hits {
    list: List,
    caps: Caps,
    cut: bool,
}

impl Hits {
    fn full(&self) -> bool {
        self.list.count >= self.caps.matches_max
    }

    fn search(&mut self, searcher: &mut Searcher, matcher: &RegexMatcher, path: &Path, name: &str) {
        // Gone, special or closed since the walk: nothing to search.
        let Ok(opened) = file::open(path, Access::Read) else {
            return;
        };
        let mut sink = Lines { hits: self, name };
        if searcher
            .search_file(matcher, &opened.file, &mut sink)
            .is_err()
        {
            // A line beyond the limit, or a file that cannot be read to its end.
            self.cut = true;
        }
    }
}

struct Lines<'a> {
    hits: &'a mut Hits,
    name: &'a str,
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let hits = &mut *self.hits;
        if hits.full() {
            hits.cut = true;
            return Ok(false);
        }
        let line = hit.bytes();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let most =
            usize::try_from(hits.caps.line_chars_max.saturating_mul(4)).unwrap_or(usize::MAX);
        let mut text = String::from_utf8_lossy(&line[..line.len().min(most)]).into_owned();
        if cut_at(&mut text, hits.caps.line_chars_max, u64::MAX) || line.len() > most {
            text.push('…');
        }
        let number = hit.line_number().unwrap_or(0);
        if !hits.list.push(&format!("{}:{number}:{text}", self.name)) {
            hits.cut = true;
            return Ok(false);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
