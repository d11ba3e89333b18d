use proptest::prelude::*;

use super::*;

fn read(pieces: &[&[u8]], caps: Caps) -> Result<Vec<SseEvent>, SseFault> {
    let mut reader = SseReader::new(caps);
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece))?;
        while let Some(event) = reader.next()? {
            events.push(event);
        }
    }
    reader.end();
    while let Some(event) = reader.next()? {
        events.push(event);
    }
    Ok(events)
}

fn data(events: &[SseEvent]) -> Vec<&str> {
    events.iter().map(|event| event.data.as_str()).collect()
}

#[test]
fn events_come_out_as_soon_as_their_blank_line_is_in() {
    let mut reader = SseReader::new(Caps::default());
    reader.push(Bytes::from_static(b"data: a\n")).unwrap();
    assert_eq!(reader.next().unwrap(), None);
    reader.push(Bytes::from_static(b"\ndata: b")).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().data, "a");
    assert_eq!(reader.next().unwrap(), None);
    assert!(reader.end(), "a line was open");
    assert_eq!(reader.next().unwrap().unwrap().data, "b");
}

#[test]
fn an_event_over_its_cap_is_refused_before_it_is_kept() {
    let caps = Caps {
        event_bytes: 20,
        stream_bytes: 1000,
    };
    let fits = b"data: 1234567890\n\n".as_slice();
    assert_eq!(
        read(&[fits, fits, fits], caps).unwrap().len(),
        3,
        "the cap is for one event"
    );
    let over: Vec<&[u8]> = vec![b"data: "; 10];
    assert!(matches!(read(&over, caps), Err(SseFault::EventTooLong(20))));
    let lines: Vec<&[u8]> = vec![b"data: 1\n"; 10];
    assert!(
        matches!(read(&lines, caps), Err(SseFault::EventTooLong(20))),
        "many lines are one event"
    );
    let named: Vec<&[u8]> = vec![b"event: 1\n"; 10];
    assert!(matches!(
        read(&named, caps),
        Err(SseFault::EventTooLong(20))
    ));
}

#[test]
fn keep_alive_comments_count_for_the_stream_only() {
    let caps = Caps {
        event_bytes: 20,
        stream_bytes: 1000,
    };
    let pings: Vec<&[u8]> = vec![b": ping\r\n\r\n"; 100];
    assert_eq!(read(&pings, caps).unwrap(), []);
    let more: Vec<&[u8]> = vec![b": ping\r\n\r\n"; 101];
    assert!(matches!(
        read(&more, caps),
        Err(SseFault::StreamTooLong(1000))
    ));
}

#[test]
fn a_large_event_in_small_pieces_takes_linear_time() {
    let mut reader = SseReader::new(Caps::default());
    reader.push(Bytes::from_static(b"data: ")).unwrap();
    for _ in 0..5000 {
        reader.push(Bytes::from_static(&[b'x'; 1400])).unwrap();
        assert_eq!(reader.next().unwrap(), None);
    }
    reader.push(Bytes::from_static(b"\n\n")).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().data.len(), 7_000_000);
}

#[test]
fn bytes_that_are_not_utf8_are_reported() {
    assert!(matches!(
        read(&[b"data: \xff\n\n"], Caps::default()),
        Err(SseFault::NotSse(_))
    ));
}

proptest! {
    /// Line ends of all three kinds, comments, names and several data lines, cut anywhere.
    #[test]
    fn any_split_gives_the_same_events(
        lines in prop::collection::vec(
            prop::sample::select(vec!["data: a", "data:\u{ac00}", "data: \u{1f600}b", "event: error", ": c", "id: 1", "", "", "what"]), 0..40),
        ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 40),
        bom: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut text = if bom { "\u{feff}".to_owned() } else { String::new() };
        for (line, end) in lines.iter().zip(&ends) {
            text.push_str(line);
            text.push_str(end);
        }
        let whole = read(&[text.as_bytes()], Caps::default()).unwrap();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        let split = read(&pieces, Caps::default()).unwrap();
        prop_assert_eq!(data(&split), data(&whole));
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        prop_assert_eq!(read(&single, Caps::default()).unwrap(), whole);
    }
}
