//! A disk that counts, and fails on demand.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use curfew_store::disk::{Disk, Kind, LockOutcome, LogFile, RealDisk, Reserved};
use curfew_store::{Barrier, Store, StoreError, Tail, Takes, WriteFault};

use crate::support::*;

/// What happened to the log and what is to fail.
#[derive(Default)]
struct Faults {
    /// Operations that change a disk, in order.
    trace: Vec<&'static str>,
    writes: u32,
    syncs: u32,
    /// Fail the n-th operation that changes a disk, and all after it.
    fail_from: Option<usize>,
    /// What the next writes do; then they work.
    next_writes: Vec<Write>,
    sync_fails: bool,
    cut_fails: bool,
    no_fallocate: bool,
    /// Writes wait while this is set.
    gate_closed: bool,
}

#[derive(Clone, Copy)]
enum Write {
    Short(usize),
    Fails(io::ErrorKind),
    /// Takes some and then fails.
    Partly(usize, io::ErrorKind),
}

#[derive(Clone, Default)]
struct Faulty {
    state: Arc<(Mutex<Faults>, Condvar)>,
}

impl Faulty {
    fn set<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        let result = change(&mut self.state.0.lock().unwrap());
        self.state.1.notify_all();
        result
    }

    /// Notes a change; says whether it fails.
    fn step(&self, what: &'static str) -> io::Result<()> {
        self.set(|faults| {
            faults.trace.push(what);
            match faults.fail_from {
                Some(n) if faults.trace.len() > n => Err(io::Error::other("injected")),
                _ => Ok(()),
            }
        })
    }

    fn log(&self, inner: io::Result<Box<dyn LogFile>>) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(FaultyLog {
            inner: inner?,
            disk: self.clone(),
        }))
    }
}

impl Disk for Faulty {
    fn create_root(&self, path: &Path) -> io::Result<()> {
        self.step("create_root")
            .and_then(|()| RealDisk.create_root(path))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.step("create_dir")
            .and_then(|()| RealDisk.create_dir(path))
    }
    fn create_log(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        self.step("create_log")
            .and_then(|()| self.log(RealDisk.create_log(path)))
    }
    fn open_log(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        self.log(RealDisk.open_log(path))
    }
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        RealDisk.read(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("rename").and_then(|()| RealDisk.rename(from, to))
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step("sync_dir").and_then(|()| RealDisk.sync_dir(path))
    }
    fn kind(&self, path: &Path) -> io::Result<Kind> {
        RealDisk.kind(path)
    }
    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.names(path)
    }
    fn lock(&self, path: &Path, holder: &[u8]) -> io::Result<LockOutcome> {
        self.step("lock").and_then(|()| RealDisk.lock(path, holder))
    }
}

struct FaultyLog {
    inner: Box<dyn LogFile>,
    disk: Faulty,
}

impl LogFile for FaultyLog {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.disk.step("write")?;
        let faults = self.disk.state.0.lock().unwrap();
        let mut faults = self
            .disk
            .state
            .1
            .wait_while(faults, |faults| faults.gate_closed)
            .unwrap();
        faults.writes += 1;
        if faults.next_writes.is_empty() {
            return self.inner.write_at(offset, bytes);
        }
        match faults.next_writes.remove(0) {
            Write::Short(n) => self.inner.write_at(offset, &bytes[..n.min(bytes.len())]),
            Write::Fails(kind) => Err(kind.into()),
            Write::Partly(n, kind) => {
                faults.next_writes.insert(0, Write::Fails(kind));
                self.inner.write_at(offset, &bytes[..n.min(bytes.len())])
            }
        }
    }
    fn sync(&mut self) -> io::Result<()> {
        self.disk.step("sync")?;
        let fails = self.disk.set(|faults| {
            faults.syncs += 1;
            faults.sync_fails
        });
        if fails {
            Err(io::Error::other("injected"))
        } else {
            self.inner.sync()
        }
    }
    fn is_removed(&self) -> io::Result<bool> {
        self.inner.is_removed()
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        if self.disk.set(|faults| faults.cut_fails) {
            Err(io::Error::other("injected"))
        } else {
            self.inner.set_len(bytes)
        }
    }
    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<Reserved> {
        self.disk.step("reserve")?;
        if self.disk.set(|faults| faults.no_fallocate) {
            Ok(Reserved::Unsupported)
        } else {
            self.inner.reserve(offset, bytes)
        }
    }
}

