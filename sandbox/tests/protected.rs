//! Names that a person's tools obey later: those that stand there stay as they are.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use std::fs::{create_dir_all, read, write};
use std::os::unix::fs::{PermissionsExt, symlink};

use common::{World, state_of};
use curfew_policy::Mode;

/// A project with every shape in which a protected name can stand there.
fn project() -> World {
    let world = World::new();
    let ws = &world.workspace;
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/HEAD",
        ".git/modules/m/hooks/x",
        ".git/modules/m/config",
        ".git/modules/third_party/m/hooks/x",
        ".git/modules/third_party/m/modules/n/config",
        ".vscode/tasks.json",
        "sub/.git/hooks/x",
        "sub/.mcp.json",
        "docs/agents.txt",
        "plain/file",
    ] {
        create_dir_all(ws.join(path).parent().unwrap()).unwrap();
        write(ws.join(path), "kept\n").unwrap();
    }
    create_dir_all(ws.join("linked")).unwrap();
    write(ws.join("linked/.git"), "gitdir: ../.git/worktrees/linked\n").unwrap();
    symlink("docs/agents.txt", ws.join("AGENTS.md")).unwrap();
    symlink("docs", ws.join("way")).unwrap();
    write(ws.join("docs/by-a-way.txt"), "kept\n").unwrap();
    symlink(ws.join("way/by-a-way.txt"), ws.join("CLAUDE.md")).unwrap();
    world
}

const KEPT: [&str; 15] = [
    ".git/hooks",
    ".git/config",
    ".git/modules/m/hooks",
    ".git/modules/m/config",
    ".git/modules/third_party/m/hooks",
    ".git/modules/third_party/m/modules/n/config",
    "way",
    "CLAUDE.md",
    "docs/by-a-way.txt",
    ".vscode",
    "sub/.git/hooks",
    "sub/.mcp.json",
    "linked/.git",
    "AGENTS.md",
    "docs/agents.txt",
];

#[test]
fn names_that_stand_there_cannot_be_changed_moved_or_replaced() {
    let world = project();
    let session = world.session(Mode::WorkspaceWrite);
    let before: Vec<_> = KEPT
        .iter()
        .map(|name| state_of(&world.workspace.join(name)))
        .collect();
    for name in KEPT {
        for script in [
            format!(
                "echo x >> {name}; echo x > {name}/new; rm -rf {name}; mv {name} gone; touch -d 1990-01-01 {name}; chmod 777 {name}"
            ),
            format!("d=$(dirname {name}); mv $d elsewhere && mkdir -p $d && echo planted > {name}"),
            format!(
                "echo planted > planted; mv -f planted {name}; ln -sf planted {name}; ln -f planted {name}"
            ),
            format!("python3 -c \"import os; os.rename('plain', '{name}')\""),
        ] {
            session.shell(&script);
            for (name, before) in KEPT.iter().zip(&before) {
                assert_eq!(
                    &state_of(&world.workspace.join(name)),
                    before,
                    "{name} after: {script}"
                );
            }
        }
    }
}

#[test]
fn their_neighbours_stay_writable() {
    let world = project();
    let session = world.session(Mode::WorkspaceWrite);
    session.shell("echo x > .git/index && mkdir -p .git/objects/aa && echo x > .git/HEAD && echo x > sub/.git/HEAD").ok();
    session.shell("echo x > docs/other && echo x > linked/file && rm -r plain && mkdir new && mv new newer").ok();
    assert_eq!(read(world.workspace.join(".git/HEAD")).unwrap(), b"x\n");
    assert!(world.workspace.join("newer").is_dir());
}

#[test]
fn the_twin_without_fences_plants() {
    let world = project();
    world
        .run(
            Mode::DangerFullAccess,
            "echo x > .git/hooks/pre-commit && mv .vscode gone",
        )
        .ok();
    assert_eq!(
        read(world.workspace.join(".git/hooks/pre-commit")).unwrap(),
        b"x\n"
    );
}

#[test]
fn what_was_pinned_is_told() {
    let world = project();
    let session = world.session(Mode::WorkspaceWrite);
    let facts = session.client.facts();
    for name in KEPT {
        assert!(
            facts.pinned.contains(&world.workspace.join(name)),
            "{name}: {:?}",
            facts.pinned
        );
    }
    assert!(!facts.scan_cut);
}

