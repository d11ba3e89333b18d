//! SSE framing, pushed: bytes in as they come, events out. The parser is `sse-stream`; it has no
//! size limit, so the bytes are counted before it sees them.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use sse_stream::SseByteStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Longest event, all its lines together. A call that writes a large file may come in one event.
pub const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest response. Each token costs some 200 bytes of framing.
pub const STREAM_BYTES_MAX: usize = 128 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub event_bytes: usize,
    pub stream_bytes: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            event_bytes: EVENT_BYTES_MAX,
            stream_bytes: STREAM_BYTES_MAX,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SseFault {
    #[error("an event is longer than {0} bytes")]
    EventTooLong(usize),
    #[error("the response is longer than {0} bytes")]
    StreamTooLong(usize),
    #[error("the stream is not valid SSE: {0}")]
    NotSse(sse_stream::Error),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub name: Option<String>,
    pub data: String,
}

/// What has been pushed and not yet parsed, as the stream the parser pulls from.
struct Pushed(UnboundedReceiver<Bytes>);

impl Stream for Pushed {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(Ok))
    }
}

pub(crate) struct SseReader {
    push: UnboundedSender<Bytes>,
    parser: SseByteStream<Pushed>,
    meter: Meter,
}

impl SseReader {
    pub(crate) fn new(caps: Caps) -> Self {
        let (push, pushed) = unbounded_channel();
        Self {
            push,
            parser: SseByteStream::new(Pushed(pushed)),
            meter: Meter::new(caps),
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: Bytes) -> Result<(), SseFault> {
        self.meter.count(&bytes)?;
        self.send(bytes);
        Ok(())
    }

    /// The stream ended: ends a last event that lacks its blank line. Returns whether there was a
    /// line to end, which may then be half a line.
    pub(crate) fn end(&mut self) -> bool {
        let open = self.meter.event > 0;
        self.send(Bytes::from_static(b"\n\n"));
        open
    }

    /// The next whole event, or `None` until more bytes are pushed.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent>, SseFault> {
        loop {
            match self.parser.next().now_or_never() {
                None | Some(None) => return Ok(None),
                Some(Some(Err(fault))) => return Err(SseFault::NotSse(fault)),
                Some(Some(Ok(sse))) => {
                    if let Some(data) = sse.data {
                        return Ok(Some(SseEvent {
                            name: sse.event,
                            data,
                        }));
                    }
                }
            }
        }
    }

    fn send(&self, bytes: Bytes) {
        // The receiver lives in `parser`, beside the sender: it cannot be gone.
        if self.push.send(bytes).is_err() {
            tracing::error!("the SSE parser lost its input");
        }
    }
}

/// Counts the bytes of the running event and of the stream.
struct Meter {
    caps: Caps,
    event: usize,
    stream: usize,
    line_bytes: usize,
    after_cr: bool,
}

impl Meter {
    fn new(caps: Caps) -> Self {
        Self {
            caps,
            event: 0,
            stream: 0,
            line_bytes: 0,
            after_cr: false,
        }
    }

    fn count(&mut self, bytes: &[u8]) -> Result<(), SseFault> {
        self.stream += bytes.len();
        if self.stream > self.caps.stream_bytes {
            return Err(SseFault::StreamTooLong(self.caps.stream_bytes));
        }
        for byte in bytes {
            let completes_crlf = *byte == b'\n' && self.after_cr;
            self.after_cr = *byte == b'\r';
            match byte {
                _ if completes_crlf => {}
                b'\n' | b'\r' => {
                    // A blank line ends the event (WHATWG HTML, 9.2.6).
                    self.event = if self.line_bytes == 0 {
                        0
                    } else {
                        self.event + 1
                    };
                    self.line_bytes = 0;
                }
                _ => {
                    self.line_bytes += 1;
                    self.event += 1;
                    if self.event > self.caps.event_bytes {
                        return Err(SseFault::EventTooLong(self.caps.event_bytes));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
