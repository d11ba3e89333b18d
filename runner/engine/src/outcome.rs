//! From reasons to an exit code: one closed table and one precedence.

use crate::event::{CheckResult, ErrorClass, TurnEndReason};
use crate::fold::Run;

/// What the process ends with. In order of precedence, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitCode {
    Finished,
    /// Checks failed, or the answer ended by refusal, content filter or length.
    NotDone,
    Schema,
    Approval,
    NoProgress,
    Budget,
    Context,
    Provider,
    TryLater,
    Auth,
    Sandbox,
    Session,
    Signal(Signal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM, or a death that only its traces tell of.
    Terminate,
}

impl ExitCode {
    pub fn code(self) -> i32 {
        match self {
            Self::Finished => 0,
            Self::NotDone => 1,
            Self::Budget => 3,
            Self::Approval => 4,
            Self::Provider => 5,
            Self::Auth => 6,
            Self::Sandbox => 7,
            Self::Context => 8,
            Self::NoProgress => 9,
            Self::Schema => 10,
            Self::Session => 11,
            Self::TryLater => 75,
            Self::Signal(Signal::Interrupt) => 130,
            Self::Signal(Signal::Terminate) => 143,
        }
    }

    pub fn of_reason(reason: TurnEndReason) -> Self {
        match reason {
            TurnEndReason::Completed => Self::Finished,
            TurnEndReason::MaxSteps => Self::Budget,
            TurnEndReason::Cancelled => Self::Signal(Signal::Interrupt),
            TurnEndReason::Blocked => Self::Approval,
            TurnEndReason::MaxTokens => Self::NotDone,
            TurnEndReason::Interrupted => Self::Signal(Signal::Terminate),
            TurnEndReason::Error(class) => Self::of_class(class),
        }
    }

    pub fn of_class(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Auth => Self::Auth,
            ErrorClass::Provider => Self::Provider,
            ErrorClass::Context => Self::Context,
            ErrorClass::Budget => Self::Budget,
            ErrorClass::NoProgress => Self::NoProgress,
            ErrorClass::Approval => Self::Approval,
            ErrorClass::Schema => Self::Schema,
            ErrorClass::Sandbox => Self::Sandbox,
            ErrorClass::Storage => Self::Session,
            ErrorClass::Refusal => Self::NotDone,
        }
    }
}

/// How a run ended, in the words of its `result`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `finished`, `failed`, `cancelled`, `interrupted`.
    pub status: &'static str,
    pub exit: ExitCode,
    pub reason: String,
}

/// The outcome of a run whose last turn ended with `reason` (`None`: no turn was made), whose
/// checks gave `checks`, and that `signal` or `failure` (outside any turn) may have ended.
pub fn outcome(
    reason: Option<TurnEndReason>,
    checks: &[CheckResult],
    signal: Option<Signal>,
    failure: Option<ErrorClass>,
) -> Outcome {
    let mut causes: Vec<(ExitCode, String)> = Vec::new();
    causes.extend(reason.map(|reason| (ExitCode::of_reason(reason), reason_name(reason))));
    causes.extend(failure.map(|class| (ExitCode::of_class(class), class_name(class).to_owned())));
    if checks.iter().any(|check| check.exit_code != Some(0)) {
        causes.push((ExitCode::NotDone, "checks-failed".to_owned()));
    }
    causes.extend(signal.map(|signal| (ExitCode::Signal(signal), "signal".to_owned())));
    // The first of the strongest: a refusal is named before the checks that failed with it.
    let worst = causes
        .into_iter()
        .reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
    let (exit, reason) = worst.unwrap_or((ExitCode::Finished, "completed".to_owned()));
    Outcome {
        status: status(exit, &reason),
        exit,
        reason,
    }
}

/// The outcome of a run as the fold knows it.
pub fn of_run(run: &Run, signal: Option<Signal>, failure: Option<ErrorClass>) -> Outcome {
    outcome(run.reasons.last().copied(), &run.checks, signal, failure)
}

fn status(exit: ExitCode, reason: &str) -> &'static str {
    match exit {
        ExitCode::Finished => "finished",
        ExitCode::Signal(_) if reason == "interrupted" => "interrupted",
        ExitCode::Signal(_) => "cancelled",
        _ => "failed",
    }
}

/// As it stands in a `result`: `completed`, `max-steps`, `provider` …
pub fn reason_name(reason: TurnEndReason) -> String {
    match reason {
        TurnEndReason::Completed => "completed",
        TurnEndReason::MaxSteps => "max-steps",
        TurnEndReason::Cancelled => "cancelled",
        TurnEndReason::Blocked => "blocked",
        TurnEndReason::MaxTokens => "max-tokens",
        TurnEndReason::Interrupted => "interrupted",
        TurnEndReason::Error(class) => class_name(class),
    }
    .to_owned()
}

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "auth",
        ErrorClass::Provider => "provider",
        ErrorClass::Context => "context",
        ErrorClass::Budget => "budget",
        ErrorClass::NoProgress => "no-progress",
        ErrorClass::Approval => "approval",
        ErrorClass::Schema => "schema",
        ErrorClass::Sandbox => "sandbox",
        ErrorClass::Storage => "storage",
        ErrorClass::Refusal => "refusal",
    }
}

#[cfg(test)]
mod tests;
