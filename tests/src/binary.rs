//! The binary under test: where it is, and a copy that every uid can reach.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::tree;

/// The built `curfew`, built first if it is missing or older than its sources. `cargo test
/// --workspace` has built it before any test runs; `cargo test -p curfew-tests` has not.
/// `CURFEW_UNDER_TEST` names another binary, such as a release build.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("CURFEW_UNDER_TEST") {
        Some(given) => std::fs::canonicalize(given).expect("CURFEW_UNDER_TEST names a file"),
        None => built(),
    })
}

/// `target/PROFILE/curfew`, beside the `deps` folder this test runs from.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("tests run from target/PROFILE/deps");
    let binary = folder.join("curfew");
    let built_at = std::fs::metadata(&binary).and_then(|meta| meta.modified());
    if !built_at.is_ok_and(|built_at| built_at >= sources_changed_at()) {
        build(folder);
    }
    assert!(binary.is_file(), "{} was not built", binary.display());
    binary
}

fn build(folder: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build", "--quiet", "--locked", "-p", "curfew", "--bin", "curfew",
    ]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let target = folder
        .parent()
        .expect("a profile's folder is in the target folder");
    command
        .arg("--target-dir")
        .arg(target)
        .current_dir(tree::root());
    assert!(
        command.status().expect("cargo runs").success(),
        "curfew does not build"
    );
}

/// The latest change of anything the binary is made of.
fn sources_changed_at() -> SystemTime {
    let ours = |path: &str| !path.starts_with("tests/") && !path.starts_with("ci/");
    let made_of = |path: &str| {
        [".rs", ".toml", ".lock", ".md", ".sh", ".jsonl"]
            .iter()
            .any(|end| path.ends_with(end))
    };
    let files = tree::files();
    let changed = files
        .iter()
        .filter(|file| ours(&file.path) && made_of(&file.path) && file.path.contains('/'));
    changed
        .filter_map(|file| {
            std::fs::metadata(tree::root().join(&file.path))
                .ok()?
                .modified()
                .ok()
        })
        .max()
        .expect("the tree has sources")
}

/// The same binary in a folder that every uid can enter. It goes when this process does.
pub fn reachable() -> &'static Path {
    static COPY: OnceLock<(PathBuf, Child)> = OnceLock::new();
    let (binary, _reaper) = COPY.get_or_init(|| {
        let copy = crate::world::base().join(format!("bin-{}", std::process::id()));
        std::fs::create_dir_all(&copy).expect("the base of worlds can be written");
        let reaper = reaper(&copy);
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
        let binary = copy.join("curfew");
        std::fs::copy(path(), &binary).expect("the binary can be copied");
        std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
        (binary, reaper)
    });
    binary
}

/// Removes a folder once this process has ended, however it ends: nothing static is dropped, but
/// the pipe this process holds is closed.
fn reaper(folder: &Path) -> Child {
    let mut command = Command::new("sh");
    command
        .args(["-c", "cat > /dev/null; rm -rf \"$0\""])
        .arg(folder);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("sh runs")
}
