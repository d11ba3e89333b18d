//! What the writer thread does: encode, chain, write a group in one go, flush once, tell.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use curfew_engine::codec::{self, Chain};
use curfew_engine::event::Event;

use crate::disk::{Disk, LogFile, is_no_space};
use crate::error::WriteFault;
use crate::reserve::{CLOSING_BYTES, Reserve, Room};

/// A group is closed when it is this long; a single submit may be longer.
pub(crate) const GROUP_BYTES_MAX: usize = 1 << 20;

/// What the writer reports, from its thread, in the order in which it happens.
#[derive(Debug)]
pub enum Note<'a> {
    /// The event stands in the file. `line` is the record without its newline.
    Written { seq: u64, line: &'a [u8] },
    /// Every event up to `seq` survives a crash of the machine.
    Durable { seq: u64 },
    /// The session can go no further; said once. See [`WriteFault`] for what is on disk.
    Failed { fault: &'a WriteFault },
}

/// Called on the writer thread. It must not wait for the thread that submits.
pub type Notify = Box<dyn FnMut(Note<'_>) + Send>;

/// Whether a submit asks for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Written with the next group; flushed with the next barrier.
    None,
    /// Flushed at once; `Durable` follows.
    Flush,
}

/// A log that is open for appending, and how far it is.
pub(crate) struct Core {
    pub id: String,
    pub disk: Arc<dyn Disk>,
    pub file: Box<dyn LogFile>,
    pub path: PathBuf,
    pub reserve: Reserve,
    pub at: Position,
    /// Something was written since the last flush.
    pub dirty: bool,
    pub health: Health,
    pub notify: Notify,
}

/// The end of the log.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub chain: Chain,
    pub next_seq: u64,
    /// Length of the file.
    pub tail: u64,
}

#[derive(Debug)]
pub(crate) enum Health {
    Open,
    /// The disk is full: what fits the reserve is still taken.
    Full,
    /// The log is valid; only closing events are taken.
    Refusing(WriteFault),
    /// Nothing is taken.
    Dead(WriteFault),
}

/// Encoded submits that are to be written together.
pub(crate) struct Group {
    bytes: Vec<u8>,
    lines: Vec<Line>,
    /// One per submit: where it ends.
    marks: Vec<Mark>,
    base: u64,
    at: Position,
    barrier: Barrier,
}

struct Line {
    seq: u64,
    start: usize,
    end: usize,
}

struct Mark {
    bytes: usize,
    lines: usize,
    at: Position,
}

impl Group {
    pub fn new(at: &Position) -> Group {
        let (base, at) = (at.tail, at.clone());
        Group {
            bytes: Vec::new(),
            lines: Vec::new(),
            marks: Vec::new(),
            base,
            at,
            barrier: Barrier::None,
        }
    }

    /// Empties it, keeping its memory.
    pub fn begin(&mut self, at: &Position) {
        self.bytes.clear();
        self.lines.clear();
        self.marks.clear();
        (self.base, self.at, self.barrier) = (at.tail, at.clone(), Barrier::None);
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= GROUP_BYTES_MAX
    }

    /// Takes all of a submit or nothing of it.
    pub fn add(&mut self, events: &[Event], barrier: Barrier) -> Result<(), WriteFault> {
        let (bytes, lines, at) = (self.bytes.len(), self.lines.len(), self.at.clone());
        if let Err(fault) = events.iter().try_for_each(|event| self.add_event(event)) {
            self.bytes.truncate(bytes);
            self.lines.truncate(lines);
            self.at = at;
            return Err(fault);
        }
        if barrier == Barrier::Flush {
            self.barrier = Barrier::Flush;
        }
        self.marks.push(Mark {
            bytes: self.bytes.len(),
            lines: self.lines.len(),
            at: self.at.clone(),
        });
        Ok(())
    }

