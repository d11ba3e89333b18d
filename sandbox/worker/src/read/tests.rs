use crate::protocol::{ErrorCode, Response};
use crate::tests::{Bench, code, error, link, read};

#[test]
fn the_hash_is_of_the_whole_file_and_the_path_is_real() {
    let bench = Bench::new();
    let path = bench.put("real/a.txt", "one\ntwo\nthree\n");
    link("real", bench.root().join("alias"));
    let (response, text) = bench.ask(&read("alias/a.txt", 2, 1), &[]);
    let Response::Read {
        file,
        first,
        last,
        more,
        ..
    } = response
    else {
        panic!("{response:?}")
    };
    assert_eq!(
        (first, last, more, text.as_slice()),
        (2, 2, true, b"two\n".as_slice())
    );
    assert_eq!(file.path, path.to_str().unwrap());
    // printf 'one\ntwo\nthree\n' | sha256sum
    assert_eq!(
        file.sha256,
        "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2"
    );
    assert_eq!((file.bytes, file.lines, file.seen), (14, 3, vec![(2, 2)]));
}

#[test]
fn an_empty_file_and_an_offset_behind_the_end() {
    let bench = Bench::new();
    bench.put("empty", "");
    bench.put("two", "a\nb\n");
    let (response, _) = bench.ask(&read("empty", 1, 10), &[]);
    assert!(
        matches!(
            response,
            Response::Read {
                first: 1,
                last: 0,
                more: false,
                ..
            }
        ),
        "{response:?}"
    );
    let (response, _) = bench.ask(&read("two", 3, 10), &[]);
    assert_eq!(code(&response), ErrorCode::BadRequest);
    assert!(error(&response).text.contains("has 2 lines"));
}

#[test]
fn nul_is_not_text_and_damage_is_said() {
    let bench = Bench::new();
    bench.put("bin", b"\x7fELF\0\0");
    bench.put("latin1", b"caf\xe9\n");
    assert_eq!(
        code(&bench.ask(&read("bin", 1, 10), &[]).0),
        ErrorCode::NotText
    );
    let (response, _) = bench.ask(&read("latin1", 1, 10), &[]);
    assert!(
        matches!(response, Response::Read { lossy: true, .. }),
        "{response:?}"
    );
}

#[test]
fn a_name_that_is_no_text_is_reached_through_a_link() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new();
    let odd = bench.root().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::write(&odd, "x\n").unwrap();
    link(&odd, bench.root().join("link"));
    let (seen, text) = bench.read("link");
    assert_eq!(text, "x\n");
    assert!(seen.path.ends_with("odd\u{fffd}"));
}