fn setup() -> (Place, Store, Faulty) {
    let place = Place::new();
    let disk = Faulty::default();
    let store = Store::with_disk(place.store.root(), Arc::new(disk.clone()));
    (place, store, disk)
}

#[test]
fn a_barrier_costs_one_flush_and_what_waits_goes_with_it() {
    let (_place, store, disk) = setup();
    let notes = Notes::default();
    let mut script = Script::default();
    let writer = store.create(&header("group"), notes.notify()).unwrap();
    let (writes, syncs) = disk.set(|faults| (faults.writes, faults.syncs));
    // One barrier: one write, one flush.
    submit(&writer, script.turn("alone"));
    notes.wait_durable(script.next_seq - 1);
    assert_eq!(
        disk.set(|faults| (faults.writes - writes, faults.syncs - syncs)),
        (1, 1)
    );
    // The writer is busy with one submit; 100 more with 50 barriers wait for it.
    disk.set(|faults| faults.gate_closed = true);
    submit(&writer, script.turn("in the way"));
    while disk.set(|faults| faults.trace.iter().filter(|what| **what == "write").count()) < 3 {
        std::thread::yield_now();
    }
    for n in 0..100 {
        let barrier = if n % 2 == 0 {
            Barrier::Flush
        } else {
            Barrier::None
        };
        writer.submit(script.turn("waits"), barrier).unwrap();
    }
    disk.set(|faults| faults.gate_closed = false);
    notes.wait_durable(script.next_seq - 1);
    assert_eq!(
        disk.set(|faults| (faults.writes - writes, faults.syncs - syncs)),
        (3, 3)
    );
    // A barrier with nothing new to flush is answered and costs nothing.
    submit(&writer, Vec::new());
    assert!(writer.close().unwrap().fault.is_none());
    assert_eq!(disk.set(|faults| faults.syncs - syncs), 3);
}

#[test]
fn short_writes_are_gone_on_with() {
    let (place, store, disk) = setup();
    let mut script = Script::default();
    let writer = store.create(&header("short"), silent()).unwrap();
    disk.set(|faults| {
        faults.next_writes = vec![
            Write::Short(1),
            Write::Short(100),
            Write::Fails(io::ErrorKind::Interrupted),
        ]
    });
    submit(&writer, script.turn("bit by bit"));
    assert!(writer.close().unwrap().fault.is_none());
    assert_eq!(
        place.store.inspect("short").unwrap().events.len() as u64,
        script.next_seq
    );
}

#[test]
fn after_a_failed_write_nothing_is_taken_and_the_log_ends_with_a_whole_record() {
    for partial in [0, 1, 200] {
        let (place, store, disk) = setup();
        let notes = Notes::default();
        let mut script = Script::default();
        let writer = store.create(&header("eio"), notes.notify()).unwrap();
        submit(&writer, script.run("good"));
        let good = script.next_seq;
        notes.wait_durable(good - 1);
        disk.set(|faults| faults.next_writes = vec![Write::Partly(partial, io::ErrorKind::Other)]);
        submit(&writer, script.turn("lost"));
        let heard = notes.wait("failure", |notes| {
            matches!(notes.last(), Some(Seen::Failed(_)))
        });
        assert!(
            !heard
                .iter()
                .any(|note| matches!(note, Seen::Written(seq, _) if *seq >= good))
        );
        // The disk would work again; the writer does not try.
        while writer
            .submit(script.turn("refused"), Barrier::Flush)
            .is_ok()
        {
            std::thread::yield_now();
        }
        assert!(writer.submit_closing(script.turn("refused")).is_err());
        let closed = writer.close().unwrap();
        assert!(
            matches!(closed.fault, Some(WriteFault::Write(_))),
            "{closed:?}"
        );
        assert_eq!(
            notes
                .all()
                .iter()
                .filter(|note| matches!(note, Seen::Failed(_)))
                .count(),
            1
        );
        let read = place.store.inspect("eio").unwrap();
        assert_eq!(
            (read.events.len() as u64, read.tail),
            (good, Tail::Clean),
            "{partial} bytes got through"
        );
        assert!(
            place
                .store
                .open("eio", NOW_MS, silent())
                .unwrap()
                .1
                .notes
                .is_empty()
        );
    }
}

