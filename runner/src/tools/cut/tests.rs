use super::*;
use proptest::prelude::*;

fn capture(bytes: &[u8], step: usize) -> (Captured, Vec<u8>) {
    let (mut capture, mut spilled, mut spilling) = (Capture::default(), Vec::new(), false);
    for piece in bytes.chunks(step.max(1)) {
        capture.push(piece);
        if spilling {
            spilled.extend_from_slice(piece);
        } else if capture.is_cut() {
            spilled = capture.take_raw();
            spilling = true;
        }
    }
    if let Some(raw) = capture.close() {
        assert!(!spilling);
        (spilled, spilling) = (raw, true);
    }
    let blob = BlobRef {
        sha256: String::from("ID"),
        bytes: spilled.len() as u64,
        cut: false,
    };
    (capture.finish(spilling.then_some(blob)), spilled)
}

#[test]
fn at_the_limit_nothing_is_cut() {
    let text = "ä".repeat(RESULT_CHARS_MAX);
    let (captured, spilled) = capture(text.as_bytes(), 7);
    assert_eq!(
        (
            captured.text,
            captured.truncated,
            captured.blob,
            spilled.len()
        ),
        (text, false, None, 0)
    );
}

#[test]
fn one_more_character_leaves_head_tail_and_an_exact_count() {
    let text: String = (0..=RESULT_CHARS_MAX)
        .map(|i| char::from(b'a' + (i % 26) as u8))
        .collect();
    let (captured, spilled) = capture(text.as_bytes(), 1000);
    assert!(captured.truncated);
    assert!(captured.text.starts_with(&text[..HEAD_CHARS]));
    assert!(captured.text.ends_with(&text[text.len() - TAIL_CHARS..]));
    assert!(
        captured
            .text
            .contains("3073 of 8193 characters omitted; all of it: read blob:ID"),
        "{}",
        captured.text
    );
    assert_eq!(spilled, text.as_bytes());
}

#[test]
fn a_character_split_between_reads_is_whole_and_a_broken_one_is_kept_raw() {
    let (captured, _) = capture("한국".as_bytes(), 1);
    assert_eq!((captured.text.as_str(), captured.lossy), ("한국", false));
    let (captured, spilled) = capture(b"a\xffb\xed\x95", 1);
    assert_eq!(
        (captured.text.as_str(), captured.lossy),
        ("a\u{fffd}b\u{fffd}", true)
    );
    assert_eq!(spilled, b"a\xffb\xed\x95");
    assert!(captured.blob.is_some() && !captured.truncated);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_split_gives_what_the_whole_gives(bytes in prop::collection::vec(any::<u8>(), 0..20_000), step in 1usize..5000) {
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        let (captured, spilled) = capture(&bytes, step);
        let count = whole.chars().count();
        prop_assert_eq!(captured.bytes, bytes.len() as u64);
        prop_assert_eq!(captured.truncated, count > RESULT_CHARS_MAX);
        if captured.truncated {
            let head: String = whole.chars().take(HEAD_CHARS).collect();
            let tail: String = whole.chars().skip(count - TAIL_CHARS).collect();
            prop_assert!(captured.text.starts_with(&head) && captured.text.ends_with(&tail));
        } else {
            prop_assert_eq!(&captured.text, &whole);
        }
        if captured.truncated || captured.lossy {
            prop_assert_eq!(spilled, bytes);
        }
    }
}
