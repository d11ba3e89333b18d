use std::path::Path;

use super::*;
use crate::tests::{Bench, code, error, fifo, link, read};

#[test]
fn paths_begin_at_the_working_directory() {
    let at = |path: &str| absolute(Path::new("/ws"), path).unwrap();
    assert_eq!(at("a/./b"), Path::new("/ws/a/b"));
    assert_eq!(at("/etc/x"), Path::new("/etc/x"));
    assert_eq!(
        at("../sib"),
        Path::new("/ws/../sib"),
        "the kernel judges, not this text"
    );
    assert!(absolute(Path::new("/ws"), "").is_err() && absolute(Path::new("/ws"), "a\0b").is_err());
}

#[test]
fn what_is_no_regular_file_is_named_and_not_waited_for() {
    let bench = Bench::new();
    fifo(&bench.root().join("pipe"));
    let socket = std::os::unix::net::UnixListener::bind(bench.root().join("sock")).unwrap();
    std::fs::create_dir(bench.root().join("dir")).unwrap();
    link("/dev/zero", bench.root().join("zero"));
    link("pipe", bench.root().join("linked"));
    for (path, words) in [
        ("pipe", "a FIFO"),
        ("linked", "a FIFO"),
        ("sock", "a socket"),
        ("dir", "use glob"),
        ("zero", "a device"),
        ("/dev/zero", "a device"),
    ] {
        let (response, _) = bench.ask(&read(path, 1, 10), &[]);
        assert_eq!(code(&response), ErrorCode::NotAFile, "{path}");
        assert!(
            error(&response).text.contains(words),
            "{path}: {response:?}"
        );
        let written = bench.write(path, "x", vec![]);
        assert_eq!(code(&written), ErrorCode::NotAFile, "{path}");
    }
    drop(socket);
}

#[test]
fn a_sparse_gigabyte_is_refused_by_its_size() {
    let bench = Bench::new();
    let path = bench.put("big", "");
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let (response, _) = bench.ask(&read("big", 1, 10), &[]);
    assert_eq!(code(&response), ErrorCode::TooLarge);
}

#[test]
fn a_file_that_says_zero_and_gives_more_is_read() {
    let bench = Bench::new();
    let (seen, text) = bench.read("/proc/self/status");
    assert!(text.starts_with("Name:"), "{text}");
    assert!(seen.path.starts_with("/proc/"));
}

#[test]
fn names_that_are_not_there_or_lead_in_circles() {
    let bench = Bench::new();
    bench.put("file", "x");
    link("b", bench.root().join("a"));
    link("a", bench.root().join("b"));
    for (path, wanted) in [
        ("gone", ErrorCode::NotFound),
        ("file/below", ErrorCode::NotADirectory),
        ("a", ErrorCode::BadRequest),
        (&*"n".repeat(5000), ErrorCode::BadRequest),
        ("", ErrorCode::BadRequest),
        ("a\0b", ErrorCode::BadRequest),
    ] {
        let (response, _) = bench.ask(&read(path, 1, 10), &[]);
        assert_eq!(code(&response), wanted, "{path:.20}: {response:?}");
    }
}

#[test]
fn evidence_names_where_a_link_leads() {
    let bench = Bench::new();
    let outside = Bench::new();
    outside.put("secret", "x");
    link(outside.root(), bench.root().join("out"));
    link(outside.root().join("new"), bench.root().join("dangling"));
    assert_eq!(
        best_real(&bench.root().join("out/secret")),
        outside.root().join("secret")
    );
    assert_eq!(
        best_real(&bench.root().join("out/none")),
        outside.root().join("none")
    );
    assert_eq!(
        best_real(&bench.root().join("dangling")),
        outside.root().join("new")
    );
}
