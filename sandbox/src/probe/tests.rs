use std::os::unix::fs::symlink;

use super::*;

fn names(found: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
    let found: BTreeMap<String, OsString> = found
        .iter()
        .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
        .collect();
    move |name| found.get(name).cloned()
}

#[test]
fn own_directories_follow_the_variables_that_move_them() {
    let default = own_directories(&names(&[("HOME", "/home/a")]));
    assert_eq!(
        default,
        [
            Path::new("/home/a/.local/state/curfew"),
            Path::new("/home/a/.config/curfew")
        ]
    );
    let moved = own_directories(&names(&[
        ("HOME", "/home/a"),
        ("CURFEW_HOME", "/c"),
        ("XDG_STATE_HOME", "/s"),
        ("XDG_CONFIG_HOME", "relative"),
    ]));
    assert_eq!(
        moved,
        [
            Path::new("/c"),
            Path::new("/s/curfew"),
            Path::new("/home/a/.config/curfew")
        ]
    );
}

#[test]
fn a_node_tells_its_real_path_and_absence_is_no_error() {
    let temp = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(temp.path()).unwrap();
    std::fs::create_dir(root.join("d")).unwrap();
    std::fs::write(root.join("d/f"), "x").unwrap();
    symlink("d", root.join("l")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let real = |path: &str| {
        node(&root.join(path))
            .unwrap()
            .map(|node| (node.real, node.kind))
    };
    assert_eq!(real("d"), Some((root.join("d"), Kind::Directory)));
    assert_eq!(real("l/f"), Some((root.join("d/f"), Kind::File)));
    for absent in ["loop", "dangling", "none", "d/f/below"] {
        assert_eq!(real(absent), None, "{absent}");
    }
}

#[test]
fn a_directory_with_too_many_names_grants_none() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp.path().join("d")).unwrap();
    symlink("d", temp.path().join("l")).unwrap();
    assert_eq!(
        list(temp.path()).unwrap(),
        [(temp.path().join("d"), Kind::Directory)]
    );
    for n in 0..=WAY_ENTRIES_MAX {
        std::fs::write(temp.path().join(n.to_string()), "").unwrap();
    }
    assert!(list(temp.path()).unwrap().is_empty());
    assert!(list(&temp.path().join("none")).unwrap().is_empty());
}

#[test]
fn mount_points_are_unescaped() {
    let text = b"22 1 0:21 / /a\\040b\\134 rw - ext4 /dev/x rw\n23 1 0:2 / /c rw\nshort\n";
    let points: Vec<PathBuf> = mountinfo::mount_points(text).collect();
    assert_eq!(points, [Path::new("/a b\\"), Path::new("/c")]);
}
