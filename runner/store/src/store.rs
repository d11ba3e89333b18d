//! The sessions below one directory: making, opening, reading and listing them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use curfew_engine::codec::{self, Chain};
use curfew_engine::event::{Event, Header};
use curfew_engine::fold::Fold;

use crate::blobs::Blobs;
use crate::commit::{Core, Health, Notify, Position, write_all};
use crate::disk::{Disk, Kind, LockOutcome, LogFile, RealDisk, is_no_space};
use crate::error::{StoreError, WriteFault};
use crate::holder;
use crate::id;
use crate::reader::{LogReader, Tail, Torn};
use crate::repair;
use crate::reserve::Reserve;
use crate::writer::{Held, Writer};

const LOG_NAME: &str = "log.jsonl";
const LOCK_NAME: &str = "lock";
/// Directories of sessions that are being made. Not an id, so never listed.
const NEW_PREFIX: &str = ".new-";

/// The sessions below `root`. Nothing is touched before it is asked for.
#[derive(Clone)]
pub struct Store {
    root: PathBuf,
    disk: Arc<dyn Disk>,
}

/// A session that was opened for writing.
#[derive(Debug)]
pub struct Loaded {
    pub header: Header,
    /// In order, those of the repair included.
    pub events: Vec<Event>,
    /// All of them, folded.
    pub fold: Fold,
    /// What had to be done to open it; each is worth a line on stderr.
    pub notes: Vec<LoadNote>,
    /// Hash of the last record, lowercase hex.
    pub head: String,
}

/// A session that was only looked at.
#[derive(Debug)]
pub struct Inspected {
    pub header: Header,
    /// Line 1 as found, without its newline.
    pub header_line: Vec<u8>,
    pub events: Vec<Event>,
    pub tail: Tail,
    /// Hash of the last whole record, lowercase hex.
    pub head: String,
}

/// Something that opening a session changed in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadNote {
    #[error(
        "cut a torn last record: line {}, seq {}, {} bytes from byte {} on; nobody was told it was written",
        .0.line, .0.seq, .0.bytes, .0.offset
    )]
    TornTailCut(Torn),
    #[error("the last record was whole but for its newline, which was added")]
    NewlineAdded,
    #[error(
        "the last run was interrupted: {events} closing events were added from seq {first_seq} on"
    )]
    Repaired { first_seq: u64, events: usize },
}

/// An open log file, its reserve and its end.
struct Log {
    file: Box<dyn LogFile>,
    reserve: Reserve,
    at: Position,
}

impl Store {
    pub fn new(root: impl Into<PathBuf>) -> Store {
        Store::with_disk(root, Arc::new(RealDisk))
    }

