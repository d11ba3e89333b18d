//! The syscall layer: the profile's list as the cell knows it.

use std::borrow::Cow;

use curfew_cell::plan::{ArgOp, ArgRule, Audience, SyscallAction, SyscallRule};
use curfew_policy::Confinement;
use curfew_policy::seccomp::{Action, ArgCondition, ArgTest, SyscallRow, rows};

/// Calls a file worker may make although a command may not: it is our own code and sets no set-id
/// bits, and openat2 is how it opens without following links.
const WORKER_MAY: [&str; 1] = ["openat2"];

pub(super) fn rules(confinement: &Confinement) -> Vec<SyscallRule> {
    let here = |row: &&'static SyscallRow| {
        row.arch.applies(std::env::consts::ARCH)
            && (confinement.evidence || row.action != Action::Observe)
    };
    rows().iter().filter(here).flat_map(of_row).collect()
}

fn of_row(row: &'static SyscallRow) -> impl Iterator<Item = SyscallRule> {
    row.names.iter().map(|name| SyscallRule {
        name: Cow::Borrowed(name.as_ref()),
        args: row.args.iter().map(argument).collect(),
        action: match row.action {
            Action::Refuse { errno } => SyscallAction::Refuse { errno },
            Action::Quiet { errno } => SyscallAction::Quiet { errno },
            Action::Observe => SyscallAction::Observe,
        },
        rule: Cow::Borrowed(row.rule.as_ref()),
        audience: if WORKER_MAY.contains(&name.as_ref()) {
            Audience::Command
        } else {
            Audience::All
        },
    })
}

fn argument(condition: &ArgCondition) -> ArgRule {
    let op = match condition.test {
        ArgTest::Equals { value } => ArgOp::Equals { value },
        ArgTest::Differs { value } => ArgOp::Differs { value },
        ArgTest::AnyBit { mask } => ArgOp::AnyBit { mask },
        ArgTest::Masked { mask, value } => ArgOp::Masked { mask, value },
    };
    ArgRule {
        index: condition.index,
        low32: condition.low32,
        op,
    }
}
