use proptest::prelude::*;

use super::*;
use crate::seen::normalize;
use crate::tests::{Bench, code, error, link, read};

#[test]
fn a_unique_match_is_replaced_and_its_line_named() {
    let bench = Bench::new();
    bench.put("f.rs", "fn a() {}\nfn b() {}\n");
    let (seen, _) = bench.read("f.rs");
    let response = bench.edit("f.rs", "fn b() {}", "fn b() {\n}", vec![seen]);
    let Response::Edited { file, at, .. } = response else {
        panic!("{response:?}")
    };
    assert_eq!((at, file.lines, file.seen), (2, 3, vec![(1, 3)]));
    assert_eq!(
        (bench.text("f.rs").as_str(), bench.names()),
        ("fn a() {}\nfn b() {\n}\n", vec!["f.rs".to_owned()])
    );
}

#[test]
fn what_was_not_read_or_not_shown_is_not_changed() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n4\n");
    assert_eq!(code(&bench.edit("f", "4", "5", vec![])), ErrorCode::NotRead);
    let (response, _) = bench.ask(&read("f", 1, 2), &[]);
    let Response::Read { file, .. } = response else {
        panic!()
    };
    let part = Observation {
        path: file.path,
        sha256: file.sha256,
        seen: file.seen,
    };
    let refused = bench.edit("f", "4", "5", vec![part.clone()]);
    assert_eq!(code(&refused), ErrorCode::NotSeen);
    assert!(error(&refused).text.contains("offset 4"), "{refused:?}");
    assert!(matches!(
        bench.edit("f", "2", "two", vec![part.clone()]),
        Response::Edited { .. }
    ));
    assert_eq!(
        code(&bench.edit("f", "1", "one", vec![part])),
        ErrorCode::Stale,
        "its own change counts too"
    );
    assert_eq!(bench.text("f"), "1\ntwo\n3\n4\n");
}

#[test]
fn every_line_of_a_match_must_have_been_shown() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n4\n");
    let (response, _) = bench.ask(&read("f", 1, 2), &[]);
    let Response::Read { file, .. } = response else {
        panic!()
    };
    let part = Observation {
        path: file.path,
        sha256: file.sha256,
        seen: file.seen,
    };
    let refused = bench.edit("f", "2\n3", "x", vec![part.clone()]);
    assert_eq!(code(&refused), ErrorCode::NotSeen);
    assert!(error(&refused).text.contains("line 3"), "{refused:?}");
    // The line feed belongs to the line it ends.
    let response = bench.edit("f", "2\n", "x", vec![part]);
    let Response::Edited { file, .. } = response else {
        panic!("{response:?}")
    };
    assert_eq!(
        (bench.text("f").as_str(), file.seen),
        ("1\nx3\n4\n", vec![(1, 1)]),
        "a line that ends in one that was not shown does not count"
    );
}

#[test]
fn no_match_and_many_matches_say_what_to_do() {
    let bench = Bench::new();
    bench.put("f", "  a = 1\nb\na = 1\n");
    let (seen, _) = bench.read("f");
    let ask = |old: &str| bench.edit("f", old, "z", vec![seen.clone()]);
    let many = ask("a = 1");
    assert_eq!(code(&many), ErrorCode::ManyMatches);
    assert!(
        error(&many).text.contains("2 times") && error(&many).text.contains("lines 1, 3"),
        "{many:?}"
    );
    assert_eq!(code(&ask("c")), ErrorCode::NoMatch);
    assert!(
        error(&ask("1\t  a = 1"))
            .text
            .contains("leave out the line numbers")
    );
    assert!(error(&ask("a = 1\n\nb")).text.contains("line 1"));
    assert_eq!(code(&ask("")), ErrorCode::BadRequest);
    assert_eq!(code(&ask("z")), ErrorCode::BadRequest);
    assert_eq!(bench.text("f"), "  a = 1\nb\na = 1\n");
}

#[test]
fn carriage_returns_are_kept() {
    let bench = Bench::new();
    bench.put("dos", "a\r\nb\r\nc\r\n");
    let (seen, shown) = bench.read("dos");
    assert_eq!(shown, "a\nb\nc\n");
    assert!(matches!(
        bench.edit("dos", "a\nb\n", "x\ny\nz\n", vec![seen]),
        Response::Edited { .. }
    ));
    assert_eq!(bench.text("dos"), "x\r\ny\r\nz\r\nc\r\n");
    let (seen, _) = bench.read("dos");
    bench.edit("dos", "c", "c\nd", vec![seen]);
    assert_eq!(bench.text("dos"), "x\r\ny\r\nz\r\nc\r\nd\r\n");
    bench.put("mixed", "a\r\nb\nc\n");
    let (seen, _) = bench.read("mixed");
    bench.edit("mixed", "b\nc", "b\nC", vec![seen]);
    assert_eq!(bench.text("mixed"), "a\r\nb\nC\n");
}

