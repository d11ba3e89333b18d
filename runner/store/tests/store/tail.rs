//! The one damage that is mended: a last record that was not written to its end.

use std::fs;

use curfew_store::{LoadNote, StoreError, Tail};

use crate::support::*;

/// Offset at which the last line starts.
fn last_line(log: &[u8]) -> usize {
    log[..log.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1
}

#[test]
fn a_torn_record_is_cut_at_whatever_byte_it_ends() {
    let place = Place::new();
    let log = place.finished("torn", 2);
    let start = last_line(&log);
    let events = place.store.inspect("torn").unwrap().events.len();
    for end in start + 1..log.len() - 1 {
        replace(&place.log("torn"), &log[..end]);
        let inspected = place.store.inspect("torn").unwrap();
        assert_eq!(inspected.events.len(), events - 1, "cut at {end}");
        assert!(
            matches!(inspected.tail, Tail::Torn(torn) if torn.offset == start as u64),
            "cut at {end}"
        );
        assert_eq!(
            fs::read(place.log("torn")).unwrap(),
            log[..end],
            "inspect changed the log"
        );

        let (writer, loaded) = place.store.open("torn", NOW_MS, silent()).unwrap();
        let LoadNote::TornTailCut(torn) = loaded.notes[0] else {
            panic!("{:?}", loaded.notes)
        };
        assert_eq!(
            (torn.bytes, torn.seq),
            ((end - start) as u64, events as u64 - 1)
        );
        drop(writer);
        let mended = fs::read(place.log("torn")).unwrap();
        assert_eq!(mended[..start], log[..start], "cut at {end}");
        assert_eq!(place.store.inspect("torn").unwrap().tail, Tail::Clean);
    }
}

#[test]
fn a_record_that_lacks_only_its_newline_is_kept() {
    let place = Place::new();
    let log = place.finished("newline", 2);
    replace(&place.log("newline"), &log[..log.len() - 1]);
    assert_eq!(
        place.store.inspect("newline").unwrap().tail,
        Tail::NoNewline
    );
    let (writer, loaded) = place.store.open("newline", NOW_MS, silent()).unwrap();
    assert_eq!(loaded.notes, [LoadNote::NewlineAdded]);
    drop(writer);
    assert_eq!(fs::read(place.log("newline")).unwrap(), log);
}

#[test]
fn a_log_cut_between_records_is_whole() {
    let place = Place::new();
    let log = place.finished("between", 2);
    let start = last_line(&log);
    replace(&place.log("between"), &log[..start]);
    assert_eq!(place.store.inspect("between").unwrap().tail, Tail::Clean);
}

#[test]
fn zeros_after_a_crash_are_a_torn_tail() {
    let place = Place::new();
    let log = place.finished("zeros", 2);
    let start = last_line(&log);
    // A file system that grew the file and lost the data: part of the record, then NUL.
    for kept in [start, start + 1, start + 40] {
        let mut bytes = log[..kept].to_vec();
        bytes.resize(kept + 5000, 0);
        replace(&place.log("zeros"), &bytes);
        let (writer, loaded) = place.store.open("zeros", NOW_MS, silent()).unwrap();
        assert!(
            matches!(loaded.notes[0], LoadNote::TornTailCut(_)),
            "kept {kept}"
        );
        drop(writer);
        assert_eq!(fs::read(place.log("zeros")).unwrap()[..start], log[..start]);
    }
}

#[test]
fn a_header_is_never_cut() {
    let place = Place::new();
    let log = place.finished("header", 1);
    let header_end = log.iter().position(|byte| *byte == b'\n').unwrap();
    for end in 0..=header_end {
        replace(&place.log("header"), &log[..end]);
        let error = place.store.open("header", NOW_MS, silent()).err().unwrap();
        assert!(
            matches!(&error, StoreError::Damaged(damage) if damage.line == 1),
            "{end}: {error}"
        );
        assert_eq!(fs::read(place.log("header")).unwrap(), log[..end]);
    }
}