#[test]
fn when_cutting_back_fails_too_the_next_opening_does_it() {
    let (place, store, disk) = setup();
    let notes = Notes::default();
    let mut script = Script::default();
    let writer = store.create(&header("both"), notes.notify()).unwrap();
    submit(&writer, script.run("good"));
    let good = script.next_seq;
    notes.wait_durable(good - 1);
    disk.set(|faults| {
        faults.next_writes = vec![Write::Partly(50, io::ErrorKind::Other)];
        faults.cut_fails = true;
    });
    submit(&writer, script.turn("lost"));
    let closed = writer.close().unwrap();
    assert!(
        matches!(closed.fault, Some(WriteFault::WriteAndCut { .. })),
        "{closed:?}"
    );
    assert!(matches!(
        place.store.inspect("both").unwrap().tail,
        Tail::Torn(_)
    ));
    let (_writer, loaded) = place.store.open("both", NOW_MS, silent()).unwrap();
    assert_eq!(loaded.events.len() as u64, good);
}

#[test]
fn after_a_failed_flush_nothing_is_taken() {
    let (place, store, disk) = setup();
    let notes = Notes::default();
    let mut script = Script::default();
    let writer = store.create(&header("sync"), notes.notify()).unwrap();
    submit(&writer, script.run("good"));
    let good = script.next_seq;
    notes.wait_durable(good - 1);
    disk.set(|faults| faults.sync_fails = true);
    submit(&writer, script.turn("who knows"));
    let heard = notes.wait("failure", |notes| {
        matches!(notes.last(), Some(Seen::Failed(_)))
    });
    let durable = heard
        .iter()
        .filter_map(|note| {
            if let Seen::Durable(seq) = note {
                Some(*seq)
            } else {
                None
            }
        })
        .max();
    assert_eq!(durable, Some(good - 1), "told durable what was not");
    // A second fsync would say yes (it forgets the error); it must not be asked.
    disk.set(|faults| faults.sync_fails = false);
    let syncs = disk.set(|faults| faults.syncs);
    while writer
        .submit(script.turn("refused"), Barrier::Flush)
        .is_ok()
    {
        std::thread::yield_now();
    }
    assert_eq!(writer.status().takes, Takes::Nothing);
    assert!(writer.submit_closing(Vec::new()).is_err());
    let closed = writer.close().unwrap();
    assert!(
        matches!(closed.fault, Some(WriteFault::Sync(_))),
        "{closed:?}"
    );
    assert_eq!(disk.set(|faults| faults.syncs), syncs);
    // Written and not acknowledged: it may be there, and is valid if it is.
    assert!(place.store.inspect("sync").unwrap().events.len() as u64 >= good);
}

#[test]
fn a_log_that_is_removed_is_not_written_to_in_vain() {
    let (place, store, _disk) = setup();
    let notes = Notes::default();
    let mut script = Script::default();
    let writer = store.create(&header("removed"), notes.notify()).unwrap();
    submit(&writer, script.run("good"));
    notes.wait_durable(script.next_seq - 1);
    std::fs::remove_dir_all(place.log("removed").parent().unwrap()).unwrap();
    submit(&writer, script.turn("lost"));
    let closed = writer.close().unwrap();
    assert!(
        matches!(closed.fault, Some(WriteFault::Removed)),
        "{closed:?}"
    );
}

#[test]
fn somebody_else_writing_to_the_log_is_found_before_bytes_mix() {
    let (place, store, _disk) = setup();
    let notes = Notes::default();
    let mut script = Script::default();
    let writer = store.create(&header("moved"), notes.notify()).unwrap();
    submit(&writer, script.run("good"));
    notes.wait_durable(script.next_seq - 1);
    let mut log = std::fs::read(place.log("moved")).unwrap();
    log.extend_from_slice(b"not ours\n");
    std::fs::write(place.log("moved"), &log).unwrap();
    submit(&writer, script.turn("lost"));
    let closed = writer.close().unwrap();
    assert!(
        matches!(closed.fault, Some(WriteFault::TailMoved { .. })),
        "{closed:?}"
    );
    assert_eq!(std::fs::read(place.log("moved")).unwrap(), log);
}

