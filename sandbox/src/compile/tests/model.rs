//! A mount tree in memory, walked as the kernel walks: at each component the newest mount on top.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use curfew_cell::plan::MountOp;

use crate::facts::HostFacts;

/// What a call finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Host { source: PathBuf, writable: bool },
    Area { writable: bool },
    Mask,
}

#[derive(Clone, Debug)]
enum What {
    Host {
        source: PathBuf,
        writable: bool,
    },
    Area {
        writable: bool,
        made: BTreeSet<PathBuf>,
    },
    Leaf,
}

struct Mount {
    parent: usize,
    point: PathBuf,
    what: What,
}

pub struct View {
    mounts: Vec<Mount>,
}

impl View {
    /// Panics where the kernel would refuse: a mount point that is not there.
    pub fn carry_out(ops: &[MountOp], facts: &HostFacts) -> Self {
        let root = What::Host {
            source: "/".into(),
            writable: false,
        };
        let mut view = View {
            mounts: vec![Mount {
                parent: usize::MAX,
                point: "/".into(),
                what: root,
            }],
        };
        let mut grabbed = std::collections::BTreeMap::new();
        for op in ops {
            match op {
                MountOp::Grab { id, path, .. } => {
                    let node = facts.nodes.values().find(|node| node.real == *path);
                    grabbed.insert(*id, node.map(|node| node.real.clone()).unwrap());
                }
                MountOp::Place { id, path, writable } => {
                    view.make_last(path);
                    view.put(
                        path,
                        What::Host {
                            source: grabbed[id].clone(),
                            writable: *writable,
                        },
                        facts,
                    );
                }
                MountOp::Private { path, writable, .. } => {
                    view.put(
                        path,
                        What::Area {
                            writable: *writable,
                            made: BTreeSet::new(),
                        },
                        facts,
                    );
                }
                MountOp::Dir { path } => view.make(path),
                MountOp::Mask { path, .. } => {
                    view.make(path);
                    view.put(path, What::Leaf, facts);
                }
                MountOp::Synthetic { path, .. } => {
                    view.make_last(path);
                    view.put(path, What::Leaf, facts);
                }
                MountOp::Pin { path } => {
                    let (at, _) = view.walk(path);
                    let what = view.mounts[at].what.clone();
                    assert!(
                        matches!(what, What::Area { writable: true, .. }),
                        "a pin of {path:?}"
                    );
                }
                MountOp::Seal | MountOp::Dev | MountOp::Protect { .. } => {}
            }
        }
        view
    }

    fn walk(&self, path: &Path) -> (usize, PathBuf) {
        let mut at = 0;
        let mut prefixes: Vec<&Path> = path.ancestors().collect();
        prefixes.reverse();
        for prefix in prefixes {
            while let Some(next) = self
                .mounts
                .iter()
                .rposition(|mount| mount.parent == at && mount.point == prefix)
            {
                at = next;
            }
        }
        (at, self.mounts[at].point.clone())
    }

    fn put(&mut self, path: &Path, what: What, facts: &HostFacts) {
        let (parent, point) = self.walk(path);
        let there = match &self.mounts[parent].what {
            What::Host { source, .. } => {
                let on_host = source.join(path.strip_prefix(&point).unwrap());
                facts.nodes.values().any(|node| node.real == on_host)
            }
            What::Area { made, .. } => path == point || made.contains(path),
            What::Leaf => path == point,
        };
        assert!(there, "no mount point {path:?}");
        self.mounts.push(Mount {
            parent,
            point: path.to_path_buf(),
            what,
        });
    }

    /// A directory with its parents, if it lies in an area.
    fn make(&mut self, path: &Path) {
        let (at, point) = self.walk(path);
        if let What::Area { made, .. } = &mut self.mounts[at].what {
            made.extend(
                path.ancestors()
                    .take_while(|above| *above != point)
                    .map(Path::to_path_buf),
            );
        }
    }

    /// The last component only, if it lies in an area where its parent is.
    fn make_last(&mut self, path: &Path) {
        let (at, point) = self.walk(path);
        if let What::Area { made, .. } = &mut self.mounts[at].what {
            let parent = path.parent().unwrap();
            if parent == point || made.contains(parent) {
                made.insert(path.to_path_buf());
            }
        }
    }

    pub fn at(&self, path: &Path) -> Found {
        let (at, point) = self.walk(path);
        match &self.mounts[at].what {
            What::Host { source, writable } => {
                let rest = path.strip_prefix(&point).unwrap();
                let source = if rest.as_os_str().is_empty() {
                    source.clone()
                } else {
                    source.join(rest)
                };
                Found::Host {
                    source,
                    writable: *writable,
                }
            }
            What::Area { writable, .. } => Found::Area {
                writable: *writable,
            },
            What::Leaf => Found::Mask,
        }
    }
}
