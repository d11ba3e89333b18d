//! What a canary call is asked to try.
//!
//! The supervisor lists one directory here, a closed home, for a name to try; it opens nothing in
//! it and never looks below a granted root.

use std::path::{Path, PathBuf};

use curfew_policy::Confinement;
use curfew_policy::confinement::Access;
use curfew_worker::protocol::Request;

/// Directories that are outside on any host; those a confinement grants are left out.
const OUTSIDE: [&str; 4] = ["/etc", "/usr", "/var", "/"];
/// Names looked at in a home.
const NAMES_MAX: usize = 256;

/// Attempts that fit this confinement on this host.
pub fn request(confinement: &Confinement) -> Request {
    let fixed = OUTSIDE.iter().map(|path| PathBuf::from(*path));
    let beside = confinement.workspace.parent().map(Path::to_path_buf);
    let outside = fixed
        .chain(beside)
        .filter(|path| path.is_dir() && confinement.access(path) <= Access::Read && !private(path))
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    let home = confinement
        .closed
        .iter()
        .find_map(|closed| hidden_name(confinement, closed));
    Request::Canary { outside, home }
}

/// Areas made for the session, where a call may create what it likes.
fn private(path: &Path) -> bool {
    crate::facts::TEMPORARY
        .iter()
        .any(|area| path.starts_with(area))
}

/// Something that exists in a closed directory, is not shown again and is not known as a mask
/// (a mask can be opened: it is empty).
fn hidden_name(confinement: &Confinement, closed: &Path) -> Option<String> {
    // A home that cannot be listed offers nothing to try, and the report says less, not more.
    let names = std::fs::read_dir(closed).ok()?;
    let mut hidden = names
        .take(NAMES_MAX)
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let leads_to = |list: &[PathBuf]| list.iter().any(|other| other.starts_with(path));
            let shown = [
                &confinement.read,
                &confinement.write,
                &confinement.private,
                &confinement.mask,
                &confinement.closed,
            ];
            !shown.into_iter().any(|list| leads_to(list))
                && !confinement.workspace.starts_with(path)
        });
    hidden.find_map(|path| path.to_str().map(str::to_owned))
}
