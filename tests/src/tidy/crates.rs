//! Rules about crates and dependencies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::tree::{File, has_word};

/// Who may depend on whom among our own crates. The runner and the tests may use all.
pub const DIRECTION: &[(&str, &[&str])] = &[
    ("curfew-policy", &[]),
    ("curfew-cell", &[]),
    ("curfew-proxy", &["curfew-policy"]),
    ("curfew-worker", &["curfew-cell"]),
    (
        "curfew-sandbox",
        &[
            "curfew-policy",
            "curfew-cell",
            "curfew-worker",
            "curfew-proxy",
        ],
    ),
    ("curfew-engine", &["curfew-policy"]),
    ("curfew-model", &["curfew-engine"]),
    ("curfew-store", &["curfew-engine"]),
];

/// The crates the design requires, the folder where each must be used, and a word of its use.
pub const REQUIRED: &[(&str, &str, &str)] = &[
    ("tokio", "runner/src/", "tokio::"),
    ("reqwest", "runner/model/src/", "reqwest::"),
    ("clap", "runner/src/", "clap::"),
    ("tracing", "runner/", "tracing::"),
    ("landlock", "sandbox/cell/src/", "landlock::"),
    ("nix", "sandbox/cell/src/", "nix::"),
    ("seccompiler", "sandbox/cell/src/", "seccompiler::"),
    ("caps", "sandbox/cell/src/", "caps::"),
    ("serde_json", "runner/engine/src/codec", "serde_json::"),
    ("tempfile", "runner/store/src/", "tempfile::"),
];

/// Crates that exist for Linux alone and must not be built elsewhere.
pub const LINUX_ONLY: &[&str] = &["landlock", "seccompiler", "caps"];

/// What a pure crate may not reach for.
pub const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::thread",
    "std::process",
    "std::os",
    "SystemTime::now",
    "Instant::now",
    "tokio::",
    "rustix::",
    "nix::",
    "libc::",
    "tempfile::",
    "rand::",
];

/// Dependencies, of every kind, that go against the direction.
pub fn direction(metadata: &Value) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = DIRECTION.iter().copied().collect();
    let mut broken = Vec::new();
    for package in packages(metadata) {
        let name = package["name"].as_str().unwrap();
        if name == "curfew" || name == "curfew-tests" {
            continue;
        }
        let Some(allowed) = allowed.get(name) else {
            broken.push(format!("{name}: no row in the direction table"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let ours = on == "curfew" || on.starts_with("curfew-");
            if ours && !allowed.contains(&on) {
                broken.push(format!("{name} -> {on}"));
            }
        }
    }
    broken
}

fn packages(metadata: &Value) -> &Vec<Value> {
    metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages")
}

/// Required crates that are not used where they must be.
pub fn required(files: &[File]) -> Vec<String> {
    let used = |folder: &str, word: &str| {
        files.iter().any(|file| {
            file.is_rust()
                && !file.is_test()
                && file.path.starts_with(folder)
                && has_word(&file.text, word)
        })
    };
    let missing = REQUIRED
        .iter()
        .filter(|(_, folder, word)| !used(folder, word));
    missing
        .map(|(name, folder, _)| format!("{name} is not used below {folder}"))
        .collect()
}

/// Code of pure crates that reaches for the world.
pub fn purity(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files {
        let pure =
            file.path.starts_with("policy/src/") || file.path.starts_with("runner/engine/src/");
        if !pure || !file.is_rust() || file.is_test() {
            continue;
        }
        let code = crate::tree::code_only(&file.text);
        broken.extend(
            IMPURE
                .iter()
                .filter(|word| has_word(&code, word))
                .map(|word| format!("{}: {word}", file.path)),
        );
    }
    broken
}

/// Dependencies of members that do not come from the root.
pub fn one_version(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
    {
        let manifest: toml::Table = file.text.parse().expect("a manifest is TOML");
        for (table, entries) in dependency_tables(&manifest, "") {
            for (name, value) in entries {
                let from_root = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
                if !from_root {
                    broken.push(format!(
                        "{}: {table}.{name} is not `workspace = true`",
                        file.path
                    ));
                }
            }
        }
    }
    broken
}

fn dependency_tables<'a>(table: &'a toml::Table, prefix: &str) -> Vec<(String, &'a toml::Table)> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else {
            continue;
        };
        let here = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => found.push((here, inner)),
            _ => found.extend(dependency_tables(inner, &here)),
        }
    }
    found
}

/// Third-party lines of `[workspace.dependencies]` without a reason on the line above.
pub fn reasons(root_manifest: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let (mut inside, mut above) = (false, "");
    for line in root_manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[workspace.dependencies]";
        } else if inside && line.contains('=') && !line.starts_with('#') {
            let ours = line.contains("path = ");
            if !ours && above.trim_start_matches('#').trim().len() < 10 {
                broken.push(line.to_owned());
            }
        }
        above = if line.starts_with('#') { line } else { "" };
    }
    broken
}

/// Linux-only crates in the output of `cargo tree --prefix none` for another target.
pub fn linux_only(tree: &str) -> Vec<String> {
    let names: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    LINUX_ONLY
        .iter()
        .filter(|name| names.contains(**name))
        .map(|name| (*name).to_owned())
        .collect()
}
