//! What an agent needs works inside, with the default profile.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use common::{World, host};
use curfew_policy::Mode;

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Returns false, and says so, where the host lacks a program.
fn needs(program: &str) -> bool {
    let there = installed(program);
    if !there {
        println!("not run: {program} is not installed");
    }
    there
}

fn repository(world: &World) {
    let git = |args: &[&str]| {
        let identity = ["git", "-c", "user.name=n", "-c", "user.email=n@localhost"];
        host(&world.workspace, &[&identity, args].concat());
    };
    git(&["init", "-q", "-b", "main"]);
    std::fs::write(world.workspace.join("a"), "1\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
}

#[test]
fn git_works_inside() {
    if !needs("git") {
        return;
    }
    let world = World::new();
    repository(&world);
    let session = world.session(Mode::WorkspaceWrite);
    let steps = [
        "echo 2 >> a && git add a && git commit -q -m second",
        "git commit -q --amend -m 'second, amended'",
        "git checkout -q -b side HEAD~1 && echo s > b && git add b && git commit -q -m side",
        "git rebase -q main",
        "git checkout -q main && git merge -q --no-ff -m merged side",
        "echo 3 >> a && git stash -q && git stash pop -q && git checkout -q a",
        "git tag v1 && git gc -q && git fsck --strict",
        "test \"$(git log --oneline | wc -l)\" = 4 && test -z \"$(git status --porcelain)\"",
    ];
    for step in steps {
        session.shell(step).ok();
    }
    host(&world.workspace, &["git", "fsck", "--strict"]);
    let config = std::fs::read(world.workspace.join(".git/config")).unwrap();
    for planted in [
        "git config core.fsmonitor /tmp/x",
        "printf '[core]\\nfsmonitor=/tmp/x\\n' >> .git/config",
        "printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
        "mv .git g && mkdir -p .git/hooks && printf '[core]\\nfsmonitor=/tmp/x\\n' > .git/config",
        "mv .git/hooks h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
    ] {
        session.shell(planted);
        assert_eq!(
            std::fs::read(world.workspace.join(".git/config")).unwrap(),
            config,
            "{planted}"
        );
        assert!(
            !world.workspace.join(".git/hooks/pre-commit").exists(),
            "{planted}"
        );
    }
}

#[test]
fn a_commit_has_an_author_without_any_configuration() {
    if !needs("git") {
        return;
    }
    let world = World::new();
    repository(&world);
    let ran = world
        .run(
            Mode::WorkspaceWrite,
            "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'",
        )
        .ok();
    assert!(
        ran.stdout.contains('<') && ran.stdout.contains('@'),
        "{}",
        ran.stdout
    );
}

#[test]
fn python_works_inside() {
    if !needs("python3") {
        return;
    }
    let world = World::new();
    let ran = world.run(
        Mode::WorkspaceWrite,
        "python3 -c 'import ssl, sqlite3, tempfile, subprocess; print(40 + 2); tempfile.mkstemp(); subprocess.run([\"true\"], check=True)'",
    );
    assert_eq!(ran.ok().stdout, "42\n");
}

#[test]
fn node_and_npm_work_inside() {
    if !needs("node") || !needs("npm") {
        return;
    }
    let world = World::new();
    std::fs::write(
        world.workspace.join("package.json"),
        r#"{"name":"t","version":"1.0.0","scripts":{"test":"node -e 'console.log(6*7)'"}}"#,
    )
    .unwrap();
    let ran = world.run(
        Mode::WorkspaceWrite,
        "npm test --silent --offline && node -e 'new Worker(\"1\", {eval: true})' 2>&1 | head -1",
    );
    assert!(ran.ok().stdout.contains("42"));
}

#[test]
fn cargo_builds_inside_without_a_network() {
    if !needs("cargo") {
        return;
    }
    let world = World::new();
    std::fs::write(
        world.workspace.join("Cargo.toml"),
        "[package]\nname = \"t\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    )
    .unwrap();
    std::fs::create_dir(world.workspace.join("src")).unwrap();
    std::fs::write(
        world.workspace.join("src/main.rs"),
        "fn main() { println!(\"{}\", 6 * 7); }\n",
    )
    .unwrap();
    let ran = world.run(Mode::WorkspaceWrite, "cargo run --offline --quiet");
    assert_eq!(ran.ok().stdout, "42\n");
}
