use proptest::prelude::*;

use super::*;

fn text_for_people(text: &str, request: &[u8]) -> String {
    for_people(failure(FailureKind::Server, text), None, request).text
}

#[test]
fn an_echo_of_the_request_is_cut_off_where_it_begins() {
    let request = br#"{"model":"m","messages":[{"role":"user","content":"the plans of the house are secret"}]}"#;
    let echoed = r#"bad value in the plans of the house are secret"}]}, see the manual"#;
    assert_eq!(text_for_people(echoed, request), "bad value in [request]");
    assert_eq!(
        text_for_people("temperature must be at most 2", request),
        "temperature must be at most 2"
    );
}

#[test]
fn long_texts_are_cut_at_a_character() {
    let text = text_for_people(&"\u{ac00}".repeat(10_000), b"");
    assert_eq!(text.chars().count(), FAILURE_TEXT_CHARS_MAX);
    assert!(text.ends_with('…'));
}

proptest! {
    /// However an error body is put together, a piece of the request longer than two windows never
    /// gets through whole.
    #[test]
    fn no_long_piece_of_the_request_gets_through(
        before in "[a-z ]{0,60}", secret in "[A-Z0-9]{60,200}", after in "[a-z ]{0,60}", start in 0usize..12,
    ) {
        let request = format!("{{\"messages\":\"{secret}\"}}");
        let echoed = &secret[start..];
        let text = text_for_people(&format!("{before}{echoed}{after}"), request.as_bytes());
        for window in echoed.as_bytes().windows(2 * ECHO_BYTES) {
            prop_assert!(!text.as_bytes().windows(window.len()).any(|found| found == window), "{}", text);
        }
    }

    #[test]
    fn any_status_and_body_become_a_bounded_failure(status in 300u16..700, body in prop::collection::vec(any::<u8>(), 0..300)) {
        let failed = of_status(status, &HeaderMap::new(), &body, SystemTime::UNIX_EPOCH);
        let shown = for_people(failed, None, b"").text;
        prop_assert!(shown.chars().count() <= FAILURE_TEXT_CHARS_MAX);
        prop_assert!(!shown.contains(char::is_control));
    }
}
