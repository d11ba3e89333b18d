use crate::protocol::{ErrorCode, Request, Response};
use crate::tests::{Bench, code, link};

fn glob(bench: &Bench, pattern: &str, path: &str) -> Vec<String> {
    let request = Request::Glob {
        pattern: pattern.into(),
        path: path.into(),
        entries_max: 1000,
    };
    let (response, bulk) = bench.ask(&request, &[]);
    let Response::Glob { count, cut, .. } = response else {
        panic!("{response:?}")
    };
    let lines: Vec<String> = String::from_utf8(bulk)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!((lines.len() as u64, cut), (count, false));
    lines
}

fn tree() -> Bench {
    let bench = Bench::new();
    for name in [
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/d.txt",
        "target/e.rs",
        ".git/f.rs",
        ".hidden/g.rs",
    ] {
        bench.put(name, "");
    }
    bench.put(".gitignore", "target\n");
    bench
}

#[test]
fn patterns_match_paths_and_names() {
    let bench = tree();
    assert_eq!(
        glob(&bench, "*.rs", "."),
        [".hidden/g.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(
        glob(&bench, "**/*.rs", "."),
        [".hidden/g.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(glob(&bench, "src/*.rs", "."), ["src/b.rs"]);
    assert_eq!(
        glob(&bench, "./src/**/*.rs", "."),
        ["src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(glob(&bench, "*.rs", "src"), ["src/b.rs", "src/deep/c.rs"]);
    assert_eq!(glob(&bench, "{a,b}.rs", "."), ["a.rs", "src/b.rs"]);
    assert!(glob(&bench, "*.none", ".").is_empty());
}

#[test]
fn an_absolute_pattern_says_where_to_look() {
    let bench = tree();
    let root = bench.root();
    assert_eq!(
        glob(&bench, &format!("{}/src/**/*.rs", root.display()), "."),
        ["src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(
        glob(&bench, &format!("{}/src/d.txt", root.display()), "."),
        ["src/d.txt"]
    );
    let outside = Bench::new();
    let file = outside.put("x.rs", "");
    assert_eq!(
        glob(&bench, &format!("{}/*.rs", outside.root().display()), "."),
        [file.to_str().unwrap()]
    );
}

#[test]
fn the_list_is_sorted_cut_and_counted() {
    let bench = Bench::new();
    for number in 0..50 {
        bench.put(&format!("{number:02}"), "");
    }
    let request = Request::Glob {
        pattern: "*".into(),
        path: ".".into(),
        entries_max: 3,
    };
    let (response, bulk) = bench.ask(&request, &[]);
    assert!(
        matches!(
            response,
            Response::Glob {
                count: 3,
                cut: true,
                ..
            }
        ),
        "{response:?}"
    );
    assert_eq!(bulk, b"00\n01\n02\n");
}

#[test]
fn names_cannot_forge_lines_and_loops_end() {
    let bench = Bench::new();
    bench.put("a\n/etc/passwd", "");
    link(".", bench.root().join("loop"));
    assert_eq!(glob(&bench, "*", "."), ["a\\n/etc/passwd", "loop"]);
}

#[test]
fn bad_patterns_and_bases_are_errors() {
    let bench = tree();
    let ask = |pattern: &str, path: &str| {
        bench
            .ask(
                &Request::Glob {
                    pattern: pattern.into(),
                    path: path.into(),
                    entries_max: 10,
                },
                &[],
            )
            .0
    };
    assert_eq!(code(&ask("", ".")), ErrorCode::BadPattern);
    assert_eq!(code(&ask("a[", ".")), ErrorCode::BadPattern);
    assert_eq!(code(&ask(&"*".repeat(5000), ".")), ErrorCode::BadPattern);
    assert_eq!(code(&ask("*", "gone")), ErrorCode::NotFound);
    assert_eq!(code(&ask("*", "a.rs")), ErrorCode::NotADirectory);
}
