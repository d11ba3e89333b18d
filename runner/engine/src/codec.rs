//! Lines of the log to records and back, and the hash chain over them.
//!
//! A line is `{…,"hash":"<64 hex>"}`. The hash covers the previous line's hash (as its 64 ASCII
//! bytes; 64 zeros before the header) and this line's bytes up to the last `,"hash":`. It is taken
//! over the bytes as found, never over a re-encoding. It finds accidents; it is no signature.
//!
//! Lines here have no newline at their end; files have one after each. A last line without it is
//! torn.

mod error;
mod vocabulary;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::{Event, Header, SurfaceOp};
use crate::hash::{HEX_BYTES, is_sha256_hex, sha256_hex};

pub use error::{Cause, DecodeError, EncodeError};
pub use vocabulary::type_name;

/// The version this crate writes, and the newest it reads.
pub const LOG_VERSION: u32 = 1;
/// No line is longer; a longer one is refused by writers and readers.
pub const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

const HASH_KEY: &[u8] = b",\"hash\":";

/// Where a chain of lines stands: the hash of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    head: String,
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

impl Chain {
    /// Before the header.
    pub fn new() -> Self {
        Self {
            head: "0".repeat(HEX_BYTES),
        }
    }

    /// After the line with this hash. `None` when it is no SHA-256 in lowercase hex.
    pub fn at(head: &str) -> Option<Self> {
        is_sha256_hex(head).then(|| Self {
            head: head.to_owned(),
        })
    }

    pub fn head(&self) -> &str {
        &self.head
    }

    fn over(&self, covered: &[u8]) -> String {
        sha256_hex(&[self.head.as_bytes(), covered])
    }

    fn seal(&mut self, mut covered: Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        let bytes = covered.len() + HASH_KEY.len() + HEX_BYTES + "\"\"}".len();
        if bytes > LINE_BYTES_MAX {
            return Err(EncodeError::TooLong { bytes });
        }
        let hash = self.over(&covered);
        covered.extend_from_slice(HASH_KEY);
        covered.push(b'"');
        covered.extend_from_slice(hash.as_bytes());
        covered.extend_from_slice(b"\"}");
        self.head = hash;
        Ok(covered)
    }
}

/// Line 1, without its newline. The chain moves on.
pub fn encode_header(chain: &mut Chain, header: &Header) -> Result<Vec<u8>, EncodeError> {
    if header.version != LOG_VERSION {
        return Err(EncodeError::Version {
            version: header.version,
        });
    }
    let fields = serde_json::to_vec(header).map_err(|source| EncodeError::Json { source })?;
    let mut line = b"{\"type\":\"session\",".to_vec();
    line.extend_from_slice(unclosed(&fields[1..]));
    chain.seal(line)
}

/// An event's line, without its newline. The chain moves on; on error it stays.
pub fn encode_event(chain: &mut Chain, event: &Event) -> Result<Vec<u8>, EncodeError> {
    let kind = type_name(&event.body);
    if let crate::event::Body::Unknown { .. } = event.body {
        vocabulary::check_foreign(kind, event)?;
    }
    let kind = serde_json::to_string(kind).map_err(|source| EncodeError::Json { source })?;
    let data = vocabulary::encode_data(&event.body)?;
    let mut line = format!(
        "{{\"seq\":{},\"time\":{},\"type\":{kind},\"data\":{data}",
        event.seq, event.time
    );
    match event.surface_op {
        None => {}
        Some(SurfaceOp::Append) => line.push_str(",\"surfaceOp\":\"append\""),
        Some(SurfaceOp::Replace { start, end }) => {
            line.push_str(&format!(
                ",\"surfaceOp\":{{\"op\":\"replace\",\"start\":{start},\"end\":{end}}}"
            ));
        }
    }
    if let Some(seqs) = &event.source_event_seqs {
        let list: Vec<String> = seqs.iter().map(u64::to_string).collect();
        line.push_str(&format!(",\"sourceEventSeqs\":[{}]", list.join(",")));
    }
    if event.ignorable {
        line.push_str(",\"ignorable\":true");
    }
    chain.seal(line.into_bytes())
}

fn unclosed(object: &[u8]) -> &[u8] {
    object.strip_suffix(b"}").unwrap_or(object)
}

/// Whether a newline stood after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    Newline,
    EndOfFile,
}

/// One decoded line.
#[derive(Clone, Debug)]
pub enum Record {
    Header(Header),
    Event(Event),
}

/// Reads a log line by line, in bounded memory. After an error it stays where it was.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    chain: Chain,
    /// Lines decoded so far.
    lines: u64,
}

impl Decoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// The chain after the last good line: where a writer goes on.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The seq that the next event must have.
    pub fn next_seq(&self) -> u64 {
        self.lines.saturating_sub(1)
    }

    /// Decodes the next line (without its newline).
    pub fn line(&mut self, line: &[u8], end: LineEnd) -> Result<Record, DecodeError> {
        let (record, hash) = self.judge(line, end).map_err(|cause| DecodeError {
            line: self.lines + 1,
            seq: self.lines.checked_sub(1),
            cause,
        })?;
        self.chain.head = hash;
        self.lines += 1;
        Ok(record)
    }

    fn judge(&self, line: &[u8], end: LineEnd) -> Result<(Record, String), Cause> {
        if let Some(offset) = line.iter().position(|byte| *byte == 0) {
            let bytes = line[offset..].iter().take_while(|byte| **byte == 0).count();
            return Err(Cause::NulRun {
                offset,
                bytes,
                to_end: offset + bytes == line.len(),
            });
        }
        if end == LineEnd::EndOfFile {
            return Err(Cause::Torn { bytes: line.len() });
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(Cause::TooLong { bytes: line.len() });
        }
        let text = std::str::from_utf8(line).map_err(|source| Cause::NotUtf8 {
            offset: source.valid_up_to(),
        })?;
        if self.lines == 0 {
            refuse_newer(text)?;
        }
        let hash = self.check_hash(line)?;
        let record = if self.lines == 0 {
            Record::Header(decode_header(text)?)
        } else {
            Record::Event(decode_event(text, self.next_seq())?)
        };
        Ok((record, hash))
    }

    fn check_hash(&self, line: &[u8]) -> Result<String, Cause> {
        let at = line
            .windows(HASH_KEY.len())
            .rposition(|window| window == HASH_KEY)
            .ok_or(Cause::NoHash)?;
        let found = line[at + HASH_KEY.len()..]
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\"}"))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .filter(|hex| is_sha256_hex(hex))
            .ok_or(Cause::NoHash)?;
        let computed = self.chain.over(&line[..at]);
        if computed == found {
            Ok(computed)
        } else {
            Err(Cause::BadHash {
                found: found.to_owned(),
                computed,
            })
        }
    }
}

