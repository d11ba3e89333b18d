//! Pure: what a denial says to the model and to a person.

use curfew_cell::protocol::{Denial, Trust};

#[cfg(test)]
mod tests;

/// Characters of a path or address that one line shows.
const SHOWN_CHARS_MAX: usize = 300;

/// One line: what, which rule, how a person would allow it. A path is the call's own words: control
/// characters and direction marks are shown as escapes.
pub fn render_denial(denial: &Denial) -> String {
    let target = denial
        .path
        .as_deref()
        .or(denial.address.as_deref())
        .map(inert);
    let target = target
        .map(|target| format!(" {target}"))
        .unwrap_or_default();
    let foreseen = match denial.trust {
        Trust::Predicted => " (foreseen)",
        Trust::Kernel | Trust::Worker => "",
    };
    let times = if denial.count > 1 {
        format!(", {} times", denial.count)
    } else {
        String::new()
    };
    let remedy = if denial.remedy.is_empty() {
        remedy(&denial.layer, &denial.rule, &denial.op)
    } else {
        &denial.remedy
    };
    format!(
        "denied{foreseen}: {}{target}: {} by {}, rule {}{times}; {remedy}",
        inert(&denial.op),
        errno_name(denial.errno),
        inert(&denial.layer),
        inert(&denial.rule),
    )
}

/// How a person would allow it, or why nobody can.
pub fn remedy(layer: &str, rule: &str, op: &str) -> &'static str {
    let has = |word: &str| rule.contains(word) || op.contains(word);
    match layer {
        _ if has("protect") => "protected names are changed by a person, outside the sandbox",
        _ if has("mask") => "a person can take the path out of the profile's mask list",
        _ if has("connect") || has("network") || has("inet") => {
            "a person can allow the network with --net full"
        }
        _ if has("unix") => "host sockets are never in reach; use socketpair or TCP on 127.0.0.1",
        "mounts" | "landlock" if has("read") => {
            "a person can add the path to the profile's read list"
        }
        "mounts" | "landlock" => {
            "a person can grant the directory with --add-dir, or use a file in the workspace or /tmp"
        }
        "seccomp" | "caps" => "nobody can allow this kernel interface in a sandbox",
        "namespaces" => "processes and services outside the call are never in reach",
        "limits" => "a person can raise the limit in the profile",
        _ => "a person can change the profile",
    }
}

/// Errors a denial can carry, by name.
fn errno_name(errno: i32) -> String {
    let name = match errno {
        1 => "EPERM",
        2 => "ENOENT",
        3 => "ESRCH",
        11 => "EAGAIN",
        12 => "ENOMEM",
        13 => "EACCES",
        16 => "EBUSY",
        18 => "EXDEV",
        28 => "ENOSPC",
        30 => "EROFS",
        38 => "ENOSYS",
        97 => "EAFNOSUPPORT",
        101 => "ENETUNREACH",
        other => return format!("errno {other}"),
    };
    name.to_owned()
}

/// Text that does nothing to a terminal and stays on its line.
pub fn inert(text: &str) -> String {
    let mut out = String::new();
    for (shown, char) in text.chars().enumerate() {
        if shown == SHOWN_CHARS_MAX {
            out.push('…');
            break;
        }
        if is_plain(char) {
            out.push(char);
        } else {
            out.extend(char.escape_unicode());
        }
    }
    out
}

/// Not a control, a line or paragraph separator, a direction mark or a zero-width character.
fn is_plain(char: char) -> bool {
    !char.is_control()
        && !matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
