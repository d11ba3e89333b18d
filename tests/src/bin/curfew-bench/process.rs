//! `curfew sandbox -- true` as a whole process, against the bare command and bubblewrap.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::Place;
use curfew_tests::stats::{Row, Samples, ms};

const ROUNDS: usize = 200;
const WARM: usize = 5;

pub fn rows(place: &Place) -> Vec<Row> {
    let bwrap = || {
        let mut command = Command::new("bwrap");
        command
            .args(["--unshare-all", "--ro-bind", "/", "/", "true"])
            .current_dir(&place.ws);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let has_bwrap = bwrap().status().is_ok_and(|status| status.success());
    let (mut bare, mut curfew, mut other) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..ROUNDS + WARM {
        let one = timed(place.quiet("/bin/true".as_ref()));
        let mut sandbox = place.quiet(&place.curfew);
        sandbox.args(["sandbox", "--", "true"]);
        let two = timed(sandbox);
        let three = if has_bwrap {
            timed(bwrap())
        } else {
            Duration::ZERO
        };
        if round >= WARM {
            bare.add(one);
            curfew.add(two);
            other.add(three);
        }
    }
    let told = |percent| {
        let bwrap = if has_bwrap {
            format!("{:.2} ms", ms(other.at(percent)))
        } else {
            "not run: absent".to_owned()
        };
        let (bare, curfew) = (ms(bare.at(percent)), ms(curfew.at(percent)));
        format!("{curfew:.2} ms, bare {bare:.2} ms, bwrap {bwrap}")
    };
    let row = |what: &str, percent| Row {
        what: format!("whole process, {what}"),
        bound: "half of bwrap",
        met: has_bwrap && curfew.at(percent) * 2 <= other.at(percent),
        measured: told(percent),
        n: curfew.count(),
        command: "curfew sandbox -- true; true; bwrap --unshare-all --ro-bind / / true".to_owned(),
    };
    vec![row("p50", 50), row("p95", 95)]
}

pub fn timed(mut command: Command) -> Duration {
    let start = Instant::now();
    let status = command.status().unwrap();
    let took = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    took
}
