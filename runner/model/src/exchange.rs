//! Moves the bytes of one response into an [`Answer`], under deadlines, until it ends.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use curfew_engine::event::{FailureKind, ModelFailure};
use curfew_engine::turn::io::Delta;
use reqwest::header::HeaderMap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Stopped;
use crate::answer::{Answer, BodyEnd, End, Progress};
use crate::deadline::{Deadlines, Waited, wait};
use crate::failure::failure;
use crate::http;
use crate::record::Tape;
use crate::replay::RecordedBody;

/// An error's body is only read for its message.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);
/// How long usage may lag behind the finish reason.
const AFTER_FINISH_WAIT: Duration = Duration::from_secs(5);
/// After `[DONE]` the end of the body is read so that the connection can be used again.
const AFTER_DONE_WAIT: Duration = Duration::from_millis(100);

pub(crate) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Body,
}

pub(crate) enum Body {
    Http(Box<reqwest::Response>),
    Recorded(RecordedBody),
}

impl Body {
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelFailure> {
        match self {
            Self::Http(response) => response
                .chunk()
                .await
                .map_err(|fault| http::of_body_fault(&fault)),
            Self::Recorded(body) => body.next().await,
        }
    }
}

/// One request's clock, its cancellation and where its deltas go.
pub(crate) struct Reading<'a> {
    pub started: Instant,
    pub deadlines: &'a Deadlines,
    pub cancel: &'a CancellationToken,
    pub on_delta: &'a mut (dyn FnMut(Delta) + Send),
    pub tape: Option<&'a mut Tape>,
}

/// Reads a reply to its end. Dropping the returned future drops the connection.
pub(crate) async fn read(reply: Reply, mut reading: Reading<'_>) -> Result<End, Stopped> {
    let Reply {
        status,
        headers,
        mut body,
    } = reply;
    let mut answer = Answer::new(status, headers, SystemTime::now());
    let mut progress = Progress::Nothing;
    let mut deltas = Vec::new();
    loop {
        let (until, too_late) = reading.patience(progress, answer.is_error());
        let end = match wait(body.next(), until, reading.cancel).await {
            Waited::Cancelled => return Err(Stopped::Cancelled),
            Waited::Ready(Ok(Some(bytes))) => {
                reading.note(&bytes);
                let pushed = answer.push(&bytes, &mut deltas);
                deltas.drain(..).for_each(&mut *reading.on_delta);
                progress = pushed?;
                continue;
            }
            Waited::Ready(Ok(None)) => BodyEnd::Clean,
            Waited::Ready(Err(fault)) => BodyEnd::Broken(fault),
            Waited::Elapsed => BodyEnd::Broken(too_late),
        };
        reading.note_end(&end);
        let ended = answer.end(end, &mut deltas);
        deltas.drain(..).for_each(&mut *reading.on_delta);
        return Ok(ended?);
    }
}

impl Reading<'_> {
    /// Until when to wait for the next byte, and what it is called when none came.
    fn patience(&self, progress: Progress, is_error: bool) -> (Instant, ModelFailure) {
        let now = Instant::now();
        let limits = self.deadlines;
        let (until, kind, what) = match progress {
            _ if is_error => (
                now + ERROR_BODY_WAIT.min(limits.idle),
                FailureKind::IdleTimeout,
                "error",
            ),
            Progress::Nothing => (
                self.started + limits.first_byte,
                FailureKind::FirstByteTimeout,
                "no byte of an answer came in time",
            ),
            Progress::Running => (
                now + limits.idle,
                FailureKind::IdleTimeout,
                "the stream fell silent",
            ),
            Progress::Finished => (
                now + AFTER_FINISH_WAIT.min(limits.idle),
                FailureKind::IdleTimeout,
                "finished",
            ),
            Progress::Done => (now + AFTER_DONE_WAIT, FailureKind::IdleTimeout, "done"),
        };
        let total = self.started + limits.total;
        if total < until {
            return (total, total_timeout(limits));
        }
        (until, failure(kind, what))
    }

    fn note(&mut self, bytes: &Bytes) {
        if let Some(tape) = &mut self.tape {
            tape.push(bytes);
        }
    }

    fn note_end(&mut self, end: &BodyEnd) {
        if let Some(tape) = &mut self.tape {
            tape.end(end);
        }
    }
}

pub(crate) fn total_timeout(limits: &Deadlines) -> ModelFailure {
    let text = format!(
        "the request took longer than {} s in all",
        limits.total.as_secs()
    );
    failure(FailureKind::TotalTimeout, text)
}
