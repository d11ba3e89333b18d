//! The Landlock layer: the same layout again, as grants on what stands there after the mounts.
//!
//! Landlock has no deny rules and a grant reaches everything below, so the way down to a closed
//! directory is granted name by name. A rule on a writable private area also reaches what is placed
//! in it: there the mount alone keeps a read-only tree read-only (sandbox/GUARANTEES.md says so).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use curfew_cell::plan::{FileGrant, LandlockPlan};
use curfew_policy::Confinement;

use super::LANDLOCK_ABI_VETTED;
use super::layout::{Entry, Layout};
use crate::facts::{HostFacts, Kind};

pub(super) fn landlock(
    confinement: &Confinement,
    facts: &HostFacts,
    layout: &Layout,
) -> LandlockPlan {
    let mut rules = vec![(PathBuf::from("/"), FileGrant::List)];
    let ways = ways(confinement, facts, layout);
    for (path, kind) in ways
        .iter()
        .filter_map(|way| facts.entries.get(way))
        .flatten()
    {
        let granted_elsewhere =
            ways.contains(path) || layout.entries.contains_key(path) || path == Path::new("/dev");
        if !granted_elsewhere && *kind != Kind::Other {
            rules.push((path.clone(), FileGrant::Read));
        }
    }
    // Device nodes and, as a walk upwards skips what is below a mount point, each call's /dev/shm.
    rules.push((PathBuf::from("/dev"), FileGrant::Device));
    rules.extend(
        layout
            .entries
            .iter()
            .filter_map(|(path, entry)| Some((path.clone(), grant(entry)?))),
    );
    rules.extend(
        layout
            .shown
            .iter()
            .map(|path| (path.clone(), FileGrant::Read)),
    );
    LandlockPlan {
        abi: facts.landlock_abi.min(LANDLOCK_ABI_VETTED),
        rules,
    }
}

fn grant(entry: &Entry) -> Option<FileGrant> {
    match entry {
        Entry::Private(_) | Entry::Place { writable: true, .. } => Some(FileGrant::Write),
        Entry::Closed
        | Entry::Text(_)
        | Entry::Mask { .. }
        | Entry::Place {
            writable: false, ..
        } => Some(FileGrant::Read),
        Entry::Way => None,
    }
}

/// `/` and every directory above a closed one, as far down as the host is shown.
fn ways(confinement: &Confinement, facts: &HostFacts, layout: &Layout) -> BTreeSet<PathBuf> {
    let mut ways = BTreeSet::from([PathBuf::from("/")]);
    for node in confinement
        .closed
        .iter()
        .filter_map(|path| facts.node(path))
    {
        let above = node.real.ancestors().skip(1);
        ways.extend(
            above
                .filter(|way| layout.at(way).is_none())
                .map(Path::to_path_buf),
        );
    }
    ways
}
