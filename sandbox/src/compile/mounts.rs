//! The mount layer: the layout as steps, in the only order that works.
//!
//! Trees are grabbed while the host is still as it was, then everything is sealed, then areas and
//! trees are placed from the top down, then masks, then the account files, then protected names.

use std::path::{Path, PathBuf};

use curfew_cell::plan::{Identity, MountOp, ProtectedName};
use curfew_policy::Confinement;

use super::identity;
use super::layout::{Area, Entry, Layout};
use crate::facts::{ACCOUNTS, HostFacts, Kind};

/// Names looked at below one root before the scan stops and says so.
pub const SCAN_ENTRIES_MAX: u64 = 100_000;
/// Directories below each other before the scan stops.
pub const SCAN_DEPTH_MAX: u32 = 16;
/// Inodes of one private area.
const AREA_INODES_MAX: u64 = 1 << 20;
/// A closed area holds directories and mount points only.
const CLOSED_BYTES: u64 = 4 << 20;
const CLOSED_INODES: u64 = 8192;

pub(super) fn mounts(
    confinement: &Confinement,
    facts: &HostFacts,
    layout: &Layout,
    who: Identity,
) -> Vec<MountOp> {
    let mut ops = grabs(layout);
    ops.push(MountOp::Seal);
    ops.push(MountOp::Dev);
    ops.extend(placements(confinement, layout));
    ops.extend(masks(layout));
    ops.extend(accounts(confinement, facts, layout, who));
    ops.extend(protections(confinement, facts, layout));
    ops
}

/// Placed trees with the numbers by which they are grabbed and placed.
fn numbered(layout: &Layout) -> impl Iterator<Item = (u32, &PathBuf, &Entry)> {
    layout
        .entries
        .iter()
        .zip(0..)
        .map(|((path, entry), id)| (id, path, entry))
}

fn grabs(layout: &Layout) -> Vec<MountOp> {
    numbered(layout)
        .filter_map(|(id, _, entry)| match entry {
            Entry::Place { node, .. } => Some(MountOp::Grab {
                id,
                path: node.real.clone(),
                dev: node.dev,
                ino: node.ino,
            }),
            _ => None,
        })
        .collect()
}

fn placements(confinement: &Confinement, layout: &Layout) -> Vec<MountOp> {
    let mut ops = Vec::new();
    for (id, path, entry) in numbered(layout) {
        let path = path.clone();
        match entry {
            Entry::Private(_) | Entry::Closed => {
                if layout.in_area(&path) {
                    ops.push(MountOp::Dir { path: path.clone() });
                }
                ops.push(area(confinement, path, entry));
            }
            Entry::Way => {
                ops.push(MountOp::Dir { path: path.clone() });
                // In a closed area nothing can be renamed anyway.
                if matches!(layout.above(&path), Some((_, Entry::Private(_)))) {
                    ops.push(MountOp::Pin { path });
                }
            }
            Entry::Text(text) => ops.push(MountOp::Synthetic {
                path,
                text: text.clone(),
            }),
            Entry::Place { writable, .. } => ops.push(MountOp::Place {
                id,
                path,
                writable: *writable,
            }),
            Entry::Mask { .. } => {}
        }
    }
    ops
}

fn area(confinement: &Confinement, path: PathBuf, entry: &Entry) -> MountOp {
    let private = confinement.limits.private_bytes;
    let (bytes, inodes, mode, writable) = match entry {
        Entry::Private(Area::Temporary) => (private, AREA_INODES_MAX, 0o1777, true),
        Entry::Private(Area::Home) => (private, AREA_INODES_MAX, 0o700, true),
        _ => (CLOSED_BYTES, CLOSED_INODES, 0o755, false),
    };
    MountOp::Private {
        path,
        bytes,
        inodes,
        mode,
        writable,
    }
}

/// Last of what covers anything, parents first.
fn masks(layout: &Layout) -> impl Iterator<Item = MountOp> {
    layout
        .entries
        .iter()
        .filter_map(|(path, entry)| match entry {
            Entry::Mask { directory } => Some(MountOp::Mask {
                path: path.clone(),
                directory: *directory,
            }),
            _ => None,
        })
}

fn accounts(
    confinement: &Confinement,
    facts: &HostFacts,
    layout: &Layout,
    who: Identity,
) -> Vec<MountOp> {
    let Some(texts) = identity::accounts(confinement, facts, who) else {
        return Vec::new();
    };
    ACCOUNTS
        .into_iter()
        .zip(texts)
        .filter_map(|(path, text)| {
            let node = facts
                .node(Path::new(path))
                .filter(|node| node.kind == Kind::File)?;
            layout.shows_host(&node.real).then(|| MountOp::Synthetic {
                path: node.real.clone(),
                text,
            })
        })
        .collect()
}

/// The profile's names at any depth, and curfew's own files where they stand.
fn protections(confinement: &Confinement, facts: &HostFacts, layout: &Layout) -> Vec<MountOp> {
    layout
        .write_roots()
        .filter(|(_, node)| node.kind == Kind::Directory)
        .filter_map(|(root, _)| {
            let profile = confinement.protect.iter().map(|name| ProtectedName {
                name: name.clone(),
                any_depth: true,
            });
            let own = facts
                .own
                .iter()
                .chain(std::iter::once(&facts.executable))
                .filter_map(|path| {
                    facts
                        .node(path)?
                        .real
                        .strip_prefix(root)
                        .ok()?
                        .to_str()
                        .map(str::to_owned)
                })
                .map(|name| ProtectedName {
                    name,
                    any_depth: false,
                });
            let names: Vec<ProtectedName> = profile.chain(own).collect();
            (!names.is_empty()).then(|| MountOp::Protect {
                root: root.to_path_buf(),
                names,
                entries_max: SCAN_ENTRIES_MAX,
                depth_max: SCAN_DEPTH_MAX,
            })
        })
        .collect()
}
