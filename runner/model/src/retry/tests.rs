use curfew_engine::event::{FailureKind, ModelFailure};
use proptest::prelude::*;

use super::*;

const ALL: &[FailureKind] = &[
    FailureKind::Auth,
    FailureKind::RateLimit,
    FailureKind::Quota,
    FailureKind::ContextWindow,
    FailureKind::Server,
    FailureKind::BadRequest,
    FailureKind::NotAModel,
    FailureKind::Connect,
    FailureKind::FirstByteTimeout,
    FailureKind::IdleTimeout,
    FailureKind::TotalTimeout,
    FailureKind::Transport,
    FailureKind::EmptyResponse,
    FailureKind::Malformed,
    FailureKind::InBandError,
    FailureKind::CutStream,
    FailureKind::TooLarge,
];

fn of(kind: FailureKind, retry_after_ms: Option<u64>) -> ModelFailure {
    ModelFailure {
        kind,
        status: None,
        retry_after_ms,
        text: String::new(),
    }
}

#[test]
fn what_a_retry_cannot_cure_is_never_retried() {
    for kind in [
        FailureKind::Auth,
        FailureKind::Quota,
        FailureKind::ContextWindow,
        FailureKind::BadRequest,
        FailureKind::NotAModel,
        FailureKind::TotalTimeout,
        FailureKind::TooLarge,
    ] {
        assert_eq!(decide(&of(kind, Some(1)), 0, 0, 0.5), None, "{kind:?}");
    }
}

#[test]
fn waits_double_from_half_a_second() {
    let server = of(FailureKind::Server, None);
    let waits: Vec<_> = (0..6)
        .map(|attempt| decide(&server, attempt, 0, 0.5))
        .collect();
    assert_eq!(
        waits,
        [
            Some(500),
            Some(1000),
            Some(2000),
            Some(4000),
            Some(8000),
            None
        ]
    );
}

#[test]
fn a_refusing_address_is_given_up_sooner() {
    let connect = of(FailureKind::Connect, None);
    let waits: Vec<_> = (0..4)
        .map(|attempt| decide(&connect, attempt, 0, 0.5))
        .collect();
    assert_eq!(waits, [Some(500), Some(1000), Some(2000), None]);
}

#[test]
fn a_wait_that_does_not_fit_the_budget_gives_up_at_once() {
    let long = of(FailureKind::RateLimit, Some(BUDGET_MS + 1));
    assert_eq!(decide(&long, 0, 0, 0.5), None);
    let just = of(FailureKind::RateLimit, Some(BUDGET_MS));
    assert_eq!(decide(&just, 0, 0, 0.5), Some(BUDGET_MS));
    assert_eq!(decide(&just, 0, 1, 0.5), None);
}

proptest! {
    #[test]
    fn retries_end_within_the_budget_and_the_attempts(
        kind in prop::sample::select(ALL),
        steps in prop::collection::vec((prop::option::of(0u64..60_000), 0.0f64..=1.0, 0u64..3000), 20),
    ) {
        let mut elapsed = 0;
        let mut attempts = 1;
        for (attempt, (retry_after, jitter, took)) in steps.into_iter().enumerate() {
            let Some(wait) = decide(&of(kind, retry_after), attempt as u32, elapsed, jitter) else { break };
            prop_assert!(wait >= retry_after.unwrap_or(0));
            elapsed += wait;
            prop_assert!(elapsed <= BUDGET_MS);
            elapsed += took;
            attempts += 1;
        }
        prop_assert!(attempts <= attempts_max(kind));
    }

    /// Without a word from the server each wait is longer than the one before, whatever the jitter.
    #[test]
    fn waits_grow_under_any_jitter(attempt in 0u32..4, a in 0.0f64..=1.0, b in 0.0f64..=1.0) {
        let server = of(FailureKind::Server, None);
        let (first, then) = (decide(&server, attempt, 0, a), decide(&server, attempt + 1, 0, b));
        prop_assert!(then.unwrap() as f64 > first.unwrap() as f64 * 1.1);
    }

    #[test]
    fn odd_jitter_is_no_trouble(jitter in prop::num::f64::ANY, attempt: u32, elapsed: u64) {
        let wait = decide(&of(FailureKind::Server, Some(u64::MAX)), attempt, elapsed, jitter);
        prop_assert_eq!(wait, None);
        if let Some(wait) = decide(&of(FailureKind::Server, None), attempt, elapsed, jitter) {
            prop_assert!(wait <= DELAY_MS_MAX * 6 / 5);
        }
    }
}
