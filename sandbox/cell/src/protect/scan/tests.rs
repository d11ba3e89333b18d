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
        let mut all = found.names;
        all.extend(found.led_to.into_keys());
        let names = all.iter().map(|path| path.to_str().unwrap().to_owned());
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
fn two_stars_are_any_number_of_directories_and_leave_objects_alone() {
    let tree = Tree::new("stars");
    for path in [
        ".git/modules/a/hooks/x",
        ".git/modules/a/HEAD",
        ".git/modules/third_party/b/hooks/x",
        ".git/modules/a/modules/c/d/hooks/x",
        ".git/modules/a/objects/e/hooks/x",
        ".git/elsewhere/hooks/x",
    ] {
        tree.file(path);
    }
    tree.link("../..", ".git/modules/a/up");
    let (found, cut) = tree.find(&[".git/modules/**/hooks"], WIDE);
    let expected = [
        ".git/elsewhere/hooks", // by the link
        ".git/modules/a/hooks",
        ".git/modules/a/modules/c/d/hooks",
        ".git/modules/a/up",
        ".git/modules/third_party/b/hooks",
    ];
    assert_eq!(
        (found.as_slice(), cut),
        (expected.map(str::to_owned).as_slice(), false)
    );
}

/// A flood of names in one directory hides nothing that stands beside it or leads to a name.
#[test]
fn a_bound_cuts_the_deep_and_not_the_near() {
    let tree = Tree::new("flood");
    for n in 0..300 {
        tree.file(&format!("flood/{n}"));
        tree.file(&format!("a{n}/f"));
    }
    for path in [
        ".git/commondir",
        ".vscode/x",
        "z/.git/commondir",
        "z/.mcp.json",
    ] {
        tree.file(path);
    }
    let names = [".git/commondir", ".vscode", ".mcp.json"];
    let bounds = Bounds {
        entries_max: 620,
        depth_max: 16,
    };
    let (found, cut) = tree.find(&names, bounds);
    assert!(cut);
    for near in [".git/commondir", ".vscode"] {
        assert!(found.iter().any(|name| name == near), "{near}: {found:?}");
    }
}

#[test]
fn a_link_stays_with_every_link_on_its_way() {
    let tree = Tree::new("way");
    tree.file("real/deep/agents.md");
    tree.file("real/other");
    tree.link("real", "docs");
    tree.link(tree.0.join("docs/deep").to_str().unwrap(), "absolute");
    tree.link("absolute/agents.md", "AGENTS.md");
    tree.link("../../real/missing", "real/deep/CLAUDE.md");
    let outside = tree
        .0
        .parent()
        .unwrap()
        .join(format!("curfew-alias-{}", std::process::id()));
    symlink(&tree.0, &outside).unwrap();
    tree.link(outside.join("real/other").to_str().unwrap(), "GEMINI.md");
    let (found, cut) = tree.find(&["AGENTS.md", "CLAUDE.md", "GEMINI.md"], WIDE);
    std::fs::remove_file(&outside).unwrap();
    let expected = [
        "AGENTS.md",
        "GEMINI.md",
        "absolute",
        "docs",
        "real/deep/CLAUDE.md",
        "real/deep/agents.md",
        "real/other",
    ];
    assert_eq!(
        (found.as_slice(), cut),
        (expected.map(str::to_owned).as_slice(), false)
    );
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
