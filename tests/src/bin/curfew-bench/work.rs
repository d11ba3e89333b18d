//! Ordinary work with evidence on: opens for writing, git status, a small cargo build.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::Place;
use crate::process::timed;
use curfew_tests::stats::{Row, Samples, ms};

const OPENS: u32 = 20_000;
const ROUNDS: usize = 7;
const FILES: usize = 2000;
const STATUSES: usize = 20;
const MODULES: usize = 40;

pub fn rows(place: &Place) -> Vec<Row> {
    vec![opens(place), git_status(place), cargo_build(place)]
}

/// Runs inside a call: opens a file for writing again and again, prints nanoseconds per open.
pub fn open_write(count: u32, path: &str) {
    let start = Instant::now();
    for _ in 0..count {
        drop(
            std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .unwrap(),
        );
    }
    println!("{}", start.elapsed().as_nanos() / u128::from(count));
}

fn opens(place: &Place) -> Row {
    let file = place.ws.join("opened");
    let (mut bare, mut confined) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        let run = |sandbox: bool| {
            let mut command = place.quiet(if sandbox { &place.curfew } else { &place.bench });
            if sandbox {
                command.args(["sandbox", "--"]).arg(&place.bench);
            }
            command
                .args(["open-write", &OPENS.to_string()])
                .arg(&file)
                .stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut text = String::new();
            child
                .stdout
                .take()
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            assert!(child.wait().unwrap().success());
            Duration::from_nanos(text.trim().parse().unwrap())
        };
        bare.add(run(false));
        confined.add(run(true));
    }
    let us = |samples: &Samples| samples.at(50).as_secs_f64() * 1e6;
    Row {
        what: "a notified open for writing".to_owned(),
        bound: "10 us",
        met: confined.at(50) <= Duration::from_micros(10),
        measured: format!("{:.2} us, bare {:.2} us", us(&confined), us(&bare)),
        n: ROUNDS,
        command: format!("curfew sandbox -- curfew-bench open-write {OPENS} FILE"),
    }
}

/// Time of one script bare and in a call, interleaved, measured inside so that the start of the
/// sandbox, which has its own row, is not counted again.
fn compare(place: &Place, rounds: usize, prepare: &str, script: &str) -> (Samples, Samples) {
    let (mut bare, mut confined) = (Samples::default(), Samples::default());
    let timing = format!(
        "{prepare}\ns=$(date +%s%N)\n{{ {script}; }} >/dev/null 2>&1 || exit 1\ne=$(date +%s%N)\necho $((e - s))"
    );
    for _ in 0..rounds {
        for sandbox in [false, true] {
            let mut command = place.quiet(if sandbox {
                &place.curfew
            } else {
                Path::new("/bin/sh")
            });
            if sandbox {
                command.args(["sandbox", "--", "/bin/sh"]);
            }
            command.args(["-c", &timing]).stdout(Stdio::piped());
            let output = command.output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{script}: {text}");
            let nanos = Duration::from_nanos(text.trim().parse().unwrap());
            if sandbox {
                confined.add(nanos)
            } else {
                bare.add(nanos)
            }
        }
    }
    (bare, confined)
}

fn ratio(what: &str, command: String, (bare, confined): (Samples, Samples)) -> Row {
    let (one, other) = (ms(bare.at(50)), ms(confined.at(50)));
    Row {
        what: what.to_owned(),
        bound: "1.05",
        met: other / one <= 1.05,
        measured: format!("{:.3}: {other:.1} ms, native {one:.1} ms", other / one),
        n: confined.count(),
        command,
    }
}

fn git_status(place: &Place) -> Row {
    for file in 0..FILES {
        let folder = place.ws.join(format!("src/d{}", file % 50));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("f{file}")), format!("{file}\n")).unwrap();
    }
    let mut make = place.quiet("/bin/sh".as_ref());
    make.args(["-c", "git init -q && git add src && git -c user.name=b -c user.email=b@b commit -qm one && git status"]);
    timed(make);
    let script = format!("for i in $(seq {STATUSES}); do git status --porcelain; done");
    let measured = compare(place, ROUNDS, "", &script);
    ratio(
        &format!("git status of {FILES} files, {STATUSES} times"),
        "git status --porcelain".to_owned(),
        measured,
    )
}

fn cargo_build(place: &Place) -> Row {
    let folder = place.ws.join("small");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    let mut main = String::new();
    for module in 0..MODULES {
        main.push_str(&format!("mod m{module};\n"));
        let text = format!("pub fn f(x: u64) -> String {{ format!(\"{{}}\", x * {module}) }}\n");
        std::fs::write(folder.join(format!("src/m{module}.rs")), text).unwrap();
    }
    main.push_str("fn main() {\n");
    (0..MODULES)
        .for_each(|module| main.push_str(&format!("    println!(\"{{}}\", m{module}::f(2));\n")));
    main.push_str("}\n");
    std::fs::write(folder.join("src/main.rs"), main).unwrap();
    let measured = compare(
        place,
        ROUNDS,
        "cd small; rm -rf target",
        "cargo build --offline",
    );
    ratio(
        &format!("cargo build of {MODULES} modules"),
        "cargo build --offline".to_owned(),
        measured,
    )
}
