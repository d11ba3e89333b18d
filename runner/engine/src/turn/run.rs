//! The frame around turns: what a run logs first, between turns, and last.

use super::{Done, Engine, EngineError};
use crate::event::{
    Body, ErrorClass, HeaderReason, MessageSource, RequestHeader, RunResult, SandboxConfinement,
    UserMessage,
};
use crate::fold::{Fold, Node, Run};
use crate::outcome::{self, Signal};

/// What a run begins with.
pub struct RunStart {
    pub confinement: SandboxConfinement,
    /// Its `reason` is set here: `initial` in a new session, else `resume`.
    pub header: RequestHeader,
    /// Instruction files. They are logged before the next prompt, unless the model already sees
    /// the same bytes.
    pub context: Vec<UserMessage>,
}

/// What only the outside knows of a run's end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunEnd {
    pub signal: Option<Signal>,
    /// A failure outside any turn (no sandbox, no provider).
    pub failure: Option<ErrorClass>,
    pub cost_usd: Option<f64>,
}

impl Engine {
    /// Logs the confinement, first in every run. The request header follows before the first request.
    pub fn begin_run(&mut self, now: u64, start: RunStart) -> Done {
        self.now = now;
        self.need_idle()?;
        if self.fold.open_run().is_some() {
            return Err(EngineError::Begun);
        }
        let unseen = start
            .context
            .into_iter()
            .filter(|message| !is_seen(&self.fold, message))
            .collect();
        self.context = unseen;
        self.await_header(start.header, HeaderReason::Resume);
        let done = self.log(Body::SandboxConfinement(Box::new(start.confinement)));
        self.conclude(done.map(drop))
    }

    /// Another model, system prompt or set of tools from the next request on.
    pub fn change_header(&mut self, now: u64, header: RequestHeader) -> Done {
        self.now = now;
        self.need_idle()?;
        let reason = self
            .header
            .take()
            .map_or(HeaderReason::Change, |waiting| waiting.reason);
        self.await_header(header, reason);
        Ok(())
    }

    fn await_header(&mut self, mut header: RequestHeader, later: HeaderReason) {
        header.reason = if self.fold.request_header().is_some() {
            later
        } else {
            HeaderReason::Initial
        };
        self.header = Some(header);
    }

    /// The header that waits, if one does; after the messages, as seed 001 orders a step.
    pub(super) fn log_header(&mut self) -> Done {
        match self.header.take() {
            Some(header) => self.log(Body::RequestHeader(Box::new(header))).map(drop),
            None => Ok(()),
        }
    }

    /// Logs facts between turns, durably: checks and what they met.
    pub fn record(&mut self, now: u64, facts: Vec<Body>) -> Done {
        self.now = now;
        self.need_idle()?;
        let may = |fact: &Body| matches!(fact, Body::CheckResult(_)) || self.is_fact(fact);
        if let Some(stranger) = facts.iter().find(|fact| !may(fact)) {
            return Err(EngineError::NotAFact {
                kind: crate::codec::type_name(stranger).to_owned(),
            });
        }
        let mut done = Ok(());
        for fact in facts {
            done = done.and_then(|()| self.log(fact).map(drop));
        }
        self.barrier = true;
        self.conclude(done)
    }

    /// Logs the run's `result`, its last record, and returns it.
    pub fn end_run(&mut self, now: u64, end: RunEnd) -> Result<RunResult, EngineError> {
        self.now = now;
        self.need_idle()?;
        let result = run_result(&self.fold, now, end).ok_or(EngineError::NotBegun)?;
        self.barrier = true;
        let done = self.log(Body::Result(Box::new(result.clone()))).map(drop);
        self.conclude(done)?;
        Ok(result)
    }

    fn need_idle(&self) -> Done {
        if self.is_stopped() {
            return Err(EngineError::Stopped);
        }
        if self.is_idle() {
            Ok(())
        } else {
            Err(EngineError::Busy)
        }
    }
}

/// The `result` of the open run. Also what goes to stdout, with `logged: false`, when the log can
/// take nothing more.
pub fn run_result(fold: &Fold, now: u64, end: RunEnd) -> Option<RunResult> {
    let run = fold.open_run()?;
    let outcome = outcome::of_run(run, end.signal, end.failure);
    Some(result_of(fold, run, now, outcome, end.cost_usd))
}

fn result_of(
    fold: &Fold,
    run: &Run,
    now: u64,
    outcome: outcome::Outcome,
    cost_usd: Option<f64>,
) -> RunResult {
    RunResult {
        status: outcome.status.to_owned(),
        exit_code: outcome.exit.code(),
        reason: outcome.reason,
        session_id: fold.header().id.clone(),
        run: run.run,
        steps: run.steps,
        usage: run.usage,
        cost_usd: cost_usd.filter(|cost| cost.is_finite()),
        duration_ms: now.saturating_sub(run.started_ms),
        final_message: run.final_message.clone(),
        checks: run.checks.clone(),
        denials: run.denials,
        changed: run.changed.iter().cloned().collect(),
        logged: true,
    }
}

/// Whether the model already sees this instruction file with these bytes.
fn is_seen(fold: &Fold, message: &UserMessage) -> bool {
    matches!(message.source, MessageSource::Instructions { .. })
        && fold
            .nodes()
            .any(|node| matches!(node, Node::User { source, .. } if *source == message.source))
}
