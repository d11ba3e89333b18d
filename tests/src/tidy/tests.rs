//! Each rule going red on what it forbids and staying green beside it.

use std::collections::BTreeSet;

use serde_json::json;

use super::{crates, docs, source};
use crate::tree::File;

fn red(broken: Vec<String>, count: usize) {
    assert_eq!(broken.len(), count, "{broken:#?}");
}

fn file(path: &str, text: &str) -> Vec<File> {
    vec![File::new(path, text)]
}

#[test]
fn direction_goes_red() {
    let package = |name: &str, on: &[&str]| json!({"name": name, "dependencies": on.iter().map(|on| json!({"name": on, "kind": "dev"})).collect::<Vec<_>>()});
    let metadata = |packages: Vec<serde_json::Value>| json!({ "packages": packages });
    red(
        crates::direction(&metadata(vec![package(
            "curfew-engine",
            &["serde", "curfew-policy"],
        )])),
        0,
    );
    red(
        crates::direction(&metadata(vec![package("curfew-cell", &["curfew-policy"])])),
        1,
    );
    red(
        crates::direction(&metadata(vec![package("curfew-policy", &["curfew"])])),
        1,
    );
    red(
        crates::direction(&metadata(vec![package("curfew-extra", &[])])),
        1,
    );
    red(
        crates::direction(&metadata(vec![package("curfew", &["curfew-engine"])])),
        0,
    );
}

#[test]
fn required_goes_red() {
    let all: Vec<File> = crates::REQUIRED
        .iter()
        .map(|(_, folder, word)| File::new(&format!("{folder}x.rs"), word))
        .collect();
    red(crates::required(&all), 0);
    red(crates::required(&all[1..]), 1);
    let in_tests: Vec<File> = crates::REQUIRED
        .iter()
        .map(|(_, folder, word)| File::new(&format!("{folder}tests.rs"), word))
        .collect();
    assert!(!crates::required(&in_tests).is_empty());
}

#[test]
fn purity_goes_red() {
    red(
        crates::purity(&file("policy/src/a.rs", "let t = std::fs::read(p);")),
        1,
    );
    red(
        crates::purity(&file(
            "runner/engine/src/a.rs",
            "use std::time::Instant; let t = Instant::now();",
        )),
        1,
    );
    red(
        crates::purity(&file("policy/src/a.rs", "// std::fs is not for us")),
        0,
    );
    red(
        crates::purity(&file("runner/src/a.rs", "std::fs::read(p);")),
        0,
    );
}

#[test]
fn one_version_goes_red() {
    red(
        crates::one_version(&file(
            "a/Cargo.toml",
            "[dependencies]\nserde.workspace = true\n",
        )),
        0,
    );
    red(
        crates::one_version(&file("a/Cargo.toml", "[dependencies]\nserde = \"1\"\n")),
        1,
    );
    red(
        crates::one_version(&file(
            "a/Cargo.toml",
            "[target.'cfg(unix)'.dev-dependencies]\nserde = { version = \"1\" }\n",
        )),
        1,
    );
}

#[test]
fn reasons_goes_red() {
    red(
        crates::reasons(
            "[workspace.dependencies]\n# typed errors in libraries\nthiserror = \"2\"\n",
        ),
        0,
    );
    red(
        crates::reasons(
            "[workspace.dependencies]\n# typed errors in libraries\nthiserror = \"2\"\nanyhow = \"1\"\n",
        ),
        1,
    );
    red(
        crates::reasons("[workspace.dependencies]\ncurfew = { path = \"runner\" }\n"),
        0,
    );
    red(
        crates::reasons("[workspace.dependencies]\n# x\nanyhow = \"1\"\n"),
        1,
    );
}

#[test]
fn linux_only_goes_red() {
    red(crates::linux_only("curfew v0.1.0 (x)\nserde v1.0.0\n"), 0);
    red(crates::linux_only("landlock v0.4.8\ncaps v0.5.6\n"), 2);
}

