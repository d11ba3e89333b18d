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
/// Bytes of an area nobody writes: room for its directories only.
const EMPTY_BYTES: u64 = 1 << 20;
const EMPTY_INODES: u64 = 1024;

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
    ops.extend(masks(confinement, facts, layout));
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
        .filter_map(|(id, path, entry)| match entry {
            Entry::Place { node, .. } => Some(MountOp::Grab {
                id,
                path: path.clone(),
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
            Entry::Private(_) | Entry::Empty => {
                if layout.in_area(&path) {
                    ops.push(MountOp::Dir { path: path.clone() });
                }
                ops.push(area(confinement, path, entry));
            }
            Entry::Way => {
                ops.push(MountOp::Dir { path: path.clone() });
                ops.push(MountOp::Pin { path });
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
        }
    }
    ops
}

fn area(confinement: &Confinement, path: PathBuf, entry: &Entry) -> MountOp {
    let (bytes, inodes, mode, writable) = match entry {
        Entry::Private(Area::Temporary) => (
            confinement.limits.private_bytes,
            AREA_INODES_MAX,
            0o1777,
            true,
        ),
        Entry::Private(Area::Home) => (
            confinement.limits.private_bytes,
            AREA_INODES_MAX,
            0o700,
            true,
        ),
        _ => (EMPTY_BYTES, EMPTY_INODES, 0o755, false),
    };
    MountOp::Private {
        path,
        bytes,
        inodes,
        mode,
        writable,
    }
}

/// What a call would otherwise see is covered; in a closed area the empty inode is made, so that
/// the attempt is evidence.
fn masks(confinement: &Confinement, facts: &HostFacts, layout: &Layout) -> Vec<MountOp> {
    let mut found: Vec<(&Path, bool)> = confinement
        .mask
        .iter()
        .filter_map(|path| facts.node(path))
        .filter(|node| layout.shows_host(&node.real) || layout.in_area(&node.real))
        .map(|node| (node.real.as_path(), node.kind == Kind::Directory))
        .collect();
    found.sort();
    found.dedup();
    found
        .into_iter()
        .map(|(path, directory)| MountOp::Mask {
            path: path.to_path_buf(),
            directory,
        })
        .collect()
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