    fn add_event(&mut self, event: &Event) -> Result<(), WriteFault> {
        if event.seq != self.at.next_seq {
            return Err(WriteFault::SeqGap {
                expected: self.at.next_seq,
                found: event.seq,
            });
        }
        let line =
            codec::encode_event(&mut self.at.chain, event).map_err(|error| WriteFault::Encode {
                seq: event.seq,
                error: error.to_string(),
            })?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&line);
        let end = self.bytes.len();
        self.bytes.push(b'\n');
        self.lines.push(Line {
            seq: event.seq,
            start,
            end,
        });
        self.at.next_seq += 1;
        self.at.tail = self.base + self.bytes.len() as u64;
        Ok(())
    }

    /// How many whole submits fit into `room` bytes.
    fn fitting(&self, room: u64) -> usize {
        self.marks.partition_point(|mark| mark.bytes as u64 <= room)
    }
}

impl Core {
    /// Writes the group, or what fits of it, and says so.
    pub fn commit(&mut self, group: &Group) {
        if matches!(self.health, Health::Refusing(_) | Health::Dead(_)) || group.marks.is_empty() {
            return;
        }
        let bytes = group.bytes.len() as u64;
        match self.reserve.make_room(&mut *self.file, self.at.tail, bytes) {
            Ok(Room::Plenty) => self.commit_all(group),
            Ok(Room::Scarce(left)) => self.commit_scarce(group, left.saturating_sub(CLOSING_BYTES)),
            Err(e) => self.die(WriteFault::Write(e.to_string())),
        }
    }

    /// Closing events: they may use the whole reserve, and are flushed.
    pub fn commit_closing(&mut self, events: &[Event]) {
        if matches!(self.health, Health::Dead(_)) {
            return;
        }
        let mut group = Group::new(&self.at);
        if let Err(fault) = group.add(events, Barrier::Flush) {
            return self.refuse(fault);
        }
        let bytes = group.bytes.len() as u64;
        let room = match self.reserve.make_room(&mut *self.file, self.at.tail, bytes) {
            Ok(Room::Plenty) => bytes,
            Ok(Room::Scarce(left)) => left,
            Err(e) => return self.die(WriteFault::Write(e.to_string())),
        };
        if bytes > room {
            return self.refuse(WriteFault::ClosingTooLong { room });
        }
        match self.write_marks(&group, 1) {
            Ok(()) => self.flush(),
            Err(e) if is_no_space(&e) && self.make_space().is_ok() => self.closing_again(&group),
            Err(e) => self.die(WriteFault::Write(e.to_string())),
        }
    }

    fn closing_again(&mut self, group: &Group) {
        match self.write_marks(group, 1) {
            Ok(()) => self.flush(),
            Err(e) => self.die(WriteFault::Write(e.to_string())),
        }
    }

    fn commit_all(&mut self, group: &Group) {
        match self.write_marks(group, group.marks.len()) {
            Ok(()) if group.barrier == Barrier::Flush => self.flush(),
            Ok(()) => {}
            Err(e) if is_no_space(&e) => match self.make_space() {
                Ok(()) => self.commit_scarce(group, crate::reserve::RESERVE_BYTES - CLOSING_BYTES),
                Err(e) => self.die(WriteFault::Write(e.to_string())),
            },
            Err(e) => self.die(WriteFault::Write(e.to_string())),
        }
    }

    /// The disk is full. Writing what was submitted before anybody knew keeps the log level with
    /// its fold, so that closing events follow without a gap.
    fn commit_scarce(&mut self, group: &Group, room: u64) {
        let fitting = group.fitting(room);
        if fitting > 0 {
            if let Err(e) = self.write_marks(group, fitting) {
                return self.die(WriteFault::Write(e.to_string()));
            }
            self.flush();
        }
        if matches!(self.health, Health::Dead(_)) {
            return;
        }
        let first = !matches!(self.health, Health::Full);
        self.health = match fitting == group.marks.len() {
            true => Health::Full,
            false => Health::Refusing(WriteFault::NoSpace),
        };
        if first {
            (self.notify)(Note::Failed {
                fault: &WriteFault::NoSpace,
            });
        }
    }

