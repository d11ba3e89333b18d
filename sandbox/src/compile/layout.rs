//! What stands where: one map from path to entry, from which both layers are derived.
//!
//! The longest path wins, whichever list it is in. Sorted by component, so that a parent always
//! comes before what is below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use curfew_policy::confinement::Access;
use curfew_policy::{Confinement, Mode};

use super::CompileError;
use crate::facts::{EMPTIED, HostFacts, Kind, Node, TEMPORARY};

/// What a call finds at a path. Everything not below an entry is the host, read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// An empty tmpfs that stays empty but for longer paths: closed homes, /run, curfew's own.
    Closed,
    /// An empty tmpfs a call may write.
    Private(Area),
    /// A directory of an area that leads to something else.
    Way,
    /// A file made up for the call.
    Text(String),
    /// An empty inode whose opening is evidence.
    Mask { directory: bool },
    /// A host tree.
    Place { node: Node, writable: bool },
}

/// Which private area, for its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Temporary,
    Home,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub entries: BTreeMap<PathBuf, Entry>,
    /// Granted for reading and there without a step, because the sealed host shows them.
    pub shown: Vec<PathBuf>,
}

impl Layout {
    pub fn of(confinement: &Confinement, facts: &HostFacts) -> Result<Self, CompileError> {
        let mut layout = Self::default();
        layout.areas(confinement, facts);
        layout.reads(confinement, facts);
        layout.roots(confinement, facts)?;
        layout.masks(confinement, facts);
        layout.own(facts)?;
        layout.resolver(facts);
        layout.drop_what_the_host_shows();
        layout.settle_masks();
        layout.ways();
        Ok(layout)
    }

    fn areas(&mut self, confinement: &Confinement, facts: &HostFacts) {
        for path in TEMPORARY {
            self.area(Path::new(path), &Entry::Private(Area::Temporary), facts);
        }
        for path in EMPTIED {
            self.area(Path::new(path), &Entry::Closed, facts);
        }
        let mut closed: Vec<&PathBuf> = confinement.closed.iter().collect();
        closed.sort();
        for path in closed {
            self.area(path, &Entry::Closed, facts);
        }
        for path in &confinement.private {
            let path = self.seen(path, facts);
            if self.in_area(&path) {
                self.entries.insert(path, Entry::Private(Area::Home));
            } else {
                self.area(&path, &Entry::Private(Area::Home), facts);
            }
        }
    }

    /// An area that does not exist on the host needs nothing to hide it. One that is reached by a
    /// symlink is an area where it really is, and by its other name where that lies in an area.
    fn area(&mut self, path: &Path, entry: &Entry, facts: &HostFacts) {
        let Some(node) = facts.node(path).filter(|node| node.kind == Kind::Directory) else {
            return;
        };
        if node.real != path && self.in_area(path) {
            self.entries.insert(path.to_path_buf(), entry.clone());
        }
        self.entries.insert(node.real.clone(), entry.clone());
    }

    fn reads(&mut self, confinement: &Confinement, facts: &HostFacts) {
        for path in &confinement.read {
            let Some(node) = facts.node(path).filter(|node| node.kind != Kind::Other) else {
                continue;
            };
            let mut seen = self.seen(path, facts);
            if !self.in_area(&seen) {
                seen.clone_from(&node.real);
            }
            let entry = Entry::Place {
                node: node.clone(),
                writable: false,
            };
            self.entries.entry(seen).or_insert(entry);
        }
    }

    /// Where a call finds a path that was written with the host's symlinks in it: a closed home
    /// that is a symlink (`/home/a` to `/data/a`) is closed where it really is.
    fn seen(&self, path: &Path, facts: &HostFacts) -> PathBuf {
        path.ancestors()
            .skip(1)
            .filter_map(|above| facts.node(above).map(|node| (above, node)))
            .find(|(above, node)| {
                node.real != **above
                    && !self.entries.contains_key(*above)
                    && self.entries.contains_key(&node.real)
            })
            .and_then(|(above, node)| Some(node.real.join(path.strip_prefix(above).ok()?)))
            .unwrap_or_else(|| path.to_path_buf())
    }

    fn roots(&mut self, confinement: &Confinement, facts: &HostFacts) -> Result<(), CompileError> {
        let may_write = confinement.mode != Mode::ReadOnly;
        for root in std::iter::once(&confinement.workspace).chain(&confinement.write) {
            let node = facts
                .node(root)
                .ok_or_else(|| CompileError::RootMissing { path: root.clone() })?;
            if node.real != *root {
                return Err(CompileError::RootNotCanonical {
                    path: root.clone(),
                    real: node.real.clone(),
                });
            }
            if root.parent().is_none() {
                // Read-only it is what the sealed tree shows anyway.
                if may_write {
                    return Err(CompileError::RootIsSlash);
                }
                continue;
            }
            let closed = matches!(
                self.entries.get(root),
                Some(Entry::Closed | Entry::Private(Area::Home))
            );
            let inside_own = |own: &PathBuf| {
                facts
                    .node(own)
                    .is_some_and(|own| root.starts_with(&own.real))
            };
            if closed || facts.own.iter().any(inside_own) {
                return Err(CompileError::RootClosed { path: root.clone() });
            }
            // A workspace below a granted directory is not listed a second time.
            let granted = || confinement.access(root) == Access::Write;
            let writable = may_write && (confinement.write.contains(root) || granted());
            self.entries.insert(
                root.clone(),
                Entry::Place {
                    node: node.clone(),
                    writable,
                },
            );
        }
        Ok(())
    }

