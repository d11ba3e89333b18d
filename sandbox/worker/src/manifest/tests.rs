use crate::protocol::{ErrorCode, ManifestEntry, Request, Response};
use crate::tests::{Bench, code, link};

fn manifest(bench: &Bench, entries_max: u64) -> (bool, Vec<ManifestEntry>) {
    let roots = vec![bench.root().to_str().unwrap().to_owned()];
    let (response, bulk) = bench.ask(&Request::Manifest { roots, entries_max }, &[]);
    let Response::Manifest { entries, cut, .. } = response else {
        panic!("{response:?}")
    };
    let lines: Vec<ManifestEntry> = bulk
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len() as u64, entries);
    (cut, lines)
}

#[test]
fn files_and_links_are_listed_whatever_ignore_files_say() {
    let bench = Bench::new();
    bench.put(".gitignore", "*\n");
    bench.put("src/a", "12345");
    bench.put(".git/HEAD", "");
    link("/nowhere", bench.root().join("dangling"));
    let (cut, entries) = manifest(&bench, 100);
    let root = format!("{}/", bench.root().display());
    let paths: Vec<&str> = entries
        .iter()
        .map(|entry| entry.path.strip_prefix(&root).unwrap())
        .collect();
    assert_eq!(
        (cut, paths),
        (false, vec![".gitignore", "dangling", "src/a"])
    );
    assert_eq!(entries[2].bytes, 5);
    assert!(entries[2].mtime_ns > 0 && entries[2].ino > 0);
}

#[test]
fn two_manifests_differ_where_something_changed() {
    let bench = Bench::new();
    bench.put("same", "x");
    bench.put("changed", "x");
    let (_, before) = manifest(&bench, 100);
    std::fs::write(bench.root().join("changed"), "longer").unwrap();
    let (_, after) = manifest(&bench, 100);
    let differ: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a != b).collect();
    assert_eq!(differ, [true, false]);
}

#[test]
fn the_bound_is_said_and_a_missing_root_is_an_error() {
    let bench = Bench::new();
    for number in 0..20 {
        bench.put(&number.to_string(), "");
    }
    let (cut, entries) = manifest(&bench, 5);
    assert_eq!((cut, entries.len()), (true, 5));
    assert!(!manifest(&bench, 20).0, "exactly as many as asked for");
    let gone = Request::Manifest {
        roots: vec!["gone".into()],
        entries_max: 5,
    };
    assert_eq!(code(&bench.ask(&gone, &[]).0), ErrorCode::NotFound);
}