    /// Writes the first `count` submits of the group and says so. On an error the file is cut back
    /// and the position stays.
    fn write_marks(&mut self, group: &Group, count: usize) -> io::Result<()> {
        let Some(mark) = count.checked_sub(1).and_then(|last| group.marks.get(last)) else {
            return Ok(());
        };
        if mark.bytes > 0 {
            self.check_tail()?;
            self.dirty = true;
            let written = write_all(&mut *self.file, self.at.tail, &group.bytes[..mark.bytes]);
            if let Err(e) = written {
                self.cut_back(&e)?;
                return Err(e);
            }
        }
        self.at = mark.at.clone();
        for line in &group.lines[..mark.lines] {
            (self.notify)(Note::Written {
                seq: line.seq,
                line: &group.bytes[line.start..line.end],
            });
        }
        Ok(())
    }

    /// One fdatasync, if anything was written since the last.
    pub fn flush(&mut self) {
        if self.dirty {
            if let Err(e) = self.file.sync() {
                return self.die(WriteFault::Sync(e.to_string()));
            }
            self.dirty = false;
        }
        if let Some(seq) = self.at.next_seq.checked_sub(1) {
            (self.notify)(Note::Durable { seq });
        }
    }

    /// The session ends: flush what no barrier has flushed, keep no space.
    pub fn finish(&mut self) {
        if matches!(self.health, Health::Dead(_)) {
            return;
        }
        if self.dirty {
            self.flush();
        }
        if let Err(e) = self.reserve.end(&*self.disk, &mut *self.file, self.at.tail) {
            self.refuse(WriteFault::Reserve(e.to_string()));
        }
    }

    /// The lock keeps other curfews away; this finds everybody else before their bytes and ours mix.
    fn check_tail(&mut self) -> io::Result<()> {
        let found = self.file.length()?;
        let fault = if self.file.is_removed()? {
            WriteFault::Removed
        } else if found == self.at.tail {
            return Ok(());
        } else {
            WriteFault::TailMoved {
                expected: self.at.tail,
                found,
            }
        };
        let text = fault.to_string();
        self.die(fault);
        Err(io::Error::other(text))
    }

    fn cut_back(&mut self, write: &io::Error) -> io::Result<()> {
        let Err(cut) = self.file.set_len(self.at.tail) else {
            return Ok(());
        };
        self.die(WriteFault::WriteAndCut {
            write: write.to_string(),
            cut: cut.to_string(),
        });
        Err(cut)
    }

    fn make_space(&mut self) -> io::Result<()> {
        self.reserve.release(&*self.disk, self.at.tail)
    }

    /// Takes nothing but closing events from here on. The first fault stands, unless it was a full
    /// disk, which is not the end of the story.
    pub fn refuse(&mut self, fault: WriteFault) {
        let first = matches!(self.health, Health::Open);
        if matches!(
            self.health,
            Health::Open | Health::Full | Health::Refusing(WriteFault::NoSpace)
        ) {
            self.health = Health::Refusing(fault.clone());
        }
        if first {
            (self.notify)(Note::Failed { fault: &fault });
        }
    }

    /// Takes nothing from here on. The first fault stands.
    fn die(&mut self, fault: WriteFault) {
        let first = matches!(self.health, Health::Open);
        if !matches!(self.health, Health::Dead(_)) {
            self.health = Health::Dead(fault.clone());
        }
        if first {
            (self.notify)(Note::Failed { fault: &fault });
        }
    }

    pub fn fault(&self) -> Option<WriteFault> {
        match &self.health {
            Health::Open => None,
            Health::Full => Some(WriteFault::NoSpace),
            Health::Refusing(fault) | Health::Dead(fault) => Some(fault.clone()),
        }
    }
}

/// write(2) may take less than all; going on is the writer's business.
pub(crate) fn write_all(
    file: &mut dyn LogFile,
    mut offset: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(offset, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                offset += n as u64;
                bytes = &bytes[n..];
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