    /// By the name it was written with inside areas, where it really is on what the host shows.
    fn masks(&mut self, confinement: &Confinement, facts: &HostFacts) {
        for path in &confinement.mask {
            let Some(node) = facts.node(path) else {
                continue;
            };
            let entry = Entry::Mask {
                directory: node.kind == Kind::Directory,
            };
            if self.shows_host(&node.real) {
                self.entries.insert(node.real.clone(), entry.clone());
            }
            let seen = self.seen(path, facts);
            if self.in_area(&seen) {
                self.entries.entry(seen).or_insert(entry);
            }
        }
    }

    /// Covered where a call would see them; not yet made where a call could make them: an error.
    fn own(&mut self, facts: &HostFacts) -> Result<(), CompileError> {
        for path in &facts.own {
            match facts.node(path) {
                Some(node) if node.kind == Kind::Directory && self.shows_host(&node.real) => {
                    self.entries.insert(node.real.clone(), Entry::Closed);
                }
                None if self.is_writable(path) => {
                    return Err(CompileError::OwnAbsent { path: path.clone() });
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// The resolver's configuration often lives in /run, which is emptied.
    fn resolver(&mut self, facts: &HostFacts) {
        if let Some((path, text)) = facts
            .resolver
            .as_ref()
            .filter(|(path, _)| self.in_area(path))
        {
            self.entries.insert(path.clone(), Entry::Text(text.clone()));
        }
    }

    /// A read-only tree below nothing but the sealed host, or in a read-only tree, is there already.
    fn drop_what_the_host_shows(&mut self) {
        let is_shown = |path: &Path| {
            matches!(
                self.entries.get(path),
                Some(Entry::Place {
                    writable: false,
                    ..
                })
            ) && matches!(
                self.above(path),
                None | Some((
                    _,
                    Entry::Place {
                        writable: false,
                        ..
                    }
                ))
            )
        };
        self.shown = self
            .entries
            .keys()
            .filter(|path| is_shown(path))
            .cloned()
            .collect();
        self.entries.retain(|path, _| !self.shown.contains(path));
    }

    /// A masked directory with something of its own below it: if those are masks, its content in an
    /// area is just them, and on the host's tree it hides them. Anything else is placed in it.
    fn settle_masks(&mut self) {
        let directories: Vec<PathBuf> = self
            .entries
            .iter()
            .filter(|(_, entry)| **entry == Entry::Mask { directory: true })
            .map(|(path, _)| path.clone())
            .collect();
        for path in directories {
            let below = |other: &Path| other != path && other.starts_with(&path);
            let holds_more = self
                .entries
                .iter()
                .any(|(other, entry)| below(other) && !matches!(entry, Entry::Mask { .. }));
            let holds_masks = self.entries.keys().any(|other| below(other));
            if holds_more {
                self.entries.insert(path, Entry::Closed);
            } else if holds_masks && self.in_area(&path) {
                self.entries.remove(&path);
            } else if holds_masks {
                self.entries
                    .retain(|other, _| other == &path || !other.starts_with(&path));
            }
        }
    }

    /// Directories between an area and what stands in it.
    fn ways(&mut self) {
        let mut ways = Vec::new();
        for path in self.entries.keys() {
            let Some((area, Entry::Closed | Entry::Private(_))) = self.above(path) else {
                continue;
            };
            ways.extend(
                path.ancestors()
                    .skip(1)
                    .take_while(|above| *above != area)
                    .map(Path::to_path_buf),
            );
        }
        for way in ways {
            self.entries.entry(way).or_insert(Entry::Way);
        }
    }

    /// The nearest entry strictly above `path` that decides what is there.
    pub fn above(&self, path: &Path) -> Option<(&Path, &Entry)> {
        path.ancestors()
            .skip(1)
            .filter_map(|above| self.entries.get_key_value(above))
            .find(|(_, entry)| **entry != Entry::Way)
            .map(|(path, entry)| (path.as_path(), entry))
    }

    /// The entry that decides what is at `path`: itself or the nearest above.
    pub fn at(&self, path: &Path) -> Option<&Entry> {
        match self.entries.get(path) {
            Some(entry) if *entry != Entry::Way => Some(entry),
            _ => self.above(path).map(|(_, entry)| entry),
        }
    }

    /// Whether a call would see the host's own file at `path`.
    pub fn shows_host(&self, path: &Path) -> bool {
        matches!(self.at(path), None | Some(Entry::Place { .. }))
    }

    pub fn is_writable(&self, path: &Path) -> bool {
        matches!(self.at(path), Some(Entry::Place { writable: true, .. }))
    }

    /// Whether `path` lies in an area that is made for the session.
    pub fn in_area(&self, path: &Path) -> bool {
        matches!(
            self.above(path),
            Some((_, Entry::Closed | Entry::Private(_)))
        )
    }

    /// Writable host trees.
    pub fn write_roots(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::Place {
                node,
                writable: true,
            } => Some((path.as_path(), node)),
            _ => None,
        })
    }
}
