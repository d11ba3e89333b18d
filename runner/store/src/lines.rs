//! A log as lines, one in memory at a time.

use std::io::{self, BufRead, BufReader, Read};

use curfew_engine::codec::LINE_BYTES_MAX;

const BUFFER_BYTES: usize = 256 << 10;

pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Of the line that was read last; 1-based.
    pub number: u64,
    /// Where the line that was read last starts.
    pub offset: u64,
    next_offset: u64,
}

/// What ended a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Newline,
    /// The file ended first.
    Eof,
    /// It is longer than a record may be; only its beginning was read.
    TooLong,
}

impl<R: Read> Lines<R> {
    pub fn new(input: R) -> Lines<R> {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        Lines {
            input,
            line: Vec::new(),
            number: 0,
            offset: 0,
            next_offset: 0,
        }
    }

    /// Reads the next line; `None` at the end of the file.
    pub fn advance(&mut self) -> io::Result<Option<End>> {
        self.line.clear();
        let cap = LINE_BYTES_MAX as u64 + 1;
        let read = self
            .input
            .by_ref()
            .take(cap)
            .read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.offset = self.next_offset;
        self.next_offset += read as u64;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(Some(End::Newline));
        }
        Ok(Some(if read as u64 == cap {
            End::TooLong
        } else {
            End::Eof
        }))
    }

    /// The line that was read last, without its newline.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Length of what was read so far.
    pub fn read_bytes(&self) -> u64 {
        self.next_offset
    }
}
