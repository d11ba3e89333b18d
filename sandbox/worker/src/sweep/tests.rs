use std::fs::{create_dir_all, write};
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

struct Tree(tempfile::TempDir);

const NAMES: [&str; 10] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".git/worktrees/*/commondir",
    ".git/worktrees/*/gitdir",
    ".vscode",
    ".mcp.json",
    "AGENTS.md",
];

impl Tree {
    fn new() -> Self {
        Tree(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.0.path()).unwrap()
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, text).unwrap();
    }

    fn git(&self, dir: &str, args: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e"])
            .args(args)
            .current_dir(self.root().join(dir))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{args:?} {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn sweep(&self, known: &[&str]) -> Swept {
        let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        let known: Vec<String> = known
            .iter()
            .map(|name| self.root().join(name).display().to_string())
            .collect();
        sweep(&[self.root().display().to_string()], &names, &known)
    }

    fn moved(&self, known: &[&str]) -> Vec<String> {
        let root = format!("{}/", self.root().display());
        let swept = self.sweep(known);
        assert!(swept.failed.is_empty() && !swept.cut, "{swept:?}");
        swept
            .moved
            .iter()
            .map(|moved| moved.from.strip_prefix(&root).unwrap().to_owned())
            .collect()
    }
}

#[test]
fn what_appeared_is_renamed_beside_itself_and_what_stood_there_is_not() {
    let tree = Tree::new();
    for path in [
        ".vscode/tasks.json",
        "a/.mcp.json",
        "AGENTS.md",
        "b/AGENTS.md",
    ] {
        tree.file(path, "x");
    }
    assert_eq!(
        tree.moved(&["AGENTS.md"]),
        [".vscode", "a/.mcp.json", "b/AGENTS.md"]
    );
    assert!(tree.root().join(".vscode.quarantined/tasks.json").exists());
    assert!(tree.root().join("AGENTS.md").exists());
    tree.file(".vscode/again.json", "x");
    assert_eq!(tree.moved(&["AGENTS.md"]), [".vscode"]);
    assert!(
        tree.root()
            .join(".vscode.quarantined.1/again.json")
            .exists()
    );
    assert!(tree.moved(&["AGENTS.md"]).is_empty());
}

#[test]
fn a_plain_new_repository_stays_a_repository() {
    let tree = Tree::new();
    create_dir_all(tree.root().join("new")).unwrap();
    tree.git("new", &["init", "-q"]);
    tree.git("new", &["commit", "-q", "--allow-empty", "-m", "x"]);
    tree.git(
        "new",
        &["remote", "add", "origin", "https://example.invalid/x.git"],
    );
    tree.git("new", &["worktree", "add", "-q", "../linked"]);
    assert!(tree.moved(&[]).is_empty());
    tree.git("new", &["fsck"]);
    tree.git("linked", &["status"]);
}

#[test]
fn a_new_repository_that_runs_something_is_taken_apart() {
    for (path, text) in [
        (".git/hooks/pre-commit", "#!/bin/sh\n"),
        (".git/config", "[core]\n\tfsmonitor = /tmp/x\n"),
        (
            ".git/config",
            "[core]\n\tbare = false\n[include]\n\tpath = /tmp/x\n",
        ),
        (".git/config", "[core] fsmonitor = /tmp/x\n"),
        (
            ".git/config",
            "[core]\n\tfilemode = true \\\n\tfsmonitor = x\n",
        ),
        (".git/config", "[remote \"o\"]\n\turl = ext::sh -c x\n"),
        (".git/config", "[user]\n\tname = a\\nb\n"),
        (".git/config.worktree", ""),
        (".git/commondir", "../evil\n"),
        (".git/info/attributes", "* filter=x\n"),
        (".git/worktrees/w/commondir", "../../../evil\n"),
        (".git/worktrees/w/gitdir", "/etc/.git\n"),
        ("sub/.git", "gitdir: ../evil\n"),
        ("sub/.git", "gitdir: /tmp/evil/.git/worktrees/x\n"),
    ] {
        let tree = Tree::new();
        tree.file(path, text);
        let expected = if path.contains("hooks/") {
            ".git/hooks"
        } else {
            path
        };
        assert_eq!(tree.moved(&[]), [expected], "{text}");
    }
}

#[test]
fn links_are_renamed_as_links() {
    let tree = Tree::new();
    tree.file("evil/hooks/pre-commit", "x");
    tree.file("evil/config", "[core]\n\tfsmonitor = x\n");
    symlink("evil", tree.root().join(".git")).unwrap();
    symlink("/etc/passwd", tree.root().join("AGENTS.md")).unwrap();
    let moved = tree.moved(&[]);
    assert!(
        moved.contains(&".git".to_owned()) && moved.contains(&"AGENTS.md".to_owned()),
        "{moved:?}"
    );
    assert!(!tree.root().join(".git").exists());
}

/// Names in a directory that nobody may list work as well as any.
#[test]
fn a_shut_directory_hides_nothing_and_is_shut_again() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return; // root lists everything; `protected.rs` of the sandbox has it as a real call
    }
    let tree = Tree::new();
    tree.file("a/b/.vscode/tasks.json", "x");
    tree.file("c/.mcp.json", "x");
    let shut = [("a/b", 0o111), ("a", 0o300), ("c", 0o555)];
    for (dir, mode) in shut {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(tree.root().join(dir), mode).unwrap();
    }
    assert_eq!(tree.moved(&[]), ["a/b/.vscode", "c/.mcp.json"]);
    for (dir, mode) in shut.into_iter().rev() {
        let path = tree.root().join(dir);
        let found = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(found & 0o7777, mode, "{dir}");
        let open = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, open).unwrap();
    }
}

#[test]
fn what_a_new_link_leads_to_stays() {
    let tree = Tree::new();
    tree.file("README.md", "x");
    symlink("README.md", tree.root().join("AGENTS.md")).unwrap();
    assert_eq!(tree.moved(&[]), ["AGENTS.md"]);
    assert!(tree.root().join("README.md").exists());
}

#[test]
fn what_appears_behind_an_old_link_goes() {
    let tree = Tree::new();
    tree.file("docs/new.md", "x");
    symlink("docs/new.md", tree.root().join("AGENTS.md")).unwrap();
    assert_eq!(tree.moved(&["AGENTS.md"]), ["docs/new.md"]);
}
