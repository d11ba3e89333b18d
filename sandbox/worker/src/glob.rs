//! glob: files whose path matches a pattern.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::fault::Fault;
use crate::protocol::{ErrorCode, Response};
use crate::walk::{self, Go, Skip};
use crate::{Answer, text};

/// Paths held at once, before they are sorted and cut to what was asked for.
const HELD_MAX: usize = 200_000;
/// Bytes of the list.
pub(crate) const LIST_BYTES_MAX: usize = 8 << 20;
/// A longer pattern is no pattern.
const PATTERN_BYTES_MAX: usize = 4096;

/// Files below `base` that match, one a line, sorted; relative to `cwd` where they are below it. A
/// pattern without a slash is about names at any depth; `/x` begins at the file system's root.
pub(crate) fn glob(pattern: &str, base: &Path, cwd: &Path, entries_max: u64) -> Answer {
    let bad = |text: String| Fault::new(ErrorCode::BadPattern, "glob", base, text);
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
        return Err(bad(
            "the pattern is empty or too long; write for example **/*.rs".to_owned(),
        ));
    }
    let (base, pattern) = rooted(pattern, base);
    directory(&base)?;
    let matcher = matcher(&pattern).map_err(|error| bad(format!("{pattern}: {}", error.kind())))?;
    let by_name = !pattern.contains('/');
    let mut found: Vec<PathBuf> = Vec::new();
    let whole = walk::walk(&base, Skip::Ignored, walk::deadline(), &mut |entry| {
        let below = entry.path.strip_prefix(&base).unwrap_or(&entry.path);
        let name = entry.path.file_name().map(Path::new);
        let subject = if by_name {
            name.unwrap_or(below)
        } else {
            below
        };
        if matcher.is_match(subject) {
            found.push(entry.path);
        }
        if found.len() < HELD_MAX {
            Go::On
        } else {
            Go::Stop
        }
    });
    found.sort();
    let list = List::of(found.iter().map(|path| relative(path, cwd)), entries_max);
    let response = Response::Glob {
        count: list.count,
        cut: list.cut || !whole,
        bytes: list.bytes.len() as u64,
    };
    Ok((response, list.bytes))
}

/// A pattern that begins at the root moves the base to its last directory without wildcards.
fn rooted(pattern: &str, base: &Path) -> (PathBuf, String) {
    if !pattern.starts_with('/') {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        return (base.to_path_buf(), pattern.to_owned());
    }
    let parts: Vec<&str> = pattern.split('/').collect();
    let wild = |part: &&str| part.contains(['*', '?', '[', '{', '\\']);
    let fixed = parts.iter().position(wild).unwrap_or(parts.len() - 1);
    let base = PathBuf::from(format!(
        "/{}",
        parts[..fixed].join("/").trim_start_matches('/')
    ));
    (
        base,
        format!("./{}", parts[fixed..].join("/"))
            .trim_start_matches("./")
            .to_owned(),
    )
}

fn matcher(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    // `*` does not cross directories, `**` does.
    let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
    Ok(glob.compile_matcher())
}

/// Says why nothing can be listed below `base`, instead of finding nothing.
pub(crate) fn directory(base: &Path) -> Result<(), Fault> {
    match std::fs::read_dir(base) {
        Ok(_) => Ok(()),
        Err(error) => Err(Fault::io("open-read", base, &error)),
    }
}

/// As the model should name it in its next call.
pub(crate) fn relative(path: &Path, cwd: &Path) -> String {
    text::listed(path.strip_prefix(cwd).unwrap_or(path))
}

/// Lines up to a count and a size.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub bytes: Vec<u8>,
    pub count: u64,
    pub cut: bool,
}

impl List {
    pub fn of(lines: impl Iterator<Item = String>, most: u64) -> List {
        let mut list = List::default();
        for line in lines {
            if list.count >= most || !list.push(&line) {
                list.cut = true;
                break;
            }
        }
        list
    }

    /// `false` when it does not fit.
    pub fn push(&mut self, line: &str) -> bool {
        if self.bytes.len() + line.len() + 1 > LIST_BYTES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests;
