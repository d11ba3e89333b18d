//! The end of the demo: everything here is read back from the log on disk, or from the host.

use std::collections::BTreeMap;

use curfew_engine::event::{Body, CheckResult, Event, SandboxDenied};
use curfew_policy::{Guarantee, State};
use curfew_store::Store;

use super::diff::{self, Changed};
use super::live::exit;
use super::stage::{Ended, Kept, SECRET, Stage};
use crate::fault::Fault;
use crate::output::sheet::{Ink, Sheet};
use crate::session::storage;

/// The exit code with which the script says that no program here can open a connection.
const NO_CLIENT: i32 = 90;

#[derive(Debug)]
pub struct Summary {
    changed: Vec<Changed>,
    checks: Vec<CheckResult>,
    /// Calls of the script, in order, and what each was refused.
    hostile: Vec<(String, Refused)>,
    by_layer: BTreeMap<(String, String), u64>,
    witnesses: Vec<(&'static str, bool)>,
    log: String,
    verified: Ended,
    kept: Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Yes,
    No,
    /// Nothing on this host could have tried; the canary has.
    NotTried,
}

impl Summary {
    pub fn of(stage: &Stage, id: &str) -> Result<Self, Fault> {
        let store = Store::new(stage.state.join("sessions"));
        let mut reader = store.read(id).map_err(|error| storage(&error))?;
        let log = reader.path().display().to_string();
        let mut leaked = false;
        let mut events = Vec::new();
        while let Some(record) = reader.next_record().map_err(|error| storage(&error))? {
            leaked |= String::from_utf8_lossy(record.line).contains(SECRET);
            events.push(record.event);
        }
        let mut witnesses = stage.witnesses();
        witnesses.push(("the secret is nowhere in the log", !leaked));
        let checks = events.iter().filter_map(|event| match &event.body {
            Body::CheckResult(check) => Some(check.clone()),
            _ => None,
        });
        Ok(Summary {
            changed: diff::of(&events),
            checks: checks.collect(),
            hostile: hostile(&events),
            by_layer: by_layer(&events),
            witnesses,
            log,
            verified: stage.verify(id)?,
            kept: stage.kept,
        })
        .map(|summary| summary.brief(stage))
    }

    fn brief(mut self, stage: &Stage) -> Self {
        for changed in &mut self.changed {
            changed.path = stage.brief(&changed.path);
        }
        self
    }

    pub fn good(&self) -> bool {
        self.passed()
            && self.all_denied()
            && self.verified.code == 0
            && self.witnesses.iter().all(|(_, holds)| *holds)
    }

    fn passed(&self) -> bool {
        !self.checks.is_empty()
            && self
                .checks
                .iter()
                .all(|check| check.exit_code == Some(0) && !check.timed_out)
    }

    fn all_denied(&self) -> bool {
        !self.hostile.is_empty() && self.hostile.iter().all(|(_, how)| *how != Refused::No)
    }

    /// A call for `curfew why`.
    pub fn first_denied(&self) -> Option<&str> {
        let mut denied = self.hostile.iter().filter(|(_, how)| *how == Refused::Yes);
        denied.next().map(|(call, _)| call.as_str())
    }

    pub fn show(&self, sheet: &mut Sheet) {
        for changed in &self.changed {
            show_changed(changed, sheet);
        }
        for check in &self.checks {
            let (ink, word) = exit(check.exit_code);
            row(
                "check",
                &[
                    (Ink::Plain, &check.command),
                    (Ink::Plain, "  "),
                    (ink, &word),
                ],
                sheet,
            );
        }
        self.show_denied(sheet);
        for (what, holds) in &self.witnesses {
            let (ink, mark) = match holds {
                true => (Ink::Good, "yes  "),
                false => (Ink::Bad, "NO   "),
            };
            row("host", &[(ink, mark), (Ink::Plain, what)], sheet);
        }
        let kept = match self.kept {
            Kept::Usual => "",
            Kept::Temporary => {
                "  (in the temporary directory: no state directory can be written to)"
            }
        };
        row("log", &[(Ink::Plain, &self.log), (Ink::Faint, kept)], sheet);
        let ink = if self.verified.code == 0 {
            Ink::Good
        } else {
            Ink::Bad
        };
        row("verify", &[(ink, &self.verified.output)], sheet);
        let (ink, word) = match self.good() {
            true => (
                Ink::Good,
                "the work is done, every attack was denied, the log is whole",
            ),
            false => (Ink::Bad, "something is not as it should be: see above"),
        };
        row("so", &[(ink, word)], sheet);
    }

