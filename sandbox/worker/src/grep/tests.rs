use crate::protocol::{ErrorCode, Request, Response};
use crate::tests::{Bench, code, fifo, link};

fn ask(bench: &Bench, pattern: &str, path: &str, matches_max: u64) -> (Response, String) {
    let request = Request::Grep {
        pattern: pattern.into(),
        path: path.into(),
        matches_max,
        line_chars_max: 20,
    };
    let (response, bulk) = bench.ask(&request, &[]);
    (response, String::from_utf8(bulk).unwrap())
}

#[test]
fn lines_are_listed_by_path_and_number() {
    let bench = Bench::new();
    bench.put("b.txt", "one\ntwo\nthree one\n");
    bench.put("a/x.txt", "one\r\n");
    bench.put("a/bin", b"one\0");
    bench.put(".git/config", "one\n");
    bench.put(".gitignore", "skipped\n");
    bench.put("skipped", "one\n");
    let (response, text) = ask(&bench, r"\bone$", ".", 100);
    assert!(
        matches!(
            response,
            Response::Grep {
                count: 3,
                cut: false,
                files: 2,
                ..
            }
        ),
        "{response:?}"
    );
    assert_eq!(text, "a/x.txt:1:one\nb.txt:1:one\nb.txt:3:three one\n");
    let (_, text) = ask(&bench, "two", "b.txt", 100);
    assert_eq!(text, "b.txt:2:two\n");
}

#[test]
fn matches_and_long_lines_are_cut() {
    let bench = Bench::new();
    bench.put("f", format!("{}\n", "x".repeat(100)).repeat(10));
    let (response, text) = ask(&bench, "x", ".", 2);
    assert!(
        matches!(
            response,
            Response::Grep {
                count: 2,
                cut: true,
                ..
            }
        ),
        "{response:?}"
    );
    assert_eq!(
        text.lines().next().unwrap(),
        format!("f:1:{}…", "x".repeat(20))
    );
}

#[test]
fn exactly_as_many_as_asked_for_is_not_cut() {
    let bench = Bench::new();
    bench.put("f", "x\nx\n");
    assert!(matches!(
        ask(&bench, "x", ".", 2).0,
        Response::Grep {
            count: 2,
            cut: false,
            ..
        }
    ));
}

#[test]
fn nothing_that_is_no_file_is_waited_for() {
    let bench = Bench::new();
    fifo(&bench.root().join("main.rs"));
    link("/dev/zero", bench.root().join("zero"));
    link("/proc/kmsg", bench.root().join("kmsg"));
    bench.put("a", "x\n");
    let (response, text) = ask(&bench, "x", ".", 10);
    assert!(
        matches!(response, Response::Grep { count: 1, .. }),
        "{response:?}"
    );
    assert_eq!(text, "a:1:x\n");
    assert_eq!(
        code(&ask(&bench, "x", "main.rs", 10).0),
        ErrorCode::NotAFile
    );
}

#[test]
fn a_line_beyond_the_limit_is_said() {
    let bench = Bench::new();
    bench.put("long", vec![b'y'; super::LINE_BYTES_MAX + 4096]);
    bench.put("z", "x\n");
    let (response, text) = ask(&bench, "x", ".", 10);
    assert!(
        matches!(
            response,
            Response::Grep {
                count: 1,
                cut: true,
                ..
            }
        ),
        "{response:?}"
    );
    assert_eq!(text, "z:1:x\n");
}

#[test]
fn expressions_that_are_none_or_cost_too_much() {
    let bench = Bench::new();
    bench.put("a", "x(\n");
    for pattern in ["", "x(", "[", "(a{1000}){1000}", r"a\nb"] {
        assert_eq!(
            code(&ask(&bench, pattern, ".", 10).0),
            ErrorCode::BadPattern,
            "{pattern}"
        );
    }
    assert!(matches!(
        ask(&bench, r"x\(", ".", 10).0,
        Response::Grep { count: 1, .. }
    ));
    assert_eq!(code(&ask(&bench, "x", "gone", 10).0), ErrorCode::NotFound);
}
