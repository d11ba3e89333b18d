use super::*;
use proptest::prelude::*;

#[test]
fn escape_sequences_are_shown_and_hide_nothing() {
    assert_eq!(text("a\u{1b}]0;title b\nc"), "a\\x1b]0;title b\nc");
    assert_eq!(
        text("x\u{9b}31mred\rgone\u{7f}"),
        "x\\x9b31mred\\x0dgone\\x7f"
    );
    assert_eq!(text("ab\u{202e}cd"), "ab\\u{202e}cd");
}

#[test]
fn scripts_and_joined_symbols_survive_in_text_and_are_seen_in_lines() {
    assert_eq!(text("한국어 👩‍💻\tx"), "한국어 👩‍💻\tx");
    assert_eq!(line("a\u{200b}b\nc"), "a\\u{200b}b\\nc");
}

#[test]
fn a_cut_line_says_so() {
    assert_eq!(line_cut("abcdef", 4), "abc…");
    assert_eq!(line_cut("abcd", 4), "abcd");
}

proptest! {
    #[test]
    fn nothing_that_commands_a_terminal_gets_through(input in any::<String>()) {
        prop_assert!(!text(&input).chars().any(|c| c != '\n' && c != '\t' && commands_a_terminal(c)));
        prop_assert!(!line(&input).chars().any(|c| c.is_control() || is_invisible(c)));
    }
}
