//! A step's request: durable, sent, streamed, retried with the same bytes, answered.

use super::io::{Delta, Effect, RequestId, TimerId};
use super::stream::Coalescer;
use super::{
    CALLS_PER_STEP_MAX, Done, EMPTY_RETRY_MS, Engine, EngineError, LENGTH_CUTS_MAX, State, notice,
};
use crate::assemble::Assembled;
use crate::event::{
    AssistantChunk, AssistantMessage, Body, CallRef, ErrorClass, FailureKind, Finish, ModelFailure,
    ModelRetry, RequestSent, StepMark, TurnEndReason, Usage,
};
use crate::fold::CALL_ID_PREFIX;
use crate::hash::sha256_hex;
use crate::projection;

/// One step's body on its way.
pub(super) struct Request {
    id: RequestId,
    body: Vec<u8>,
    stage: Stage,
    stream: Coalescer,
}

enum Stage {
    /// `request/sent` is written, not yet durable.
    Logged {
        seq: u64,
    },
    Streaming,
    /// `model/retry` is written, not yet durable.
    RetryLogged {
        seq: u64,
        delay_ms: u64,
    },
    Waiting {
        timer: TimerId,
    },
}

impl Request {
    /// What ends it, if it is on the wire.
    pub(super) fn abort(&self) -> Option<Effect> {
        matches!(self.stage, Stage::Streaming).then_some(Effect::CancelModel { request: self.id })
    }
}

impl Engine {
    /// Renders the step's only body from the log and logs its digest. It leaves once that is durable.
    pub(super) fn request(&mut self, mark: StepMark) -> Done {
        let header = self.fold.request_header().ok_or(EngineError::NotBegun)?;
        let body = self
            .config
            .wire
            .render(header, &projection::messages(&self.fold));
        let prefix = body.bytes.get(..body.prefix_len).unwrap_or(&body.bytes);
        let seq = self.log(Body::RequestSent(RequestSent {
            turn: mark.turn,
            step: mark.step,
            sha256: sha256_hex(&[&body.bytes]),
            bytes: body.bytes.len() as u64,
            prefix_sha256: sha256_hex(&[prefix]),
        }))?;
        self.barrier = true;
        let id = RequestId(self.next_id());
        let stream = Coalescer::default();
        self.state = State::Request(Request {
            id,
            body: body.bytes,
            stage: Stage::Logged { seq },
            stream,
        });
        Ok(())
    }

