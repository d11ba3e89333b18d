//! The single writer of a session: a thread that owns the log, and the handle to it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use curfew_engine::event::Event;

use crate::blobs::Blobs;
use crate::commit::{Barrier, Core, Group, Health};
use crate::error::{StoreError, WriteFault};

/// Submits that may wait for the thread; then `submit` waits for it.
const QUEUE_SUBMITS_MAX: usize = 4096;
/// How long `close` waits for the last write and flush.
const CLOSE_MS_MAX: u64 = 10_000;

/// The only one who appends to a session. Holds its lock until the thread has ended.
pub struct Writer {
    id: String,
    path: PathBuf,
    header_line: Vec<u8>,
    blobs: Blobs,
    /// `None` once the writer was told to end.
    queue: Option<SyncSender<Command>>,
    done: Receiver<Closed>,
    shared: Arc<Mutex<Status>>,
}

/// How far a log is.
#[derive(Clone, Debug)]
pub struct Status {
    /// The seq that the next event must have.
    pub next_seq: u64,
    /// What went wrong, if anything did.
    pub fault: Option<WriteFault>,
    pub takes: Takes,
}

/// What a writer still takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Any events. With a fault: the disk is full, and they go into the reserve while it lasts.
    Events,
    /// The log is whole, but only closing events go in.
    ClosingEvents,
    /// What is on disk is unknown; nothing more may be written.
    Nothing,
}

/// The state in which a log was left.
#[derive(Clone, Debug)]
pub struct Closed {
    /// Hash of the last record, lowercase hex.
    pub head: String,
    /// Number of events.
    pub next_seq: u64,
    pub fault: Option<WriteFault>,
}

enum Command {
    Append {
        events: Vec<Event>,
        barrier: Barrier,
    },
    Closing {
        events: Vec<Event>,
    },
    StorageEnd {
        now_ms: u64,
    },
}

/// What belongs to a writer beside the log.
pub(crate) struct Held {
    pub id: String,
    pub header_line: Vec<u8>,
    pub blobs: Blobs,
    pub lock: Box<dyn Send>,
}