/// A whole log in memory, up to its first fault.
#[derive(Debug)]
pub struct Decoded {
    pub header: Header,
    pub events: Vec<Event>,
    pub chain: Chain,
    /// Bytes that decoded well.
    pub good_bytes: usize,
    /// What stopped the reading before the end.
    pub fault: Option<DecodeError>,
}

/// Decodes a log held in memory. The header must be good; after that everything up to the first
/// fault is returned with it.
pub fn decode(log: &[u8]) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder::new();
    let mut lines = log.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let (line, end) = trim(first);
    let header = match decoder.line(line, end)? {
        Record::Header(header) => header,
        Record::Event(_) => {
            return Err(DecodeError {
                line: 1,
                seq: None,
                cause: Cause::NoHash,
            });
        }
    };
    let mut decoded = Decoded {
        header,
        events: Vec::new(),
        chain: decoder.chain.clone(),
        good_bytes: first.len(),
        fault: None,
    };
    for raw in lines {
        let (line, end) = trim(raw);
        match decoder.line(line, end) {
            Ok(Record::Event(event)) => decoded.events.push(event),
            Ok(Record::Header(_)) => break,
            Err(fault) => {
                decoded.fault = Some(fault);
                break;
            }
        }
        decoded.good_bytes += raw.len();
        decoded.chain = decoder.chain.clone();
    }
    Ok(decoded)
}

fn trim(raw: &[u8]) -> (&[u8], LineEnd) {
    match raw.strip_suffix(b"\n") {
        Some(line) => (line, LineEnd::Newline),
        None => (raw, LineEnd::EndOfFile),
    }
}

#[derive(Deserialize)]
struct VersionOnly {
    #[serde(default)]
    version: Option<u64>,
}

/// A newer format may differ in everything else, so this is judged before all else.
fn refuse_newer(text: &str) -> Result<(), Cause> {
    match serde_json::from_str::<VersionOnly>(text) {
        Ok(VersionOnly {
            version: Some(version),
        }) if version > u64::from(LOG_VERSION) => Err(Cause::NewerVersion { version }),
        _ => Ok(()),
    }
}

fn decode_header(text: &str) -> Result<Header, Cause> {
    #[derive(Deserialize)]
    struct Tagged<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
    }
    let tag: Tagged = serde_json::from_str(text).map_err(Cause::json)?;
    if tag.kind != "session" {
        return Err(Cause::NotAHeader {
            kind: tag.kind.into_owned(),
        });
    }
    // The tag and the hash are the codec's; the rest must be exactly a header.
    let inner = text
        .strip_prefix("{\"type\":\"session\",")
        .and_then(|rest| {
            rest.rfind(",\"hash\":")
                .map(|at| format!("{{{}}}", &rest[..at]))
        })
        .ok_or_else(|| Cause::NotAHeader {
            kind: tag.kind.into_owned(),
        })?;
    let header: Header = serde_json::from_str(&inner).map_err(Cause::json)?;
    if header.version == LOG_VERSION {
        Ok(header)
    } else {
        Err(Cause::OldVersion {
            version: header.version,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    seq: u64,
    time: u64,
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(default)]
    surface_op: Option<SurfaceOpLine>,
    #[serde(default)]
    source_event_seqs: Option<Vec<u64>>,
    #[serde(default)]
    ignorable: bool,
    #[serde(rename = "hash")]
    _hash: &'a str,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum SurfaceOpLine {
    Word(AppendWord),
    Replace {
        op: ReplaceWord,
        start: u64,
        end: u64,
    },
}

#[derive(Deserialize)]
enum AppendWord {
    #[serde(rename = "append")]
    Append,
}

#[derive(Deserialize)]
enum ReplaceWord {
    #[serde(rename = "replace")]
    Replace,
}

fn decode_event(text: &str, expected_seq: u64) -> Result<Event, Cause> {
    let line: Line = serde_json::from_str(text).map_err(Cause::json)?;
    if line.seq != expected_seq {
        return Err(Cause::BadSeq {
            found: line.seq,
            expected: expected_seq,
        });
    }
    let body = vocabulary::decode_data(&line.kind, line.data, line.ignorable)?;
    Ok(Event {
        seq: line.seq,
        time: line.time,
        body,
        surface_op: line.surface_op.map(|op| match op {
            SurfaceOpLine::Word(AppendWord::Append) => SurfaceOp::Append,
            SurfaceOpLine::Replace {
                op: ReplaceWord::Replace,
                start,
                end,
            } => SurfaceOp::Replace { start, end },
        }),
        source_event_seqs: line.source_event_seqs,
        ignorable: line.ignorable,
    })
}

#[cfg(test)]
mod tests;