#[test]
fn a_gap_in_seq_is_refused_and_the_run_can_still_be_closed() {
    let (place, store, _disk) = setup();
    let mut script = Script::default();
    let writer = store.create(&header("gap"), silent()).unwrap();
    submit(&writer, script.open_turn("good"));
    let good = script.next_seq;
    let mut skipped = Script::default();
    skipped.next_seq = good + 1;
    submit(&writer, vec![skipped.chunk("not next")]);
    writer.submit_closing(script.closers()).unwrap();
    let closed = writer.close().unwrap();
    assert!(
        matches!(closed.fault, Some(WriteFault::SeqGap { .. })),
        "{closed:?}"
    );
    assert_eq!(closed.next_seq, script.next_seq);
    assert_eq!(
        place.store.inspect("gap").unwrap().events.len() as u64,
        script.next_seq
    );
}

#[test]
fn without_fallocate_a_file_keeps_the_space() {
    let (place, store, disk) = setup();
    disk.set(|faults| faults.no_fallocate = true);
    let notes = Notes::default();
    let mut script = Script::default();
    let writer = store.create(&header("file"), notes.notify()).unwrap();
    let reserve = place.session("file").join("reserve");
    assert_eq!(
        std::fs::metadata(&reserve).unwrap().len(),
        curfew_store::RESERVE_BYTES
    );
    submit(&writer, script.open_turn("good"));
    notes.wait_durable(script.next_seq - 1);
    // The disk is full in the middle of a write, and has room once the reserve is gone.
    disk.set(|faults| faults.next_writes = vec![Write::Partly(77, io::ErrorKind::StorageFull)]);
    submit(&writer, vec![script.chunk("the last")]);
    notes.wait("failure", |notes| {
        matches!(notes.last(), Some(Seen::Failed(_)))
    });
    assert!(!reserve.exists());
    let closers = script.closers();
    writer.submit_closing(closers).unwrap();
    let closed = writer.close().unwrap();
    assert!(
        matches!(closed.fault, Some(WriteFault::NoSpace)),
        "{closed:?}"
    );
    let read = place.store.inspect("file").unwrap();
    assert_eq!(
        (read.events.len() as u64, read.tail),
        (script.next_seq, Tail::Clean)
    );
}

/// The name must not appear before what it names is durable, nor `create` return before the name is.
#[test]
fn a_header_is_durable_before_its_directory_has_a_name() {
    let (_place, store, disk) = setup();
    drop(store.create(&header("order"), silent()).unwrap());
    let trace = disk.set(|faults| faults.trace.clone());
    let expected = [
        "create_root",
        "create_dir",
        "lock",
        "create_log",
        "write",
        "reserve",
        "sync",
        "sync_dir",
        "rename",
        "sync_dir",
    ];
    assert_eq!(trace, expected);
}

/// Fails the n-th change of the disk and all that follow, for every n, until making a session works.
#[test]
fn a_session_is_made_whole_or_not_at_all() {
    let mut points = 0;
    for n in 0.. {
        let (place, store, disk) = setup();
        disk.set(|faults| faults.fail_from = Some(n));
        let made = store.create(&header("whole"), silent());
        disk.set(|faults| faults.fail_from = None);
        let trace = disk.set(|faults| faults.trace.clone());
        match made {
            Ok(writer) => {
                drop(writer);
                assert_eq!(
                    trace[..n].iter().filter(|what| **what == "rename").count(),
                    1,
                    "{trace:?}"
                );
                points = n;
                break;
            }
            Err(StoreError::Locked { .. }) => panic!("{trace:?}"),
            Err(_) => {}
        }
        // If its directory is there, it is a session.
        match trace[..n].contains(&"rename") {
            true => assert_eq!(place.store.inspect("whole").unwrap().events.len(), 0),
            false => assert!(!place.session("whole").exists(), "{trace:?}"),
        }
        let left: Vec<_> = std::fs::read_dir(place.store.root())
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(
            left.len(),
            usize::from(trace[..n].contains(&"rename")),
            "something is left after {trace:?}"
        );
    }
    assert!(points >= 8, "{points}");
    println!("{points} changes of the disk to make a session, each failed once");
}
