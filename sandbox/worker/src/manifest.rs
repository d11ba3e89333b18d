//! manifest: what stands below the roots, for telling what a command changed.
//!
//! Files and links, `.git` left out, caches (`node_modules`, anything with CACHEDIR.TAG) named but
//! not entered. Ignore files do not count: a command could write one to hide what it did.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::fault::{Fault, bad_request};
use crate::protocol::{ErrorCode, ManifestEntry, Response};
use crate::walk::{self, Go, Skip};
use crate::{Answer, file};

/// Roots of one request.
const ROOTS_MAX: usize = 64;
/// Bytes of the list; the client takes a little more.
const MANIFEST_BYTES_MAX: usize = 48 << 20;

/// Entries as JSON lines, sorted by path, absolute.
pub(crate) fn manifest(roots: &[String], cwd: &Path, entries_max: u64) -> Answer {
    if roots.len() > ROOTS_MAX {
        return Err(bad_request(format!("more than {ROOTS_MAX} roots")));
    }
    let entries_max = usize::try_from(entries_max).unwrap_or(usize::MAX);
    let mut found: Vec<PathBuf> = Vec::new();
    let mut whole = true;
    let deadline = walk::deadline();
    for root in roots {
        let root = file::absolute(cwd, root)?;
        crate::glob::directory(&root)?;
        whole &= walk::walk(&root, Skip::Caches, deadline, &mut |entry| {
            if found.len() >= entries_max {
                return Go::Stop;
            }
            if entry.closed || !entry.kind.is_dir() {
                found.push(entry.path);
            }
            Go::On
        });
    }
    found.sort();
    found.dedup();
    let mut bulk = Vec::new();
    let mut entries = 0;
    for path in &found {
        let Some(line) = line(path)? else { continue };
        if bulk.len() + line.len() + 1 > MANIFEST_BYTES_MAX {
            whole = false;
            break;
        }
        bulk.extend_from_slice(&line);
        bulk.push(b'\n');
        entries += 1;
    }
    let response = Response::Manifest {
        entries,
        cut: !whole,
        bytes: bulk.len() as u64,
    };
    Ok((response, bulk))
}

/// Nothing for what is gone since it was listed.
fn line(path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return Ok(None);
    };
    let entry = ManifestEntry {
        path: crate::text::listed(path),
        bytes: meta.len(),
        mtime_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        ino: meta.ino(),
        mode: meta.mode(),
    };
    serde_json::to_vec(&entry)
        .map(Some)
        .map_err(|error| Fault::new(ErrorCode::Io, "manifest", path, error.to_string()))
}

#[cfg(test)]
mod tests;
