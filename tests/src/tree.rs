//! The files of the repository, as the rules see them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the tree: its path relative to the root, with slashes, and its text.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the whole file is test code: the tests crate, a `tests` folder, or `tests.rs`.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// Every text file that git tracks or would track.
pub fn files() -> Vec<File> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(
        listed.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let mut found = Vec::new();
    for name in listed
        .stdout
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let path = String::from_utf8(name.to_vec()).expect("paths of the tree are UTF-8");
        // Listed but deleted in the working tree, or a blob that is not text: no rule reads it.
        let Ok(bytes) = std::fs::read(root().join(&path)) else {
            continue;
        };
        if let Ok(text) = String::from_utf8(bytes) {
            found.push(File { path, text });
        }
    }
    assert!(
        found.len() > 20,
        "the tree has {} files; the listing is broken",
        found.len()
    );
    found
}

/// The same text with comments and the insides of string and character literals blanked, line
/// for line and column for column, so that a search meets code only.
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if let Some(end) = end {
            blank(&mut out, at, end);
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8(out).expect("blanking whole literals keeps UTF-8 intact")
}

fn blank(out: &mut [u8], from: usize, to: usize) {
    for byte in &mut out[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Where the comment or literal that starts at `at` ends, if one starts there.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let joined = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => Some(
            at + rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len()),
        ),
        [b'/', b'*', ..] => Some(block_comment_end(bytes, at)),
        [b'"', ..] => Some(string_end(bytes, at + 1)),
        [b'r', b'"' | b'#', ..] if !joined => raw_string_end(bytes, at + 1),
        [b'b', b'r', b'"' | b'#', ..] if !joined => raw_string_end(bytes, at + 2),
        [b'\'', b'\\', ..] => {
            Some(at + 3 + rest.get(3..)?.iter().position(|byte| *byte == b'\'')? + 1)
        }
        [b'\'', first, ..] => {
            let width = utf8_width(*first);
            (rest.get(1 + width) == Some(&b'\'')).then_some(at + width + 2)
        }
        _ => None,
    }
}

fn utf8_width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(at + hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let from = at + hashes + 1;
    let found = bytes[from..]
        .windows(close.len())
        .position(|window| window == close.as_slice());
    Some(found.map_or(bytes.len(), |offset| from + offset + close.len()))
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Whether `word` stands in `text` with no identifier character on either side.
pub fn has_word(text: &str, word: &str) -> bool {
    let ident = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).map(|index| text.as_bytes()[index]);
        let after = text.as_bytes().get(at + word.len()).copied();
        let free = |side: Option<u8>, edge: u8| !ident(edge) || !side.is_some_and(ident);
        free(before, word.as_bytes()[0]) && free(after, word.as_bytes()[word.len() - 1])
    })
}

#[cfg(test)]
mod tests {
    use super::{code_only, has_word};

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays() {
        let text = "let a = \"unsafe\"; // unsafe\n/* un /* safe */ */ unsafe {}\nlet c = '\\''; let d: &'a str = r#\"x \" unsafe\"#;";
        let code = code_only(text);
        assert_eq!(code.matches("unsafe").count(), 1);
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(code.contains("&'a str"));
        assert!(code_only("let q = '\"'; unsafe").contains("unsafe"));
        assert!(code_only("let q = 'é'; unsafe").contains("unsafe"));
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        assert!(has_word("an unsafe block", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(has_word("x.sleep(1)", "sleep("));
        assert!(!has_word("x.nosleep(1)", "sleep("));
    }
}
