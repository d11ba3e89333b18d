use super::*;

fn check(exit_code: i32) -> CheckResult {
    CheckResult {
        command: "c".to_owned(),
        exit_code: Some(exit_code),
        signal: None,
        timed_out: false,
        after_seq: 1,
    }
}

const CLASSES: [(ErrorClass, i32); 10] = [
    (ErrorClass::Auth, 6),
    (ErrorClass::Provider, 5),
    (ErrorClass::Context, 8),
    (ErrorClass::Budget, 3),
    (ErrorClass::NoProgress, 9),
    (ErrorClass::Approval, 4),
    (ErrorClass::Schema, 10),
    (ErrorClass::Sandbox, 7),
    (ErrorClass::Storage, 11),
    (ErrorClass::Refusal, 1),
];

#[test]
fn each_reason_has_its_code() {
    let code = |reason| outcome(Some(reason), &[], None, None).exit.code();
    assert_eq!(code(TurnEndReason::Completed), 0);
    assert_eq!(code(TurnEndReason::MaxSteps), 3);
    assert_eq!(code(TurnEndReason::Cancelled), 130);
    assert_eq!(code(TurnEndReason::MaxTokens), 1);
    assert_eq!(code(TurnEndReason::Blocked), 4);
    assert_eq!(code(TurnEndReason::Interrupted), 143);
    for (class, expected) in CLASSES {
        assert_eq!(code(TurnEndReason::Error(class)), expected, "{class:?}");
    }
}

/// signal > 11 > 7 > 6 > 75 > 5 > 8 > 3 > 9 > 4 > 10 > 1 > 0
#[test]
fn precedence_is_total() {
    let order = [
        ExitCode::Signal(Signal::Terminate),
        ExitCode::Signal(Signal::Interrupt),
        ExitCode::Session,
        ExitCode::Sandbox,
        ExitCode::Auth,
        ExitCode::TryLater,
        ExitCode::Provider,
        ExitCode::Context,
        ExitCode::Budget,
        ExitCode::NoProgress,
        ExitCode::Approval,
        ExitCode::Schema,
        ExitCode::NotDone,
        ExitCode::Finished,
    ];
    assert!(order.windows(2).all(|pair| pair[0] > pair[1]));
    let codes: Vec<i32> = order.iter().map(|exit| exit.code()).collect();
    assert_eq!(codes, [143, 130, 11, 7, 6, 75, 5, 8, 3, 9, 4, 10, 1, 0]);
}

#[test]
fn the_strongest_cause_wins() {
    let checked = outcome(
        Some(TurnEndReason::Completed),
        &[check(0), check(1)],
        None,
        None,
    );
    assert_eq!(
        (checked.exit.code(), checked.reason.as_str(), checked.status),
        (1, "checks-failed", "failed")
    );
    let passed = outcome(Some(TurnEndReason::Completed), &[check(0)], None, None);
    assert_eq!(
        (passed.exit.code(), passed.reason.as_str(), passed.status),
        (0, "completed", "finished")
    );
    let provider = outcome(
        Some(TurnEndReason::Error(ErrorClass::Provider)),
        &[check(1)],
        None,
        None,
    );
    assert_eq!(
        (provider.exit.code(), provider.reason.as_str()),
        (5, "provider")
    );
    let signalled = outcome(
        Some(TurnEndReason::Cancelled),
        &[],
        Some(Signal::Terminate),
        Some(ErrorClass::Sandbox),
    );
    assert_eq!(
        (signalled.exit.code(), signalled.status),
        (143, "cancelled")
    );
    let refused = outcome(
        Some(TurnEndReason::Error(ErrorClass::Refusal)),
        &[check(1)],
        None,
        None,
    );
    assert_eq!(refused.reason, "refusal");
    let no_sandbox = outcome(None, &[], None, Some(ErrorClass::Sandbox));
    assert_eq!(
        (no_sandbox.exit.code(), no_sandbox.reason.as_str()),
        (7, "sandbox")
    );
    let dead = outcome(Some(TurnEndReason::Interrupted), &[], None, None);
    assert_eq!(
        (dead.status, dead.reason.as_str()),
        ("interrupted", "interrupted")
    );
}

#[test]
fn a_check_that_was_killed_did_not_pass() {
    let killed = CheckResult {
        exit_code: None,
        signal: Some(9),
        ..check(0)
    };
    assert_eq!(
        outcome(Some(TurnEndReason::Completed), &[killed], None, None)
            .exit
            .code(),
        1
    );
}
