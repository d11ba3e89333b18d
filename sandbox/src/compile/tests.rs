//! The plan is carried out here on a model of a mount tree, and what a call would find is compared
//! with what the policy says of each path.

mod model;

use std::path::{Path, PathBuf};

use curfew_cell::plan::{FileGrant, LandlockPlan, MountOp};
use curfew_policy::confinement::{Access, Limits, Net};
use proptest::prelude::*;

use super::*;
use crate::facts::{Kind, Node};
use model::{Found, View};

fn confinement(workspace: &str) -> Confinement {
    Confinement {
        mode: Mode::WorkspaceWrite,
        profile: "default".to_owned(),
        workspace: PathBuf::from(workspace),
        write: vec![PathBuf::from(workspace)],
        read: Vec::new(),
        private: Vec::new(),
        closed: Vec::new(),
        mask: Vec::new(),
        protect: vec![".git/hooks".to_owned()],
        net: Net::Off,
        env: vec![
            ("HOME".to_owned(), "/home/a".to_owned()),
            ("USER".to_owned(), "a".to_owned()),
        ],
        limits: Limits {
            wall_ms: 1,
            memory_bytes: 1,
            processes: 1,
            output_bytes: 1,
            private_bytes: 1,
        },
        evidence: true,
    }
}

fn directory(path: &Path, uid: u32) -> Node {
    let ino = path.as_os_str().len() as u64;
    Node {
        real: path.to_path_buf(),
        kind: Kind::Directory,
        dev: 1,
        ino,
        uid,
        gid: uid,
    }
}

/// A host on which exactly these directories exist, with their parents.
fn host(uid: u32, paths: &[&str]) -> HostFacts {
    let mut facts = HostFacts {
        uid,
        gid: uid,
        landlock_abi: 7,
        ..HostFacts::default()
    };
    let fixed = ["/tmp", "/var/tmp", "/run", "/etc", "/usr", "/dev", "/proc"];
    for path in paths.iter().chain(&fixed) {
        for above in Path::new(path).ancestors() {
            facts
                .nodes
                .insert(above.to_path_buf(), directory(above, uid));
        }
    }
    for path in ["/etc/passwd", "/etc/group"] {
        let node = Node {
            kind: Kind::File,
            ..directory(Path::new(path), 0)
        };
        facts.nodes.insert(PathBuf::from(path), node);
    }
    for path in facts.nodes.keys() {
        let children = facts
            .nodes
            .iter()
            .filter(|(child, _)| child.parent() == Some(path));
        let children = children
            .map(|(child, node)| (child.clone(), node.kind))
            .collect();
        facts.entries.insert(path.clone(), children);
    }
    facts
}

fn fence_of(confinement: &Confinement, facts: &HostFacts) -> Fence {
    compile(confinement, facts).unwrap().fence.unwrap()
}

fn grants(plan: &LandlockPlan, path: &Path) -> Vec<FileGrant> {
    plan.rules
        .iter()
        .filter(|(rule, _)| path.starts_with(rule))
        .map(|(_, grant)| *grant)
        .collect()
}

/// Paths up to three components deep, named so that lists often meet on one branch.
fn some_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3).prop_map(|parts| {
        format!("/srv/{}", parts.join("/"))
            .trim_end_matches('/')
            .to_owned()
    })
}

#[derive(Debug, Clone)]
struct Case {
    confinement: Confinement,
    facts: HostFacts,
    all: Vec<String>,
}

