use proptest::prelude::*;

use super::*;

/// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
const NOW: Duration = Duration::from_secs(784_111_777);

fn wait(headers: &[(&str, &str)], message: &str) -> Option<u64> {
    let pairs = headers.iter().map(|(name, value)| {
        let name: reqwest::header::HeaderName = name.parse().unwrap();
        (name, value.parse().unwrap())
    });
    read(&pairs.collect(), message, UNIX_EPOCH + NOW)
}

#[test]
fn seconds_fractions_and_milliseconds_are_read() {
    assert_eq!(wait(&[("retry-after", "2")], ""), Some(2000));
    assert_eq!(wait(&[("retry-after", " 1.5 ")], ""), Some(1500));
    assert_eq!(
        wait(&[("retry-after", "60"), ("retry-after-ms", "1200")], ""),
        Some(1200)
    );
    assert_eq!(wait(&[("retry-after", "0")], "try again in 9s"), Some(0));
}

#[test]
fn a_date_is_a_moment() {
    assert_eq!(
        wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], ""),
        Some(30_000)
    );
    assert_eq!(
        wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], ""),
        Some(0),
        "it has passed"
    );
}

#[test]
fn the_empty_bucket_says_when_it_fills() {
    let reset = [
        ("x-ratelimit-remaining-requests", "12"),
        ("x-ratelimit-reset-requests", "20ms"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(wait(&reset, ""), Some(360_000));
    assert_eq!(
        wait(&[("x-ratelimit-reset-requests", "20ms")], ""),
        None,
        "nothing says it is empty"
    );
    assert_eq!(wait(&[("x-ratelimit-reset", "5")], ""), Some(5000));
}

#[test]
fn a_large_reset_is_a_moment() {
    let now = UNIX_EPOCH + Duration::from_secs(1_784_111_777);
    for value in ["1784111787", "1784111787000", "10", "10s"] {
        let headers = HeaderMap::from_iter([(
            reqwest::header::HeaderName::from_static("x-ratelimit-reset"),
            value.parse().unwrap(),
        )]);
        assert_eq!(read(&headers, "", now), Some(10_000), "{value}");
    }
}

#[test]
fn words_of_the_message_are_the_last_resort() {
    assert_eq!(
        wait(&[], "Rate limit reached. Please try again in 1.2s. Visit"),
        Some(1200)
    );
    assert_eq!(wait(&[], "Please Try Again In 20ms."), Some(20));
    assert_eq!(wait(&[], "try again in 1m30s"), Some(90_000));
    assert_eq!(wait(&[], "retry after 20 seconds"), Some(20_000));
    assert_eq!(wait(&[], "Please retry in 20.5s."), Some(20_500));
    assert_eq!(wait(&[], "try again in a while"), None);
    assert_eq!(wait(&[], "try again later"), None);
    assert_eq!(wait(&[("retry-after", "3")], "try again in 9s"), Some(3000));
}

#[test]
fn nonsense_asks_for_nothing_and_the_largest_number_for_a_year() {
    for value in ["", "soon", "-1", "nan", "inf", "1e400", "Mon"] {
        assert_eq!(wait(&[("retry-after", value)], ""), None, "{value}");
    }
    assert_eq!(
        wait(&[("retry-after", "99999999999999999999")], ""),
        Some(WAIT_MS_MAX)
    );
}

proptest! {
    #[test]
    fn any_header_and_message_are_survived(header in "[ -~]{0,40}", message in ".{0,80}", reset in "[ -~]{0,20}") {
        let read = wait(&[("retry-after", &header), ("x-ratelimit-reset", &reset)], &message);
        prop_assert!(read.is_none_or(|wait| wait <= WAIT_MS_MAX));
    }
}
