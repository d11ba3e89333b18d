//! One response, from its bytes to deltas and an end. No I/O and no clock: the transport, a
//! replayed file and the echo provider all push their bytes through here.

use std::time::SystemTime;

use bytes::Bytes;
use curfew_engine::event::{FailureKind, Finish, ModelFailure, Usage};
use curfew_engine::turn::io::Delta;
use reqwest::header::HeaderMap;

use crate::assemble::{AssembleFault, Assembler};
use crate::failure::{failure, of_error_value, of_status};
use crate::sse::{Caps, SseEvent, SseFault, SseReader};
use crate::wire::chunk::Chunk;

/// What is read of a body that is an error, a page or a whole JSON answer.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Blanks that are held back while it is open what a body is.
const BLANK_BYTES_MAX: usize = 4096;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How a response ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub finish: Finish,
    pub usage: Option<Usage>,
}

/// How far a response has come, which decides how long to wait for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing but blanks so far.
    Nothing,
    Running,
    /// A finish reason was seen: only usage and `[DONE]` may follow.
    Finished,
    /// `[DONE]`, or a body whose rest does not matter.
    Done,
}

/// How the bytes ended.
#[derive(Debug)]
pub(crate) enum BodyEnd {
    Clean,
    Broken(ModelFailure),
}

enum Mode {
    /// Blanks and a byte-order mark, until the first byte that tells what this is.
    Unknown(Vec<u8>),
    Sse(Box<SseReader>),
    /// A JSON answer, or the body of an error.
    Document(Vec<u8>),
}