impl Writer {
    pub(crate) fn start(core: Core, held: Held) -> Result<Writer, StoreError> {
        let Held {
            id,
            header_line,
            blobs,
            lock,
        } = held;
        let path = core.path.clone();
        let (queue, commands) = sync_channel(QUEUE_SUBMITS_MAX);
        let (finished, done) = sync_channel(1);
        let status = Status {
            next_seq: core.at.next_seq,
            fault: None,
            takes: Takes::Events,
        };
        let shared = Arc::new(Mutex::new(status));
        let status = Arc::clone(&shared);
        thread::Builder::new()
            .name("curfew-log".to_owned())
            .spawn(move || {
                let closed = run(core, &commands, &status);
                // The lock goes before `close` returns, and not before the last byte is written.
                drop(lock);
                // Nobody waits any more when the handle gave up.
                drop(finished.send(closed));
            })
            .map_err(StoreError::io("start the writer thread for", &path))?;
        Ok(Writer {
            id,
            path,
            header_line,
            blobs,
            queue: Some(queue),
            done,
            shared,
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The log file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Line 1 of the log, as it stands there, without its newline.
    pub fn header_line(&self) -> &[u8] {
        &self.header_line
    }

    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Queues events, all or none of which are taken. Waits when the writer is far behind.
    pub fn submit(&self, events: Vec<Event>, barrier: Barrier) -> Result<(), StoreError> {
        self.refuse_unless(|takes| takes == Takes::Events)?;
        self.send(Command::Append { events, barrier })
    }

    /// Queues the last events of a run, which may use the reserve on a full disk. They must go on
    /// where [`Status::next_seq`] stands.
    pub fn submit_closing(&self, events: Vec<Event>) -> Result<(), StoreError> {
        self.refuse_unless(|takes| takes != Takes::Nothing)?;
        self.send(Command::Closing { events })
    }

    /// Queues the end of a run that can go no further because the disk is full
    /// ([`WriteFault::NoSpace`]): what is open on disk is closed with `error{storage}` and a
    /// `result`, in the reserve. The run's own state may be ahead of the disk, so it is not asked.
    pub fn submit_storage_end(&self, now_ms: u64) -> Result<(), StoreError> {
        self.refuse_unless(|takes| takes != Takes::Nothing)?;
        self.send(Command::StorageEnd { now_ms })
    }

    pub fn status(&self) -> Status {
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Writes and flushes what is queued, gives the reserve and the lock back.
    pub fn close(mut self) -> Result<Closed, StoreError> {
        self.end()
    }

    fn end(&mut self) -> Result<Closed, StoreError> {
        // The thread works off what is queued and then finds nobody on the other side.
        self.queue = None;
        match self.done.recv_timeout(Duration::from_millis(CLOSE_MS_MAX)) {
            Ok(closed) => Ok(closed),
            Err(RecvTimeoutError::Timeout) => Err(StoreError::CloseTimeout {
                path: self.path.clone(),
                waited_ms: CLOSE_MS_MAX,
            }),
            Err(RecvTimeoutError::Disconnected) => Err(self.refused(WriteFault::Closed)),
        }
    }

    fn refuse_unless(&self, fits: impl Fn(Takes) -> bool) -> Result<(), StoreError> {
        match self.status() {
            Status {
                fault: Some(fault),
                takes,
                ..
            } if !fits(takes) => Err(self.refused(fault)),
            _ => Ok(()),
        }
    }

    fn send(&self, command: Command) -> Result<(), StoreError> {
        let sent = self
            .queue
            .as_ref()
            .is_some_and(|queue| queue.send(command).is_ok());
        if sent {
            Ok(())
        } else {
            Err(self.refused(WriteFault::Closed))
        }
    }

    fn refused(&self, fault: WriteFault) -> StoreError {
        StoreError::Write {
            path: self.path.clone(),
            fault,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.queue.is_some() {
            // Faults were told through the notes; a drop has nobody to return them to.
            drop(self.end());
        }
    }
}

/// The thread. Ends when the handle has let go of the queue and the queue is empty.
fn run(mut core: Core, commands: &Receiver<Command>, shared: &Mutex<Status>) -> Closed {
    let mut group = Group::new(&core.at);
    while let Ok(first) = commands.recv() {
        let last = gather(&mut core, &mut group, first, commands);
        core.commit(&group);
        match last {
            Last::Nothing => {}
            Last::Fault(fault) => core.refuse(fault),
            Last::Closing(events) => core.commit_closing(&events),
            Last::StorageEnd { now_ms } => crate::repair::end_run(&mut core, now_ms),
        }
        publish(&core, shared);
    }
    finish(core, shared)
}

/// What ended a group, to be done after it is written.
enum Last {
    Nothing,
    Fault(WriteFault),
    Closing(Vec<Event>),
    StorageEnd { now_ms: u64 },
}

/// Fills the group with what is queued by now.
fn gather(
    core: &mut Core,
    group: &mut Group,
    first: Command,
    commands: &Receiver<Command>,
) -> Last {
    group.begin(&core.at);
    let mut next = Some(first);
    while let Some(command) = next {
        match command {
            Command::Append { .. }
                if matches!(core.health, Health::Refusing(_) | Health::Dead(_)) => {}
            Command::Append { events, barrier } => {
                if let Err(fault) = group.add(&events, barrier) {
                    return Last::Fault(fault);
                }
            }
            Command::Closing { events } => return Last::Closing(events),
            Command::StorageEnd { now_ms } => return Last::StorageEnd { now_ms },
        }
        if group.is_full() {
            break;
        }
        next = commands.try_recv().ok();
    }
    Last::Nothing
}

fn publish(core: &Core, shared: &Mutex<Status>) {
    let mut status = shared.lock().unwrap_or_else(PoisonError::into_inner);
    status.next_seq = core.at.next_seq;
    status.fault = core.fault();
    status.takes = match core.health {
        Health::Open | Health::Full => Takes::Events,
        Health::Refusing(_) => Takes::ClosingEvents,
        Health::Dead(_) => Takes::Nothing,
    };
}

fn finish(mut core: Core, shared: &Mutex<Status>) -> Closed {
    core.finish();
    publish(&core, shared);
    Closed {
        head: core.at.chain.head().to_string(),
        next_seq: core.at.next_seq,
        fault: core.fault(),
    }
}
