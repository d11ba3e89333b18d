use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use curfew_store::{Barrier, StoreError, Tail};

use crate::support::*;

#[test]
fn what_was_submitted_is_what_is_read() {
    let place = Place::new();
    let notes = Notes::default();
    let mut script = Script::default();
    let text = |n| format!("line {n}\n\"quoted\" \u{1f600} \u{0}");
    let events: Vec<_> = (0..20).flat_map(|n| script.run(&text(n))).collect();
    let writer = place
        .store
        .create(&header("first"), notes.notify())
        .unwrap();
    for event in &events {
        writer.submit(vec![event.clone()], Barrier::None).unwrap();
    }
    writer.submit(Vec::new(), Barrier::Flush).unwrap();
    let closed = writer.close().unwrap();
    assert_eq!(closed.next_seq, events.len() as u64);

    let inspected = place.store.inspect("first").unwrap();
    assert_eq!(inspected.header, header("first"));
    assert_eq!(lines_of(&inspected.events), lines_of(&events));
    assert_eq!(
        (inspected.tail, &inspected.head),
        (Tail::Clean, &closed.head)
    );

    let (writer, loaded) = place.store.open("first", NOW_MS, silent()).unwrap();
    assert_eq!(lines_of(&loaded.events), lines_of(&events));
    assert_eq!((loaded.notes, loaded.head), (Vec::new(), closed.head));
    assert_eq!(writer.header_line(), inspected.header_line);
    drop(writer);

    // The notes are the file's lines, in order, and the last is durable.
    let log = fs::read_to_string(place.log("first")).unwrap();
    let lines: Vec<String> = log.lines().skip(1).map(str::to_owned).collect();
    let (written, durable): (Vec<Seen>, Vec<Seen>) = notes
        .all()
        .into_iter()
        .partition(|note| matches!(note, Seen::Written(..)));
    let expected: Vec<Seen> = (0..)
        .zip(lines)
        .map(|(seq, line)| Seen::Written(seq, line))
        .collect();
    assert_eq!(written, expected);
    assert_eq!(
        durable.last(),
        Some(&Seen::Durable(events.len() as u64 - 1))
    );
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let place = Place::new();
    let mut script = Script::default();
    let writer = place.store.create(&header("again"), silent()).unwrap();
    submit(&writer, script.run("one"));
    let mut head = writer.close().unwrap().head;
    for round in 0..5 {
        let (writer, loaded) = place.store.open("again", NOW_MS, silent()).unwrap();
        assert_eq!(loaded.head, head);
        assert_eq!(loaded.events.len() as u64, script.next_seq);
        submit(&writer, script.run(&format!("round {round}")));
        head = writer.close().unwrap().head;
    }
    assert_eq!(
        place.store.inspect("again").unwrap().events.len() as u64,
        script.next_seq
    );
}

#[test]
fn everything_is_for_its_owner_alone() {
    let place = Place::new();
    let writer = place.store.create(&header("mine"), silent()).unwrap();
    writer.blobs().put_bytes(b"raw").unwrap();
    drop(writer);
    for (path, (mode, ..)) in snapshot(place.store.root()) {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode & 0o777, wanted, "{}", path.display());
    }
    let parent = fs::metadata(place.dir().join("state")).unwrap();
    assert_eq!(
        parent.permissions().mode() & 0o777,
        0o700,
        "a parent that was made"
    );
}

#[test]
fn an_open_session_keeps_space_and_a_closed_one_does_not() {
    let place = Place::new();
    let writer = place.store.create(&header("space"), silent()).unwrap();
    let open = fs::metadata(place.log("space")).unwrap();
    drop(writer);
    let closed = fs::metadata(place.log("space")).unwrap();
    assert_eq!(open.len(), closed.len());
    let beside = place.session("space").join("reserve").exists();
    assert!(!beside, "a reserve file is left");
    assert!(
        closed.blocks() * 512 < 64 << 10,
        "{} blocks are left",
        closed.blocks()
    );
    // Where fallocate is unknown the reserve was a file beside the log, which is gone.
    if open.blocks() * 512 < curfew_store::RESERVE_BYTES {
        println!("not run: reserve beyond the end, this file system has no fallocate");
    }
}

#[test]
fn an_id_is_taken_once() {
    let place = Place::new();
    place.finished("taken", 1);
    let before = snapshot(&place.session("taken"));
    let again = place.store.create(&header("taken"), silent());
    assert!(matches!(again, Err(StoreError::Exists { .. })));
    assert_eq!(snapshot(&place.session("taken")), before);
}

#[test]
fn an_open_run_is_closed_when_it_is_opened_and_only_then() {
    let place = Place::new();
    let mut script = Script::default();
    let writer = place.store.create(&header("cut"), silent()).unwrap();
    submit(&writer, script.open_turn("what is it?"));
    drop(writer);
    let before = snapshot(&place.session("cut"));
    assert_eq!(
        place.store.inspect("cut").unwrap().events.len() as u64,
        script.next_seq
    );
    assert_eq!(
        snapshot(&place.session("cut")),
        before,
        "inspect changed something"
    );

    let (writer, loaded) = place.store.open("cut", NOW_MS + 9, silent()).unwrap();
    assert!(loaded.events.len() as u64 > script.next_seq);
    let text = loaded
        .notes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(text.contains("interrupted"), "{text}");
    // It is in the file before anything else happens.
    let read = place.store.inspect("cut").unwrap();
    assert_eq!(lines_of(&read.events), lines_of(&loaded.events));
    assert_eq!(writer.close().unwrap().head, loaded.head);
    // Once is enough.
    let (_writer, again) = place.store.open("cut", NOW_MS + 99, silent()).unwrap();
    assert_eq!((again.notes, again.head), (Vec::new(), loaded.head));
}