    /// For tests and simulation.
    pub fn with_disk(root: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Store {
        Store {
            root: root.into(),
            disk,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a session. Its directory appears at once, with a durable header and the lock held; or
    /// not at all.
    pub fn create(&self, header: &Header, notify: Notify) -> Result<Writer, StoreError> {
        id::check(&header.id)?;
        self.disk
            .create_root(&self.root)
            .map_err(StoreError::io("create", &self.root))?;
        let dir = self.root.join(&header.id);
        if self.disk.kind(&dir).is_ok() {
            return Err(StoreError::Exists {
                id: header.id.clone(),
            });
        }
        self.sweep();
        let temp = self.root.join(format!("{NEW_PREFIX}{}", header.id));
        self.disk
            .create_dir(&temp)
            .map_err(StoreError::io("create", &temp))?;
        match self.fill(header, &temp, &dir, notify) {
            Ok(writer) => Ok(writer),
            Err(e) => {
                // What could not be made is taken away; the cause is what the caller must see.
                drop(self.disk.remove_dir_all(&temp));
                Err(e)
            }
        }
    }

    fn fill(
        &self,
        header: &Header,
        temp: &Path,
        dir: &Path,
        notify: Notify,
    ) -> Result<Writer, StoreError> {
        let path = dir.join(LOG_NAME);
        let lock = self.lock(&header.id, temp)?;
        let mut chain = Chain::new();
        let header_line =
            codec::encode_header(&mut chain, header).map_err(|e| StoreError::Write {
                path: path.clone(),
                fault: WriteFault::Encode {
                    seq: 0,
                    error: e.to_string(),
                },
            })?;
        let failed = |op| move |e| self.write_error(op, temp, e);
        let mut file = self
            .disk
            .create_log(&temp.join(LOG_NAME))
            .map_err(failed("create the log in"))?;
        let mut bytes = header_line.clone();
        bytes.push(b'\n');
        write_all(&mut *file, 0, &bytes).map_err(failed("write the header in"))?;
        let tail = bytes.len() as u64;
        let mut reserve = Reserve::establish(&*self.disk, &mut *file, temp, tail)
            .map_err(failed("reserve space in"))?;
        file.sync().map_err(failed("flush the header in"))?;
        self.disk.sync_dir(temp).map_err(failed("flush"))?;
        self.disk.rename(temp, dir).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => StoreError::Exists {
                id: header.id.clone(),
            },
            _ => StoreError::io("name the session", dir)(e),
        })?;
        self.disk
            .sync_dir(&self.root)
            .map_err(StoreError::io("flush", &self.root))?;
        reserve.moved_to(dir);
        let at = Position {
            chain,
            next_seq: 0,
            tail,
        };
        let core = self.core(&header.id, path, Log { file, reserve, at }, notify);
        Writer::start(core, self.held(&header.id, dir, header_line, lock))
    }

    /// Removes what a crash left of sessions that were being made: its lock was taken once (it says
    /// by whom) and nobody holds it. What cannot be removed hides nothing and stays.
    fn sweep(&self) {
        let names = self.disk.names(&self.root).unwrap_or_default();
        for name in names.iter().filter(|name| name.starts_with(NEW_PREFIX)) {
            let left = self.root.join(name);
            let lock = left.join(LOCK_NAME);
            if matches!(self.disk.kind(&lock), Ok(Kind::File { bytes: 1.. }))
                && let Ok(LockOutcome::Held(lock)) = self.disk.lock(&lock, b"")
            {
                drop(self.disk.remove_dir_all(&left));
                drop(lock);
            }
        }
    }

    /// Opens a session for writing, by its id or the beginning of it: takes its lock, checks all
    /// of it, cuts a torn last record, closes what a dead run left open. That is durable before
    /// this returns. `notify` hears of what comes after.
    pub fn open(
        &self,
        id: &str,
        now_ms: u64,
        notify: Notify,
    ) -> Result<(Writer, Loaded), StoreError> {
        let mut events = Vec::new();
        let (writer, mut loaded) =
            self.open_with(id, now_ms, notify, &mut |event| events.push(event))?;
        loaded.events = events;
        Ok((writer, loaded))
    }

    /// Like [`Store::open`], but hands each event to `sink` instead of keeping it.
    pub fn open_with(
        &self,
        id: &str,
        now_ms: u64,
        notify: Notify,
        sink: &mut dyn FnMut(Event),
    ) -> Result<(Writer, Loaded), StoreError> {
        let (id, dir) = self.find(id)?;
        let lock = self.lock(&id, &dir)?;
        let path = dir.join(LOG_NAME);
        let mut reader = LogReader::open(&*self.disk, &path, &id)?;
        let mut fold = repair::fold_rest(&mut reader, sink)?;
        let failed = |op| {
            let path = path.clone();
            move |e| self.write_error(op, &path, e)
        };
        let mut file = self
            .disk
            .open_log(&path)
            .map_err(failed("open for writing"))?;
        let (tail, note) = mend_tail(&mut *file, &reader).map_err(failed("mend the end of"))?;
        let reserve = Reserve::establish(&*self.disk, &mut *file, &dir, tail)
            .map_err(failed("reserve space for"))?;
        let at = Position {
            chain: reader.chain().clone(),
            next_seq: reader.next_seq(),
            tail,
        };
        let mut core = self.core(&id, path, Log { file, reserve, at }, Box::new(|_| {}));
        let mut notes: Vec<LoadNote> = note.into_iter().collect();
        let repaired = repair::append(&mut core, &mut fold, now_ms)?;
        if let Some(first) = repaired.first() {
            notes.push(LoadNote::Repaired {
                first_seq: first.seq,
                events: repaired.len(),
            });
        }
        repaired.into_iter().for_each(sink);
        core.notify = notify;
        let head = core.at.chain.head().to_owned();
        let loaded = Loaded {
            header: reader.header().clone(),
            events: Vec::new(),
            fold,
            notes,
            head,
        };
        let writer = Writer::start(
            core,
            self.held(&id, &dir, reader.header_line().to_vec(), lock),
        )?;
        Ok((writer, loaded))
    }

    /// Reads a session whole, by its id or the beginning of it. Changes nothing, takes no lock.
    pub fn inspect(&self, id: &str) -> Result<Inspected, StoreError> {
        let mut reader = self.read(id)?;
        let mut events = Vec::new();
        while let Some(record) = reader.next_record()? {
            events.push(record.event);
        }
        Ok(Inspected {
            header: reader.header().clone(),
            header_line: reader.header_line().to_vec(),
            events,
            tail: reader.tail(),
            head: reader.chain().head().to_owned(),
        })
    }

    /// Reads a session record by record. Changes nothing, takes no lock.
    pub fn read(&self, id: &str) -> Result<LogReader, StoreError> {
        let (id, dir) = self.find(id)?;
        LogReader::open(&*self.disk, &dir.join(LOG_NAME), &id)
    }

    /// The blobs of a session, for reading.
    pub fn blobs(&self, id: &str) -> Result<Blobs, StoreError> {
        let (id, dir) = self.find(id)?;
        Ok(Blobs::new(&id, &dir))
    }

    /// The id that `text` is the beginning of, and no other.
    pub fn resolve(&self, text: &str) -> Result<String, StoreError> {
        id::resolve(&*self.disk, &self.root, text)
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(crate) fn log_path(&self, id: &str) -> Result<PathBuf, StoreError> {
        Ok(self.find(id)?.1.join(LOG_NAME))
    }

    fn find(&self, text: &str) -> Result<(String, PathBuf), StoreError> {
        let id = self.resolve(text)?;
        let dir = self.root.join(&id);
        match self
            .disk
            .kind(&dir)
            .map_err(StoreError::io("look at", &dir))?
        {
            Kind::Dir => Ok((id, dir)),
            other => Err(StoreError::NotOurs {
                path: dir,
                found: other.name(),
                wanted: "a session directory",
            }),
        }
    }

    fn lock(&self, id: &str, dir: &Path) -> Result<Box<dyn Send>, StoreError> {
        let path = dir.join(LOCK_NAME);
        let us = holder::of_this_process(SystemTime::now());
        match self
            .disk
            .lock(&path, &us)
            .map_err(StoreError::io("lock", &path))?
        {
            LockOutcome::Held(lock) => Ok(lock),
            LockOutcome::Busy(text) => Err(StoreError::Locked {
                id: id.to_owned(),
                holder: holder::parse(&text),
            }),
        }
    }

    fn core(&self, id: &str, path: PathBuf, log: Log, notify: Notify) -> Core {
        let (id, disk) = (id.to_owned(), Arc::clone(&self.disk));
        let Log { file, reserve, at } = log;
        Core {
            id,
            disk,
            file,
            path,
            reserve,
            at,
            dirty: false,
            health: Health::Open,
            notify,
        }
    }

    fn held(&self, id: &str, dir: &Path, header_line: Vec<u8>, lock: Box<dyn Send>) -> Held {
        Held {
            id: id.to_owned(),
            header_line,
            blobs: Blobs::new(id, dir),
            lock,
        }
    }

    /// A full disk has its own words.
    fn write_error(&self, op: &'static str, path: &Path, error: io::Error) -> StoreError {
        if is_no_space(&error) {
            return StoreError::Write {
                path: path.to_owned(),
                fault: WriteFault::NoSpace,
            };
        }
        StoreError::io(op, path)(error)
    }
}

/// Cuts a torn last record, or ends a whole one. Durable before anything is appended.
fn mend_tail(file: &mut dyn LogFile, reader: &LogReader) -> io::Result<(u64, Option<LoadNote>)> {
    let good = reader.good_bytes();
    match reader.tail() {
        Tail::Torn(torn) => {
            file.set_len(good)?;
            file.sync()?;
            Ok((good, Some(LoadNote::TornTailCut(torn))))
        }
        Tail::NoNewline => {
            write_all(file, good, b"\n")?;
            file.sync()?;
            Ok((good + 1, Some(LoadNote::NewlineAdded)))
        }
        Tail::Ahead | Tail::Clean => Ok((good, None)),
    }
}
