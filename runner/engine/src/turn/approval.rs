//! Asking a person, once, about the very arguments that will run.

use super::calls::{ABORTED, Call, Calls, Stage};
use super::io::Effect;
use super::{Asks, Done, Engine};
use crate::event::{ApprovalAsked, ApprovalDecided, ApprovalOutcome, Body, ToolErrorCode};

impl Engine {
    /// The question is durable before it is shown.
    pub(super) fn log_question(&mut self, calls: &mut Calls, at: usize, why: String) -> Done {
        let call = &calls.calls[at];
        let asked = ApprovalAsked {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            digest: call.digest.clone(),
            why,
        };
        let seq = self.log(Body::ApprovalAsked(asked))?;
        self.barrier = true;
        calls.calls[at].stage = Stage::AskLogged { seq };
        Ok(())
    }

    pub(super) fn ask(&mut self, call: &mut Call) {
        let asks = self
            .config
            .tools
            .iter()
            .find(|tool| tool.name == call.name)
            .map(|tool| tool.asks.clone());
        let why = match asks {
            Some(Asks::Always { why }) => why,
            Some(Asks::Never) | None => String::new(),
        };
        self.emit(Effect::Ask {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            digest: call.digest.clone(),
            why,
        });
        call.stage = Stage::Asking {
            timer: self.set_timer(self.config.ask_deadline_ms),
        };
    }

    /// Only `allowed-once` for the very arguments that were shown grants; all else denies.
    pub(super) fn answered(
        &mut self,
        call_id: &str,
        digest: &str,
        outcome: ApprovalOutcome,
    ) -> Done {
        self.with_calls(|engine, calls| {
            let asking =
                |call: &Call| call.call_id == call_id && matches!(call.stage, Stage::Asking { .. });
            let Some(at) = calls.calls.iter().position(asking) else {
                return Ok(());
            };
            let outcome = match outcome {
                ApprovalOutcome::AllowedOnce if digest != calls.calls[at].digest => {
                    ApprovalOutcome::Denied
                }
                outcome => outcome,
            };
            engine.decide(calls, at, outcome)
        })
    }

    pub(super) fn decide(
        &mut self,
        calls: &mut Calls,
        at: usize,
        outcome: ApprovalOutcome,
    ) -> Done {
        let call = &calls.calls[at];
        let (call_id, digest) = (call.call_id.clone(), call.digest.clone());
        self.log(Body::ApprovalDecided(ApprovalDecided {
            call_id,
            digest,
            outcome,
        }))?;
        let said = match outcome {
            ApprovalOutcome::AllowedOnce => return self.log_intent(calls, at),
            ApprovalOutcome::Cancelled => {
                return self.refuse(
                    calls,
                    at,
                    ToolErrorCode::AbortedBeforeDispatch,
                    ABORTED.to_owned(),
                );
            }
            ApprovalOutcome::Denied => "was denied by the user",
            ApprovalOutcome::Unavailable => "needs an approval that nobody was there to give",
        };
        let text = format!(
            "The call of `{}` {said}. It was not run; do not try to reach the same by other means.",
            call.name
        );
        self.refuse(calls, at, ToolErrorCode::ApprovalDenied, text)
    }
}
