use std::path::Path;

use proptest::prelude::*;

use super::*;

type Outcome = (Vec<Delta>, Result<End, ModelFailure>);

fn play<'a>(status: u16, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut answer = Answer::new(status, HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut out = Vec::new();
    for piece in pieces {
        if let Err(failure) = answer.push(&Bytes::copy_from_slice(piece), &mut out) {
            return (out, Err(failure));
        }
    }
    let ended = answer.end(BodyEnd::Clean, &mut out);
    (out, ended)
}

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|ending| ending == "sse" || ending == "json")
        })
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    found.sort();
    assert!(found.len() > 25, "the fixtures are there");
    found
}

fn cut_at<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

#[test]
fn every_fixture_byte_by_byte_gives_the_same_deltas() {
    for (name, bytes) in fixtures() {
        for status in [200, 400] {
            assert_eq!(
                play(status, bytes.chunks(1)),
                play(status, [bytes.as_slice()]),
                "{name}"
            );
        }
    }
}

#[test]
fn every_fixture_cut_once_anywhere_gives_the_same_deltas() {
    for (name, bytes) in fixtures() {
        let whole = play(200, [bytes.as_slice()]);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(play(200, [head, tail]), whole, "{name} at {at}");
        }
    }
}

/// A stream cut anywhere before its finish reason is never a good end, and what it gave is a
/// beginning of what the whole gives.
#[test]
fn no_truncation_of_any_fixture_passes_for_a_whole_answer() {
    for (name, bytes) in fixtures()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".sse"))
    {
        let (all, ended) = play(200, [bytes.as_slice()]);
        let finish = bytes
            .windows(17)
            .position(|window| window == b"\"finish_reason\":\"")
            .unwrap_or(bytes.len());
        for at in 0..bytes.len() {
            let (some, cut) = play(200, [&bytes[..at]]);
            assert!(all.starts_with(&some), "{name} at {at}");
            let straggler = name == "after-finish.sse" && at > finish;
            if at < finish || (ended.is_err() && !straggler) {
                assert!(cut.is_err(), "{name} at {at}: {cut:?}");
            }
        }
    }
}

#[test]
fn caps_of_the_stream_are_a_failure_of_their_own() {
    let caps = Caps {
        event_bytes: 100,
        stream_bytes: 1000,
    };
    let mut answer = Answer::new(200, HeaderMap::new(), SystemTime::UNIX_EPOCH).with_caps(caps);
    let long = Bytes::from(format!("data: {}", "x".repeat(200)));
    assert_eq!(
        answer.push(&long, &mut Vec::new()).unwrap_err().kind,
        FailureKind::TooLarge
    );
}

#[test]
fn a_page_of_any_length_is_kept_to_its_cap() {
    let mut answer = Answer::new(200, HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let piece = Bytes::from(vec![b'<'; 1024 * 1024]);
    let mut progress = Progress::Nothing;
    for _ in 0..40 {
        progress = answer.push(&piece, &mut Vec::new()).unwrap();
    }
    assert_eq!(progress, Progress::Done);
    assert_eq!(
        answer
            .end(BodyEnd::Clean, &mut Vec::new())
            .unwrap_err()
            .kind,
        FailureKind::NotAModel
    );
}

#[test]
fn nothing_after_done_is_read() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\ndata: nonsense\n\n";
    for pieces in [vec![&body[..]], body.chunks(1).collect()] {
        let (out, ended) = play(200, pieces);
        assert_eq!((out.len(), ended.unwrap().finish), (1, Finish::Stop));
    }
}

proptest! {
    #[test]
    fn any_split_of_any_fixture_gives_the_same_deltas(
        which: prop::sample::Index, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let fixtures = fixtures();
        let (name, bytes) = &fixtures[which.index(fixtures.len())];
        prop_assert_eq!(play(200, cut_at(bytes, &cuts)), play(200, [bytes.as_slice()]), "{}", name);
    }

    #[test]
    fn text_of_any_script_survives_any_split(text in "\\PC{1,60}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let chunk = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
        let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        let (out, ended) = play(200, cut_at(body.as_bytes(), &cuts));
        prop_assert_eq!(&out[0].text, &text);
        prop_assert_eq!(ended.unwrap().finish, Finish::Stop);
    }

    /// Garbage of any kind ends in a typed failure or an end, and never in a panic.
    #[test]
    fn any_bytes_are_survived(
        status in prop::sample::select(vec![200u16, 204, 302, 400, 429, 500]),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10),
    ) {
        let (_, ended) = play(status, pieces.iter().map(Vec::as_slice));
        prop_assert!(ended.is_err());
    }

    /// A valid stream with one byte changed is survived too.
    #[test]
    fn one_wrong_byte_is_survived(which: prop::sample::Index, at: prop::sample::Index, byte: u8) {
        let fixtures = fixtures();
        let mut bytes = fixtures[which.index(fixtures.len())].1.clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let whole = play(200, [bytes.as_slice()]);
        prop_assert_eq!(play(200, bytes.chunks(1)), whole);
    }
}
