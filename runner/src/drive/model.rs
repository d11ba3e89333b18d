//! Requests on the wire: sent as a task, told piece by piece, retried by the rules of the model
//! crate.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use curfew_engine::Input;
use curfew_engine::event::{FailureKind, ModelFailure};
use curfew_engine::turn::io::RequestId;
use curfew_model::{End, Stopped, retry};
use tokio_util::sync::CancellationToken;

use super::{Drive, Happening};
use crate::provider;

/// The request that is on the wire, or was last.
#[derive(Debug)]
pub(super) struct Sent {
    request: RequestId,
    attempt: u32,
    cancel: CancellationToken,
    /// When the step failed first.
    failing_since: Option<Instant>,
}

impl Drive {
    pub(super) fn call_model(&mut self, request: RequestId, attempt: u32, body: Vec<u8>) {
        let failing_since = self
            .request
            .take()
            .filter(|_| attempt > 0)
            .and_then(|before| before.failing_since);
        let cancel = CancellationToken::new();
        self.request = Some(Sent {
            request,
            attempt,
            cancel: cancel.clone(),
            failing_since,
        });
        let (provider, tell) = (Arc::clone(&self.provider), self.tell.clone());
        tokio::spawn(async move {
            let pieces = tell.clone();
            let mut on_delta = move |delta| drop(pieces.send(Happening::Delta { request, delta }));
            let ended = provider
                .run(Bytes::from(body), &cancel, &mut on_delta)
                .await;
            drop(tell.send(Happening::Answered { request, ended }));
        });
    }

    pub(super) fn cancel_model(&mut self, request: RequestId) {
        if let Some(sent) = self.request.as_ref().filter(|sent| sent.request == request) {
            sent.cancel.cancel();
        }
    }

    pub(super) fn answered(
        &mut self,
        request: RequestId,
        ended: Result<End, Stopped>,
    ) -> Option<Input> {
        let failure = match ended {
            Ok(End { finish, usage }) => {
                return Some(Input::ModelEnd {
                    request,
                    finish,
                    usage,
                });
            }
            // The engine asked for it and has gone on.
            Err(Stopped::Cancelled) => return None,
            Err(Stopped::Failed(failure)) => failure,
            Err(Stopped::Record(error)) => ModelFailure {
                kind: FailureKind::BadRequest,
                status: None,
                retry_after_ms: None,
                text: error.to_string(),
            },
        };
        let sent = self
            .request
            .as_mut()
            .filter(|sent| sent.request == request)?;
        let since = *sent.failing_since.get_or_insert_with(Instant::now);
        let elapsed_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let retry_in_ms = retry::decide(&failure, sent.attempt, elapsed_ms, provider::jitter());
        Some(Input::ModelFailed {
            request,
            failure,
            retry_in_ms,
        })
    }
}
