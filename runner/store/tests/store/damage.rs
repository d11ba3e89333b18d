//! Damage elsewhere: found, placed, and left as it is.

use std::fs;
use std::os::unix::fs::FileExt;

use curfew_store::{Damage, StoreError, Tail};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::*;

/// Both ways of reading must refuse, in the same words, and leave the bytes alone.
fn refused(place: &Place, id: &str, bytes: &[u8]) -> Damage {
    replace(&place.log(id), bytes);
    let before = snapshot(&place.session(id)).remove(&place.log(id)).unwrap();
    let inspected = place.store.inspect(id).expect_err("inspect took it");
    let opened = place
        .store
        .open(id, NOW_MS, silent())
        .err()
        .expect("open took it");
    assert_eq!(inspected.to_string(), opened.to_string());
    assert_eq!(
        snapshot(&place.session(id)).remove(&place.log(id)).unwrap(),
        before,
        "the log was changed"
    );
    match opened {
        StoreError::Damaged(damage) | StoreError::Foreign(damage) => *damage,
        other => panic!("not located: {other}"),
    }
}

fn lines(log: &[u8]) -> Vec<&[u8]> {
    log.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn every_flipped_byte_is_found() {
    let place = Place::new();
    let log = place.finished("flip", 1);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(place.log("flip"))
        .unwrap();
    for at in 0..log.len() {
        for flip in [0x01, 0x20, 0x80] {
            file.write_all_at(&[log[at] ^ flip], at as u64).unwrap();
            let found = place.store.inspect("flip");
            file.write_all_at(&log[at..=at], at as u64).unwrap();
            let line = log[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            match found {
                // Without its newline the last record is torn.
                Ok(log_found) if at == log.len() - 1 => {
                    assert!(matches!(log_found.tail, Tail::Torn(_)));
                }
                Err(StoreError::Damaged(damage)) | Err(StoreError::Foreign(damage)) => {
                    assert_eq!(damage.line, line, "byte {at} ^ {flip:#x}");
                }
                other => panic!("byte {at} ^ {flip:#x}: {:?}", other.map(|log| log.tail)),
            }
        }
    }
    assert_eq!(fs::read(place.log("flip")).unwrap(), log);
    assert_eq!(place.store.inspect("flip").unwrap().tail, Tail::Clean);
}

#[test]
fn lines_out_of_place_are_found() {
    let place = Place::new();
    let log = place.finished("order", 2);
    let whole = lines(&log);
    let joined = |order: &[usize]| -> Vec<u8> {
        order
            .iter()
            .flat_map(|n| whole[*n].iter().copied())
            .collect()
    };

    let duplicated = refused(&place, "order", &joined(&[0, 1, 2, 3, 3, 4]));
    assert_eq!(
        (duplicated.line, duplicated.seq),
        (5, Some(3)),
        "{duplicated}"
    );
    let missing = refused(&place, "order", &joined(&[0, 1, 2, 4, 5]));
    assert_eq!((missing.line, missing.seq), (4, Some(2)), "{missing}");
    let reordered = refused(&place, "order", &joined(&[0, 1, 3, 2, 4]));
    assert_eq!((reordered.line, reordered.seq), (3, Some(1)), "{reordered}");
    let second_header = refused(&place, "order", &joined(&[0, 0, 1]));
    assert_eq!(second_header.line, 2, "{second_header}");
    let no_header = refused(&place, "order", &joined(&[1, 2]));
    assert_eq!((no_header.line, no_header.seq), (1, None), "{no_header}");
}

#[test]
fn zeros_in_the_middle_are_found() {
    let place = Place::new();
    let mut log = place.finished("zeros", 2);
    let second = log.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    log[second + 10..second + 90].fill(0);
    let damage = refused(&place, "zeros", &log);
    assert_eq!(
        (damage.line, damage.seq, damage.offset),
        (2, Some(0), second as u64)
    );
    assert!(damage.to_string().contains("NUL"), "{damage}");
}

#[test]
fn a_newer_version_is_not_touched() {
    let place = Place::new();
    let log = place.finished("newer", 1);
    let text = String::from_utf8(log)
        .unwrap()
        .replacen("\"version\":1", "\"version\":2", 1);
    let damage = refused(&place, "newer", text.as_bytes());
    assert_eq!(damage.line, 1);
    let said = place.store.inspect("newer").err().unwrap().to_string();
    assert!(said.contains("newer") && said.contains("upgrade"), "{said}");
    assert!(!said.contains("damage"), "{said}");
}

#[test]
fn the_log_of_another_session_is_refused() {
    let place = Place::new();
    let log = place.finished("one", 1);
    place.finished("two", 1);
    let damage = refused(&place, "two", &log);
    assert!(damage.to_string().contains("`one`"), "{damage}");
}

#[test]
fn a_line_without_an_end_does_not_fill_the_memory() {
    let place = Place::new();
    let mut log = place.finished("long", 1);
    let events = place.store.inspect("long").unwrap().events.len() as u64;
    log.resize(log.len() + curfew_engine::codec::LINE_BYTES_MAX + 10, b'x');
    let damage = refused(&place, "long", &log);
    assert_eq!(damage.seq, Some(events), "{damage}");
    assert!(damage.to_string().contains("longer"), "{damage}");
}

#[test]
fn a_record_of_18_mb_is_taken() {
    let place = Place::new();
    let mut script = Script::default();
    let writer = place.store.create(&header("big"), silent()).unwrap();
    submit(&writer, script.run(&"x".repeat(18 << 20)));
    assert!(writer.close().unwrap().fault.is_none());
    assert_eq!(
        place.store.inspect("big").unwrap().events.len() as u64,
        script.next_seq
    );
}

/// Random damage of any kind: refused and placed, or a torn tail, or harmless; what is read is always
/// a prefix of what was written.
#[test]
fn what_is_read_is_what_was_written() {
    let place = Place::new();
    let log = place.finished("random", 2);
    let written = lines_of(&place.store.inspect("random").unwrap().events);
    let damage = (
        0..log.len(),
        proptest::collection::vec(any::<u8>(), 0..40),
        0usize..60,
    );
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(200)
    });
    let checked = runner.run(&damage, |(at, bytes, cut)| {
        let mut damaged = log[..at].to_vec();
        damaged.extend_from_slice(&bytes);
        damaged.extend_from_slice(&log[(at + cut).min(log.len())..]);
        replace(&place.log("random"), &damaged);
        let mut read = Vec::new();
        if let Ok(mut reader) = place.store.read("random") {
            while let Ok(Some(record)) = reader.next_record() {
                read.push(record.event);
            }
        }
        prop_assert!(read.len() <= written.len());
        prop_assert_eq!(&lines_of(&read), &written[..read.len()]);
        Ok(())
    });
    checked.unwrap();
}
