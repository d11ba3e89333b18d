//! `curfew run` from spawn to the first byte of its first request, and what is resident then.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use curfew_tests::procs;
use curfew_tests::server::{Reply, Server, data, finish, head, piece};

use crate::place::Place;
use curfew_tests::stats::{Row, Samples, ms};

const ROUNDS: usize = 30;

pub fn rows(place: &Place) -> Vec<Row> {
    let mut took = Samples::default();
    let mut resident: Vec<u64> = Vec::new();
    for _ in 0..ROUNDS {
        let (duration, kib) = one(place);
        took.add(duration);
        resident.push(kib);
    }
    resident.sort_unstable();
    let mib = |index: usize| resident[index] as f64 / 1024.0;
    let command = "curfew run -p hi --base-url … -m scripted".to_owned();
    vec![
        Row {
            what: "spawn to first request byte".to_owned(),
            bound: "20 ms",
            met: took.at(95) <= Duration::from_millis(20),
            measured: format!(
                "p50 {:.1} ms, p95 {:.1} ms",
                ms(took.at(50)),
                ms(took.at(95))
            ),
            n: took.count(),
            command: command.clone(),
        },
        Row {
            what: "resident then, sum over its processes".to_owned(),
            bound: "25 MB",
            met: resident[ROUNDS - 1] * 1024 <= 25_000_000,
            measured: format!(
                "median {:.1} MiB, most {:.1} MiB",
                mib(ROUNDS / 2),
                mib(ROUNDS - 1)
            ),
            n: resident.len(),
            command,
        },
    ]
}

fn one(place: &Place) -> (Duration, u64) {
    let (tell, told) = channel();
    let (go_on, wait) = channel::<()>();
    let mut wait = Some(wait);
    let server = Server::noticing(tell, move |_, _| {
        let wait = wait.take().expect("one request");
        Reply::Live(Box::new(move |stream| {
            // The answer waits until the processes have been looked at.
            wait.recv().expect("the bench looks");
            head(stream);
            data(stream, &piece("hi"));
            data(stream, &finish("stop"));
        }))
    });
    let mut command = place.quiet(&place.curfew);
    command.args([
        "run",
        "-p",
        "hi",
        "--base-url",
        &server.base_url(),
        "-m",
        "scripted",
    ]);
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let first: Instant = told
        .recv_timeout(Duration::from_secs(30))
        .expect("a request comes");
    let mark = place.curfew.to_str().unwrap();
    let resident = procs::running(mark)
        .into_iter()
        .map(procs::resident_kib)
        .sum();
    go_on.send(()).unwrap();
    assert!(child.wait().unwrap().success());
    (first.duration_since(start), resident)
}
