use proptest::prelude::*;

use super::*;

fn window_of(offset: u64, lines_max: u64, line_chars_max: u64, bytes_max: u64) -> Window {
    Window {
        offset,
        lines_max,
        line_chars_max,
        bytes_max,
    }
}

#[test]
fn lines_are_counted_as_they_are_shown() {
    for (content, lines) in [
        ("", 0),
        ("a", 1),
        ("a\n", 1),
        ("\n", 1),
        ("a\nb", 2),
        ("a\n\n", 2),
    ] {
        assert_eq!(count_lines(content.as_bytes()), lines, "{content:?}");
        let shown = window(content.as_bytes(), window_of(1, 100, 100, 1000));
        assert_eq!(
            (shown.first, shown.last, shown.text.as_str()),
            (1, lines, content)
        );
    }
}

#[test]
fn each_bound_says_that_there_is_more() {
    let content = b"one\ntwo\nthree\n";
    let by_lines = window(content, window_of(1, 2, 100, 1000));
    assert_eq!(
        (by_lines.last, by_lines.more, by_lines.text.as_str()),
        (2, true, "one\ntwo\n")
    );
    let by_bytes = window(content, window_of(1, 100, 100, 7));
    assert_eq!(
        (by_bytes.last, by_bytes.more, by_bytes.text.as_str()),
        (1, true, "one\n")
    );
    let rest = window(content, window_of(3, 100, 100, 1000));
    assert_eq!(
        (rest.first, rest.last, rest.more, rest.seen),
        (3, 3, false, vec![(3, 3)])
    );
}

#[test]
fn a_cut_line_is_marked_and_does_not_count_as_seen() {
    let shown = window(
        "ab\n긴 줄 하나\ncd\n".as_bytes(),
        window_of(1, 100, 3, 1000),
    );
    assert_eq!(shown.text, "ab\n긴 줄…\ncd\n");
    assert_eq!((shown.cut_lines, shown.seen), (1, vec![(1, 1), (3, 3)]));
    let one = window(&vec![b'x'; 1 << 20], window_of(1, 10, 1 << 30, 64));
    assert_eq!((one.text.len(), one.cut_lines, one.seen), (67, 1, vec![]));
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_said() {
    let shown = window(b"a\xffb\nok\n", window_of(1, 10, 100, 100));
    assert!(shown.lossy && shown.text == "a\u{fffd}b\nok\n");
    assert!(
        !window("한글\n".as_bytes(), window_of(1, 10, 1, 100)).lossy,
        "cut inside, not damaged"
    );
}

#[test]
fn carriage_returns_are_not_shown() {
    assert_eq!(
        window(b"a\r\nb\r\n", window_of(1, 10, 10, 100)).text,
        "a\nb\n"
    );
    assert_eq!(window(b"a\rb\n", window_of(1, 10, 10, 100)).text, "a\rb\n");
}

#[test]
fn a_name_is_one_line_of_a_list() {
    assert_eq!(listed(std::path::Path::new("a b/한글")), "a b/한글");
    assert_eq!(
        listed(std::path::Path::new("a\nb\u{1b}[31m")),
        "a\\nb\\u{1b}[31m"
    );
}

proptest! {
    /// Windows put together are the file, whatever their sizes.
    #[test]
    fn windows_add_up(content in "[ab\n]{0,60}", lines_max in 1..5_u64, bytes_max in 3..20_u64) {
        let lines = count_lines(content.as_bytes());
        let mut offset = 1;
        let mut whole = String::new();
        while offset <= lines {
            let shown = window(content.as_bytes(), window_of(offset, lines_max, 1000, bytes_max));
            prop_assert_eq!(shown.first, offset);
            prop_assert!(shown.last >= offset && shown.last - offset < lines_max);
            prop_assert_eq!(shown.more, shown.last < lines);
            prop_assume!(shown.cut_lines == 0);
            whole.push_str(&shown.text);
            offset = shown.last + 1;
        }
        prop_assert_eq!(whole, content);
    }

    #[test]
    fn any_bytes_stay_within_the_bounds(content in prop::collection::vec(any::<u8>(), 0..400), offset in 0..6_u64, lines_max in 1..5_u64, chars in 0..9_u64, bytes in 0..40_u64) {
        let shown = window(&content, window_of(offset, lines_max, chars, bytes));
        prop_assert!(shown.last < shown.first + lines_max);
        let mark = CUT_MARK.len() as u64 + 1;
        prop_assert!(shown.text.len() as u64 <= bytes + mark);
        for (first, last) in shown.seen {
            prop_assert!(shown.first <= first && last <= shown.last);
        }
    }
}
