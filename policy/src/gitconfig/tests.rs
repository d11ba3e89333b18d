use proptest::prelude::*;

use super::*;

fn of(text: &str) -> (String, String) {
    let found = identity([text]);
    (found.name, found.email)
}

fn pair(name: &str, email: &str) -> (String, String) {
    (name.to_owned(), email.to_owned())
}

#[test]
fn reads_what_git_reads() {
    assert_eq!(
        of("[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n"),
        pair("Ada Lovelace", "ada@example.org")
    );
    assert_eq!(
        of("[USER] NAME=\"Ada # L\" ; comment\nEmail = a@b # x\r\n"),
        pair("Ada # L", "a@b")
    );
    assert_eq!(
        of("[user]\nname = A \\\n  B\n[core]\nname = no\n[user]\nemail=e@f"),
        pair("A   B", "e@f")
    );
    assert_eq!(
        of("[user \"work\"]\nname = no\n"),
        pair("curfew", "curfew@localhost")
    );
    assert_eq!(
        of("[includeIf \"x\"]\npath = y\n[user]\nname = 홍길동\n"),
        pair("홍길동", "curfew@localhost")
    );
}

#[test]
fn later_files_have_the_last_word_and_empty_ones_say_nothing() {
    let found = identity([
        "[user]\nname=System\nemail=s@s",
        "",
        "[user]\nname=Home\nemail=",
    ]);
    assert_eq!((found.name.as_str(), found.email.as_str()), ("Home", "s@s"));
}

#[test]
fn a_value_cannot_end_a_commit_header() {
    assert_eq!(of("[user]\nname = \"a\\n<b>\\u0000\"").0, "abu0000");
    assert!(
        of(&format!("[user]\nname = {}", "x".repeat(10_000)))
            .0
            .len()
            <= 256
    );
}

proptest! {
    #[test]
    fn any_bytes_give_a_clean_identity(text in "\\PC*|[\\[\\]user=\"\\\\#;\n a-z]{0,200}") {
        let found = identity([text.as_str()]);
        for value in [found.name, found.email] {
            prop_assert!(!value.is_empty());
            prop_assert!(!value.chars().any(|c| c.is_control() || c == '<' || c == '>'));
        }
    }
}
