//! Reads a command's output to its end, whatever its length: the head and tail for the model, the
//! rest into a blob while it arrives.

use std::io::{self, Read};

use curfew_engine::event::BlobRef;
use curfew_store::{Blobs, StoreError};

use super::cut::{Capture, Captured};

const READ_BYTES: usize = 64 << 10;

/// What was captured, and why the whole could not be kept, if it could not.
#[derive(Debug)]
pub struct Output {
    pub captured: Captured,
    pub unkept: Option<StoreError>,
}

/// Reads `source` to its end.
pub fn read_all(source: &mut dyn Read, blobs: &Blobs) -> Output {
    let mut capture = Capture::default();
    let mut buffer = vec![0; READ_BYTES];
    let mut ended = false;
    while !ended && !capture.is_cut() {
        ended = step(source, &mut buffer, &mut capture);
    }
    let mut kept = Ok(None);
    if capture.is_cut() {
        let head = capture.take_raw();
        let mut tee = Tee {
            head: io::Cursor::new(head),
            source,
            capture: &mut capture,
            ended: false,
        };
        kept = blobs.put(&mut tee).map(Some);
        ended = tee.ended;
    }
    // A blob that is full, or could not be written, must not stop the command.
    while !ended {
        ended = step(source, &mut buffer, &mut capture);
    }
    if let Some(raw) = capture.close() {
        kept = blobs.put_bytes(&raw).map(Some);
    }
    output(capture, kept)
}

/// The same rules for bytes that are all there.
pub fn of_bytes(bytes: &[u8], blobs: &Blobs) -> Output {
    let mut rest = bytes;
    read_all(&mut rest, blobs)
}

fn output(capture: Capture, kept: Result<Option<BlobRef>, StoreError>) -> Output {
    match kept {
        Ok(blob) => Output {
            captured: capture.finish(blob),
            unkept: None,
        },
        Err(error) => Output {
            captured: capture.finish(None),
            unkept: Some(error),
        },
    }
}

/// One read. Says whether the source has ended; a source that fails has.
fn step(source: &mut dyn Read, buffer: &mut [u8], capture: &mut Capture) -> bool {
    match source.read(buffer) {
        Ok(0) => true,
        Ok(count) => {
            capture.push(&buffer[..count]);
            false
        }
        Err(error) => error.kind() != io::ErrorKind::Interrupted,
    }
}

/// Gives the bytes on, and shows them to the capture as they pass.
struct Tee<'a> {
    /// Already shown.
    head: io::Cursor<Vec<u8>>,
    source: &'a mut dyn Read,
    capture: &'a mut Capture,
    ended: bool,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.head.read(buffer)?;
        if count > 0 {
            return Ok(count);
        }
        let count = self.source.read(buffer)?;
        self.ended = count == 0;
        self.capture.push(&buffer[..count]);
        Ok(count)
    }
}
