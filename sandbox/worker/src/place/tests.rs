use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::file::{self, Access};
use crate::tests::{Bench, link};

fn judged(path: &Path) -> (Opened, Vec<u8>) {
    let mut opened = file::open(path, Access::Read).unwrap();
    let present = opened.content().unwrap();
    (opened, present)
}

#[test]
fn a_file_that_took_the_name_in_the_meantime_is_left_alone() {
    let bench = Bench::new();
    let path = bench.put("f", "judged");
    let (mut opened, present) = judged(&path);
    let other = bench.put("other", "somebody else's");
    std::fs::rename(other, &path).unwrap();
    let fault = replace(&mut opened, &present, b"new").unwrap_err();
    assert_eq!(fault.0.code, ErrorCode::Stale);
    assert_eq!(
        (bench.text("f").as_str(), bench.names()),
        ("somebody else's", vec!["f".to_owned()])
    );
}

#[test]
fn bytes_that_changed_in_place_are_given_back() {
    let bench = Bench::new();
    let path = bench.put("f", "judged");
    let (mut opened, present) = judged(&path);
    std::fs::write(&path, "JUDGED").unwrap();
    let fault = replace(&mut opened, &present, b"new").unwrap_err();
    assert_eq!(fault.0.code, ErrorCode::Stale);
    assert_eq!(
        (bench.text("f").as_str(), bench.names()),
        ("JUDGED", vec!["f".to_owned()])
    );
}

#[test]
fn a_link_that_took_the_name_is_not_followed() {
    let bench = Bench::new();
    let path = bench.put("f", "judged");
    let outside = bench.put("outside", "untouched");
    let (mut opened, present) = judged(&path);
    std::fs::remove_file(&path).unwrap();
    link(&outside, &path);
    assert!(replace(&mut opened, &present, b"new").is_err());
    assert_eq!(bench.text("outside"), "untouched");
}

#[test]
fn a_name_that_appeared_is_not_replaced() {
    let bench = Bench::new();
    let path = bench.put("f", "somebody else's");
    let fault = create(&path, b"new").unwrap_err();
    assert_eq!(fault.0.code, ErrorCode::Stale);
    assert_eq!(
        (bench.text("f").as_str(), bench.names()),
        ("somebody else's", vec!["f".to_owned()])
    );
}

/// Somebody exchanges two files under their names all the time. A replacement may be refused, and
/// one of theirs may be left under a name of ours; none is ever lost.
#[test]
fn a_racing_exchange_loses_nothing() {
    let bench = Bench::new();
    let root = bench.root();
    let (a, _) = (bench.put("a", "A"), bench.put("b", "B"));
    let done = AtomicBool::new(false);
    let dir = rustix::fs::open(&root, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&dir, "a", &dir, "b", RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..2000 {
            let (mut opened, present) = judged(&a);
            opened.real.clone_from(&a);
            let same = present.clone();
            drop(replace(&mut opened, &present, &same));
        }
        done.store(true, Ordering::Relaxed);
    });
    let contents: Vec<String> = bench.names().iter().map(|name| bench.text(name)).collect();
    for content in ["A", "B"] {
        assert!(contents.iter().any(|text| text == content), "{contents:?}");
    }
}

#[test]
fn a_directory_swapped_for_a_link_changes_nothing_outside() {
    let bench = Bench::new();
    let outside = Bench::new();
    outside.put("f", "untouched");
    let path = bench.put("dir/f", "judged");
    let (mut opened, present) = judged(&path);
    std::fs::rename(bench.root().join("dir"), bench.root().join("moved")).unwrap();
    link(outside.root(), bench.root().join("dir"));
    assert!(replace(&mut opened, &present, b"new").is_err());
    assert_eq!(outside.text("f"), "untouched");
}
