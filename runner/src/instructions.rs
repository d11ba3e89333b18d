//! AGENTS.md and its kin: read by a worker inside the confinement, bounded, logged before they are
//! sent. Whatever stands in their place (a link to a key, a FIFO, a device, a gigabyte) is the
//! workspace's word and treated as such.

use std::path::Path;

use curfew_engine::event::{MessageSource, UserMessage};
use curfew_worker::protocol::{ErrorCode, FileFact, Request, Response};

use crate::cells::Cells;

/// The first that exists is taken.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
const BYTES_MAX: u64 = 32 << 10;
const LINES_MAX: u64 = 2000;
const LINE_CHARS_MAX: u64 = 2000;

/// What was found, and what the operator should know about it.
#[derive(Debug, Default)]
pub struct Found {
    pub message: Option<UserMessage>,
    pub note: Option<String>,
}

/// Reads the nearest instruction file of the workspace.
pub fn read(cells: &Cells, workspace: &Path) -> Found {
    for name in NAMES {
        let request = Request::Read {
            path: name.to_owned(),
            offset: 1,
            lines_max: LINES_MAX,
            line_chars_max: LINE_CHARS_MAX,
            bytes_max: BYTES_MAX,
        };
        match cells.worker(cells.number(), &request, &[]) {
            Ok((Response::Error { error }, ..)) if error.code == ErrorCode::NotFound => {}
            Ok((Response::Error { error }, ..)) => return refused(name, &error.text),
            Ok((
                Response::Read {
                    file,
                    more,
                    cut_lines,
                    ..
                },
                text,
                _,
            )) => {
                let cut = if more || cut_lines > 0 {
                    Cut::Some
                } else {
                    Cut::None
                };
                return taken(workspace, name, file, cut, text);
            }
            Ok(_) => return refused(name, "the file worker gave another answer"),
            Err(error) => return refused(name, &error.to_string()),
        }
    }
    Found::default()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    None,
    Some,
}

fn taken(workspace: &Path, name: &str, file: FileFact, cut: Cut, text: Vec<u8>) -> Found {
    // The kernel resolved the name: a link may lead to a sibling of that kind and nowhere else.
    if !NAMES
        .iter()
        .any(|sibling| workspace.join(sibling) == Path::new(&file.path))
    {
        return refused(name, "it is a link that leads elsewhere");
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    if text.trim().is_empty() {
        return Found::default();
    }
    let note = (cut == Cut::Some).then(|| format!("{name} is long: only its beginning is sent"));
    let shown = if cut == Cut::Some {
        format!("{text}\n[cut here]")
    } else {
        text
    };
    let source = MessageSource::Instructions {
        path: file.path,
        sha256: file.sha256,
        cut: cut == Cut::Some,
    };
    let text = format!("Instructions of this workspace, from {name}:\n\n{shown}");
    Found {
        message: Some(UserMessage { source, text }),
        note,
    }
}

fn refused(name: &str, why: &str) -> Found {
    Found {
        message: None,
        note: Some(format!("{name} is not used: {why}")),
    }
}
