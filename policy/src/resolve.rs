//! Profile, mode and workspace to a [`Confinement`].
//!
//! Rows are expanded to absolute paths and put into one map. At one path the stronger kind wins:
//! mask over write over private over read over closed. Between two paths the longer governs what
//! is below it; that is also how both layers of the sandbox are laid out.

mod expand;
mod rules;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::confinement::{Limits, Net};
use crate::environment::{self, Parts};
use crate::gitconfig::Identity;
use crate::profile::{EnvRow, LimitRows, Profile};
use crate::{Confinement, Mode, PolicyError};

use expand::Places;
use rules::{Kind, Rules};

/// What the operator typed.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Absent: what the profile says, else workspace-write.
    pub mode: Option<Mode>,
    pub net: Option<Net>,
    /// Canonical, absolute, an existing directory.
    pub workspace: PathBuf,
    /// `--add-dir`; more roots, writable unless read-only.
    pub add_dirs: Vec<PathBuf>,
    /// Files that hold curfew's own keys; masked whatever the profile says.
    pub secrets: Vec<PathBuf>,
    /// `--env`.
    pub env: Vec<EnvRow>,
    pub wall_ms: Option<u64>,
    /// Who commits are by.
    pub identity: Identity,
}

/// What this crate cannot find out itself.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// `$HOME`, if it is set.
    pub home: Option<&'a Path>,
    /// The home in the account file.
    pub passwd_home: Option<&'a Path>,
    pub user: &'a str,
    /// An absolute shell outside every write root.
    pub shell: &'a Path,
    /// The operator's environment, as far as it is UTF-8. `PATH` is taken from here.
    pub variables: &'a BTreeMap<String, String>,
    /// The real path of what stands at a path, if anything does. Pure callers answer from a map.
    pub look: &'a dyn Fn(&Path) -> Option<PathBuf>,
}

/// A confinement, and what the operator should be told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub confinement: Confinement,
    pub notices: Vec<String>,
}

/// # Errors
/// A root that is missing, too broad or masked; a path that is not UTF-8; an environment that
/// cannot be passed.
pub fn resolve(profile: &Profile, asked: &Asked, host: &Host<'_>) -> Result<Resolved, PolicyError> {
    let mode = asked.mode.or(profile.mode).unwrap_or(Mode::WorkspaceWrite);
    let places = Places::new(asked, host);
    let mut notices = Vec::new();
    let rules = match mode {
        Mode::DangerFullAccess => Rules::default(),
        Mode::ReadOnly | Mode::WorkspaceWrite => {
            rules(profile, asked, mode, &places, &mut notices)?
        }
    };
    let path = match mode {
        Mode::DangerFullAccess => places.path_dirs(),
        Mode::ReadOnly | Mode::WorkspaceWrite => rules.search_path(&places),
    };
    let confinement = Confinement {
        mode,
        profile: profile.name.clone(),
        workspace: asked.workspace.clone(),
        write: write_roots(mode, asked, &rules),
        read: rules.of(Kind::Read),
        private: rules.of(Kind::Private),
        closed: rules.of(Kind::Closed),
        mask: rules.of(Kind::Mask),
        protect: protect(mode, profile),
        net: net(mode, profile, asked),
        env: environment::compose(&Parts {
            host: host.variables,
            home: places.home(),
            user: host.user,
            shell: host.shell,
            path: &path,
            identity: &asked.identity,
            rows: profile.env.iter().chain(&asked.env).collect(),
        })?,
        limits: limits(profile.limits, asked.wall_ms),
        evidence: profile.evidence.unwrap_or(true),
    };
    all_utf8(&confinement)?;
    Ok(Resolved {
        confinement,
        notices,
    })
}

fn rules(
    profile: &Profile,
    asked: &Asked,
    mode: Mode,
    places: &Places<'_>,
    notices: &mut Vec<String>,
) -> Result<Rules, PolicyError> {
    let mut rules = Rules::default();
    for row in &profile.mask {
        rules.mask_row(row, places);
    }
    for secret in &asked.secrets {
        rules.mask(secret.clone(), Kind::Mask, places);
    }
    for row in &profile.read {
        rules.read_row(row, places)?;
    }
    for row in &profile.write {
        rules.write_row(row, mode, places)?;
    }
    let roots = std::iter::once(("workspace", &asked.workspace))
        .chain(asked.add_dirs.iter().map(|dir| ("--add-dir", dir)));
    for (what, root) in roots {
        let real = places.look(root).ok_or_else(|| PolicyError::MissingRoot {
            key: what,
            path: root.clone(),
        })?;
        match (mode, places.breadth(&real)) {
            (Mode::ReadOnly, Some(breadth)) => notices.push(format!(
                "{what} {} {breadth}: what no mask covers there can be read",
                real.display()
            )),
            (Mode::ReadOnly, None) => {}
            (_, breadth) => refuse_broad(what, &real, breadth)?,
        }
        let kind = if mode == Mode::ReadOnly {
            Kind::Read
        } else {
            Kind::Write
        };
        rules.grant(what, real, kind)?;
    }
    rules.settle(places)?;
    Ok(rules)
}

fn refuse_broad(
    what: &'static str,
    path: &Path,
    breadth: Option<&'static str>,
) -> Result<(), PolicyError> {
    match breadth {
        Some(breadth) => Err(PolicyError::Refused {
            what,
            path: path.to_path_buf(),
            text: format!("{breadth}; name a project below it, or use --mode read-only"),
        }),
        None => Ok(()),
    }
}

fn write_roots(mode: Mode, asked: &Asked, rules: &Rules) -> Vec<PathBuf> {
    if mode == Mode::DangerFullAccess {
        return std::iter::once(&asked.workspace)
            .chain(&asked.add_dirs)
            .cloned()
            .collect();
    }
    let mut roots = rules.of(Kind::Write);
    // The workspace first: it is where a call starts.
    roots.sort_by_key(|root| *root != asked.workspace);
    roots
}

fn protect(mode: Mode, profile: &Profile) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if mode != Mode::DangerFullAccess {
        for row in &profile.protect {
            if !names.iter().any(|name| *name == row.name) {
                names.push(row.name.clone().into_owned());
            }
        }
    }
    names
}

fn net(mode: Mode, profile: &Profile, asked: &Asked) -> Net {
    match mode {
        Mode::DangerFullAccess => Net::Full,
        Mode::ReadOnly | Mode::WorkspaceWrite => asked.net.or(profile.net).unwrap_or(Net::Off),
    }
}

fn limits(rows: LimitRows, wall_ms: Option<u64>) -> Limits {
    Limits {
        wall_ms: wall_ms.or(rows.wall_ms).unwrap_or(600_000),
        memory_bytes: rows.memory_bytes.unwrap_or(4 << 30),
        processes: rows.processes.unwrap_or(4096),
        output_bytes: rows.output_bytes.unwrap_or(64 << 20),
        private_bytes: rows.private_bytes.unwrap_or(1 << 30),
    }
}

/// The log is JSON: a path it cannot hold would be a confinement nobody can read back.
fn all_utf8(confinement: &Confinement) -> Result<(), PolicyError> {
    let lists = [
        &confinement.write,
        &confinement.read,
        &confinement.private,
        &confinement.closed,
        &confinement.mask,
    ];
    let mut paths = lists.into_iter().flatten().chain([&confinement.workspace]);
    match paths.find(|path| path.to_str().is_none()) {
        Some(path) => Err(PolicyError::Refused {
            what: "path",
            path: path.clone(),
            text: "not UTF-8, so the log could not name it; rename it".to_owned(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
