//! Reading a log record by record, in the memory of one record.

use std::io::Read;
use std::path::{Path, PathBuf};

use curfew_engine::codec::{self, Chain, Decoder, LINE_BYTES_MAX, LineEnd};
use curfew_engine::event::{Event, Header};

use crate::disk::Disk;
use crate::error::{Cause, Damage, StoreError};
use crate::lines::{End, Lines};

/// A session's log, read from its beginning. Changes nothing and takes no lock, so it also reads
/// a log that somebody is writing.
pub struct LogReader {
    path: PathBuf,
    lines: Lines<Box<dyn Read + Send>>,
    decoder: Decoder,
    header: Header,
    header_line: Vec<u8>,
    /// Length of the whole records so far.
    good_bytes: u64,
    tail: Tail,
}

/// One event and where it stands.
#[derive(Debug)]
pub struct Record<'a> {
    pub event: Event,
    /// As found, without its newline.
    pub line: &'a [u8],
    /// 1-based.
    pub number: u64,
    /// Of the line's first byte.
    pub offset: u64,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Not reached yet.
    Ahead,
    Clean,
    /// The last record is whole, chained and correct; only its newline is missing.
    NoNewline,
    /// The last record was not written to its end.
    Torn(Torn),
}

/// A last record that was not written to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// 1-based.
    pub line: u64,
    /// The seq it would have had.
    pub seq: u64,
    pub offset: u64,
    pub bytes: u64,
}

impl LogReader {
    pub(crate) fn open(disk: &dyn Disk, path: &Path, id: &str) -> Result<LogReader, StoreError> {
        let input = disk.read(path).map_err(StoreError::io("open", path))?;
        let mut lines = Lines::new(input);
        let mut decoder = Decoder::new();
        let damaged = |cause| {
            StoreError::from(Damage {
                path: path.to_owned(),
                line: 1,
                seq: None,
                offset: 0,
                cause,
            })
        };
        let end = lines.advance().map_err(StoreError::io("read", path))?;
        let end = match end {
            None => return Err(damaged(Cause::Empty)),
            Some(End::TooLong) => {
                return Err(damaged(Cause::LineTooLong {
                    max: LINE_BYTES_MAX,
                }));
            }
            Some(End::Newline) => LineEnd::Newline,
            Some(End::Eof) => LineEnd::EndOfFile,
        };
        let header = match decoder.line(lines.line(), end) {
            Ok(codec::Record::Header(header)) => header,
            Ok(codec::Record::Event(_)) => return Err(damaged(Cause::NoHeader)),
            Err(e) => return Err(damaged(Cause::Codec(e.cause))),
        };
        if header.id != id {
            return Err(damaged(Cause::OtherSession { found: header.id }));
        }
        let header_line = lines.line().to_vec();
        let good_bytes = lines.read_bytes();
        Ok(LogReader {
            path: path.to_owned(),
            lines,
            decoder,
            header,
            header_line,
            good_bytes,
            tail: Tail::Ahead,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Line 1 as found, without its newline.
    pub fn header_line(&self) -> &[u8] {
        &self.header_line
    }

    /// The chain after the last record that was returned.
    pub fn chain(&self) -> &Chain {
        self.decoder.chain()
    }

    pub fn next_seq(&self) -> u64 {
        self.decoder.next_seq()
    }

    /// Length of the header and of the records that were returned, newlines included.
    pub fn good_bytes(&self) -> u64 {
        self.good_bytes
    }

    /// How the log ends, once `next_record` has returned `None`.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// The next event. `None` at the end, be it clean or torn: see [`LogReader::tail`]. After an
    /// error, what was returned before stands.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, StoreError> {
        if self.tail != Tail::Ahead {
            return Ok(None);
        }
        let Some(end) = self
            .lines
            .advance()
            .map_err(StoreError::io("read", &self.path))?
        else {
            self.tail = Tail::Clean;
            return Ok(None);
        };
        let event = match end {
            End::TooLong => {
                return Err(self.damage(Cause::LineTooLong {
                    max: LINE_BYTES_MAX,
                }));
            }
            End::Newline => self.decode()?,
            End::Eof => match self.decode() {
                Ok(event) => {
                    self.tail = Tail::NoNewline;
                    event
                }
                // Whatever is wrong with it, nobody was told that this record was written.
                Err(_) => {
                    self.tail = Tail::Torn(self.torn());
                    return Ok(None);
                }
            },
        };
        self.good_bytes = self.lines.read_bytes();
        let (number, offset) = (self.lines.number, self.lines.offset);
        Ok(Some(Record {
            event,
            line: self.lines.line(),
            number,
            offset,
        }))
    }

    fn decode(&mut self) -> Result<Event, StoreError> {
        match self.decoder.line(self.lines.line(), LineEnd::Newline) {
            Ok(codec::Record::Event(event)) => Ok(event),
            Ok(codec::Record::Header(_)) => Err(self.damage(Cause::NoHeader)),
            Err(e) => Err(self.damage(Cause::Codec(e.cause))),
        }
    }

    fn torn(&self) -> Torn {
        Torn {
            line: self.lines.number,
            seq: self.decoder.next_seq(),
            offset: self.lines.offset,
            bytes: self.lines.read_bytes() - self.lines.offset,
        }
    }

    /// The line that was read last, as damage.
    pub(crate) fn damage(&self, cause: Cause) -> StoreError {
        StoreError::from(Damage {
            path: self.path.clone(),
            line: self.lines.number,
            seq: Some(self.decoder.next_seq()),
            offset: self.lines.offset,
            cause,
        })
    }

    /// A record that was returned and does not belong there.
    pub(crate) fn damage_at(&self, line: u64, offset: u64, seq: u64, cause: Cause) -> StoreError {
        StoreError::from(Damage {
            path: self.path.clone(),
            line,
            seq: Some(seq),
            offset,
            cause,
        })
    }

    /// Reads to the end for the sake of checking.
    pub fn check(&mut self) -> Result<Tail, StoreError> {
        while self.next_record()?.is_some() {}
        Ok(self.tail)
    }
}
