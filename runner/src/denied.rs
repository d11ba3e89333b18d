//! Refused operations: from the broker's or the worker's words to the log's and the model's.

use std::path::Path;

use curfew_cell::protocol::{Denial, Trust};
use curfew_engine::event::SandboxDenied;
use curfew_policy::Confinement;
use curfew_policy::confinement::Access;
use curfew_sandbox::render_denial;
use curfew_worker::protocol::{ErrorCode, Swept, ToolError};

/// Denials of one call that the model is told one by one.
const LINES_MAX: usize = 8;

const EPERM: i32 = 1;
const EROFS: i32 = 30;

/// The log's record of a denial that the broker reported.
pub fn event(call_id: &str, denial: &Denial) -> SandboxDenied {
    SandboxDenied {
        call_id: call_id.to_owned(),
        op: denial.op.clone(),
        path: denial.path.clone(),
        address: denial.address.clone(),
        errno: denial.errno,
        layer: denial.layer.clone(),
        rule: denial.rule.clone(),
        remedy: denial.remedy.clone(),
        trust: trust_name(denial.trust).to_owned(),
        count: denial.count,
    }
}

/// The way back, for lines made from a log.
pub fn of_event(event: &SandboxDenied) -> Denial {
    let trust = match event.trust.as_str() {
        "kernel" => Trust::Kernel,
        "worker" => Trust::Worker,
        _ => Trust::Predicted,
    };
    Denial {
        op: event.op.clone(),
        path: event.path.clone(),
        address: event.address.clone(),
        errno: event.errno,
        layer: event.layer.clone(),
        rule: event.rule.clone(),
        remedy: event.remedy.clone(),
        trust,
        count: event.count,
    }
}

/// A refusal the file worker met. It knows the errno; which layer stands behind it follows from
/// what the confinement says about the path.
pub fn of_worker(error: &ToolError, confinement: &Confinement) -> Option<Denial> {
    if error.code != ErrorCode::Denied {
        return None;
    }
    let access = error
        .path
        .as_ref()
        .map(|path| confinement.access(Path::new(path)));
    let errno = error.errno.unwrap_or(0);
    let (layer, rule) = match (errno, access) {
        (EROFS, _) => ("mounts", "write-fence"),
        (_, Some(Access::Write | Access::Private)) => ("permissions", "file mode or owner"),
        (_, Some(Access::Hidden)) => ("landlock", "read-fence"),
        _ => ("landlock", "write-fence"),
    };
    Some(Denial {
        op: error.op.clone(),
        path: error.path.clone(),
        address: None,
        errno,
        layer: layer.to_owned(),
        rule: rule.to_owned(),
        remedy: curfew_sandbox::denial::remedy(layer, rule, &error.op).to_owned(),
        trust: Trust::Worker,
        count: 1,
    })
}

/// Protected names that a call made: each was renamed, so that nothing obeys it.
pub fn of_sweep(swept: &Swept) -> Vec<Denial> {
    let denial = |path: &str, remedy: String| Denial {
        op: String::from("plant"),
        path: Some(path.to_owned()),
        address: None,
        errno: EPERM,
        layer: String::from("sweep"),
        rule: String::from("protected-names"),
        remedy,
        trust: Trust::Worker,
        count: 1,
    };
    let moved = swept.moved.iter().map(|moved| {
        denial(
            &moved.from,
            format!("it was renamed to {}; a person can put it back", moved.to),
        )
    });
    let failed = swept.failed.iter().map(|path| {
        denial(
            path,
            String::from("it could not be renamed and is still there: look at it"),
        )
    });
    moved.chain(failed).collect()
}

/// One line each, for the end of a result.
pub fn lines(denials: &[Denial]) -> Vec<String> {
    let mut lines: Vec<String> = denials
        .iter()
        .take(LINES_MAX)
        .map(|denial| format!("[{}]", render_denial(denial)))
        .collect();
    if denials.len() > LINES_MAX {
        lines.push(format!("[and {} more denials]", denials.len() - LINES_MAX));
    }
    lines
}

fn trust_name(trust: Trust) -> &'static str {
    match trust {
        Trust::Kernel => "kernel",
        Trust::Worker => "worker",
        Trust::Predicted => "predicted",
    }
}
