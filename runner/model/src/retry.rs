//! When to send the same bytes again: pure, bounded, jittered.

use curfew_engine::event::{FailureKind, ModelFailure};

/// Requests a step may make in all, the first included.
pub const ATTEMPTS_MAX: u32 = 6;
/// A refused or unreachable address is seldom cured by waiting.
pub const CONNECT_ATTEMPTS_MAX: u32 = 4;
/// Retries begin within this long of the first failure.
pub const BUDGET_MS: u64 = 45_000;
/// The wait after the first failure; it doubles.
pub const BASE_DELAY_MS: u64 = 500;
pub const DELAY_MS_MAX: u64 = 10_000;
/// The wait is spread by this part of itself to both sides, so that clients do not return in step.
const SPREAD: f64 = 0.2;

/// How long to wait before the next request, or `None` to give up.
///
/// `attempt` is the number of the request that failed, 0 for the first. `elapsed_ms` is the time
/// since the step's first failure. `jitter` is anything from 0 to 1. What the server asked us to
/// wait is a minimum and is waited in full; if it does not fit the budget, the answer is `None`.
pub fn decide(failure: &ModelFailure, attempt: u32, elapsed_ms: u64, jitter: f64) -> Option<u64> {
    if attempt.saturating_add(1) >= attempts_max(failure.kind) {
        return None;
    }
    let doubled = BASE_DELAY_MS
        .saturating_mul(1 << attempt.min(16))
        .min(DELAY_MS_MAX);
    let jitter = if jitter.is_finite() {
        jitter.clamp(0.0, 1.0)
    } else {
        0.5
    };
    let spread = doubled as f64 * (1.0 - SPREAD + 2.0 * SPREAD * jitter);
    let delay = (spread as u64).max(failure.retry_after_ms.unwrap_or(0));
    (elapsed_ms.saturating_add(delay) <= BUDGET_MS).then_some(delay)
}

/// How many requests a step may make when they fail like this; 1 means never again.
pub fn attempts_max(kind: FailureKind) -> u32 {
    match kind {
        FailureKind::RateLimit
        | FailureKind::Server
        | FailureKind::FirstByteTimeout
        | FailureKind::IdleTimeout
        | FailureKind::Transport
        | FailureKind::EmptyResponse
        | FailureKind::Malformed
        | FailureKind::InBandError
        | FailureKind::CutStream => ATTEMPTS_MAX,
        FailureKind::Connect => CONNECT_ATTEMPTS_MAX,
        FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::ContextWindow
        | FailureKind::BadRequest
        | FailureKind::NotAModel
        | FailureKind::TotalTimeout
        | FailureKind::TooLarge => 1,
    }
}

#[cfg(test)]
mod tests;
