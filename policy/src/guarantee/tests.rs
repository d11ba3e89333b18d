use std::path::PathBuf;

use super::*;
use crate::confinement::Limits;

fn confinement(mode: Mode) -> Confinement {
    Confinement {
        mode,
        profile: "default".into(),
        workspace: "/w".into(),
        write: if mode == Mode::ReadOnly {
            vec![]
        } else {
            vec![PathBuf::from("/w")]
        },
        read: vec![],
        private: vec![],
        closed: vec![PathBuf::from("/home/a")],
        mask: vec![],
        protect: vec![],
        net: Net::Off,
        env: vec![],
        limits: Limits {
            wall_ms: 1,
            memory_bytes: 1,
            processes: 1,
            output_bytes: 1,
            private_bytes: 1,
        },
        evidence: true,
    }
}

fn reports(states: &[(Guarantee, State)]) -> Vec<GuaranteeReport> {
    let state = |name| {
        states
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(State::Enforced, |(_, state)| *state)
    };
    let report = |name| GuaranteeReport {
        name,
        state: state(name),
        layers: vec![],
        missing: vec!["why".into()],
    };
    Guarantee::ALL.into_iter().map(report).collect()
}

#[test]
fn what_is_promised_is_wanted_and_no_more() {
    let c = confinement(Mode::WorkspaceWrite);
    let live = reports(&[
        (Guarantee::ProtectedNames, State::Partial),
        (Guarantee::Limits, State::Partial),
    ]);
    assert_eq!(decide(&live, &c, &[], &[]), Verdict::Met);
    let Verdict::Refused(short) = decide(&live, &c, &[Guarantee::Limits], &[]) else {
        panic!()
    };
    assert_eq!(
        short[0].to_string(),
        "limits is partial, enforced was required: why"
    );
}

#[test]
fn a_waiver_names_what_it_waives_and_waives_no_requirement() {
    let c = confinement(Mode::WorkspaceWrite);
    let weak = reports(&[
        (Guarantee::WriteFence, State::Partial),
        (Guarantee::NetFence, State::Absent),
    ]);
    assert!(
        matches!(decide(&weak, &c, &[], &[Guarantee::WriteFence]), Verdict::Refused(s) if s.len() == 1)
    );
    let both = [Guarantee::WriteFence, Guarantee::NetFence];
    assert!(matches!(decide(&weak, &c, &[], &both), Verdict::Waived(s) if s.len() == 2));
    assert!(
        matches!(decide(&weak, &c, &[Guarantee::NetFence], &both), Verdict::Refused(s) if s.len() == 1)
    );
}

#[test]
fn silence_is_absence_and_the_worst_report_counts() {
    let c = confinement(Mode::ReadOnly);
    assert!(matches!(decide(&[], &c, &[], &[]), Verdict::Refused(s) if s.len() == 9));
    let mut twice = reports(&[]);
    twice.extend(reports(&[(Guarantee::ReadFence, State::Absent)]));
    assert!(
        matches!(decide(&twice, &c, &[], &[]), Verdict::Refused(s) if s[0].name == Guarantee::ReadFence)
    );
}

#[test]
fn modes_and_profiles_promise_what_they_can_keep() {
    let mut c = confinement(Mode::WorkspaceWrite);
    assert_eq!(promise(Guarantee::ProtectedNames, &c), State::Partial);
    assert_eq!(
        promise(Guarantee::ProtectedNames, &confinement(Mode::ReadOnly)),
        State::Enforced
    );
    c.closed.clear();
    c.net = Net::Full;
    assert_eq!(promise(Guarantee::ReadFence, &c), State::Partial);
    assert_eq!(promise(Guarantee::NetFence, &c), State::Absent);
    for name in Guarantee::ALL {
        assert!(promise(name, &confinement(Mode::DangerFullAccess)) < State::Enforced);
    }
}

#[test]
fn names_are_typed_as_they_are_shown() {
    for name in Guarantee::ALL {
        assert_eq!(name.as_str().parse::<Guarantee>().unwrap(), name);
    }
    let error = "write-fense".parse::<Guarantee>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown guarantee `write-fense`; did you mean `write-fence`?"
    );
    assert!(
        "zzz"
            .parse::<Guarantee>()
            .unwrap_err()
            .to_string()
            .contains("known: write-fence")
    );
    assert_eq!(
        "workspace-writ"
            .parse::<Mode>()
            .unwrap_err()
            .nearest
            .as_deref(),
        Some("workspace-write")
    );
}
