use std::path::PathBuf;

use curfew_policy::confinement::Limits;

use super::*;

fn confinement(mode: Mode, net: Net) -> Confinement {
    Confinement {
        mode,
        profile: "default".to_owned(),
        workspace: PathBuf::from("/w"),
        write: vec![PathBuf::from("/w")],
        read: Vec::new(),
        private: Vec::new(),
        closed: vec![PathBuf::from("/home/a")],
        mask: Vec::new(),
        protect: vec![".git/hooks".to_owned()],
        net,
        env: Vec::new(),
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

fn refused() -> Vec<Finding> {
    attempts::ALL
        .into_iter()
        .map(|attempt| Finding {
            attempt: attempt.to_owned(),
            errno: 1,
        })
        .collect()
}

fn state(table: &[GuaranteeReport], name: Guarantee) -> State {
    table.iter().find(|row| row.name == name).unwrap().state
}

#[test]
fn every_refusal_proves_what_the_design_promises() {
    let table = report(
        &confinement(Mode::WorkspaceWrite, Net::Off),
        &ReadyFacts {
            pid_max: true,
            ..ReadyFacts::default()
        },
        &refused(),
    );
    for row in &table {
        let partial = matches!(row.name, Guarantee::ProtectedNames | Guarantee::Limits);
        assert_eq!(
            row.state,
            if partial {
                State::Partial
            } else {
                State::Enforced
            },
            "{row:?}"
        );
        assert_eq!(row.missing.is_empty(), !partial, "{row:?}");
    }
}

#[test]
fn one_success_makes_a_guarantee_absent_and_one_gap_makes_it_partial() {
    for (index, attempt) in attempts::ALL.into_iter().enumerate() {
        let mut findings = refused();
        findings[index].errno = 0;
        let conf = confinement(Mode::WorkspaceWrite, Net::Off);
        let table = report(&conf, &ReadyFacts::default(), &findings);
        let fallen: Vec<_> = Guarantee::ALL
            .into_iter()
            .filter(|name| attempts_on(name.to_owned()).contains(&attempt))
            .collect();
        assert!(!fallen.is_empty(), "{attempt} proves nothing");
        for name in fallen {
            assert_eq!(state(&table, name), State::Absent, "{attempt}");
        }
        findings.remove(index);
        let table = report(&conf, &ReadyFacts::default(), &findings);
        let weakest = Guarantee::ALL
            .into_iter()
            .filter(|name| attempts_on(*name).contains(&attempt))
            .map(|name| state(&table, name))
            .min();
        let expected = if attempt == attempts::READ_HOME {
            State::Enforced
        } else {
            State::Partial
        };
        assert_eq!(weakest, Some(expected), "{attempt}");
    }
}

#[test]
fn nothing_is_claimed_without_fences() {
    let table = report(
        &confinement(Mode::DangerFullAccess, Net::Full),
        &ReadyFacts::default(),
        &refused(),
    );
    assert!(table.iter().all(|row| row.state < State::Enforced));
    assert_eq!(table.len(), Guarantee::ALL.len());
}

#[test]
fn the_hosts_network_is_no_fence() {
    let table = report(
        &confinement(Mode::WorkspaceWrite, Net::Full),
        &ReadyFacts::default(),
        &refused(),
    );
    assert_eq!(state(&table, Guarantee::NetFence), State::Absent);
}

#[test]
fn a_host_where_everything_holds_gives_what_the_policy_promises() {
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        for net in [Net::Off, Net::Full] {
            for closed in [vec![], vec![PathBuf::from("/home/a")]] {
                let write = if mode == Mode::ReadOnly {
                    Vec::new()
                } else {
                    vec![PathBuf::from("/w")]
                };
                let conf = Confinement {
                    closed,
                    write,
                    ..confinement(mode, net)
                };
                for row in report(&conf, &ReadyFacts::default(), &refused()) {
                    let promised = curfew_policy::guarantee::promise(row.name, &conf);
                    assert_eq!(row.state, promised, "{mode:?} {net:?} {row:?}");
                }
            }
        }
    }
}
