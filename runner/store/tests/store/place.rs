//! Where sessions are: names, links, modes, listings.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use curfew_store::{Store, StoreError};

use crate::child::{Role, command};
use crate::support::*;

#[test]
fn the_beginning_of_an_id_is_enough() {
    let place = Place::new();
    for id in ["01ab-one", "01ab-two", "02"] {
        place.finished(id, 1);
    }
    assert_eq!(place.store.inspect("02").unwrap().header.id, "02");
    assert_eq!(
        place
            .store
            .inspect("0")
            .err()
            .unwrap()
            .to_string()
            .matches("01ab")
            .count(),
        2
    );
    assert_eq!(place.store.resolve("01ab-t").unwrap(), "01ab-two");
    assert!(
        matches!(place.store.inspect("01ab"), Err(StoreError::Ambiguous { ids, .. }) if ids.len() == 2)
    );
    assert!(matches!(
        place.store.inspect("3"),
        Err(StoreError::NotFound { .. })
    ));
    // An id wins over what it is the beginning of.
    place.finished("01ab", 1);
    assert_eq!(place.store.resolve("01ab").unwrap(), "01ab");
}

#[test]
fn what_is_no_id_is_no_path() {
    let place = Place::new();
    place.finished("real", 1);
    let long = "x".repeat(65);
    for id in [
        "",
        ".",
        "..",
        "../sessions/real",
        "real/",
        "/etc",
        ".new-real",
        "a\0b",
        "ré",
        &long,
    ] {
        assert!(
            matches!(place.store.inspect(id), Err(StoreError::BadId { .. })),
            "{id:?}"
        );
        assert!(
            matches!(
                place.store.create(&header(id), silent()),
                Err(StoreError::BadId { .. })
            ),
            "{id:?}"
        );
    }
}

#[test]
fn links_and_devices_are_refused() {
    let place = Place::new();
    place.finished("real", 1);
    let outside = place.dir().join("outside");
    fs::rename(place.session("real"), &outside).unwrap();
    symlink(&outside, place.session("real")).unwrap();
    let before = snapshot(&outside);
    for error in [
        place.store.inspect("real").err().unwrap(),
        place.store.open("real", NOW_MS, silent()).err().unwrap(),
    ] {
        assert!(
            matches!(
                error,
                StoreError::NotOurs {
                    found: "a symbolic link",
                    ..
                }
            ),
            "{error}"
        );
    }
    assert!(place.store.create(&header("real"), silent()).is_err());
    assert_eq!(snapshot(&outside), before);

    // The log itself, and a FIFO, which must not hang anybody.
    for kind in ["link", "fifo"] {
        place.finished(kind, 1);
        let log = place.log(kind);
        let kept = place.dir().join(kind);
        fs::rename(&log, &kept).unwrap();
        if kind == "link" {
            // What it leads to is a whole log of this very session.
            symlink(&kept, &log).unwrap();
        } else {
            let status = std::process::Command::new("mkfifo")
                .arg(&log)
                .status()
                .unwrap();
            assert!(status.success());
        }
        assert!(place.store.inspect(kind).is_err(), "{kind}");
        assert!(place.store.open(kind, NOW_MS, silent()).is_err(), "{kind}");
    }
    assert_eq!(snapshot(&outside), before);
    let list = place.store.list().unwrap();
    assert_eq!(
        list.iter().filter(|entry| entry.damaged.is_some()).count(),
        3,
        "{list:?}"
    );
}

#[test]
fn one_bad_session_hides_no_other() {
    let place = Place::new();
    for (n, id) in ["oldest", "flipped", "empty", "nothing", "cut", "newest"]
        .into_iter()
        .enumerate()
    {
        let mut header = header(id);
        header.created_at += n as u64;
        let mut script = Script::default();
        let writer = place.store.create(&header, silent()).unwrap();
        submit(&writer, script.run("hello"));
    }
    let mut log = fs::read(place.log("flipped")).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 1;
    fs::write(place.log("flipped"), &log).unwrap();
    fs::write(place.log("empty"), "").unwrap();
    fs::remove_file(place.log("nothing")).unwrap();
    let log = fs::read(place.log("cut")).unwrap();
    fs::write(place.log("cut"), &log[..log.len() - 5]).unwrap();
    fs::create_dir(place.store.root().join(".new-half")).unwrap();
    fs::write(place.store.root().join("a file.txt"), "").unwrap();

    let list = place.store.list().unwrap();
    let damaged: Vec<(&str, bool)> = list
        .iter()
        .map(|entry| (entry.id.as_str(), entry.damaged.is_some()))
        .collect();
    assert_eq!(
        damaged[..4],
        [
            ("newest", false),
            ("cut", false),
            ("flipped", true),
            ("oldest", false)
        ]
    );
    assert_eq!(damaged.len(), 6);
    assert!(
        damaged[4..].iter().all(|(_, damaged)| *damaged),
        "{damaged:?}"
    );
    let reason = list[2].damaged.clone().unwrap();
    assert!(
        reason.contains("line") && reason.contains("seq"),
        "{reason}"
    );
    assert_eq!((list[0].torn, list[1].torn), (false, true));
    assert_eq!(list[0].events, Some(12));
}