#[test]
fn sizes_goes_red() {
    let long = "x\n".repeat(501);
    red(
        source::sizes(&file("a/src/b.rs", &"x\n".repeat(500)), ""),
        0,
    );
    red(source::sizes(&file("a/src/b.rs", &long), ""), 1);
    red(
        source::sizes(&file("a/src/b.rs", &long), "# why\na/src/b.rs 501\n"),
        0,
    );
    red(
        source::sizes(&file("a/src/b.rs", &long), "a/src/b.rs 502\n"),
        1,
    );
    red(
        source::sizes(&file("a/src/b.rs", "x\n"), "a/src/b.rs 501\n"),
        1,
    );
    red(source::sizes(&[], "a/src/b.rs 501\n"), 1);
    red(source::sizes(&file("a/src/tests.rs", &long), ""), 0);
    let inline = format!(
        "{}#[cfg(test)]\nmod tests {{\n{long}}}\n",
        "x\n".repeat(499)
    );
    red(source::sizes(&file("a/src/b.rs", &inline), ""), 0);
}

#[test]
fn unsafe_places_goes_red() {
    red(
        source::unsafe_places(&file("sandbox/cell/src/sys.rs", "unsafe { f() }")),
        0,
    );
    red(
        source::unsafe_places(&file("sandbox/cell/src/sys/clone.rs", "unsafe { f() }")),
        0,
    );
    red(
        source::unsafe_places(&file("sandbox/cell/src/init.rs", "unsafe { f() }")),
        1,
    );
    red(
        source::unsafe_places(&file("tests/tests/a.rs", "unsafe { f() }")),
        1,
    );
    red(
        source::unsafe_places(&file("runner/src/a.rs", "#![allow(unsafe_code)]")),
        1,
    );
    red(
        source::unsafe_places(&file(
            "sandbox/cell/src/lib.rs",
            "#[allow(unsafe_code)]\nmod sys;",
        )),
        0,
    );
    red(
        source::unsafe_places(&file(
            "runner/src/a.rs",
            "// unsafe is not for us\nlet a = \"unsafe\";",
        )),
        0,
    );
}

#[test]
fn safety_texts_goes_red() {
    let check = |comment: &str| {
        source::safety_texts(&file(
            "sandbox/cell/src/sys.rs",
            &format!("{comment}\nlet x = unsafe {{ libc::close(fd) }};\n"),
        ))
    };
    red(
        check("// SAFETY: close(2) takes any number; this one is ours and is used no more."),
        0,
    );
    red(
        check("// SAFETY: close takes any number, and this descriptor is used no more after it."),
        0,
    );
    red(check(""), 1);
    red(
        check("// SAFETY: valid parameters are passed to close here, and it is fine."),
        1,
    );
    red(
        check("// SAFETY: the parameters are valid for close in every case that can happen."),
        1,
    );
    red(check("// SAFETY: close(2)."), 1);
    red(
        check("// SAFETY: nothing can go wrong with a number like this one here."),
        1,
    );
    red(
        source::safety_texts(&file(
            "sandbox/cell/src/sys.rs",
            "/// # Safety\n/// The caller owns the descriptor and gives it up.\nunsafe fn shut(fd: i32) {}\n",
        )),
        0,
    );
    red(
        source::safety_texts(&file(
            "sandbox/cell/src/sys.rs",
            "unsafe fn shut(fd: i32) {}\n",
        )),
        1,
    );
}

#[test]
fn unreached_goes_red() {
    let tree = |main: &str| {
        vec![
            File::new("a/src/lib.rs", main),
            File::new("a/src/b.rs", "mod c;"),
            File::new("a/src/b/c.rs", ""),
        ]
    };
    let roots = vec!["a/src/lib.rs".to_owned()];
    red(source::unreached(&tree("pub mod b;"), &roots), 0);
    red(source::unreached(&tree(""), &roots), 2);
    red(
        source::unreached(&tree("#[path = \"b.rs\"]\nmod other;"), &roots),
        0,
    );
    red(source::unreached(&tree("// mod b;"), &roots), 2);
}