    pub(super) fn request_persisted(&mut self) -> Done {
        let State::Request(request) = &self.state else {
            return Ok(());
        };
        match request.stage {
            Stage::Logged { seq } if self.is_durable(seq) => self.send(),
            Stage::RetryLogged { seq, delay_ms } if self.is_durable(seq) => {
                let timer = self.set_timer(delay_ms);
                self.set_stage(Stage::Waiting { timer });
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn request_timer(&mut self, id: TimerId) -> Done {
        if matches!(&self.state, State::Request(Request { stage: Stage::Waiting { timer }, .. }) if *timer == id)
        {
            self.send();
        }
        Ok(())
    }

    fn send(&mut self) {
        let request_id = RequestId(self.next_id());
        let mark = self.mark();
        let attempt = self.attempt();
        let State::Request(request) = &mut self.state else {
            return;
        };
        request.id = request_id;
        request.stage = Stage::Streaming;
        let body = request.body.clone();
        let (turn, step) = (mark.turn, mark.step);
        self.emit(Effect::CallModel {
            request: request_id,
            turn,
            step,
            attempt,
            body,
        });
    }

    fn set_stage(&mut self, stage: Stage) {
        if let State::Request(request) = &mut self.state {
            request.stage = stage;
        }
    }

    fn attempt(&self) -> u32 {
        self.fold.open_step().map_or(0, |step| step.attempt)
    }

    /// The running request, if `id` is its name. Anything else is late and means nothing now.
    fn streaming(&mut self, id: RequestId) -> Option<&mut Request> {
        match &mut self.state {
            State::Request(request)
                if request.id == id && matches!(request.stage, Stage::Streaming) =>
            {
                Some(request)
            }
            _ => None,
        }
    }

    pub(super) fn model_delta(&mut self, id: RequestId, delta: Delta) -> Done {
        let now = self.now;
        let Some(request) = self.streaming(id) else {
            return Ok(());
        };
        let ready = request.stream.push(now, delta);
        self.log_chunks(ready)
    }

    fn log_chunks(&mut self, pieces: impl IntoIterator<Item = Delta>) -> Done {
        let StepMark { turn, step } = self.mark();
        let attempt = self.attempt();
        for Delta { block, text } in pieces {
            self.log(Body::AssistantChunk(AssistantChunk {
                turn,
                step,
                attempt,
                block,
                text,
            }))?;
        }
        Ok(())
    }

    fn log_held_chunk(&mut self) -> Done {
        let held = match &mut self.state {
            State::Request(request) => request.stream.take(),
            _ => None,
        };
        self.log_chunks(held)
    }

    pub(super) fn model_end(
        &mut self,
        id: RequestId,
        finish: Finish,
        usage: Option<Usage>,
    ) -> Done {
        if self.streaming(id).is_none() {
            return Ok(());
        }
        self.log_held_chunk()?;
        let whole = self
            .fold
            .open_step()
            .map(|step| step.assembled())
            .unwrap_or_default();
        match finish {
            Finish::Stop | Finish::ToolCalls if whole.is_empty() => self.failed_by_us(
                FailureKind::EmptyResponse,
                "the model answered with nothing",
            ),
            Finish::Cut => self.failed_by_us(FailureKind::CutStream, "the stream was cut"),
            Finish::Stop | Finish::ToolCalls => self.take_answer(finish, usage, &whole),
            Finish::Length => self.take_cut_answer(usage, &whole),
            Finish::ContentFilter => {
                self.log_answer(finish, usage, &whole, 0)?;
                self.end_step()?;
                self.end_turn(TurnEndReason::Error(ErrorClass::Refusal), None)
            }
        }
    }

    /// A whole answer. Calls count whatever word the provider ended with.
    fn take_answer(&mut self, finish: Finish, usage: Option<Usage>, whole: &Assembled) -> Done {
        self.memory.length_cuts = 0;
        let taken = whole.calls.len().min(CALLS_PER_STEP_MAX);
        self.log_answer(finish, usage, whole, taken)?;
        self.memory.dropped_calls = (whole.calls.len() - taken) as u32;
        if taken > 0 {
            return self.begin_calls();
        }
        self.end_step()?;
        self.end_turn(TurnEndReason::Completed, None)
    }

    /// Calls of a cut answer may look whole and not be what was meant: none of them is run.
    fn take_cut_answer(&mut self, usage: Option<Usage>, whole: &Assembled) -> Done {
        self.memory.length_cuts += 1;
        self.log_answer(Finish::Length, usage, whole, 0)?;
        self.end_step()?;
        let dropped = whole.calls.len() as u32;
        if dropped == 0 || self.memory.length_cuts >= LENGTH_CUTS_MAX {
            return self.end_turn(TurnEndReason::MaxTokens, None);
        }
        self.say(notice::dropped_calls(dropped))?;
        self.next_step()
    }

    fn log_answer(
        &mut self,
        finish: Finish,
        usage: Option<Usage>,
        whole: &Assembled,
        taken: usize,
    ) -> Done {
        let first = self.fold.next_call();
        let numbered = whole.calls.iter().take(taken).zip(first..);
        let calls = numbered
            .map(|(call, number)| CallRef {
                call_id: format!("{CALL_ID_PREFIX}{number}"),
                index: call.index,
            })
            .collect();
        self.log_message(AssistantMessage {
            turn: self.mark().turn,
            step: self.mark().step,
            finish,
            calls,
            usage,
            interrupted: false,
            dropped_calls: (whole.calls.len() - taken) as u32,
        })
    }

    fn log_message(&mut self, message: AssistantMessage) -> Done {
        let chunks = self
            .fold
            .open_step()
            .map(|step| step.chunks.iter().map(|piece| piece.seq).collect());
        self.log_node(
            Body::AssistantMessage(message),
            Some(chunks.unwrap_or_default()),
        )
        .map(drop)
    }

    /// What streamed before the end came from our side is kept as an interrupted answer.
    fn keep_partial_answer(&mut self) -> Done {
        self.log_held_chunk()?;
        let Some(step) = self.fold.open_step().filter(|step| !step.chunks.is_empty()) else {
            return Ok(());
        };
        let dropped_calls = step.assembled().calls.len() as u32;
        let StepMark { turn, step } = self.mark();
        self.log_message(AssistantMessage {
            turn,
            step,
            finish: Finish::Cut,
            calls: Vec::new(),
            usage: None,
            interrupted: true,
            dropped_calls,
        })
    }

    fn failed_by_us(&mut self, kind: FailureKind, text: &str) -> Done {
        let failure = ModelFailure {
            kind,
            status: None,
            retry_after_ms: None,
            text: text.to_owned(),
        };
        let delay = EMPTY_RETRY_MS.saturating_mul(1 << self.attempt().min(6));
        self.failed(failure, Some(delay))
    }

    pub(super) fn model_failed(
        &mut self,
        id: RequestId,
        failure: ModelFailure,
        retry_in_ms: Option<u64>,
    ) -> Done {
        if self.streaming(id).is_none() {
            return Ok(());
        }
        self.log_held_chunk()?;
        self.failed(failure, retry_in_ms)
    }

    fn failed(&mut self, failure: ModelFailure, retry_in_ms: Option<u64>) -> Done {
        let attempt = self.attempt() + 1;
        let attempts_max = self.config.attempts_max;
        let Some(delay_ms) = retry_in_ms.filter(|_| attempt < attempts_max) else {
            self.keep_partial_answer()?;
            self.end_step()?;
            return self.end_turn(TurnEndReason::Error(class_of(failure.kind)), Some(failure));
        };
        let StepMark { turn, step } = self.mark();
        let retry = ModelRetry {
            turn,
            step,
            failure,
            attempt,
            attempts_max,
            delay_ms,
        };
        let seq = self.log(Body::ModelRetry(retry))?;
        self.barrier = true;
        self.set_stage(Stage::RetryLogged { seq, delay_ms });
        Ok(())
    }

    pub(super) fn cancel_request(&mut self) -> Done {
        if let State::Request(request) = &self.state
            && let Some(abort) = request.abort()
        {
            self.emit(abort);
        }
        self.keep_partial_answer()?;
        self.end_step()?;
        self.end_turn(self.cancel_reason(), None)
    }
}

/// Which class a failure that is not retried ends the turn with.
pub(super) fn class_of(kind: FailureKind) -> ErrorClass {
    match kind {
        FailureKind::Auth => ErrorClass::Auth,
        FailureKind::ContextWindow => ErrorClass::Context,
        FailureKind::RateLimit
        | FailureKind::Quota
        | FailureKind::Server
        | FailureKind::BadRequest
        | FailureKind::NotAModel
        | FailureKind::Connect
        | FailureKind::FirstByteTimeout
        | FailureKind::IdleTimeout
        | FailureKind::TotalTimeout
        | FailureKind::Transport
        | FailureKind::EmptyResponse
        | FailureKind::Malformed
        | FailureKind::InBandError
        | FailureKind::CutStream
        | FailureKind::TooLarge => ErrorClass::Provider,
    }
}
