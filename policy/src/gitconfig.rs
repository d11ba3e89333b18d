//! The git identity, read out of configuration files by parsing them, never by running git.
//!
//! Only `user.name` and `user.email` are looked for. Includes are not followed: a file that names
//! other files is how a repository reaches outside. Bounded and total: damage is skipped.

/// Who commits made in a call are by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

impl Default for Identity {
    fn default() -> Self {
        Identity {
            name: "curfew".to_owned(),
            email: "curfew@localhost".to_owned(),
        }
    }
}

/// Larger files are not looked at beyond this.
pub const GITCONFIG_BYTES_MAX: usize = 256 << 10;
/// A longer name or address is cut.
const VALUE_CHARS_MAX: usize = 256;

/// The identity that `files` give, the later file having the last word, as git reads system, XDG
/// and home configuration.
#[must_use]
pub fn identity<'a>(files: impl IntoIterator<Item = &'a str>) -> Identity {
    let mut found = Identity::default();
    for text in files {
        for (key, value) in user_entries(text) {
            let value = clean(&value);
            match key.as_str() {
                _ if value.is_empty() => {}
                "name" => found.name = value,
                "email" => found.email = value,
                _ => {}
            }
        }
    }
    found
}

/// What git itself strips, and what would end a header line of a commit.
pub(crate) fn clean(value: &str) -> String {
    let kept: String = value
        .chars()
        .filter(|c| !c.is_control() && !matches!(c, '<' | '>'))
        .take(VALUE_CHARS_MAX)
        .collect();
    kept.trim_matches(|c: char| c.is_whitespace() || ".,:;'\"\\".contains(c))
        .to_owned()
}

fn user_entries(text: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut in_user = false;
    let mut lines = logical_lines(text);
    while let Some(line) = lines.next_line() {
        let mut line = line.trim_start();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((head, rest)) = rest.split_once(']') else {
                continue;
            };
            in_user = head.trim().eq_ignore_ascii_case("user");
            // A key may follow its section's head on the same line.
            line = rest.trim_start();
        }
        if !in_user || line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((key, value)) = line.split_once('=') {
            entries.push((key.trim().to_ascii_lowercase(), unquote(value)));
        }
    }
    entries
}

struct Lines<'a> {
    rest: &'a str,
}

fn logical_lines(text: &str) -> Lines<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut end = text.len().min(GITCONFIG_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Lines { rest: &text[..end] }
}

impl Lines<'_> {
    /// The next line; a backslash before its end continues it.
    fn next_line(&mut self) -> Option<String> {
        if self.rest.is_empty() {
            return None;
        }
        let mut whole = String::new();
        loop {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            let line = line.strip_suffix('\r').unwrap_or(line);
            let slashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            match line.strip_suffix('\\') {
                Some(head) if slashes % 2 == 1 && !rest.is_empty() => whole.push_str(head),
                _ => {
                    whole.push_str(line);
                    return Some(whole);
                }
            }
        }
    }
}

/// A value without its comment, quotes and escapes.
fn unquote(raw: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut blanks = 0;
    let mut chars = raw.trim_start().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') | None => {}
                Some(other) => value.push(other),
            },
            c => value.push(c),
        }
        blanks = if c.is_whitespace() && !quoted {
            blanks + 1
        } else {
            0
        };
    }
    let kept = value.chars().count().saturating_sub(blanks);
    value.chars().take(kept).collect()
}

#[cfg(test)]
mod tests;
