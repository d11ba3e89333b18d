//! The Landlock layer: the same layout again, as grants on what stands there after the mounts.
//!
//! Landlock has no deny rules and a grant reaches everything below, so the way down to a closed
//! directory is granted name by name. A rule on a private area also reaches what is placed in it:
//! there the mount alone keeps a read-only tree read-only (sandbox/GUARANTEES.md says so).

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
    let ways = ways(confinement, facts);
    for directory in &ways {
        for (path, kind) in facts.entries.get(directory).into_iter().flatten() {
            let granted_elsewhere = ways.contains(path)
                || layout.entries.contains_key(path)
                || path == Path::new("/dev");
            if !granted_elsewhere && *kind != Kind::Other {
                rules.push((path.clone(), FileGrant::Read));
            }
        }
    }
    rules.push((PathBuf::from("/dev"), FileGrant::Device));
    rules.push((PathBuf::from("/dev"), FileGrant::Write));
    for (path, entry) in &layout.entries {
        match entry {
            Entry::Private(_) | Entry::Place { writable: true, .. } => {
                rules.push((path.clone(), FileGrant::Write))
            }
            Entry::Empty
            | Entry::Text(_)
            | Entry::Place {
                writable: false, ..
            } => rules.push((path.clone(), FileGrant::Read)),
            Entry::Way => {}
        }
    }
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

/// `/` and every directory above a closed one.
fn ways(confinement: &Confinement, facts: &HostFacts) -> BTreeSet<PathBuf> {
    let mut ways = BTreeSet::from([PathBuf::from("/")]);
    for node in confinement
        .closed
        .iter()
        .filter_map(|path| facts.node(path))
    {
        ways.extend(node.real.ancestors().skip(1).map(Path::to_path_buf));
    }
    ways
}