#[test]
fn sleeps_goes_red() {
    let wait = "std::thread::sleep(d);";
    red(source::sleeps(&file("tests/tests/a.rs", wait)), 1);
    red(source::sleeps(&file("runner/src/a.rs", wait)), 0);
    red(
        source::sleeps(&file(
            "runner/src/a.rs",
            &format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{wait}\n}}"),
        )),
        1,
    );
    red(
        source::sleeps(&file("tests/tests/a.rs", "run(\"sleep(1)\");")),
        0,
    );
}

#[test]
fn message_lists_goes_red() {
    red(
        source::message_lists(&file(
            "runner/src/a.rs",
            "struct S {\n    pub messages: Vec<Value>,\n}",
        )),
        1,
    );
    red(
        source::message_lists(&file(
            "runner/src/a.rs",
            "struct S {\n    past: VecDeque<Message>,\n}",
        )),
        1,
    );
    red(
        source::message_lists(&file(
            "runner/engine/src/projection.rs",
            "fn messages() -> Vec<Message> {",
        )),
        0,
    );
    red(
        source::message_lists(&file(
            "runner/model/src/a.rs",
            "fn render(messages: &[Message]) {",
        )),
        0,
    );
}

#[test]
fn ignored_tests_goes_red() {
    red(
        source::ignored_tests(&file("a/src/tests.rs", "#[ignore = \"slow\"]\nfn a() {}")),
        1,
    );
    red(
        source::ignored_tests(&file("a/src/tests.rs", "#[test]\nfn a() {}")),
        0,
    );
    let measured = "#[ignore = \"a measurement\"]\nfn a() {}";
    red(source::ignored_tests(&file("a/src/tests.rs", measured)), 0);
}

#[test]
fn foreign_goes_red() {
    red(
        docs::foreign(&file("a.md", &format!("see {}", concat!("/wo", "rk/x")))),
        1,
    );
    red(
        docs::foreign(&file("Cargo.lock", concat!("index.crates", ".io"))),
        0,
    );
    red(docs::foreign(&file("a.md", "see /srv/x")), 0);
}

#[test]
fn markers_goes_red() {
    red(
        docs::markers(&file("a.rs", concat!("// TO", "DO later"))),
        1,
    );
    red(docs::markers(&file("a.rs", concat!("todo", "!()"))), 1);
    red(docs::markers(&file("a.rs", "todo/write")), 0);
}

#[test]
fn guarantees_goes_red() {
    let names: BTreeSet<String> = ["fs01_write_outside".to_owned()].into();
    let readme =
        |item: &str| format!("# x\n\n## What it guarantees\n\n{item}\n\n## Other\n- not one\n");
    red(
        docs::guarantees(
            &readme("- Bytes outside stay. Tests: `fs01_write_outside`."),
            &names,
        ),
        0,
    );
    red(
        docs::guarantees(
            &readme("- Bytes outside\n  stay. Tests:\n  `fs01_write_outside`."),
            &names,
        ),
        0,
    );
    red(
        docs::guarantees(&readme("- Bytes outside stay."), &names),
        1,
    );
    red(
        docs::guarantees(&readme("- Bytes outside stay. Tests: `fs99_gone`."), &names),
        1,
    );
    red(docs::guarantees("# x\n", &names), 1);
}

#[test]
fn test_names_are_those_with_the_attribute() {
    let names = docs::test_names(&file(
        "a.rs",
        "#[test]\nfn one() {}\nfn two() {}\n#[tokio::test]\nasync fn three() {}\n",
    ));
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["one", "three"]);
}

#[test]
fn command_agrees_goes_red() {
    let readme = "text\n```\ncargo test --workspace --locked\n```\n";
    red(
        docs::command_agrees(readme, "set -e\ncargo test --workspace --locked\n"),
        0,
    );
    red(docs::command_agrees(readme, "cargo test --workspace\n"), 1);
    red(
        docs::command_agrees(readme, "cargo test --workspace --locked -- --skip x\n"),
        1,
    );
    red(docs::command_agrees("none", "cargo test\n"), 1);
}
