//! `curfew doctor`: what this host can enforce, proven by trying it, and what would help.

use curfew_policy::{GuaranteeReport, State};
use serde_json::{Value, json};

use super::{faced, json as print_json};
use crate::cli::DoctorArgs;
use crate::config::Environment;
use crate::confine::{self, Judged, Stood, Wanted};
use crate::fault::{Fault, code};
use crate::output::Printer;

pub fn run(args: &DoctorArgs) -> i32 {
    faced(|printer| examine(args, printer))
}

fn examine(args: &DoctorArgs, printer: &mut Printer) -> Result<i32, Fault> {
    let environment = Environment::read();
    let config = environment.config()?;
    let wanted = confine::wanted(&args.confine, None, &environment, &config)?;
    let stood = confine::stand(&wanted, Box::new(|_, _| {}));
    let judged = wanted.judge(&stood, &args.confine);
    if args.json {
        print_json(printer, &document(&wanted, &stood, &judged))?;
    } else {
        table(&wanted, &stood, &judged, printer);
    }
    match judged {
        Judged::May(_) => Ok(code::FINISHED),
        Judged::Refused(_) => Ok(code::SANDBOX),
    }
}

fn document(wanted: &Wanted, stood: &Stood, judged: &Judged) -> Value {
    let enforcement = stood.enforcement();
    let guarantees: Vec<Value> = enforcement
        .guarantees
        .iter()
        .map(|report| row(report, wanted))
        .collect();
    let mut document = json!({
        "mode": wanted.confinement.mode.as_str(),
        "profile": wanted.confinement.profile,
        "workspace": wanted.confinement.workspace,
        "tier": enforcement.tier,
        "landlockAbi": enforcement.abi,
        "met": matches!(judged, Judged::May(_)),
        "guarantees": guarantees,
    });
    if let Stood::Down { why, .. } = stood {
        document["reason"] = json!(why.reason);
        document["remedies"] = json!(why.remedies);
    }
    document
}

fn row(report: &GuaranteeReport, wanted: &Wanted) -> Value {
    json!({
        "name": report.name.as_str(),
        "state": report.state.to_string(),
        "promised": curfew_policy::guarantee::promise(report.name, &wanted.confinement).to_string(),
        "layers": report.layers,
        "missing": report.missing,
    })
}

fn table(wanted: &Wanted, stood: &Stood, judged: &Judged, printer: &mut Printer) {
    let enforcement = stood.enforcement();
    let confinement = &wanted.confinement;
    printer.line(&format!(
        "tier {}, Landlock ABI {}, mode {}, profile {}, workspace {}",
        enforcement.tier,
        enforcement.abi,
        confinement.mode,
        confinement.profile,
        confinement.workspace.display()
    ));
    printer.line(&format!(
        "{:<16} {:<9} {:<9} layers",
        "guarantee", "here", "promised"
    ));
    for report in &enforcement.guarantees {
        let promised = curfew_policy::guarantee::promise(report.name, confinement);
        let layers = if report.layers.is_empty() {
            String::from("-")
        } else {
            report.layers.join(", ")
        };
        printer.line(&format!(
            "{:<16} {:<9} {:<9} {layers}",
            report.name.as_str(),
            report.state.to_string(),
            promised.to_string()
        ));
        if report.state != State::Enforced {
            report
                .missing
                .iter()
                .for_each(|missing| printer.line(&format!("{:<16} {missing}", "")));
        }
    }
    if let Stood::Down { why, .. } = stood {
        printer.line(&why.reason);
        why.remedies
            .iter()
            .for_each(|remedy| printer.line(&format!("  try: {remedy}")));
    }
    match judged {
        Judged::May(_) => printer.line("A run may start here."),
        Judged::Refused(fault) => printer.line(&format!("A run ends with 7 here: {fault}")),
    }
}
