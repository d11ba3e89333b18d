//! Pure: what changed between two manifests of a workspace.

use std::collections::BTreeMap;

use curfew_worker::protocol::ManifestEntry;

#[cfg(test)]
mod tests;

/// The most paths each list names; more are counted as cut.
pub const PATHS_MAX: usize = 1000;

/// Paths in order. `cut` says that a list or a manifest hit its bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub created: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub cut: bool,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// A list of files as a worker made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub entries: Vec<ManifestEntry>,
    pub cut: bool,
}

/// Size, time, inode or mode: any difference is a change. A manifest that was cut says nothing
/// about what it does not list, so names missing from a cut one are neither created nor removed.
pub fn diff(before: &Manifest, after: &Manifest) -> Changes {
    let index = |manifest: &'_ Manifest| -> BTreeMap<String, ManifestEntry> {
        manifest
            .entries
            .iter()
            .map(|entry| (entry.path.clone(), entry.clone()))
            .collect()
    };
    let (old, new) = (index(before), index(after));
    let mut changes = Changes {
        cut: before.cut || after.cut,
        ..Changes::default()
    };
    for (path, entry) in &new {
        match old.get(path) {
            Some(was) if was == entry => {}
            Some(_) => push(&mut changes.changed, path, &mut changes.cut),
            None if before.cut => {}
            None => push(&mut changes.created, path, &mut changes.cut),
        }
    }
    if !after.cut {
        for path in old.keys().filter(|path| !new.contains_key(*path)) {
            push(&mut changes.removed, path, &mut changes.cut);
        }
    }
    changes
}

fn push(list: &mut Vec<String>, path: &str, cut: &mut bool) {
    if list.len() < PATHS_MAX {
        list.push(path.to_owned());
    } else {
        *cut = true;
    }
}