#[test]
fn names_that_appear_are_quarantined_before_a_command_in_place_returns() {
    let world = World::new();
    let script = "mkdir -p .vscode sub && echo '{}' > .vscode/tasks.json && echo '{}' > sub/.mcp.json \
                  && mkdir -p .git/hooks && echo x > .git/hooks/post-checkout && echo kept > plain";
    let output = std::process::Command::new(common::broker())
        .arg("--ws")
        .arg(&world.workspace)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for name in [".vscode", "sub/.mcp.json", ".git/hooks"] {
        let path = world.workspace.join(name);
        assert!(!path.exists(), "{name} is still there: {said}");
        let moved = format!("{}.quarantined", path.display());
        assert!(
            std::path::Path::new(&moved).exists() && said.contains(&format!("mv {moved} ")),
            "{said}"
        );
    }
    assert_eq!(read(world.workspace.join("plain")).unwrap(), b"kept\n");
}

#[test]
fn a_new_plain_repository_is_not_taken_apart() {
    let world = World::new();
    let output = std::process::Command::new(common::broker())
        .arg("--ws")
        .arg(&world.workspace)
        .args([
            "--",
            "sh",
            "-c",
            "git init -q new && cd new && git commit -q --allow-empty -m x",
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    common::host(&world.workspace.join("new"), &["git", "log", "--oneline"]);
    assert!(world.workspace.join("new/.git/config").exists());
}

/// A command that shuts the directory around what it planted: the names in it still work outside.
#[test]
fn a_shut_directory_hides_no_name_that_appeared() {
    let world = World::new();
    let script = "mkdir -p shut/.vscode ro/.git/modules/a/b && echo x > shut/.vscode/tasks.json \
                  && echo x > ro/.mcp.json && echo x > ro/.git/modules/a/b/commondir \
                  && chmod 0111 shut && chmod 0555 ro ro/.git ro/.git/modules/a/b";
    let output = std::process::Command::new(common::broker())
        .arg("--ws")
        .arg(&world.workspace)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for name in [
        "shut/.vscode",
        "ro/.mcp.json",
        "ro/.git/modules/a/b/commondir",
    ] {
        let path = world.workspace.join(name);
        let moved = path.with_file_name(format!(
            "{}.quarantined",
            path.file_name().unwrap().to_str().unwrap()
        ));
        assert!(!path.exists() && moved.exists(), "{name}: {said}");
    }
    // Shut again, and then opened so that the world can be removed.
    for (name, mode) in [
        ("shut", 0o111),
        ("ro", 0o555),
        ("ro/.git/modules/a/b", 0o555),
        ("ro/.git", 0o555),
    ] {
        let path = world.workspace.join(name);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            mode,
            "{name}"
        );
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// Beyond its bound the search finds nothing, and a command could build down there.
#[test]
fn a_search_that_was_cut_short_says_so_also_when_it_found_nothing() {
    let world = World::new();
    let deep = "d/".repeat(20);
    let output = std::process::Command::new(common::broker())
        .arg("--ws")
        .arg(&world.workspace)
        .args(["--", "mkdir", "-p", &format!("{deep}.vscode")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("hit its bound"),
        "{said}"
    );
}

/// Directories that lead to a name which stands there are mounts of their own inside a call; what
/// appears in them is swept like anything else, and git's own writes there go on.
#[test]
fn names_that_appear_beside_pinned_ones_are_quarantined() {
    let world = project();
    std::fs::remove_file(world.workspace.join(".git/config")).unwrap();
    let planted = [
        ".git/config",
        ".git/commondir",
        ".git/config.worktree",
        ".git/modules/m/commondir",
        "sub/.git/config",
        "sub/.vscode",
        "sub/new/.mcp.json",
        "docs/AGENTS.md",
    ];
    let script: String = planted
        .iter()
        .map(|name| format!("mkdir -p $(dirname {name}) && echo x > {name} && "))
        .collect();
    let output = std::process::Command::new(common::broker())
        .arg("--ws")
        .arg(&world.workspace)
        .args(["--", "sh", "-c", &format!("{script} echo x > .git/index")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for name in planted {
        let path = world.workspace.join(name);
        let moved = world.workspace.join(format!("{name}.quarantined"));
        assert!(!path.exists() && moved.exists(), "{name}: {said}");
    }
    assert_eq!(read(world.workspace.join(".git/index")).unwrap(), b"x\n");
}
