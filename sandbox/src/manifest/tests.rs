use proptest::prelude::*;

use super::*;

fn entry(path: &str, bytes: u64) -> ManifestEntry {
    ManifestEntry {
        path: path.to_owned(),
        bytes,
        mtime_ns: 1,
        ino: 1,
        mode: 0o644,
    }
}

fn manifest(files: &BTreeMap<u8, u64>) -> Manifest {
    Manifest {
        entries: files
            .iter()
            .map(|(name, bytes)| entry(&name.to_string(), *bytes))
            .collect(),
        cut: false,
    }
}

proptest! {
    #[test]
    fn applying_a_diff_gives_the_names_after(
        before in prop::collection::btree_map(0u8..20, 0u64..3, 0..12),
        after in prop::collection::btree_map(0u8..20, 0u64..3, 0..12),
    ) {
        let changes = diff(&manifest(&before), &manifest(&after));
        let mut names: std::collections::BTreeSet<String> = before.keys().map(u8::to_string).collect();
        for removed in &changes.removed { prop_assert!(names.remove(removed)); }
        for created in &changes.created { prop_assert!(names.insert(created.clone())); }
        prop_assert_eq!(names, after.keys().map(u8::to_string).collect());
        for (name, bytes) in &after {
            let differs = before.get(name).is_some_and(|was| was != bytes);
            prop_assert_eq!(differs, changes.changed.contains(&name.to_string()));
        }
        prop_assert!(!changes.cut);
    }
}

#[test]
fn a_cut_manifest_invents_nothing() {
    let whole = Manifest {
        entries: vec![entry("a", 1), entry("b", 1)],
        cut: false,
    };
    let cut = Manifest {
        entries: vec![entry("a", 1)],
        cut: true,
    };
    assert_eq!(
        diff(&whole, &cut),
        Changes {
            cut: true,
            ..Changes::default()
        }
    );
    assert_eq!(
        diff(&cut, &whole),
        Changes {
            cut: true,
            ..Changes::default()
        }
    );
}

#[test]
fn lists_are_bounded() {
    let many = Manifest {
        entries: (0..PATHS_MAX + 1)
            .map(|n| entry(&n.to_string(), 1))
            .collect(),
        cut: false,
    };
    let changes = diff(&Manifest::default(), &many);
    assert_eq!((changes.created.len(), changes.cut), (PATHS_MAX, true));
}
