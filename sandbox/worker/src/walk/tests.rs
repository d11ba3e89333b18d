use std::time::{Duration, Instant};

use super::*;
use crate::tests::{Bench, fifo, link};

fn names(bench: &Bench, skip: Skip) -> Vec<String> {
    let mut names = Vec::new();
    let root = bench.root();
    let whole = walk(&root, skip, deadline(), &mut |found| {
        names.push(
            found
                .path
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned(),
        );
        Go::On
    });
    assert!(whole);
    names.sort();
    names
}

#[test]
fn ignore_files_count_from_the_base_down_and_the_nearest_has_the_last_word() {
    let bench = Bench::new();
    bench.put(".gitignore", "*.log\n/build/\n");
    bench.put("a.log", "");
    bench.put("build/x", "");
    bench.put("sub/build/x", "");
    bench.put("sub/.gitignore", "!keep.log\n");
    bench.put("sub/keep.log", "");
    bench.put("sub/other.log", "");
    bench.put(".git/config", "");
    bench.put(".hidden", "");
    let shown = names(&bench, Skip::Ignored);
    assert_eq!(
        shown,
        [
            ".gitignore",
            ".hidden",
            "sub/.gitignore",
            "sub/build/x",
            "sub/keep.log"
        ]
    );
    let all = names(&bench, Skip::Caches);
    assert!(all.contains(&"a.log".to_owned()) && !all.iter().any(|name| name.starts_with(".git/")));
}

#[test]
fn ignore_files_that_are_no_files_hold_nothing_up() {
    let bench = Bench::new();
    fifo(&bench.root().join(".gitignore"));
    link("/dev/zero", bench.root().join(".ignore"));
    bench.put("a", "");
    assert_eq!(names(&bench, Skip::Ignored), [".gitignore", ".ignore", "a"]);
}

#[test]
fn links_are_named_and_not_entered() {
    let bench = Bench::new();
    bench.put("dir/a", "");
    link("..", bench.root().join("dir/up"));
    link("/", bench.root().join("slash"));
    assert_eq!(names(&bench, Skip::Ignored), ["dir/a", "dir/up", "slash"]);
}

#[test]
fn caches_are_named_and_not_entered() {
    let bench = Bench::new();
    bench.put("target/CACHEDIR.TAG", "");
    bench.put("target/debug/x", "");
    bench.put("web/node_modules/y/z", "");
    assert_eq!(names(&bench, Skip::Caches), ["target", "web/node_modules"]);
}

#[test]
fn depth_and_time_are_bounded_and_said() {
    let bench = Bench::new();
    let mut deep = bench.root();
    for _ in 0..DEPTH_MAX + 10 {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("x"), "").unwrap();
    let mut seen = 0;
    let whole = walk(&bench.root(), Skip::Ignored, deadline(), &mut |_| {
        seen += 1;
        Go::On
    });
    assert_eq!((whole, seen), (false, 0));

    for number in 0..600 {
        bench.put(&format!("many/{number}"), "");
    }
    let past = Instant::now() - Duration::from_secs(1);
    assert!(!walk(
        &bench.root().join("many"),
        Skip::Ignored,
        past,
        &mut |_| Go::On
    ));
}
