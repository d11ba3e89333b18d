//! What stands where: one map from path to entry, from which both layers are derived.
//!
//! Deny beats write, write beats read, and the longest path wins. Sorted by component, so that a
//! parent always comes before what is below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use curfew_policy::{Confinement, Mode};

use super::CompileError;
use crate::facts::{HostFacts, Kind, Node};

/// What a call finds at a path. Everything not below an entry is the host, read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// An empty tmpfs a call may write.
    Private(Area),
    /// An empty tmpfs a call may not write: closed homes, /run, curfew's own directories.
    Empty,
    /// A directory of a private area that leads to something placed.
    Way,
    /// A file made up for the call.
    Text(String),
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
        for path in crate::facts::TEMPORARY {
            layout.area(Path::new(path), Entry::Private(Area::Temporary), facts);
        }
        for path in crate::facts::EMPTIED {
            layout.area(Path::new(path), Entry::Empty, facts);
        }
        for path in &confinement.closed {
            layout.area(path, Entry::Empty, facts);
        }
        for path in &confinement.private {
            // Made in the closed area; the host may have no such directory.
            if matches!(layout.above(path), Some((_, Entry::Empty))) {
                layout
                    .entries
                    .insert(path.clone(), Entry::Private(Area::Home));
            }
        }
        for node in confinement.read.iter().filter_map(|path| facts.node(path)) {
            if node.kind != Kind::Other {
                let entry = Entry::Place {
                    node: node.clone(),
                    writable: false,
                };
                layout.entries.entry(node.real.clone()).or_insert(entry);
            }
        }
        layout.roots(confinement, facts)?;
        layout.own(facts)?;
        layout.resolver(facts);
        layout.drop_what_the_host_shows();
        layout.ways();
        Ok(layout)
    }

    /// An area that does not exist on the host needs nothing to hide it.
    fn area(&mut self, path: &Path, entry: Entry, facts: &HostFacts) {
        if let Some(node) = facts.node(path).filter(|node| node.kind == Kind::Directory) {
            self.entries.insert(node.real.clone(), entry);
        }
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
                return Err(CompileError::RootIsSlash);
            }
            let closed = matches!(
                self.entries.get(root),
                Some(Entry::Private(Area::Home) | Entry::Empty)
            );
            let inside_own = |own: &PathBuf| {
                facts
                    .node(own)
                    .is_some_and(|own| root.starts_with(&own.real))
            };
            if closed || facts.own.iter().any(inside_own) {
                return Err(CompileError::RootClosed { path: root.clone() });
            }
            let writable = may_write && confinement.write.contains(root);
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

    /// Covered where a call would see them; not yet made where a call could make them: an error.
    fn own(&mut self, facts: &HostFacts) -> Result<(), CompileError> {
        for path in &facts.own {
            match facts.node(path) {
                Some(node) if node.kind == Kind::Directory && self.shows_host(&node.real) => {
                    self.entries.insert(node.real.clone(), Entry::Empty);
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
            .filter(|(path, _)| !self.shows_host(path))
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

    /// Directories between a private area and what is placed in it.
    fn ways(&mut self) {
        let mut ways = Vec::new();
        for path in self.entries.keys() {
            let Some((area, Entry::Private(_) | Entry::Empty)) = self.above(path) else {
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
            Some((_, Entry::Private(_) | Entry::Empty))
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
