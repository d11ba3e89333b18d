//! Rules about the words of the tree: README, scripts, and what may stand in no file.

use std::collections::BTreeSet;

use crate::tree::{File, has_word};

/// Paths of a developer's machine and addresses of package hosts. Split, so that this file is not
/// what it looks for.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!(".lib", "rary/"),
    concat!("crates", ".io/api"),
    concat!("static.crates", ".io"),
    concat!("index.crates", ".io"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("registry.npm", "js.org"),
    concat!("rust-", "lang.org/dist"),
    concat!("proxy.go", "lang.org"),
    concat!("deb.deb", "ian.org"),
];

const MARKERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

/// Lines that name this or that machine, or a package host.
pub fn foreign(files: &[File]) -> Vec<String> {
    find(files, |line| FOREIGN.iter().any(|word| line.contains(word)))
}

/// Lines that say something is left to do.
pub fn markers(files: &[File]) -> Vec<String> {
    find(files, |line| {
        MARKERS.iter().any(|word| has_word(line, word))
    })
}

fn find(files: &[File], broken: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| !file.path.ends_with(".lock") && !file.path.ends_with("package-lock.json"))
    {
        let rows = file
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| broken(line));
        found.extend(rows.map(|(index, _)| format!("{}:{}", file.path, index + 1)));
    }
    found
}

/// Names of the tests in the tree.
pub fn test_names(files: &[File]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut marked = false;
        // Inside `proptest! { … }` each function is a test that carries its own attribute.
        for line in file.text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                marked = true;
            }
            if let Some(rest) = line
                .strip_prefix("fn ")
                .or_else(|| line.strip_prefix("async fn "))
            {
                if marked {
                    names.insert(
                        rest.split(['(', '<'])
                            .next()
                            .unwrap_or(rest)
                            .trim()
                            .to_owned(),
                    );
                }
                marked = false;
            }
        }
    }
    names
}

/// Lines of README's guarantees that cite no test, or one that does not exist.
pub fn guarantees(readme: &str, names: &BTreeSet<String>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rows = 0;
    for item in items(section(readme, "## What it guarantees")) {
        rows += 1;
        let Some((_, cited)) = item
            .rsplit_once("Tests:")
            .or_else(|| item.rsplit_once("Test:"))
        else {
            broken.push(format!("no test is cited: {item}"));
            continue;
        };
        let tests: Vec<&str> = cited.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            broken.push(format!("no test is cited: {item}"));
        }
        broken.extend(
            tests
                .iter()
                .filter(|test| !names.contains(**test))
                .map(|test| format!("no test is called {test}")),
        );
    }
    if rows == 0 {
        broken.push("README has no list of guarantees".to_owned());
    }
    broken
}

/// The text below a heading, up to the next of the same rank.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let Some(start) = text.find(&format!("{heading}\n")) else {
        return "";
    };
    let body = &text[start + heading.len() + 1..];
    body.find("\n## ").map_or(body, |end| &body[..end])
}

/// List items, each with its continuation lines joined.
fn items(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(item) = line.strip_prefix("- ") {
            found.push(item.to_owned());
        } else if line.starts_with("  ")
            && let Some(last) = found.last_mut()
        {
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    found
}

/// README's command that runs the tests, as a fenced line of its own.
pub fn test_command(readme: &str) -> Option<&str> {
    let mut fenced = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && line.contains("cargo test") {
            return Some(line.trim());
        }
    }
    None
}

/// Whether the CI script runs exactly README's test command.
pub fn command_agrees(readme: &str, script: &str) -> Vec<String> {
    let Some(command) = test_command(readme) else {
        return vec!["README has no fenced line with `cargo test`".to_owned()];
    };
    let run: Vec<&str> = script
        .lines()
        .map(str::trim)
        .filter(|line| line.contains("cargo test"))
        .collect();
    if run == [command] {
        Vec::new()
    } else {
        vec![format!("README says `{command}`, the script runs {run:?}")]
    }
}
