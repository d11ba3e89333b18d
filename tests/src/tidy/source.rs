//! Rules about Rust sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{File, code_only, has_word};

pub const LINES_MAX: usize = 500;
pub const SAFETY_WORDS_MIN: usize = 6;

/// Phrases that name no contract.
const EMPTY_SAFETY: &[&str] = &[
    "valid parameters",
    "parameters are valid",
    "arguments are valid",
    "valid arguments",
    "inputs are valid",
    "this is safe",
    "is safe here",
    "trivially safe",
    "always safe",
    "safe to call",
    "trust me",
    "we know",
];

/// What contracts of unsafe functions are about.
const CONTRACT: &[&str] = &[
    "owns",
    "owned",
    "null",
    "NUL",
    "reads",
    "writes",
    "stores",
    "lives",
    "live",
    "layout",
    "zeroed",
    "zeroes",
    "aligned",
    "preconditions",
    "pointer",
    "pointers",
    "memory",
];

/// Lines of a file without its inline test modules.
pub fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let (mut count, mut at) = (0, 0);
    while at < lines.len() {
        let module = lines[at].trim() == "#[cfg(test)]"
            && lines
                .get(at + 1)
                .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if module {
            at += lines[at..]
                .iter()
                .position(|line| *line == "}")
                .unwrap_or(lines.len() - at);
        } else {
            count += 1;
        }
        at += 1;
    }
    count
}

/// Files that are too long. `ratchet` lists exceptions as `path lines`; a line there must state
/// today's size exactly, so that it can only shrink.
pub fn sizes(files: &[File], ratchet: &str) -> Vec<String> {
    let rows = ratchet
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut excused: BTreeMap<&str, usize> = rows
        .map(|row| row.rsplit_once(' ').expect("a ratchet row is `path lines`"))
        .map(|(path, lines)| (path, lines.parse().expect("a ratchet row ends in a number")))
        .collect();
    let mut broken = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
    {
        let lines = lines_without_tests(&file.text);
        match excused.remove(file.path.as_str()) {
            Some(_) if lines <= LINES_MAX => broken.push(format!(
                "{}: {lines} lines; remove its ratchet row",
                file.path
            )),
            Some(listed) if listed != lines => broken.push(format!(
                "{}: {lines} lines, the ratchet says {listed}",
                file.path
            )),
            None if lines > LINES_MAX => broken.push(format!(
                "{}: {lines} lines, the limit is {LINES_MAX}",
                file.path
            )),
            _ => {}
        }
    }
    broken.extend(
        excused
            .keys()
            .map(|path| format!("{path}: a ratchet row for no file")),
    );
    broken
}

fn may_be_unsafe(path: &str) -> bool {
    path == "sandbox/cell/src/sys.rs" || path.starts_with("sandbox/cell/src/sys/")
}

/// `unsafe` outside the one module that may hold it.
pub fn unsafe_places(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !may_be_unsafe(&file.path))
    {
        let code = code_only(&file.text);
        // The line that declares the module carries the exception for it.
        let declares = file.path == "sandbox/cell/src/lib.rs";
        for (index, line) in code.lines().enumerate() {
            let lifted = has_word(line, "unsafe_code")
                && !(declares && line.trim() == "#[allow(unsafe_code)]");
            if has_word(line, "unsafe") || lifted {
                broken.push(format!("{}:{}", file.path, index + 1));
            }
        }
    }
    broken
}

/// Unsafe blocks whose comment does not name the contract it relies on.
pub fn safety_texts(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let code = code_only(&file.text);
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in code
            .lines()
            .enumerate()
            .filter(|(_, line)| has_word(line, "unsafe"))
        {
            let comment = comment_above(&lines, index);
            let block: String = code
                .lines()
                .skip(index)
                .take(8)
                .collect::<Vec<_>>()
                .join(" ");
            if let Some(why) = empty_safety(&comment, &block, line) {
                broken.push(format!("{}:{}: {why}", file.path, index + 1));
            }
        }
    }
    broken
}