pub(crate) struct Answer {
    status: u16,
    headers: HeaderMap,
    now: SystemTime,
    caps: Caps,
    mode: Mode,
    assembler: Assembler,
    done: bool,
    /// A chunk, however empty, has been understood.
    chunks: bool,
    /// The first byte that was not blank.
    first_byte: Option<u8>,
    /// The stream is over and its last line had no end.
    ended: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, headers: HeaderMap, now: SystemTime) -> Self {
        let ok = (200..300).contains(&status);
        let mode = if ok {
            Mode::Unknown(Vec::new())
        } else {
            Mode::Document(Vec::new())
        };
        Self {
            status,
            headers,
            now,
            caps: Caps::default(),
            mode,
            assembler: Assembler::default(),
            done: false,
            chunks: false,
            first_byte: None,
            ended: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    /// Takes the next bytes. Deltas that came before a failure are in `out` all the same.
    pub(crate) fn push(
        &mut self,
        bytes: &Bytes,
        out: &mut Vec<Delta>,
    ) -> Result<Progress, ModelFailure> {
        if !self.done {
            let bytes = self.sniff(bytes);
            match &mut self.mode {
                Mode::Unknown(_) => {}
                Mode::Document(body) => {
                    let room = DOCUMENT_BYTES_MAX.saturating_sub(body.len());
                    body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    if bytes.len() > room {
                        self.done = true;
                    }
                }
                Mode::Sse(reader) => {
                    reader.push(bytes).map_err(of_sse)?;
                    self.events(out)?;
                }
            }
        }
        Ok(self.progress())
    }

    /// The bytes are over.
    pub(crate) fn end(mut self, how: BodyEnd, out: &mut Vec<Delta>) -> Result<End, ModelFailure> {
        let status = self.status;
        match (
            std::mem::replace(&mut self.mode, Mode::Unknown(Vec::new())),
            how,
        ) {
            // A half-read error body still says what went wrong.
            (Mode::Document(body), _) if self.is_error() => {
                Err(of_status(status, &self.headers, &body, self.now))
            }
            (_, BodyEnd::Broken(fault)) if self.assembler.finish().is_none() => Err(fault),
            (Mode::Document(body), _) => self.whole_document(&body, out),
            (Mode::Unknown(_), _) => Err(failure(
                FailureKind::EmptyResponse,
                format!("HTTP {status} with an empty body"),
            )),
            (Mode::Sse(mut reader), _) => {
                let half = !self.done && reader.end();
                self.mode = Mode::Sse(reader);
                self.ended = half;
                if !self.done {
                    self.events(out)?;
                }
                self.close()
            }
        }
    }

    fn progress(&self) -> Progress {
        match (&self.mode, self.assembler.finish()) {
            _ if self.done => Progress::Done,
            (Mode::Unknown(_), _) => Progress::Nothing,
            (_, Some(_)) => Progress::Finished,
            (_, None) => Progress::Running,
        }
    }

    /// Decides by the first byte what a 2xx body is; content types lie. Returns what to parse.
    fn sniff(&mut self, bytes: &Bytes) -> Bytes {
        let Mode::Unknown(seen) = &mut self.mode else {
            return bytes.clone();
        };
        seen.extend_from_slice(bytes);
        let rest = seen.strip_prefix(BOM).unwrap_or(seen);
        // Half a byte-order mark tells nothing yet.
        if seen.len() < BOM.len() && BOM.starts_with(seen) {
            return Bytes::new();
        }
        let first = rest
            .iter()
            .copied()
            .find(|byte| !byte.is_ascii_whitespace());
        // Blank lines may be a server's way to keep a connection alive; SSE skips them.
        if first.is_none() && seen.len() < BLANK_BYTES_MAX {
            return Bytes::new();
        }
        let all = Bytes::from(std::mem::take(seen));
        self.first_byte = first;
        self.mode = match first {
            Some(b'{' | b'[' | b'<') => Mode::Document(Vec::new()),
            _ => Mode::Sse(Box::new(SseReader::new(self.caps))),
        };
        all
    }

    fn events(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelFailure> {
        loop {
            let Mode::Sse(reader) = &mut self.mode else {
                return Ok(());
            };
            let event = match reader.next() {
                Ok(Some(event)) if !self.done => event,
                Ok(_) => return Ok(()),
                // Half a character before the end of the stream is a cut as well.
                Err(_) if self.ended => return self.note_cut(),
                Err(fault) => return Err(of_sse(fault)),
            };
            self.event(event, out)?;
        }
    }

    fn event(&mut self, event: SseEvent, out: &mut Vec<Delta>) -> Result<(), ModelFailure> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let named_error = event.name.as_deref() == Some("error");
        let chunk = Chunk::parse(data);
        let chunk = match chunk {
            Ok(chunk) if !named_error => chunk,
            Ok(_) => return Err(of_named_error(data)),
            // Half a line before the end of the stream is a cut, not a wrong chunk.
            Err(_) if self.ended => return self.note_cut(),
            Err(_) if named_error => return Err(of_named_error(data)),
            Err(fault) => {
                return Err(failure(
                    FailureKind::Malformed,
                    format!("a chunk of the stream is not valid: {fault}"),
                ));
            }
        };
        self.chunks = true;
        self.chunk(chunk, out)
    }

    fn note_cut(&mut self) -> Result<(), ModelFailure> {
        self.chunks = true;
        Ok(())
    }

    fn chunk(&mut self, mut chunk: Chunk, out: &mut Vec<Delta>) -> Result<(), ModelFailure> {
        let error = chunk.take_error();
        for choice in chunk.choices.into_iter().flatten() {
            self.assembler.choice(choice, out).map_err(of_assembly)?;
        }
        if let Some(usage) = &chunk.usage {
            self.assembler.usage(usage);
        }
        error.map_or(Ok(()), |error| Err(of_error_value(&error)))
    }

    /// A 200 with one JSON document: an answer of a server that does not stream, an error in
    /// disguise, or not a model at all.
    fn whole_document(&mut self, body: &[u8], out: &mut Vec<Delta>) -> Result<End, ModelFailure> {
        let text = std::str::from_utf8(body)
            .unwrap_or("")
            .trim_start_matches('\u{feff}');
        let not_a_model = |what: &str| {
            failure(
                FailureKind::NotAModel,
                format!("HTTP 200 with {what} instead of a model's answer"),
            )
        };
        if self.first_byte == Some(b'<') {
            return Err(not_a_model("an HTML page"));
        }
        if let Ok(serde_json::Value::Array(items)) = serde_json::from_str(text)
            && let Some(first) = items.first()
            && first.get("error").is_some()
        {
            return Err(of_error_value(first));
        }
        let Ok(chunk) = Chunk::parse(text) else {
            // Valid so far and cut, or never JSON: both are a body we cannot use.
            let cut = serde_json::from_str::<serde::de::IgnoredAny>(text)
                .is_err_and(|fault| fault.is_eof());
            return Err(if cut {
                failure(
                    FailureKind::CutStream,
                    "the answer ends in the middle of its JSON document",
                )
            } else {
                not_a_model("something else")
            });
        };
        if chunk.choices.is_none() && chunk.error.is_none() {
            return Err(not_a_model("an unknown JSON document"));
        }
        self.chunks = true;
        self.chunk(chunk, out)?;
        self.close()
    }

    fn close(&self) -> Result<End, ModelFailure> {
        let wrote = self.assembler.wrote();
        match self.assembler.finish() {
            Some(Finish::Stop | Finish::ToolCalls) if !wrote => Err(failure(
                FailureKind::EmptyResponse,
                "the model ended its answer without a word or a call",
            )),
            Some(_) if self.assembler.stopped_inside_a_call() => Err(failure(
                FailureKind::CutStream,
                "the answer stops in the middle of a call's arguments",
            )),
            Some(finish) => Ok(End {
                finish,
                usage: self.assembler.usage_seen(),
            }),
            None if self.chunks => Err(failure(
                FailureKind::CutStream,
                "the stream ended without a finish reason",
            )),
            None if self.done
                || matches!(self.first_byte, Some(b':' | b'd' | b'e' | b'i' | b'r')) =>
            {
                Err(failure(
                    FailureKind::EmptyResponse,
                    "a stream without a single chunk",
                ))
            }
            None => Err(failure(
                FailureKind::NotAModel,
                format!(
                    "HTTP {} with text that is neither a stream nor JSON",
                    self.status
                ),
            )),
        }
    }
}

fn of_sse(fault: SseFault) -> ModelFailure {
    let kind = match fault {
        SseFault::EventTooLong(_) | SseFault::StreamTooLong(_) => FailureKind::TooLarge,
        SseFault::NotSse(_) => FailureKind::Malformed,
    };
    failure(kind, fault.to_string())
}

fn of_assembly(fault: AssembleFault) -> ModelFailure {
    let kind = match fault {
        AssembleFault::TooManyCalls => FailureKind::TooLarge,
        AssembleFault::FinishError => FailureKind::InBandError,
        AssembleFault::AfterFinish
        | AssembleFault::Arguments(_)
        | AssembleFault::UnknownFinish(_) => FailureKind::Malformed,
    };
    failure(kind, fault.to_string())
}

/// `event: error`, whose data may be JSON or words.
fn of_named_error(data: &str) -> ModelFailure {
    let value =
        serde_json::from_str(data).unwrap_or_else(|_| serde_json::Value::String(data.to_owned()));
    of_error_value(&value)
}

#[cfg(test)]
mod tests;