#[test]
fn an_empty_or_missing_store_lists_nothing() {
    let place = Place::new();
    assert!(place.store.list().unwrap().is_empty());
    assert!(!place.store.root().exists(), "listing made a directory");
    assert!(matches!(
        place.store.open("x", NOW_MS, silent()),
        Err(StoreError::NotFound { .. })
    ));
}

#[test]
fn a_session_whose_making_failed_is_not_there() {
    let place = Place::new();
    fs::create_dir_all(place.store.root()).unwrap();
    // Something stands where the session is prepared.
    fs::write(place.store.root().join(".new-x"), "in the way").unwrap();
    let error = place.store.create(&header("x"), silent()).err().unwrap();
    assert!(error.to_string().contains(".new-x"), "{error}");
    assert!(!place.session("x").exists());
}

#[test]
fn what_a_crash_left_of_a_session_goes_with_the_next() {
    let place = Place::new();
    place.finished("dead", 1);
    place.finished("live", 1);
    let (writer, _) = place.store.open("live", NOW_MS, silent()).unwrap();
    for id in ["dead", "live"] {
        fs::rename(
            place.session(id),
            place.store.root().join(format!(".new-{id}")),
        )
        .unwrap();
    }
    fs::create_dir(place.store.root().join(".new-begun")).unwrap();
    place.finished("next", 1);
    let left = |name: &str| place.store.root().join(name).exists();
    assert!(!left(".new-dead"));
    assert!(
        left(".new-live") && left(".new-begun"),
        "somebody is still making these"
    );
    drop(writer);
}

#[test]
fn a_store_that_was_open_to_others_is_closed_to_them() {
    let place = Place::new();
    fs::create_dir_all(place.store.root()).unwrap();
    fs::set_permissions(place.store.root(), fs::Permissions::from_mode(0o755)).unwrap();
    place.finished("mine", 1);
    let mode = fs::metadata(place.store.root())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// Root may write where the mode says no, so the opener is another user.
#[test]
fn a_read_only_directory_can_be_read_and_not_opened() {
    let place = Place::new();
    place.finished("held", 1);
    let before = snapshot(&place.session("held"));
    let other = Store::new(place.store.root());
    let root = rustix::process::geteuid().is_root();
    fs::set_permissions(
        place.session("held"),
        fs::Permissions::from_mode(if root { 0o555 } else { 0o500 }),
    )
    .unwrap();
    fs::set_permissions(
        place.session("held").join("lock"),
        fs::Permissions::from_mode(0o444),
    )
    .unwrap();
    let said = if root {
        for path in [place.dir(), &place.dir().join("state"), place.store.root()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut role = command("open", place.store.root());
        role.uid(65534).gid(65534);
        match role
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .spawn()
        {
            Ok(mut child) => child.wait().map(|_| Role::spawn(role).line()).unwrap(),
            Err(e) => {
                println!(
                    "not run: read-only directory, uid 65534 cannot run this test binary: {e}"
                );
                return;
            }
        }
    } else {
        other
            .open("held", NOW_MS, silent())
            .err()
            .map(|e| e.to_string())
    };
    let said = said.unwrap();
    assert!(
        said.contains("cannot lock") && said.contains("ermission denied"),
        "{said}"
    );
    assert_eq!(other.inspect("held").unwrap().events.len(), 12);
    fs::set_permissions(place.session("held"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(
        place.session("held").join("lock"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    assert_eq!(snapshot(&place.session("held")), before);
}
