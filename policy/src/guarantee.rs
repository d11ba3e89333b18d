//! Guarantees, and how a host's real state is compared with what was promised.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::confinement::Net;
use crate::{Confinement, Mode, nearest};

/// A promise a user can name in `--require` and `--allow-missing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// Bytes, names and metadata outside the granted roots stay unchanged.
    WriteFence,
    /// Only what the profile grants can be read.
    ReadFence,
    /// What would run or be obeyed outside later cannot be planted.
    ProtectedNames,
    /// No network beyond what was granted.
    NetFence,
    /// Other processes cannot be seen, signalled, traced or tuned; nothing survives the call.
    ProcessFence,
    /// Host sockets, SysV and POSIX IPC, keyrings, D-Bus and vsock are out of reach.
    IpcFence,
    /// Kernel interfaces an agent has no use for are refused.
    SyscallFence,
    /// Memory, processes, time and output are bounded.
    Limits,
    /// Keys and tokens are never in a call, a log or a report.
    SecretFence,
}

/// What this host really gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Absent,
    Partial,
    Enforced,
}

/// One line of the guarantee table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuaranteeReport {
    pub name: Guarantee,
    pub state: State,
    /// The mechanisms behind it: `mounts`, `namespaces`, `landlock`, `seccomp`, `caps`, `limits`.
    pub layers: Vec<String>,
    /// What is missing, or which window stays open. Empty when enforced.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<String>,
}

impl Guarantee {
    /// In the order of the table.
    pub const ALL: [Guarantee; 9] = [
        Guarantee::WriteFence,
        Guarantee::ReadFence,
        Guarantee::ProtectedNames,
        Guarantee::NetFence,
        Guarantee::ProcessFence,
        Guarantee::IpcFence,
        Guarantee::SyscallFence,
        Guarantee::Limits,
        Guarantee::SecretFence,
    ];

    /// As it is typed and logged.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Guarantee::WriteFence => "write-fence",
            Guarantee::ReadFence => "read-fence",
            Guarantee::ProtectedNames => "protected-names",
            Guarantee::NetFence => "net-fence",
            Guarantee::ProcessFence => "process-fence",
            Guarantee::IpcFence => "ipc-fence",
            Guarantee::SyscallFence => "syscall-fence",
            Guarantee::Limits => "limits",
            Guarantee::SecretFence => "secret-fence",
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Guarantee {
    type Err = nearest::UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        nearest::pick("guarantee", text, &Guarantee::ALL, |name| name.as_str())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Absent => "absent",
            State::Partial => "partial",
            State::Enforced => "enforced",
        })
    }
}

/// The state a confinement promises for a guarantee on any host that can run it. Less stops an
/// unattended run before the first model call.
#[must_use]
pub fn promise(name: Guarantee, confinement: &Confinement) -> State {
    if confinement.mode == Mode::DangerFullAccess {
        // Its fences are not promised, and said to be absent on every run.
        return match name {
            Guarantee::Limits | Guarantee::SecretFence => State::Partial,
            _ => State::Absent,
        };
    }
    match name {
        // A name that was not there can appear on a live workspace while a call runs.
        Guarantee::ProtectedNames if !confinement.write.is_empty() => State::Partial,
        // An open home is a list of secrets, and no list is complete.
        Guarantee::ReadFence if confinement.closed.is_empty() => State::Partial,
        // The operator granted it.
        Guarantee::NetFence if confinement.net == Net::Full => State::Absent,
        // Without cgroups memory is bounded by process, not by call.
        Guarantee::Limits => State::Partial,
        _ => State::Enforced,
    }
}

/// Whether a run may start on what this host gives.
#[must_use = "a run that is not allowed must not start"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything promised and required holds.
    Met,
    /// Something is weaker, and each such thing was named in `--allow-missing`.
    Waived(Vec<Shortfall>),
    /// Exit 7, nothing has run.
    Refused(Vec<Shortfall>),
}

/// A guarantee that is weaker than wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub name: Guarantee,
    pub wanted: State,
    pub found: State,
    /// Why, in the report's own words.
    pub missing: Vec<String>,
    pub because: Because,
}

/// Who wanted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The mode and profile promise it.
    Promised,
    /// `--require`.
    Required,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = match self.because {
            Because::Promised => "promised",
            Because::Required => "required",
        };
        write!(
            f,
            "{} is {}, {} was {because}",
            self.name, self.found, self.wanted
        )?;
        if !self.missing.is_empty() {
            write!(f, ": {}", self.missing.join("; "))?;
        }
        Ok(())
    }
}

/// Compares what was found with what is promised and required. `allow_missing` waives promises,
/// never a requirement: naming both is a contradiction, and the stricter one holds. A guarantee
/// without a report counts as absent.
pub fn decide(
    reports: &[GuaranteeReport],
    confinement: &Confinement,
    require: &[Guarantee],
    allow_missing: &[Guarantee],
) -> Verdict {
    let (mut refused, mut waived) = (Vec::new(), Vec::new());
    for name in Guarantee::ALL {
        let required = require.contains(&name);
        let (wanted, because) = match required {
            true => (State::Enforced, Because::Required),
            false => (promise(name, confinement), Because::Promised),
        };
        let report = reports
            .iter()
            .filter(|report| report.name == name)
            .min_by_key(|r| r.state);
        let found = report.map_or(State::Absent, |report| report.state);
        if found >= wanted {
            continue;
        }
        let missing = match report {
            Some(report) => report.missing.clone(),
            None => vec!["nothing was reported about it".to_owned()],
        };
        let shortfall = Shortfall {
            name,
            wanted,
            found,
            missing,
            because,
        };
        match allow_missing.contains(&name) && !required {
            true => waived.push(shortfall),
            false => refused.push(shortfall),
        }
    }
    match (refused.is_empty(), waived.is_empty()) {
        (false, _) => Verdict::Refused(refused),
        (true, false) => Verdict::Waived(waived),
        (true, true) => Verdict::Met,
    }
}

#[cfg(test)]
mod tests;