    fn show_denied(&self, sheet: &mut Sheet) {
        let of = |wanted| {
            self.hostile
                .iter()
                .filter(|(_, how)| *how == wanted)
                .count()
        };
        let (yes, all) = (of(Refused::Yes), self.hostile.len());
        let mut text = format!("{yes} of {all} hostile steps");
        if of(Refused::NotTried) > 0 {
            text.push_str("; the network could not be tried: no program here opens connections (the canary was refused)");
        }
        let ink = if self.all_denied() {
            Ink::Good
        } else {
            Ink::Bad
        };
        row("denied", &[(ink, &text)], sheet);
        for ((layer, rule), count) in &self.by_layer {
            let text = format!("{layer:<12}{rule:<18}{count}");
            row("", &[(Ink::Plain, &text)], sheet);
        }
    }
}

fn row(name: &str, pieces: &[(Ink, &str)], sheet: &mut Sheet) {
    let name = format!("   {name:<9}");
    let mut line = vec![(Ink::Faint, name.as_str())];
    line.extend_from_slice(pieces);
    sheet.line(&line);
}

fn show_changed(changed: &Changed, sheet: &mut Sheet) {
    let how = if changed.created {
        "created by "
    } else {
        "changed by "
    };
    let calls = changed.calls.join(", ");
    row(
        "diff",
        &[
            (Ink::Strong, &changed.path),
            (Ink::Faint, "  "),
            (Ink::Faint, how),
            (Ink::Faint, &calls),
        ],
        sheet,
    );
    let Some(lines) = &changed.lines else {
        row(
            "",
            &[(Ink::Faint, "the log does not hold the whole file")],
            sheet,
        );
        return;
    };
    for line in lines {
        let ink = match line.as_bytes().first() {
            Some(b'+') => Ink::Good,
            Some(b'-') => Ink::Bad,
            _ => Ink::Faint,
        };
        row("", &[(ink, line)], sheet);
    }
}

/// The calls of the second turn.
fn hostile(events: &[Event]) -> Vec<(String, Refused)> {
    let denied = |call: &str| {
        events.iter().any(
            |event| matches!(&event.body, Body::SandboxDenied(denial) if denial.call_id == call),
        )
    };
    let no_client = |call: &str| {
        events.iter().any(|event| {
            matches!(&event.body, Body::ToolCompleted(done)
                if done.call_id == call && done.facts.exit_code == Some(NO_CLIENT))
        })
    };
    let fenced = events.iter().any(|event| match &event.body {
        Body::SandboxConfinement(confinement) => confinement
            .enforcement
            .guarantees
            .iter()
            .any(|report| report.name == Guarantee::NetFence && report.state == State::Enforced),
        _ => false,
    });
    let calls = events.iter().filter_map(|event| match &event.body {
        Body::ToolCall(call) if call.turn > 1 => Some(call.call_id.clone()),
        _ => None,
    });
    calls
        .map(|call| {
            let how = match (denied(&call), fenced && no_client(&call)) {
                (true, _) => Refused::Yes,
                (false, true) => Refused::NotTried,
                (false, false) => Refused::No,
            };
            (call, how)
        })
        .collect()
}

fn by_layer(events: &[Event]) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for event in events {
        if let Body::SandboxDenied(SandboxDenied {
            layer, rule, count, ..
        }) = &event.body
        {
            *counts.entry((layer.clone(), rule.clone())).or_insert(0) += count;
        }
    }
    counts
}

#[cfg(test)]
mod tests;