fn case() -> impl Strategy<Value = Case> {
    let paths = prop::collection::vec((some_path(), 0u8..6), 1..8);
    (
        paths,
        some_path(),
        any::<bool>(),
        prop::collection::vec(some_path(), 0..3),
    )
        .prop_map(|(listed, workspace, read_only, absent)| {
            let mut all: Vec<String> = vec![
                "/srv".into(),
                "/srv/other".into(),
                "/etc".into(),
                "/tmp/x".into(),
            ];
            for a in ["a", "b", "c"] {
                all.extend([format!("/srv/{a}")]);
                for b in ["a", "b", "c"] {
                    all.extend([format!("/srv/{a}/{b}"), format!("/srv/{a}/{b}/x")]);
                }
            }
            let mut conf = confinement(&workspace);
            if read_only {
                conf.mode = Mode::ReadOnly;
                conf.write.clear();
                conf.read.push(PathBuf::from(&workspace));
            }
            let mut used = vec![workspace.clone()];
            for (path, list) in listed {
                if used.contains(&path) {
                    continue;
                }
                used.push(path.clone());
                let path = PathBuf::from(path);
                match list {
                    0 => conf.closed.push(path),
                    1 => conf.mask.push(path),
                    2 => conf.read.push(path),
                    3 => conf.private.push(path),
                    4 if !read_only => conf.write.push(path),
                    _ => conf.closed.push(path),
                }
            }
            let kept = |path: &&String| {
                let root = |root: &PathBuf| root.starts_with(path);
                !absent.contains(path) || conf.write.iter().any(root) || root(&conf.workspace)
            };
            let existing: Vec<String> = all.iter().filter(kept).cloned().collect();
            let existing: Vec<&str> = existing.iter().map(String::as_str).collect();
            let facts = host(1000, &existing);
            Case {
                confinement: conf,
                facts,
                all,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The mount view says of each path what the policy says of it.
    #[test]
    fn mounts_give_what_the_policy_says(case in case()) {
        let fence = fence_of(&case.confinement, &case.facts);
        let view = View::carry_out(&fence.mounts, &case.facts);
        let in_writable_mask = |path: &Path| case.confinement.mask.iter().any(|mask| path.starts_with(mask));
        for path in &case.all {
            let path = Path::new(path);
            if path.starts_with("/tmp") { continue; }
            let access = case.confinement.access(path);
            match view.at(path) {
                Found::Host { source, writable: true } => {
                    prop_assert_eq!(access, Access::Write, "{:?} writable", path);
                    prop_assert_eq!(source, path);
                }
                Found::Host { source, writable: false } => {
                    // What a list names and the host lacks is left out.
                    let absent = case.facts.node(path).is_none();
                    let ok = matches!(access, Access::Read) || absent
                        || (access == Access::Private && !case.confinement.closed.iter().any(|closed| path.starts_with(closed)));
                    prop_assert!(ok, "{:?} shown as {:?}", path, access);
                    prop_assert_eq!(source, path);
                }
                Found::Area { writable: true } => prop_assert_eq!(access, Access::Private, "{:?}", path),
                Found::Area { writable: false } => {
                    prop_assert!(access == Access::Hidden || case.facts.node(path).is_none(), "{:?} {:?}", path, access);
                }
                Found::Mask => prop_assert!(access == Access::Hidden || in_writable_mask(path), "{:?}", path),
            }
        }
    }

    /// No grant to write where the mounts give none, but for what is placed in a private area.
    #[test]
    fn landlock_gives_no_more_than_the_mounts(case in case()) {
        let fence = fence_of(&case.confinement, &case.facts);
        let view = View::carry_out(&fence.mounts, &case.facts);
        for path in &case.all {
            let path = Path::new(path);
            let granted = grants(&fence.landlock, path);
            let found = view.at(path);
            if granted.contains(&FileGrant::Write) {
                let own = matches!(found, Found::Host { writable: true, .. } | Found::Area { writable: true });
                let below = path.ancestors().skip(1).any(|above| {
                    matches!(view.at(above), Found::Area { writable: true } | Found::Host { writable: true, .. })
                });
                prop_assert!(own || below, "{:?} is {:?}", path, found);
            }
            prop_assert!(!granted.contains(&FileGrant::Device));
            let readable = granted.iter().any(|grant| *grant != FileGrant::List);
            match found {
                Found::Host { .. } | Found::Area { writable: true } => {
                    // A directory that only leads to a closed one is listed, not read.
                    let leads = case.confinement.closed.iter().any(|closed| closed.starts_with(path));
                    prop_assert!(readable || leads || case.facts.node(path).is_none(), "{:?} unreadable", path);
                }
                Found::Area { .. } | Found::Mask => {}
            }
        }
    }

    /// Grabs come before the seal, everything is placed after it, parents before children.
    #[test]
    fn steps_come_in_the_only_order_that_works(case in case()) {
        let ops = fence_of(&case.confinement, &case.facts).mounts;
        let seal = ops.iter().position(|op| *op == MountOp::Seal).unwrap();
        prop_assert_eq!(ops.iter().filter(|op| **op == MountOp::Seal).count(), 1);
        let mut placed: Vec<&Path> = Vec::new();
        let mut grabbed = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            match op {
                MountOp::Grab { id, .. } => {
                    prop_assert!(at < seal && !grabbed.contains(id));
                    grabbed.push(*id);
                }
                MountOp::Place { id, path, .. } => {
                    prop_assert!(at > seal);
                    prop_assert!(grabbed.contains(id), "placed without a grab");
                    prop_assert!(!placed.iter().any(|before| before.starts_with(path) && before != path));
                    placed.push(path);
                }
                MountOp::Private { path, .. } => {
                    prop_assert!(at > seal);
                    prop_assert!(!placed.iter().any(|before| before.starts_with(path)), "{:?} hides", path);
                    placed.push(path);
                }
                _ => {}
            }
        }
        let protects = ops.iter().filter(|op| matches!(op, MountOp::Protect { .. })).count();
        let roots = case.confinement.write.iter().collect::<std::collections::BTreeSet<_>>();
        let roots = roots.iter().filter(|root| matches!(View::carry_out(&ops, &case.facts).at(root), Found::Host { writable: true, .. })).count();
        prop_assert_eq!(protects, roots, "every writable root is searched for protected names");
    }
}

#[test]
fn ids_are_never_root_inside() {
    for (uid, owner, host_uid, inner_uid) in [
        (0, 0, 0, 1000),
        (0, 501, 501, 501),
        (1001, 1001, 1001, 1001),
        (65534, 0, 65534, 65534),
    ] {
        let mut facts = host(uid, &["/srv/w"]);
        facts.owner_gid = 7;
        facts.nodes.insert(
            PathBuf::from("/srv/w"),
            directory(Path::new("/srv/w"), owner),
        );
        let fence = fence_of(&confinement("/srv/w"), &facts);
        assert_eq!(
            (fence.identity.host_uid, fence.identity.inner_uid),
            (host_uid, inner_uid)
        );
        assert_ne!(fence.identity.inner_gid, 0);
        let accounts = fence
            .mounts
            .iter()
            .filter(|op| matches!(op, MountOp::Synthetic { .. }))
            .count();
        assert_eq!(
            accounts,
            if inner_uid == host_uid { 0 } else { 2 },
            "uid {uid}"
        );
    }
}

#[test]
fn an_account_name_cannot_break_its_line() {
    let facts = host(0, &["/srv/w"]);
    let mut conf = confinement("/srv/w");
    conf.env = vec![
        ("USER".to_owned(), "x:0:0".to_owned()),
        ("HOME".to_owned(), "/a\nroot::0:0::/:/bin/sh".to_owned()),
    ];
    let fence = fence_of(&conf, &facts);
    for op in fence.mounts {
        if let MountOp::Synthetic { text, .. } = op {
            assert!(!text.contains(":0:") && text.lines().count() == 2, "{text}");
        }
    }
}

#[test]
fn roots_that_cannot_be_granted_are_named() {
    let closed = Confinement {
        closed: vec!["/home/a".into()],
        ..confinement("/home/a")
    };
    let facts = host(1000, &["/home/a", "/srv/w/state"]);
    assert!(matches!(
        compile(&closed, &facts),
        Err(CompileError::RootClosed { .. })
    ));
    assert!(matches!(
        compile(&confinement("/"), &facts),
        Err(CompileError::RootIsSlash)
    ));
    assert!(matches!(
        compile(&confinement("/srv/gone"), &facts),
        Err(CompileError::RootMissing { .. })
    ));
    let old = HostFacts {
        landlock_abi: 5,
        ..facts.clone()
    };
    assert_eq!(
        compile(&confinement("/srv/w"), &old),
        Err(CompileError::Landlock { abi: 5 })
    );
    let mut link = facts;
    link.nodes
        .insert("/srv/l".into(), directory(Path::new("/srv/w"), 1000));
    assert!(matches!(
        compile(&confinement("/srv/l"), &link),
        Err(CompileError::RootNotCanonical { .. })
    ));
}

#[test]
fn curfews_own_directories_are_covered_inside_a_workspace() {
    let mut facts = host(1000, &["/srv/w/.state/curfew"]);
    facts.own = vec!["/srv/w/.state/curfew".into()];
    let fence = fence_of(&confinement("/srv/w"), &facts);
    let view = View::carry_out(&fence.mounts, &facts);
    assert_eq!(
        view.at(Path::new("/srv/w/.state/curfew/sessions")),
        Found::Area { writable: false }
    );
    assert!(matches!(
        view.at(Path::new("/srv/w/x")),
        Found::Host { writable: true, .. }
    ));
    facts.own = vec!["/srv/w/later".into()];
    assert!(matches!(
        compile(&confinement("/srv/w"), &facts),
        Err(CompileError::OwnAbsent { .. })
    ));
    facts.own = vec!["/srv/w".into()];
    assert!(matches!(
        compile(&confinement("/srv/w"), &facts),
        Err(CompileError::RootClosed { .. })
    ));
}

#[test]
fn a_home_that_is_a_symlink_is_closed_by_both_names() {
    let mut facts = host(1000, &["/data/a/.cargo/bin", "/data/a/.ssh", "/srv/w"]);
    for path in ["", "/.cargo/bin", "/.ssh"] {
        let real = PathBuf::from(format!("/data/a{path}"));
        facts.nodes.insert(
            PathBuf::from(format!("/home/a{path}")),
            directory(&real, 1000),
        );
    }
    facts
        .nodes
        .insert("/home".into(), directory(Path::new("/home"), 0));
    for closed in [vec!["/home/a"], vec!["/home", "/home/a"]] {
        let conf = Confinement {
            closed: closed.iter().map(PathBuf::from).collect(),
            read: vec!["/home/a/.cargo/bin".into()],
            mask: vec!["/home/a/.ssh".into()],
            private: vec!["/home/a/.cache".into()],
            ..confinement("/srv/w")
        };
        let fence = fence_of(&conf, &facts);
        let view = View::carry_out(&fence.mounts, &facts);
        let by = if closed.len() == 1 {
            "/data/a"
        } else {
            "/home/a"
        };
        assert_eq!(
            view.at(Path::new("/data/a/secret")),
            Found::Area { writable: false }
        );
        let tool = Found::Host {
            source: "/data/a/.cargo/bin/cargo".into(),
            writable: false,
        };
        assert_eq!(view.at(&Path::new(by).join(".cargo/bin/cargo")), tool);
        assert_eq!(view.at(&Path::new(by).join(".ssh")), Found::Mask);
        assert_eq!(
            view.at(&Path::new(by).join(".cache/x")),
            Found::Area { writable: true }
        );
    }
}

#[test]
fn without_fences_there_is_no_fence() {
    let conf = Confinement {
        mode: Mode::DangerFullAccess,
        ..confinement("/srv/w")
    };
    assert_eq!(compile(&conf, &host(0, &[])).unwrap().fence, None);
}

#[test]
fn evidence_off_observes_nothing() {
    let facts = host(1000, &["/srv/w"]);
    let with = fence_of(&confinement("/srv/w"), &facts).syscalls;
    let without = fence_of(
        &Confinement {
            evidence: false,
            ..confinement("/srv/w")
        },
        &facts,
    )
    .syscalls;
    let observes = |rule: &curfew_cell::plan::SyscallRule| {
        rule.action == curfew_cell::plan::SyscallAction::Observe
    };
    assert!(with.iter().any(observes) && !without.iter().any(observes));
    assert_eq!(
        without.len(),
        with.iter().filter(|rule| !observes(rule)).count()
    );
}

#[test]
fn a_read_only_mode_writes_nothing_whatever_is_listed() {
    let facts = host(1000, &["/srv/w", "/srv/x"]);
    let conf = Confinement {
        mode: Mode::ReadOnly,
        write: vec!["/srv/w".into(), "/srv/x".into()],
        ..confinement("/srv/w")
    };
    let fence = fence_of(&conf, &facts);
    let view = View::carry_out(&fence.mounts, &facts);
    for path in ["/srv/w/a", "/srv/x/a"] {
        assert!(matches!(
            view.at(Path::new(path)),
            Found::Host {
                writable: false,
                ..
            }
        ));
        assert!(!grants(&fence.landlock, Path::new(path)).contains(&FileGrant::Write));
    }
}

#[test]
fn a_workspace_below_a_granted_directory_is_writable_in_its_mode_only() {
    let mut conf = confinement("/srv/a/b");
    conf.write = vec!["/srv/a".into()];
    let facts = host(1000, &["/srv/a/b"]);
    let writable = |conf: &Confinement| {
        fence_of(conf, &facts).mounts.iter().any(|op| {
            matches!(op, MountOp::Place { path, writable: true, .. } if path == Path::new("/srv/a/b"))
        })
    };
    assert!(writable(&conf));
    conf.mode = Mode::ReadOnly;
    assert!(!writable(&conf));
}
