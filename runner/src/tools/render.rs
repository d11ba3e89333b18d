//! From what a worker answered to what the model is told.

use curfew_engine::event::{FileAccess, FileSeen, ToolErrorCode};
use curfew_worker::protocol::{ErrorCode, FileFact, Response, ToolError};

/// A file tool's result before its output is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The part that may be long, and the lines that follow it whole.
    pub body: Vec<u8>,
    pub notes: Vec<String>,
    pub error: Option<ToolErrorCode>,
    pub files: Vec<FileSeen>,
}

impl Rendered {
    fn ok(body: Vec<u8>, notes: Vec<String>, files: Vec<FileSeen>) -> Self {
        Rendered {
            body,
            notes,
            error: None,
            files,
        }
    }

    pub fn failed(code: ToolErrorCode, text: String) -> Self {
        Rendered {
            body: text.into_bytes(),
            notes: Vec::new(),
            error: Some(code),
            files: Vec::new(),
        }
    }
}

/// `bulk` is what followed the answer as raw frames.
pub fn response(response: Response, bulk: Vec<u8>) -> Rendered {
    match response {
        Response::Read {
            file,
            first,
            last,
            more,
            cut_lines,
            lossy,
            ..
        } => {
            let notes = read_notes(&file, (first, last), more, (cut_lines, lossy));
            Rendered::ok(
                numbered(&bulk, first),
                notes,
                vec![seen(file, FileAccess::Read, None)],
            )
        }
        Response::Written {
            file,
            created,
            before_sha256,
        } => {
            let (access, word) = if created {
                (FileAccess::Created, "Created")
            } else {
                (FileAccess::Changed, "Replaced")
            };
            // Short and without the path: a small model takes a full sentence for the answer it
            // owes, says it again and ends, with half of the task undone.
            let text = format!("{word}: {} bytes, {} lines.", file.bytes, file.lines);
            Rendered::ok(
                text.into_bytes(),
                Vec::new(),
                vec![seen(file, access, before_sha256)],
            )
        }
        Response::Edited {
            file,
            before_sha256,
            at,
        } => {
            let text = format!("edited {} at line {at}", file.path);
            Rendered::ok(
                text.into_bytes(),
                Vec::new(),
                vec![seen(file, FileAccess::Changed, Some(before_sha256))],
            )
        }
        Response::Glob { count, cut, .. } => listed(bulk, count, cut, "files match"),
        Response::Grep {
            count, cut, files, ..
        } => listed(bulk, count, cut, &format!("matches in {files} files")),
        Response::Manifest { .. } | Response::Canary { .. } | Response::Swept { .. } => {
            unexpected()
        }
        Response::Error { error } => refused(error),
    }
}

fn read_notes(
    file: &FileFact,
    (first, last): (u64, u64),
    more: bool,
    (cut_lines, lossy): (u64, bool),
) -> Vec<String> {
    let mut notes = Vec::new();
    if file.bytes == 0 {
        notes.push(String::from("[the file is empty]"));
    } else if more {
        notes.push(format!(
            "[lines {first} to {last} of {}; go on with offset {}]",
            file.lines,
            last + 1
        ));
    }
    if cut_lines > 0 {
        notes.push(format!("[{cut_lines} long lines were cut]"));
    }
    if lossy {
        notes.push(String::from(
            "[bytes that are not UTF-8 are shown as \u{fffd}]",
        ));
    }
    notes
}

fn listed(bulk: Vec<u8>, count: u64, cut: bool, what: &str) -> Rendered {
    let mut notes = Vec::new();
    if count == 0 {
        notes.push(format!("[no {what}]"));
    } else if cut {
        notes.push(format!(
            "[only the first {count} are listed; narrow the pattern]"
        ));
    }
    Rendered::ok(bulk, notes, Vec::new())
}

/// `7<tab>text`, one a line.
fn numbered(text: &[u8], first: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    for (line, number) in text.split_inclusive(|byte| *byte == b'\n').zip(first..) {
        out.extend_from_slice(number.to_string().as_bytes());
        out.push(b'\t');
        out.extend_from_slice(line);
    }
    out
}

fn seen(file: FileFact, access: FileAccess, before_sha256: Option<String>) -> FileSeen {
    FileSeen {
        path: file.path,
        sha256: file.sha256,
        bytes: file.bytes,
        lines: file.lines,
        seen: file.seen,
        before_sha256,
        access,
    }
}

fn refused(error: ToolError) -> Rendered {
    Rendered::failed(
        ToolErrorCode::Tool(code_name(error.code).to_owned()),
        error.text,
    )
}

/// The worker is hostile: an answer to another question is no answer.
fn unexpected() -> Rendered {
    let text = String::from("The file worker gave an answer to another question.");
    Rendered::failed(ToolErrorCode::SandboxFailed, text)
}

fn code_name(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotFound => "not-found",
        ErrorCode::NotAFile => "not-a-file",
        ErrorCode::NotADirectory => "not-a-directory",
        ErrorCode::Denied => "denied",
        ErrorCode::NotRead => "not-read",
        ErrorCode::Stale => "stale",
        ErrorCode::NotSeen => "not-seen",
        ErrorCode::NoMatch => "no-match",
        ErrorCode::ManyMatches => "many-matches",
        ErrorCode::NotText => "not-text",
        ErrorCode::TooLarge => "too-large",
        ErrorCode::BadPattern => "bad-pattern",
        ErrorCode::BadRequest => "bad-request",
        ErrorCode::Io => "io",
    }
}

#[cfg(test)]
mod tests;
