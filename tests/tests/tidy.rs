//! The rules of the tree, run on the tree. `src/tidy` holds them and shows each going red.

use std::process::Command;

use curfew_tests::tidy::{crates, docs, source};
use curfew_tests::tree;

fn holds(broken: Vec<String>) {
    assert!(
        broken.is_empty(),
        "{} places:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

fn read(path: &str) -> String {
    std::fs::read_to_string(tree::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(args)
        .current_dir(tree::root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn metadata() -> serde_json::Value {
    serde_json::from_str(&cargo(&[
        "metadata",
        "--no-deps",
        "--locked",
        "--format-version",
        "1",
    ]))
    .unwrap()
}

#[test]
fn crates_depend_in_one_direction() {
    holds(crates::direction(&metadata()));
}

#[test]
fn pure_crates_reach_for_nothing() {
    holds(crates::purity(&tree::files()));
}

#[test]
fn dependencies_have_one_version_at_the_root() {
    holds(crates::one_version(&tree::files()));
}

#[test]
fn dependencies_have_a_reason() {
    holds(crates::reasons(&read("Cargo.toml")));
}

#[test]
fn linux_only_crates_stay_on_linux() {
    holds(crates::linux_only(&cargo(&[
        "tree",
        "--workspace",
        "--locked",
        "--prefix",
        "none",
        "--target",
        "aarch64-apple-darwin",
    ])));
}

#[test]
fn files_stay_short() {
    holds(source::sizes(
        &tree::files(),
        &read("tests/tidy/sizes.ratchet"),
    ));
}

#[test]
fn unsafe_stays_in_its_module() {
    holds(source::unsafe_places(&tree::files()));
}

#[test]
fn unsafe_names_its_contract() {
    holds(source::safety_texts(&tree::files()));
}

#[test]
fn every_file_is_reached() {
    let root = tree::root();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
    let roots: Vec<String> = targets
        .map(|target| std::path::Path::new(target["src_path"].as_str().unwrap()))
        .map(|path| {
            path.strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    holds(source::unreached(&tree::files(), &roots));
}

#[test]
fn tests_do_not_wait_by_the_clock() {
    holds(source::sleeps(&tree::files()));
}

#[test]
fn only_the_projection_holds_messages() {
    holds(source::message_lists(&tree::files()));
}

#[test]
fn no_test_is_ignored() {
    holds(source::ignored_tests(&tree::files()));
}

#[test]
fn no_machine_or_package_host_is_named() {
    holds(docs::foreign(&tree::files()));
}

#[test]
fn nothing_is_marked_as_left_to_do() {
    holds(docs::markers(&tree::files()));
}

#[test]
fn the_test_command_is_what_ci_runs() {
    holds(docs::command_agrees(&read("README.md"), &read(".ci/run")));
}

#[test]
fn required_crates_are_used_where_they_belong() {
    holds(crates::required(&tree::files()));
}

#[test]
fn guarantees_cite_tests() {
    holds(docs::guarantees(
        &read("README.md"),
        &docs::test_names(&tree::files()),
    ));
}
