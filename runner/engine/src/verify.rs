//! Is a log what it says it is? The decoder has checked chain, seq and vocabulary; here the fold
//! checks nesting, pairing and surface, and every request is made again and compared.

use thiserror::Error;

use crate::event::{Body, Event, Header, RequestSent};
use crate::fold::{Fold, FoldError};
use crate::hash::sha256_hex;
use crate::projection;
use crate::wire::{RequestBody, Wire};

/// Consistent, not authentic: whoever can write the file can make another consistent one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub events: u64,
    pub turns: u64,
    pub steps: u64,
    /// Requests made again, all with the bytes that were sent.
    pub requests: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifyError {
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error("event {seq}: no renderer is called `{wire}`; a newer curfew may have it")]
    UnknownWire { seq: u64, wire: String },
    #[error("event {seq}: the request made again is not what was sent ({what})")]
    NotWhatWasSent { seq: u64, what: &'static str },
    #[error("the session has {steps} steps; there is no step {step}")]
    NoSuchStep { step: u64, steps: u64 },
    #[error("step {step} sent no request")]
    NothingSent { step: u64 },
}

/// Takes a log event by event, in bounded memory beyond the fold.
pub struct Verifier<'a> {
    wires: &'a [&'a dyn Wire],
    fold: Fold,
    requests: u64,
}

impl<'a> Verifier<'a> {
    pub fn new(header: Header, wires: &'a [&'a dyn Wire]) -> Self {
        Self {
            wires,
            fold: Fold::new(header),
            requests: 0,
        }
    }

    pub fn event(&mut self, event: &Event) -> Result<(), VerifyError> {
        if let Body::RequestSent(sent) = &event.body {
            let body = self.rebuild(event.seq)?;
            compare(event.seq, sent, &body)?;
            self.requests += 1;
        }
        self.fold.apply(event)?;
        Ok(())
    }

    /// The state so far.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    pub fn finish(self) -> Verified {
        Verified {
            events: self.fold.next_seq(),
            turns: self.fold.turns(),
            steps: self.fold.steps(),
            requests: self.requests,
        }
    }

    fn rebuild(&self, seq: u64) -> Result<RequestBody, VerifyError> {
        let header = self.fold.request_header().ok_or(VerifyError::UnknownWire {
            seq,
            wire: String::new(),
        })?;
        let wire = self.wires.iter().find(|wire| wire.name() == header.wire);
        let wire = wire.ok_or_else(|| VerifyError::UnknownWire {
            seq,
            wire: header.wire.clone(),
        })?;
        Ok(wire.render(header, &projection::messages(&self.fold)))
    }
}

fn compare(seq: u64, sent: &RequestSent, body: &RequestBody) -> Result<(), VerifyError> {
    let prefix = body.bytes.get(..body.prefix_len).unwrap_or(&body.bytes);
    let differs = if sent.bytes != body.bytes.len() as u64 {
        Some("length")
    } else if sent.sha256 != sha256_hex(&[&body.bytes]) {
        Some("bytes")
    } else if sent.prefix_sha256 != sha256_hex(&[prefix]) {
        Some("prefix")
    } else {
        None
    };
    match differs {
        Some(what) => Err(VerifyError::NotWhatWasSent { seq, what }),
        None => Ok(()),
    }
}

/// Verifies a log held in memory.
pub fn verify(
    header: Header,
    events: &[Event],
    wires: &[&dyn Wire],
) -> Result<Verified, VerifyError> {
    let mut verifier = Verifier::new(header, wires);
    for event in events {
        verifier.event(event)?;
    }
    Ok(verifier.finish())
}

/// The body that step `step` sent, 1-based over all `step/start` of the session, compared with the
/// digest that was logged when it left.
pub fn request_of_step(
    header: Header,
    events: &[Event],
    step: u64,
    wires: &[&dyn Wire],
) -> Result<RequestBody, VerifyError> {
    let mut verifier = Verifier::new(header, wires);
    for event in events {
        if let Body::RequestSent(sent) = &event.body
            && verifier.fold.steps() == step
        {
            let body = verifier.rebuild(event.seq)?;
            compare(event.seq, sent, &body)?;
            return Ok(body);
        }
        verifier.fold.apply(event)?;
    }
    let steps = verifier.fold.steps();
    if step == 0 || step > steps {
        Err(VerifyError::NoSuchStep { step, steps })
    } else {
        Err(VerifyError::NothingSent { step })
    }
}
