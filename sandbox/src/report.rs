//! Pure: what this host really gives, from what set-up found and what a canary call was refused.
//!
//! A guarantee is never better than its worst attempt: one that succeeded makes it absent, one
//! that was not made leaves it unproven, which is partial.

use curfew_cell::protocol::ReadyFacts;
use curfew_policy::confinement::Net;
use curfew_policy::{Confinement, Guarantee, GuaranteeReport, Mode, State};
use curfew_worker::protocol::{Finding, attempts};

#[cfg(test)]
mod tests;

/// Which set of layers stands behind a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Full,
    None,
}

impl Tier {
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::ReadOnly | Mode::WorkspaceWrite => Self::Full,
            Mode::DangerFullAccess => Self::None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::None => "none",
        }
    }
}

/// The table of this run.
pub fn report(
    confinement: &Confinement,
    facts: &ReadyFacts,
    findings: &[Finding],
) -> Vec<GuaranteeReport> {
    Guarantee::ALL
        .into_iter()
        .map(|name| match Tier::of(confinement.mode) {
            Tier::Full => fenced(name, confinement, facts, findings),
            Tier::None => unfenced(name),
        })
        .collect()
}

fn fenced(
    name: Guarantee,
    confinement: &Confinement,
    facts: &ReadyFacts,
    findings: &[Finding],
) -> GuaranteeReport {
    let (mut state, mut missing) = proven(name, confinement, findings);
    for window in windows(name, confinement, facts) {
        state = state.min(State::Partial);
        missing.push(window);
    }
    if name == Guarantee::NetFence && confinement.net == Net::Full {
        state = State::Absent;
        missing.push("the profile grants the host's network".to_owned());
    }
    let layers = match state {
        State::Absent => Vec::new(),
        State::Partial | State::Enforced => layers(name)
            .iter()
            .map(|layer| (*layer).to_owned())
            .collect(),
    };
    GuaranteeReport {
        name,
        state,
        layers,
        missing,
    }
}

/// danger-full-access keeps what needs no fence.
fn unfenced(name: Guarantee) -> GuaranteeReport {
    let (state, layers, missing) = match name {
        Guarantee::Limits => (
            State::Partial,
            vec!["limits"],
            "time and output are bounded, the rest by rlimits alone",
        ),
        Guarantee::SecretFence => (
            State::Partial,
            vec!["environment"],
            "a call has no key in its environment, but can read this user's files and processes",
        ),
        _ => (
            State::Absent,
            Vec::new(),
            "danger-full-access has no fences",
        ),
    };
    GuaranteeReport {
        name,
        state,
        layers: layers.into_iter().map(str::to_owned).collect(),
        missing: vec![missing.to_owned()],
    }
}

fn layers(name: Guarantee) -> &'static [&'static str] {
    match name {
        Guarantee::WriteFence | Guarantee::ReadFence => &["mounts", "landlock"],
        Guarantee::ProtectedNames => &["mounts"],
        Guarantee::NetFence => &["namespaces", "seccomp"],
        Guarantee::ProcessFence => &["namespaces", "landlock", "seccomp"],
        Guarantee::IpcFence => &["namespaces", "seccomp", "landlock"],
        Guarantee::SyscallFence => &["seccomp", "caps"],
        Guarantee::Limits => &["limits"],
        Guarantee::SecretFence => &["environment", "mounts", "namespaces"],
    }
}

/// The attempts whose refusal proves a guarantee.
fn attempts_on(name: Guarantee) -> &'static [&'static str] {
    match name {
        Guarantee::WriteFence => &[attempts::CREATE, attempts::CHMOD, attempts::CORE_PATTERN],
        Guarantee::ReadFence => &[attempts::READ_HOME],
        Guarantee::ProtectedNames | Guarantee::Limits => &[],
        Guarantee::NetFence => &[attempts::CONNECT],
        Guarantee::ProcessFence => &[attempts::PROCESSES, attempts::INIT],
        Guarantee::IpcFence => &[attempts::UNIX, attempts::VSOCK],
        Guarantee::SyscallFence => &[
            attempts::MOUNT,
            attempts::HOSTNAME,
            attempts::CAPABILITY,
            attempts::NEW_PRIVILEGES,
        ],
        Guarantee::SecretFence => &[attempts::SECRET, attempts::INIT],
    }
}

fn proven(
    name: Guarantee,
    confinement: &Confinement,
    findings: &[Finding],
) -> (State, Vec<String>) {
    let mut state = State::Enforced;
    let mut missing = Vec::new();
    for attempt in attempts_on(name) {
        let granted = *attempt == attempts::CONNECT && confinement.net == Net::Full;
        // A closed home without a file in it offers nothing to try.
        let optional = *attempt == attempts::READ_HOME;
        let mut made = findings
            .iter()
            .filter(|finding| finding.attempt == *attempt)
            .peekable();
        if made.peek().is_none() && !optional && !granted {
            state = state.min(State::Partial);
            missing.push(format!("{attempt} was not tried"));
        }
        if !granted && made.any(|finding| finding.errno == 0) {
            state = State::Absent;
            missing.push(format!("{attempt} succeeded from inside"));
        }
    }
    (state, missing)
}

/// What stays open although every layer stands.
fn windows(name: Guarantee, confinement: &Confinement, facts: &ReadyFacts) -> Vec<String> {
    let mut windows = Vec::new();
    match name {
        Guarantee::ProtectedNames if !confinement.write.is_empty() => {
            windows.push(
                "a name that was not there at the start can appear while a call runs".to_owned(),
            );
            if facts.scan_cut {
                windows.push("the search for protected names hit its bound; names beyond it are not protected".to_owned());
            }
        }
        Guarantee::Limits => {
            windows.push(
                "memory is bounded for each process, not for the call (no cgroup)".to_owned(),
            );
            if !facts.pid_max {
                windows.push(
                    "processes are bounded by RLIMIT_NPROC alone (pid_max needs Linux 6.14)"
                        .to_owned(),
                );
            }
        }
        Guarantee::ReadFence if confinement.closed.is_empty() => {
            windows.push(
                "the home is shown; only listed files are masked, and a host rename drops a mask"
                    .to_owned(),
            );
        }
        _ => {}
    }
    windows
}
