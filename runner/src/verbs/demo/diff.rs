//! What the file tools changed, from the log alone: contents that were read, written and edited,
//! each held against the digest that stands beside it.

use std::collections::BTreeMap;

use curfew_engine::event::{Body, Event, FileAccess, FileSeen, ToolCall};
use curfew_engine::hash::sha256_hex;
use serde::Deserialize;
use similar::TextDiff;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 1;

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub path: String,
    pub created: bool,
    /// The calls that changed it.
    pub calls: Vec<String>,
    /// `-`, `+` and context lines; `None` when the log does not hold both contents.
    pub lines: Option<Vec<String>>,
}

#[derive(Debug, Default)]
struct File {
    first: Option<String>,
    now: Option<String>,
    created: bool,
    calls: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    content: String,
    #[serde(default)]
    old_string: String,
    #[serde(default)]
    new_string: String,
}

pub fn of(events: &[Event]) -> Vec<Changed> {
    let mut calls: BTreeMap<&str, &ToolCall> = BTreeMap::new();
    let mut files: BTreeMap<&str, File> = BTreeMap::new();
    for event in events {
        match &event.body {
            Body::ToolCall(call) => {
                calls.insert(&call.call_id, call);
            }
            Body::ToolCompleted(done) if !done.is_error => {
                if let Some(call) = calls.get(done.call_id.as_str()) {
                    for seen in &done.files {
                        let file = files.entry(&seen.path).or_default();
                        file.take(call, seen, &done.content);
                    }
                }
            }
            _ => {}
        }
    }
    files
        .into_iter()
        .filter(|(_, file)| !file.calls.is_empty())
        .map(|(path, file)| file.changed(path))
        .collect()
}

impl File {
    fn take(&mut self, call: &ToolCall, seen: &FileSeen, content: &str) {
        let arguments: Arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let now = match (call.name.as_str(), &self.now) {
            ("read", _) => unnumbered(content),
            ("write", _) => arguments.content,
            ("edit", Some(before)) => {
                before.replacen(&arguments.old_string, &arguments.new_string, 1)
            }
            _ => String::new(),
        };
        let now = matching(now, &seen.sha256);
        match seen.access {
            FileAccess::Read => {
                // Seen in part, it is what is known from before.
                if now.is_some() && self.calls.is_empty() {
                    self.first.clone_from(&now);
                }
                self.now = now.or(self.now.take());
                return;
            }
            FileAccess::Created if self.calls.is_empty() => {
                self.created = true;
                self.first = Some(String::new());
            }
            FileAccess::Created | FileAccess::Changed => {}
        }
        self.now = now;
        self.calls.push(call.call_id.clone());
    }

    fn changed(self, path: &str) -> Changed {
        let lines = self.first.zip(self.now).map(|(first, now)| {
            let diff = TextDiff::from_lines(first.as_str(), now.as_str());
            let text = diff
                .unified_diff()
                .context_radius(CONTEXT_LINES)
                .to_string();
            text.lines()
                .filter(|line| !line.starts_with('\\'))
                .map(str::to_owned)
                .collect()
        });
        Changed {
            path: path.to_owned(),
            created: self.created,
            calls: self.calls,
            lines,
        }
    }
}

/// A read's content without its line numbers.
fn unnumbered(content: &str) -> String {
    let line = |line: &str| {
        line.split_once('\t')
            .map_or_else(String::new, |(_, text)| format!("{text}\n"))
    };
    content.lines().map(line).collect()
}

/// The text that has this digest: as it is, or without its last line break.
fn matching(text: String, sha256: &str) -> Option<String> {
    let is = |text: &str| sha256_hex(&[text.as_bytes()]) == sha256;
    if is(&text) {
        return Some(text);
    }
    let shorter = text.strip_suffix('\n')?;
    is(shorter).then(|| shorter.to_owned())
}

#[cfg(test)]
mod tests;
