//! The one way to ask a model, whoever answers.

use std::time::Duration;

use bytes::Bytes;
use curfew_engine::event::{FailureKind, ModelFailure};
use curfew_engine::turn::io::Delta;
use reqwest::header::HeaderMap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::{BodyEnd, End};
use crate::deadline::{Deadlines, Waited, wait};
use crate::exchange::{Body, Reading, Reply, read};
use crate::failure::{failure, for_people, of_status};
use crate::record::Tape;
use crate::replay::RecordedBody;
use crate::wire::record::RecordedEnd;
use crate::wire::{echo, models::ModelList};
use crate::{Http, ModelInfo, RecordError, Replay};

/// Longest list of models that is read.
const MODELS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A list of models is no work for a server.
const MODELS_WAIT: Duration = Duration::from_secs(15);

/// Why a request did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    #[error("cancelled")]
    Cancelled,
    #[error("{}", .0.text)]
    Failed(ModelFailure),
    /// The response came, its record could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl From<ModelFailure> for Stopped {
    fn from(failure: ModelFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Who answers.
#[derive(Debug)]
pub enum Provider {
    /// An OpenAI-compatible server.
    Http(Box<Http>),
    /// Recorded responses, in order.
    Replay(Replay),
    /// Built in: says the last user message back.
    Echo,
}

impl Provider {
    /// Sends one request body and reads its answer. `on_delta` gets the pieces in order, also
    /// those that came before a failure. Cancelling, or dropping the future, drops the connection.
    pub async fn run(
        &self,
        body: Bytes,
        cancel: &CancellationToken,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<End, Stopped> {
        let ended = match self {
            Self::Http(http) => run_http(http, body.clone(), cancel, on_delta).await,
            Self::Replay(replay) => run_local(replay.next_reply(), cancel, on_delta).await,
            Self::Echo => run_local(echo_reply(&body), cancel, on_delta).await,
        };
        ended.map_err(|stopped| self.inert(stopped, &body))
    }

    /// The models on offer, asked of `GET {baseUrl}/models`; none where nothing can be asked.
    pub async fn models(&self, cancel: &CancellationToken) -> Result<Vec<ModelInfo>, Stopped> {
        match self {
            Self::Http(http) => list_models(http, cancel)
                .await
                .map_err(|stopped| self.inert(stopped, b"")),
            Self::Replay(_) | Self::Echo => Ok(Vec::new()),
        }
    }

    /// No failure leaves this crate with a key, an echo of the request or control characters in it.
    fn inert(&self, stopped: Stopped, body: &[u8]) -> Stopped {
        let key = match self {
            Self::Http(http) => http.key.as_ref(),
            Self::Replay(_) | Self::Echo => None,
        };
        match stopped {
            Stopped::Failed(failure) => Stopped::Failed(for_people(failure, key, body)),
            other => other,
        }
    }
}

async fn run_http(
    http: &Http,
    body: Bytes,
    cancel: &CancellationToken,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<End, Stopped> {
    let started = Instant::now();
    let mut tape = http.recorder.as_ref().map(|_| Tape::of_request(&body));
    let ended = match http.post(body, started, cancel).await {
        Ok(response) => {
            let reply = reply_of(response);
            if let Some(tape) = &mut tape {
                tape.response(reply.status, &reply.headers);
            }
            let reading = Reading {
                started,
                deadlines: &http.deadlines,
                cancel,
                on_delta,
                tape: tape.as_mut(),
            };
            read(reply, reading).await
        }
        Err(Stopped::Failed(failure)) => {
            if let Some(tape) = &mut tape {
                tape.no_response(&for_people(failure.clone(), http.key.as_ref(), b""));
            }
            Err(failure.into())
        }
        Err(other) => Err(other),
    };
    if let (Some(recorder), Some(tape)) = (&http.recorder, tape)
        && !matches!(ended, Err(Stopped::Cancelled))
    {
        recorder.write(tape)?;
    }
    ended
}

async fn run_local(
    reply: Result<Reply, ModelFailure>,
    cancel: &CancellationToken,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<End, Stopped> {
    let deadlines = Deadlines::default();
    let started = Instant::now();
    read(
        reply?,
        Reading {
            started,
            deadlines: &deadlines,
            cancel,
            on_delta,
            tape: None,
        },
    )
    .await
}

fn reply_of(mut response: reqwest::Response) -> Reply {
    let headers = std::mem::take(response.headers_mut());
    Reply {
        status: response.status().as_u16(),
        headers,
        body: Body::Http(Box::new(response)),
    }
}

fn echo_reply(body: &[u8]) -> Result<Reply, ModelFailure> {
    let bad = |fault| {
        failure(
            FailureKind::BadRequest,
            format!("echo cannot read the request: {fault}"),
        )
    };
    let text = echo::last_user_text(body).map_err(bad)?;
    let events = echo::stream_of(&text).map_err(bad)?;
    let pieces = events.into_iter().map(Bytes::from).collect();
    let body = Body::Recorded(RecordedBody::new(pieces, RecordedEnd::Clean));
    Ok(Reply {
        status: 200,
        headers: HeaderMap::new(),
        body,
    })
}

async fn list_models(http: &Http, cancel: &CancellationToken) -> Result<Vec<ModelInfo>, Stopped> {
    let started = Instant::now();
    let response = http.get("models", started, cancel).await?;
    let Reply {
        status,
        headers,
        mut body,
    } = reply_of(response);
    let mut bytes = Vec::new();
    let end = loop {
        match wait(body.next(), started + MODELS_WAIT, cancel).await {
            Waited::Cancelled => return Err(Stopped::Cancelled),
            Waited::Ready(Ok(Some(piece))) if bytes.len() + piece.len() <= MODELS_BYTES_MAX => {
                bytes.extend_from_slice(&piece);
            }
            Waited::Ready(Ok(Some(_))) => {
                return Err(
                    failure(FailureKind::TooLarge, "the list of models is too long").into(),
                );
            }
            Waited::Ready(Ok(None)) => break BodyEnd::Clean,
            Waited::Ready(Err(fault)) => break BodyEnd::Broken(fault),
            Waited::Elapsed => {
                let text = "the list of models did not come in time";
                break BodyEnd::Broken(failure(FailureKind::IdleTimeout, text));
            }
        }
    };
    if !(200..300).contains(&status) {
        return Err(of_status(status, &headers, &bytes, std::time::SystemTime::now()).into());
    }
    match end {
        BodyEnd::Broken(fault) => Err(fault.into()),
        BodyEnd::Clean => ModelList::parse(&bytes).ok_or_else(|| {
            failure(
                FailureKind::NotAModel,
                format!("HTTP {status} without a list of models"),
            )
            .into()
        }),
    }
}
