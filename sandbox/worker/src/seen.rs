//! Which lines of a file the model has seen: sorted, disjoint, 1-based inclusive ranges.

use std::path::Path;

use crate::fault::Fault;
use crate::protocol::{ErrorCode, Observation, Seen};

/// Ranges of observations may come in any order and overlap.
pub(crate) fn normalize(ranges: impl IntoIterator<Item = Seen>) -> Vec<Seen> {
    let mut ranges: Vec<Seen> = ranges
        .into_iter()
        .map(|(first, last)| (first.max(1), last))
        .filter(|(first, last)| first <= last)
        .collect();
    ranges.sort_unstable();
    let mut merged: Vec<Seen> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The first line from `first` to `last` that is not in `ranges` (normalized).
pub(crate) fn first_gap(ranges: &[Seen], first: u64, last: u64) -> Option<u64> {
    let mut at = first;
    for (from, to) in ranges {
        if at > last || *from > at {
            break;
        }
        at = at.max(to.saturating_add(1));
    }
    (at <= last).then_some(at)
}

/// What the model has seen of the file at its present content, or why that counts for nothing.
pub(crate) fn known(
    op: &str,
    real: &Path,
    sha256: &str,
    observations: &[Observation],
) -> Result<Vec<Seen>, Fault> {
    let name = real.to_string_lossy();
    let of_file = || {
        observations
            .iter()
            .filter(|observation| observation.path == name)
    };
    let current = || of_file().filter(|observation| observation.sha256 == sha256);
    if current().next().is_some() {
        return Ok(normalize(
            current().flat_map(|observation| observation.seen.iter().copied()),
        ));
    }
    let shown = real.display();
    Err(match of_file().next() {
        Some(_) => Fault::new(
            ErrorCode::Stale,
            op,
            real,
            format!("{shown} has changed since it was read; read it again, then {op}"),
        ),
        None => Fault::new(
            ErrorCode::NotRead,
            op,
            real,
            format!("{shown} has not been read in this session; read it first, then {op}"),
        ),
    })
}

/// The error for lines the model was not shown.
pub(crate) fn not_seen(op: &str, real: &Path, line: u64) -> Fault {
    let text = format!(
        "line {line} of {} was not shown to you (or only cut); read it with offset {line}, then {op}",
        real.display()
    );
    Fault::new(ErrorCode::NotSeen, op, real, text)
}

#[cfg(test)]
mod tests;
