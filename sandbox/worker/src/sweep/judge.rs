//! Which new names can do nothing: what git itself makes when it makes a repository or a worktree.
//! An allow-list; what is not understood is not harmless.

use std::fs::{File, read_dir, symlink_metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

const TEXT_BYTES_MAX: u64 = 64 << 10;
const HOOKS_MAX: usize = 64;

/// Keys of a repository's configuration that run and read nothing elsewhere.
const KEYS: [(&str, &[&str]); 7] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default"]),
    ("remote", &["fetch"]),
];

pub(super) fn is_harmless(root: &Path, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let above = path.parent().and_then(Path::file_name).unwrap_or_default();
    match (above.to_str(), name.to_str()) {
        (_, Some(".git")) => text(path).is_some_and(|text| is_pointer(root, path, &text)),
        (Some(".git"), Some("hooks")) => has_samples_only(path),
        (Some(".git"), Some("config")) => text(path).is_some_and(|text| is_plain_config(&text)),
        (Some(_), Some("commondir")) if in_worktrees(path) => {
            text(path).is_some_and(|text| text.trim_end_matches('\n') == "../..")
        }
        (Some(_), Some("gitdir")) if in_worktrees(path) => {
            text(path).is_some_and(|text| is_back_pointer(root, &text))
        }
        _ => false,
    }
}

/// `.git/worktrees/NAME/FILE`.
fn in_worktrees(path: &Path) -> bool {
    let mut above = path.ancestors().skip(2).filter_map(Path::file_name);
    above.next().is_some_and(|name| name == "worktrees")
        && above.next().is_some_and(|name| name == ".git")
}

/// A regular file's text, if it is short and is text.
fn text(path: &Path) -> Option<String> {
    if !symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = File::open(path)
        .ok()?
        .take(TEXT_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .ok()?;
    (read as u64 <= TEXT_BYTES_MAX).then_some(text)
}

/// The hooks that git ships run only once somebody renames them.
fn has_samples_only(hooks: &Path) -> bool {
    let is_directory = symlink_metadata(hooks).is_ok_and(|found| found.is_dir());
    let Ok(entries) = read_dir(hooks) else {
        return false;
    };
    let mut entries = entries.take(HOOKS_MAX + 1).enumerate();
    is_directory
        && entries.all(|(at, entry)| {
            at < HOOKS_MAX
                && entry.is_ok_and(|entry| {
                    let sample = entry.path().extension().is_some_and(|end| end == "sample");
                    sample && entry.file_type().is_ok_and(|kind| kind.is_file())
                })
        })
}

/// The `.git` file of a linked worktree whose repository is below the same root, in the place where
/// protected names are looked for.
fn is_pointer(root: &Path, path: &Path, text: &str) -> bool {
    let Some(target) = text.strip_prefix("gitdir: ").and_then(one_line) else {
        return false;
    };
    let Some(target) = path.parent().and_then(|from| clean(&from.join(target))) else {
        return false;
    };
    let mut above = target.ancestors().skip(1).filter_map(Path::file_name);
    target.starts_with(root)
        && above.next().is_some_and(|name| name == "worktrees")
        && above.next().is_some_and(|name| name == ".git")
}

/// From `.git/worktrees/NAME/gitdir` back to a worktree below the same root.
fn is_back_pointer(root: &Path, text: &str) -> bool {
    let target = one_line(text).and_then(|line| clean(Path::new(line)));
    target.is_some_and(|target| {
        target.starts_with(root) && target.file_name().is_some_and(|name| name == ".git")
    })
}

fn one_line(text: &str) -> Option<&str> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    (!line.contains(['\n', '\r', '\0'])).then_some(line)
}

/// Without `.` and `..`, by spelling.
fn clean(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            part => clean.push(part),
        }
    }
    clean.is_absolute().then_some(clean)
}

/// Every line a section, a listed key with a plain value, a comment or blank.
fn is_plain_config(text: &str) -> bool {
    let mut section: Option<&str> = None;
    text.lines().all(|line| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(head) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = section_named(head);
            return section.is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        // Continued lines, quotes and escapes have rules of their own.
        let plain =
            !value.contains(['\\', '"', '\0']) || section == Some("user") && !value.contains('\\');
        plain
            && match section {
                Some("remote") if key == "url" => is_plain_url(value),
                Some(section) => KEYS
                    .iter()
                    .any(|(name, keys)| *name == section && keys.contains(&key.as_str())),
                None => false,
            }
    })
}

/// `core`, or `remote "origin"`: the name of a section that is listed.
fn section_named(head: &str) -> Option<&'static str> {
    let (name, sub) = head
        .split_once(' ')
        .map_or((head, None), |(name, sub)| (name, Some(sub)));
    let quoted = |sub: &str| {
        sub.len() >= 2 && sub.starts_with('"') && sub.ends_with('"') && !sub.contains(['\\', ']'])
    };
    if !sub.is_none_or(quoted) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    KEYS.iter()
        .map(|(known, _)| *known)
        .find(|known| *known == name)
}

/// A transport that runs nothing of its own choice (`ext::` runs a command).
fn is_plain_url(url: &str) -> bool {
    ["https://", "http://", "ssh://", "git://"]
        .iter()
        .any(|scheme| {
            url.strip_prefix(scheme)
                .is_some_and(|rest| !rest.starts_with('-') && !rest.contains(char::is_whitespace))
        })
}
