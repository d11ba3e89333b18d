use super::*;

#[test]
fn a_key_is_trimmed_and_never_printed() {
    let key = ApiKey::new("  sk-secret-1234\n").unwrap();
    assert_eq!(key.bearer().unwrap(), "Bearer sk-secret-1234");
    assert!(key.bearer().unwrap().is_sensitive());
    assert_eq!(
        format!("{key:?} {:?}", key.bearer().unwrap()),
        "ApiKey(hidden) Sensitive"
    );
}

#[test]
fn what_is_no_key_is_refused_without_showing_it() {
    assert_eq!(ApiKey::new(" \n").unwrap_err(), KeyError::Empty);
    assert_eq!(ApiKey::new("two words").unwrap_err(), KeyError::Characters);
    assert_eq!(
        ApiKey::new("line\nbreak").unwrap_err(),
        KeyError::Characters
    );
    assert_eq!(ApiKey::new("ключ").unwrap_err(), KeyError::Characters);
    assert_eq!(
        ApiKey::new(&"x".repeat(5000)).unwrap_err(),
        KeyError::TooLong
    );
}

#[test]
fn the_key_and_words_that_begin_like_it_are_hidden() {
    let key = ApiKey::new("sk-secret-1234").unwrap();
    let hidden = key.hide_in("a sk-secret-1234, b sk-sec***34. c sk-other sk-sec");
    assert_eq!(hidden, "a [key], b [key] c sk-other [key]");
}

#[test]
fn a_short_key_is_hidden_whole() {
    let key = ApiKey::new("x1").unwrap();
    assert_eq!(key.hide_in("key x1 refused"), "key [key] refused");
}