#[test]
fn through_a_link_the_target_changes_and_is_what_was_read() {
    let bench = Bench::new();
    bench.put("dir/f", "old\n");
    link("dir/f", bench.root().join("l"));
    let (seen, _) = bench.read("dir/f");
    assert!(matches!(
        bench.edit("l", "old", "new", vec![seen]),
        Response::Edited { .. }
    ));
    assert_eq!(bench.text("dir/f"), "new\n");
    assert!(
        bench
            .root()
            .join("l")
            .symlink_metadata()
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn bytes_that_are_no_text_survive_an_edit_beside_them() {
    let bench = Bench::new();
    bench.put("f", b"caf\xe9\nplain\n");
    let (seen, _) = bench.read("f");
    assert!(matches!(
        bench.edit("f", "plain", "fancy", vec![seen]),
        Response::Edited { .. }
    ));
    assert_eq!(
        std::fs::read(bench.root().join("f")).unwrap(),
        b"caf\xe9\nfancy\n"
    );
}

#[test]
fn a_million_matches_are_counted_and_not_listed() {
    let content = vec![b'a'; 1 << 20];
    let Err(Miss::Many { count, lines }) = find(&content, b"aa", b"b") else {
        panic!()
    };
    assert_eq!(
        (count, lines.len()),
        (MATCHES_COUNTED_MAX, PLACES_SHOWN_MAX)
    );
}

/// Small alphabets, so that matches, overlaps and line ends meet.
fn small() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![b'a', b'b', b'\n']), 0..24)
}

fn lines_of(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn exactly_one_place_or_an_error(content in small(), old in small(), new in small()) {
        let places = (0..=content.len()).filter(|at| content[*at..].starts_with(&old)).count();
        match find(&content, &old, &new) {
            Err(Miss::EmptyOld) => prop_assert!(old.is_empty()),
            Err(Miss::Same) => prop_assert_eq!(&old, &new),
            Err(Miss::None { .. }) => prop_assert_eq!(places, 0),
            Err(Miss::Many { count, .. }) => prop_assert!(places == count && count > 1),
            Ok(change) => {
                prop_assert_eq!(places, 1);
                let result = change.applied(&content);
                prop_assert_eq!(&result[..change.at], &content[..change.at]);
                prop_assert_eq!(&result[change.at..change.at + new.len()], &new[..]);
                prop_assert_eq!(&result[change.at + new.len()..], &content[change.end()..]);
            }
        }
    }

    /// A line counts as seen afterwards only if every byte of it was in a line seen before or in
    /// the text the model wrote.
    #[test]
    fn nothing_becomes_seen_that_was_not(content in small(), old in small(), new in small(), raw in prop::collection::vec((1..8_u64, 1..8_u64), 0..3)) {
        let ranges = normalize(raw);
        let Ok(change) = find(&content, &old, &new) else { return Ok(()) };
        let (first, last) = change.lines(&content);
        prop_assume!(seen::first_gap(&ranges, first, last).is_none());
        let result = change.applied(&content);
        let after = change.seen_after(&content, &result, &ranges);
        let knew = |at: usize| {
            let line = line_at(&content, at);
            ranges.iter().any(|(from, to)| *from <= line && line <= *to)
        };
        let mut at = 0;
        for (number, line) in (1..).zip(lines_of(&result)) {
            let whole = (at..at + line.len()).all(|byte| match byte {
                byte if byte < change.at => knew(byte),
                byte if byte < change.at + new.len() => true,
                byte => knew(byte - new.len() + old.len()),
            });
            let counted = after.iter().any(|(from, to)| *from <= number && number <= *to);
            prop_assert!(!counted || whole, "line {number} counts as seen: {after:?}");
            // The lines it wrote in whole are known.
            let written = at >= change.at && at + line.len() <= change.at + new.len();
            prop_assert!(!written || counted, "line {number} was written: {after:?}");
            at += line.len();
        }
    }
}
