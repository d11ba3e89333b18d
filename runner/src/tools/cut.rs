//! Output of any length in bounded memory: a head, a tail, exact counts, and a blob with the rest.

use std::collections::VecDeque;

use curfew_engine::event::BlobRef;

/// A result longer than this is cut …
pub const RESULT_CHARS_MAX: usize = 8192;
/// … to this much of its beginning …
pub const HEAD_CHARS: usize = 4096;
/// … and this much of its end.
pub const TAIL_CHARS: usize = 1024;

/// A stream being captured.
#[derive(Debug, Default)]
pub struct Capture {
    head: String,
    head_chars: usize,
    /// What follows the head: all of it while nothing is cut, its end afterwards.
    rest: VecDeque<char>,
    /// The bytes so far, while no blob is needed.
    raw: Vec<u8>,
    keeps: Raw,
    chars: u64,
    bytes: u64,
    lossy: bool,
    /// The beginning of a character whose end has not arrived.
    partial: Vec<u8>,
}

/// A captured stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// What the model will see.
    pub text: String,
    pub bytes: u64,
    pub truncated: bool,
    pub lossy: bool,
    pub blob: Option<BlobRef>,
}

/// Whether the bytes that arrive are also kept raw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Raw {
    /// So far they fit a result, and may be needed for a blob.
    #[default]
    Kept,
    /// Somebody else keeps them.
    Taken,
}

impl Capture {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.keeps == Raw::Kept {
            self.raw.extend_from_slice(bytes);
        }
        self.decode(bytes);
    }

    /// It is too long for a result: from now on the raw bytes belong into a blob.
    pub fn is_cut(&self) -> bool {
        self.chars > RESULT_CHARS_MAX as u64
    }

    /// The raw bytes so far; later ones are the taker's to keep.
    pub fn take_raw(&mut self) -> Vec<u8> {
        self.keeps = Raw::Taken;
        std::mem::take(&mut self.raw)
    }

    /// No more bytes will come. Returns the raw bytes that need a blob because their text is not
    /// all there is to them.
    pub fn close(&mut self) -> Option<Vec<u8>> {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.lossy = true;
            self.accept("\u{fffd}");
        }
        let needed = self.keeps == Raw::Kept && (self.lossy || self.is_cut());
        needed.then(|| self.take_raw())
    }

    pub fn finish(self, blob: Option<BlobRef>) -> Captured {
        let text = self.render(blob.as_ref());
        Captured {
            text,
            bytes: self.bytes,
            truncated: self.is_cut(),
            lossy: self.lossy,
            blob,
        }
    }

    fn decode(&mut self, bytes: &[u8]) {
        let mut joined = std::mem::take(&mut self.partial);
        let bytes = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.accept(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // Only at the very end can more bytes still make a character of it.
            let incomplete =
                std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && incomplete {
                self.partial = invalid.to_vec();
            } else {
                self.lossy = true;
                self.accept("\u{fffd}");
            }
        }
    }

    fn accept(&mut self, text: &str) {
        let mut text = text;
        if self.head_chars < HEAD_CHARS {
            let room = HEAD_CHARS - self.head_chars;
            let split = text
                .char_indices()
                .nth(room)
                .map_or(text.len(), |(at, _)| at);
            let (head, rest) = text.split_at(split);
            let count = head.chars().count();
            self.head.push_str(head);
            self.head_chars += count;
            self.chars += count as u64;
            text = rest;
        }
        if text.is_empty() {
            return;
        }
        self.chars += text.chars().count() as u64;
        // Going through each character of gigabytes would be the slow part: only the end can stay.
        let room = RESULT_CHARS_MAX - HEAD_CHARS;
        let from = text
            .char_indices()
            .rev()
            .nth(room - 1)
            .map_or(0, |(at, _)| at);
        self.rest.extend(text[from..].chars());
        let surplus = self.rest.len().saturating_sub(room);
        self.rest.drain(..surplus);
    }

    fn render(&self, blob: Option<&BlobRef>) -> String {
        let mut text = self.head.clone();
        if !self.is_cut() {
            text.extend(&self.rest);
            return text;
        }
        let omitted = self.chars - (HEAD_CHARS + TAIL_CHARS) as u64;
        text.push_str(&cut_note(omitted, self.chars, blob));
        text.extend(
            self.rest
                .iter()
                .skip(self.rest.len().saturating_sub(TAIL_CHARS)),
        );
        text
    }
}

fn cut_note(omitted: u64, chars: u64, blob: Option<&BlobRef>) -> String {
    let whole = match blob {
        Some(blob) if blob.cut => format!(
            "; the first {} bytes: read blob:{}",
            blob.bytes, blob.sha256
        ),
        Some(blob) => format!(
            "; all of it: read blob:{}",
            super::blob::id_of(&blob.sha256)
        ),
        None => String::from("; the whole could not be kept"),
    };
    format!("\n[cut here: {omitted} of {chars} characters omitted{whole}]\n")
}

#[cfg(test)]
mod tests;
