//! A resumed run gets no more than the run it continues.

use std::path::{Path, PathBuf};

use crate::Confinement;
use crate::confinement::Access;
use crate::environment::INCIDENTAL;

/// One way in which a confinement gives more than the logged one did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Widening {
    Mode {
        now: crate::Mode,
        logged: crate::Mode,
    },
    Net,
    /// A path would be more accessible.
    Path {
        path: PathBuf,
        now: Access,
        logged: Access,
    },
    /// A name that was protected would not be.
    Protect {
        name: String,
    },
    /// A variable the logged run did not have.
    Env {
        name: String,
    },
    Limit {
        name: &'static str,
        now: u64,
        logged: u64,
    },
    /// Attempts would no longer be observed.
    Evidence,
}

impl std::fmt::Display for Widening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Widening::Mode { now, logged } => write!(f, "mode {now}, the session had {logged}"),
            Widening::Net => f.write_str("the host's network, the session had none"),
            Widening::Path { path, now, logged } => {
                write!(
                    f,
                    "{} would be {now}, the session had it {logged}",
                    path.display()
                )
            }
            Widening::Protect { name } => write!(f, "{name} would no longer be protected"),
            Widening::Env { name } => write!(f, "variable {name}, which the session did not have"),
            Widening::Limit { name, now, logged } => {
                write!(f, "limit {name} of {now}, the session had {logged}")
            }
            Widening::Evidence => f.write_str("attempts would no longer be observed"),
        }
    }
}

/// Every way in which `now` gives more than `logged`; empty when it gives the same or less.
///
/// Of two piecewise maps from paths to access, one is at most the other exactly when it is so at
/// every path that either lists: between listed paths nothing changes, and what none covers is
/// read-only in both.
#[must_use]
pub fn narrower_or_equal(now: &Confinement, logged: &Confinement) -> Vec<Widening> {
    let mut found = Vec::new();
    if now.mode > logged.mode {
        found.push(Widening::Mode {
            now: now.mode,
            logged: logged.mode,
        });
    }
    if now.net > logged.net {
        found.push(Widening::Net);
    }
    found.extend(listed(now, logged).into_iter().filter_map(|path| {
        let (now, logged) = (now.access(&path), logged.access(&path));
        (now > logged).then_some(Widening::Path { path, now, logged })
    }));
    let lost = logged
        .protect
        .iter()
        .filter(|name| !now.protect.contains(name));
    found.extend(lost.map(|name| Widening::Protect { name: name.clone() }));
    let had = |name: &str| logged.env.iter().any(|(known, _)| known == name);
    let new = now.env.iter().filter(|(name, _)| !had(name));
    found.extend(new.map(|(name, _)| Widening::Env { name: name.clone() }));
    found.extend(limits(now, logged));
    if logged.evidence && !now.evidence {
        found.push(Widening::Evidence);
    }
    found
}

/// `now` without what the host merely offers more of than it did (a toolchain installed since, a
/// secret removed since, a JAVA_HOME set since): what nobody typed. What was typed stays, and is judged.
#[must_use]
pub fn intersect(now: &Confinement, logged: &Confinement) -> Confinement {
    let mut met = now.clone();
    met.read
        .retain(|path| *path == now.workspace || logged.access(path) >= Access::Read);
    met.private
        .retain(|path| logged.access(path) >= Access::Private);
    let had = |name: &String| logged.env.iter().any(|(known, _)| known == name);
    met.env
        .retain(|(name, _)| had(name) || !INCIDENTAL.contains(&name.as_str()));
    for (list, old) in [
        (&mut met.closed, &logged.closed),
        (&mut met.mask, &logged.mask),
    ] {
        let new: Vec<PathBuf> = old
            .iter()
            .filter(|path| !is_listed(now, path))
            .cloned()
            .collect();
        list.extend(new);
        list.sort();
    }
    for name in &logged.protect {
        if !met.protect.contains(name) {
            met.protect.push(name.clone());
        }
    }
    met
}

fn lists(confinement: &Confinement) -> impl Iterator<Item = &PathBuf> {
    let Confinement {
        write,
        read,
        private,
        closed,
        mask,
        ..
    } = confinement;
    [write, read, private, closed, mask].into_iter().flatten()
}

fn is_listed(confinement: &Confinement, path: &Path) -> bool {
    lists(confinement).any(|listed| listed == path)
}

fn listed(a: &Confinement, b: &Confinement) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = lists(a).chain(lists(b)).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

fn limits(now: &Confinement, logged: &Confinement) -> impl Iterator<Item = Widening> {
    let (a, b) = (now.limits, logged.limits);
    [
        ("wall", a.wall_ms, b.wall_ms),
        ("memory", a.memory_bytes, b.memory_bytes),
        ("processes", a.processes, b.processes),
        ("output", a.output_bytes, b.output_bytes),
        ("private", a.private_bytes, b.private_bytes),
    ]
    .into_iter()
    .filter(|(_, now, logged)| now > logged)
    .map(|(name, now, logged)| Widening::Limit { name, now, logged })
}

#[cfg(test)]
mod tests;
