use proptest::prelude::*;

use super::*;

#[test]
fn good_arguments_are_sent_as_they_are() {
    for raw in [
        "{}",
        "{\"a\":1}",
        " { \"a\" : \"x\" } ",
        "{\"a\":1,\"a\":2}",
    ] {
        assert_eq!(sent_arguments(raw), raw);
    }
}

#[test]
fn what_is_no_object_is_wrapped_into_one() {
    assert_eq!(sent_arguments(""), "{}");
    assert_eq!(sent_arguments(" \n"), "{}");
    assert_eq!(
        sent_arguments("{\"command\": \"ls"),
        "{\"invalid_arguments\":\"{\\\"command\\\": \\\"ls\"}"
    );
    assert_eq!(sent_arguments("[1]"), "{\"invalid_arguments\":\"[1]\"}");
    // A lone surrogate, a number beyond all numbers, a nest too deep: servers choke on them too.
    for raw in ["{\"a\":\"\\ud800\"}", "{\"a\":1e999}", &"[".repeat(500)] {
        assert!(
            sent_arguments(raw).starts_with("{\"invalid_arguments\""),
            "{raw}"
        );
    }
}

#[test]
fn names_are_such_as_servers_take() {
    assert_eq!(sent_name("read"), "read");
    assert_eq!(sent_name(""), "unnamed");
    assert_eq!(sent_name("a b/ü"), "a_b__");
    assert_eq!(sent_name(&"x".repeat(100)).len(), 64);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_arguments_are_sent_as_an_object(raw in "\\PC{0,3000}|[\\x00-\\x7f]{0,50}|\\{\"a\":[0-9\"]{0,9}\\}?") {
        let sent = sent_arguments(&raw);
        let parsed: Value = serde_json::from_str(&sent).unwrap();
        prop_assert!(parsed.is_object());
        prop_assert_eq!(&sent_arguments(&raw), &sent);
        prop_assert_eq!(&sent_arguments(&sent), &sent);
    }
}
