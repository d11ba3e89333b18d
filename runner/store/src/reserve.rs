//! Space for the last words: 1 MiB that nobody else can take, so that a run on a full disk still
//! ends with a valid log.
//!
//! Where the file system can, blocks are reserved beyond the end of the log itself (fallocate(2)
//! with KEEP_SIZE: ext4, xfs, btrfs, tmpfs) and moved along as the log grows, so running out is
//! noticed before a byte is written. Elsewhere a file of that size stands beside the log and is
//! removed when a write finds the disk full.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, LogFile, Reserved, is_no_space};

/// What is kept free beyond the end of the log.
pub const RESERVE_BYTES: u64 = 1 << 20;
/// The part of it that only closing events may use; the rest takes what was already submitted
/// when the disk ran full.
pub const CLOSING_BYTES: u64 = 512 << 10;
/// How far the reservation is moved at a time: one fallocate for this much log.
const STEP_BYTES: u64 = 1 << 20;

const FILE_NAME: &str = "reserve";

pub(crate) struct Reserve {
    kind: Kind,
    path: PathBuf,
}

enum Kind {
    /// Blocks up to this offset of the log are ours.
    Beyond { to: u64 },
    /// A file beside the log holds the space.
    File,
    /// Given back; the log should be able to grow to this offset.
    Spent { to: u64 },
}

/// How much may be written now.
pub(crate) enum Room {
    Plenty,
    /// The disk is full: so many bytes are left of the reserve.
    Scarce(u64),
}

impl Reserve {
    /// Fails with ENOSPC when the disk has no room for it: better before a session than in it.
    pub fn establish(
        disk: &dyn Disk,
        file: &mut dyn LogFile,
        dir: &Path,
        tail: u64,
    ) -> io::Result<Reserve> {
        let path = dir.join(FILE_NAME);
        let kind = match file.reserve(tail, RESERVE_BYTES)? {
            Reserved::Done => Kind::Beyond {
                to: tail + RESERVE_BYTES,
            },
            Reserved::Unsupported => {
                fill(disk, &path)?;
                Kind::File
            }
        };
        Ok(Reserve { kind, path })
    }

    /// The directory was renamed.
    pub fn moved_to(&mut self, dir: &Path) {
        self.path = dir.join(FILE_NAME);
    }

    /// Makes room for `bytes` at `tail` with the reserve intact behind them.
    pub fn make_room(&mut self, file: &mut dyn LogFile, tail: u64, bytes: u64) -> io::Result<Room> {
        let to = match self.kind {
            Kind::File => return Ok(Room::Plenty),
            Kind::Spent { to } => return Ok(Room::Scarce(to.saturating_sub(tail))),
            Kind::Beyond { to } => to,
        };
        let wanted = tail + bytes + RESERVE_BYTES;
        if wanted <= to {
            return Ok(Room::Plenty);
        }
        for wanted in [wanted + STEP_BYTES, wanted] {
            match file.reserve(to, wanted - to) {
                Ok(_) => {
                    self.kind = Kind::Beyond { to: wanted };
                    return Ok(Room::Plenty);
                }
                Err(e) if is_no_space(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Room::Scarce(to.saturating_sub(tail)))
    }

    /// A write found the disk full in spite of the reserve (no fallocate, or a file system that
    /// copies on write): give it back, so that the next write finds that much space.
    pub fn release(&mut self, disk: &dyn Disk, tail: u64) -> io::Result<()> {
        match self.kind {
            Kind::File => disk.remove_file(&self.path)?,
            // Cutting the log back has freed what lay beyond its end.
            Kind::Beyond { .. } => {}
            Kind::Spent { .. } => return Ok(()),
        }
        self.kind = Kind::Spent {
            to: tail + RESERVE_BYTES,
        };
        Ok(())
    }

    /// The session ends: nothing is kept.
    pub fn end(&mut self, disk: &dyn Disk, file: &mut dyn LogFile, tail: u64) -> io::Result<()> {
        match self.kind {
            Kind::Beyond { .. } => file.set_len(tail),
            Kind::File => disk.remove_file(&self.path),
            Kind::Spent { .. } => Ok(()),
        }
    }
}

/// Writes real bytes, not zeros: a compressing file system would keep nothing for those.
fn fill(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise: Vec<u8> = (0..RESERVE_BYTES / 8)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect();
    let mut file = disk.create_log(path)?;
    crate::commit::write_all(&mut *file, 0, &noise)?;
    file.sync()
}
