use std::fs::{create_dir_all, write};
use std::os::unix::fs::symlink;

use super::*;

struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("curfew-scan-{name}-{}", std::process::id()));
        create_dir_all(&path).unwrap();
        Tree(std::fs::canonicalize(path).unwrap())
    }

    fn file(&self, path: &str) {
        let path = self.0.join(path);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, "x").unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.0.join(path)).unwrap();
    }

    fn find(&self, names: &[&str], bounds: Bounds) -> (Vec<String>, bool) {
        let names: Vec<ProtectedName> = names
            .iter()
            .map(|name| ProtectedName {
                name: name.trim_start_matches('/').to_owned(),
                any_depth: !name.starts_with('/'),
            })
            .collect();
        let found = find(&self.0, &names, bounds).unwrap();
        let names = found
            .names
            .iter()
            .map(|path| path.to_str().unwrap().to_owned());
        (names.collect(), found.cut)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

const WIDE: Bounds = Bounds {
    entries_max: 10_000,
    depth_max: 16,
};

#[test]
fn names_are_found_at_any_depth_and_in_any_spelling_a_tool_would_obey() {
    let tree = Tree::new("depth");
    for path in [
        ".git/hooks/x",
        ".git/config",
        "a/b/.Git/HOOKS/x",
        "a/.mcp.json",
        "a/mcp.json",
        "hooks/x",
    ] {
        tree.file(path);
    }
    tree.file("z/.g\u{200c}it/config");
    let (found, cut) = tree.find(&[".git/hooks", ".git/config", ".mcp.json"], WIDE);
    let expected = [
        ".git/config",
        ".git/hooks",
        "a/.mcp.json",
        "a/b/.Git/HOOKS",
        "z/.g\u{200c}it/config",
    ];
    assert_eq!(
        (found.as_slice(), cut),
        (expected.map(str::to_owned).as_slice(), false)
    );
}

#[test]
fn a_star_is_one_component_and_a_rooted_name_only_stands_at_the_root() {
    let tree = Tree::new("star");
    for path in [
        ".git/modules/a/hooks/x",
        ".git/modules/a/b/hooks/x",
        "bin/x",
        "sub/bin/x",
    ] {
        tree.file(path);
    }
    let (found, _) = tree.find(&[".git/modules/*/hooks", "/bin/x"], WIDE);
    assert_eq!(found, [".git/modules/a/hooks", "bin/x"]);
}

#[test]
fn a_file_in_the_place_of_a_directory_is_found() {
    let tree = Tree::new("pointer");
    tree.file("linked/.git");
    assert_eq!(
        tree.find(&[".git/hooks", ".git/config"], WIDE).0,
        ["linked/.git"]
    );
}

#[test]
fn links_are_found_with_what_they_lead_to_below_the_root() {
    let tree = Tree::new("links");
    tree.file("docs/agents.txt");
    tree.file("repo/hooks/x");
    tree.link("docs/agents.txt", "AGENTS.md");
    tree.link("AGENTS.md", "CLAUDE.md");
    tree.link("/etc/passwd", "GEMINI.md");
    tree.link("../etc", ".vscode");
    tree.link("repo", ".git");
    tree.link("loop", "loop");
    let names = [
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        ".vscode",
        ".git/hooks",
        "loop",
    ];
    let (found, cut) = tree.find(&names, WIDE);
    assert!(cut, "a loop of links has no end");
    let expected = [
        ".git",
        ".vscode",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        "docs/agents.txt",
        "loop",
        "repo/hooks",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_repositorys_objects_are_not_searched() {
    let tree = Tree::new("objects");
    for n in 0..50 {
        tree.file(&format!(".git/objects/{n}/.mcp.json"));
    }
    tree.file(".git/config");
    let few = Bounds {
        entries_max: 10,
        depth_max: 16,
    };
    assert_eq!(
        tree.find(&[".git/config", ".mcp.json"], few),
        (vec![".git/config".to_owned()], false)
    );
}

#[test]
fn bounds_hold_and_are_told() {
    let tree = Tree::new("bounds");
    for n in 0..20 {
        tree.file(&format!("d{n}/f"));
    }
    assert!(
        tree.find(
            &["x"],
            Bounds {
                entries_max: 19,
                depth_max: 16
            }
        )
        .1
    );
    assert!(
        !tree
            .find(
                &["x"],
                Bounds {
                    entries_max: 40,
                    depth_max: 16
                }
            )
            .1
    );
    assert!(
        tree.find(
            &["x"],
            Bounds {
                entries_max: 100,
                depth_max: 0
            }
        )
        .1
    );
}