/// The comment that ends above line `index`, past attributes and the start of the statement.
fn comment_above(lines: &[&str], index: usize) -> String {
    let comment = |line: &str| line.trim_start().starts_with("//");
    let mut end = index;
    // A statement may begin some lines above its block (`let x = foo(` … `unsafe {`).
    while end > 0 && index - end < 3 && !comment(lines[end - 1]) {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && comment(lines[start - 1]) {
        start -= 1;
    }
    lines[start..end]
        .iter()
        .map(|line| line.trim_start().trim_start_matches('/').trim())
        .collect::<Vec<_>>()
        .join(" ")
}

fn empty_safety(comment: &str, block: &str, line: &str) -> Option<&'static str> {
    let function = has_word(line, "fn");
    let Some((_, text)) = comment.split_once(if function { "# Safety" } else { "SAFETY:" }) else {
        return Some("no SAFETY text");
    };
    if EMPTY_SAFETY
        .iter()
        .any(|phrase| text.to_lowercase().contains(phrase))
    {
        return Some("the SAFETY text claims instead of naming the contract");
    }
    if text.split_whitespace().count() < SAFETY_WORDS_MIN {
        return Some("the SAFETY text is too short to name a contract");
    }
    let named = callees(block).iter().any(|name| has_word(text, name));
    let manual = ["(2)", "(3)", "(7)"]
        .iter()
        .any(|section| text.contains(section));
    let spoken = CONTRACT.iter().any(|word| has_word(text, word));
    (!function && !named && !manual && !spoken)
        .then_some("the SAFETY text names neither what is called nor what that asks for")
}

/// Last path segments of what a piece of code calls.
fn callees(code: &str) -> BTreeSet<&str> {
    let ident = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(['(', '!']) {
        let start = code.as_bytes()[..at]
            .iter()
            .rposition(|byte| !ident(*byte))
            .map_or(0, |index| index + 1);
        if start < at {
            found.insert(&code[start..at]);
        }
    }
    found
}

/// Files that no `mod` line reaches. `roots` are the crate roots that cargo knows.
pub fn unreached(files: &[File], roots: &[String]) -> Vec<String> {
    let rust: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<(String, bool)> = roots.iter().map(|root| (root.clone(), true)).collect();
    while let Some((path, is_root)) = open.pop() {
        let Some(text) = rust.get(path.as_str()) else {
            continue;
        };
        if reached.insert(path.clone()) {
            open.extend(
                modules(&path, text, is_root)
                    .into_iter()
                    .map(|found| (found, false)),
            );
        }
    }
    rust.keys()
        .filter(|path| !reached.contains(**path))
        .map(|path| (*path).to_owned())
        .collect()
}

/// Where the out-of-line modules of a file may stand.
fn modules(path: &str, text: &str, is_root: bool) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let owns_folder = is_root || name == "mod.rs";
    let below = if owns_folder {
        folder.to_owned()
    } else {
        format!("{folder}/{}", name.trim_end_matches(".rs"))
    };
    let mut found = Vec::new();
    let mut given: Option<String> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            given = rest.split('"').next().map(|to| format!("{folder}/{to}"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let module = match words.as_slice() {
            ["mod", name]
            | ["pub", "mod", name]
            | ["pub(crate)", "mod", name]
            | ["pub(super)", "mod", name] => name.strip_suffix(';'),
            _ => None,
        };
        let Some(module) = module else { continue };
        match given.take() {
            Some(path) => found.push(path),
            None => found.extend([
                format!("{below}/{module}.rs"),
                format!("{below}/{module}/mod.rs"),
            ]),
        }
    }
    found
}

/// Waiting by the clock in tests.
pub fn sleeps(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let code = code_only(&file.text);
        let from = if file.is_test() {
            Some(0)
        } else {
            code.find("#[cfg(test)]")
        };
        let Some(from) = from else { continue };
        let before = code[..from].lines().count();
        for (index, line) in code[from..].lines().enumerate() {
            if has_word(line, "sleep(") || has_word(line, "park_timeout(") {
                broken.push(format!("{}:{}", file.path, before + index + 1));
            }
        }
    }
    broken
}

/// Types outside the projection that hold a list of messages.
pub fn message_lists(files: &[File]) -> Vec<String> {
    const HELD: &[&str] = &[
        "Vec<Message",
        "VecDeque<Message",
        "Box<[Message",
        "Arc<[Message",
        "Rc<[Message",
    ];
    let mut broken = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
    {
        if file.path.starts_with("runner/engine/src/projection") {
            continue;
        }
        let code = code_only(&file.text);
        for (index, line) in code.lines().enumerate() {
            let field = line
                .trim_start()
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            let named = ["messages: Vec", "history: Vec", "transcript: Vec"]
                .iter()
                .any(|name| field.starts_with(name));
            if named || HELD.iter().any(|held| line.contains(held)) {
                broken.push(format!("{}:{}", file.path, index + 1));
            }
        }
    }
    broken
}

/// Tests that never run. A measurement on demand is none.
pub fn ignored_tests(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let code = code_only(&file.text);
        for (index, (line, whole)) in code.lines().zip(file.text.lines()).enumerate() {
            let ignored = line.contains("#[ignore") && !whole.contains("\"a measurement");
            if ignored || line.contains("#[should_panic") {
                broken.push(format!("{}:{}", file.path, index + 1));
            }
        }
    }
    broken
}
