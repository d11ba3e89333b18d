//! Pure: what a file worker is asked to sweep, and what its answer says to a person.

use curfew_cell::plan::{MountOp, Plan};
use curfew_cell::protocol::ReadyFacts;
use curfew_worker::protocol::{Request, Swept};

use crate::denial::inert;

#[cfg(test)]
mod tests;

/// The sweep of a session: every writable root, or nothing where no root is.
pub fn request(plan: &Plan, facts: &ReadyFacts) -> Option<Request> {
    let steps = plan.fence.iter().flat_map(|fence| &fence.mounts);
    let mut roots = Vec::new();
    let mut wanted = Vec::new();
    for step in steps {
        if let MountOp::Protect { root, names, .. } = step {
            roots.push(root.to_str()?.to_owned());
            wanted.extend(
                names
                    .iter()
                    .filter(|name| name.any_depth)
                    .map(|name| name.name.clone()),
            );
        }
    }
    wanted.sort();
    wanted.dedup();
    let known = facts
        .pinned
        .iter()
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    (!roots.is_empty()).then_some(Request::Sweep {
        roots,
        names: wanted,
        known,
    })
}

/// Everything there is to say about a sweep, or why there was none.
pub fn told<E: std::fmt::Display>(swept: &Result<Swept, E>) -> Vec<String> {
    match swept {
        Ok(swept) => lines(swept),
        Err(error) => vec![error.to_string()],
    }
}

/// A line for each name, with the command that puts it back.
pub fn lines(swept: &Swept) -> Vec<String> {
    let moved = swept.moved.iter().map(|moved| {
        let (from, to) = (inert(&moved.from), inert(&moved.to));
        format!(
            "quarantined: {from} appeared, and tools outside would obey it; to keep it: mv {} {}",
            quoted(&to),
            quoted(&from)
        )
    });
    let failed = swept.failed.iter().map(|path| {
        format!(
            "not quarantined: {} appeared and could not be renamed; look at it",
            inert(path)
        )
    });
    let kept = swept
        .kept
        .iter()
        .map(|path| format!("new: {} appeared and holds nothing that runs", inert(path)));
    let cut = swept
        .cut
        .then(|| "the search for new protected names hit its bound".to_owned());
    moved.chain(failed).chain(kept).chain(cut).collect()
}

/// For a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
