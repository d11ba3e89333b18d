use crate::protocol::{Request, Response, attempts};
use crate::tests::Bench;

/// Unconfined, so that what it finds is that things work: a canary that cannot sing proves nothing.
#[test]
fn outside_a_sandbox_it_finds_open_doors_and_leaves_nothing() {
    let bench = Bench::new();
    let home = bench.put("home-file", "x");
    let outside = vec![bench.root().to_str().unwrap().to_owned()];
    let request = Request::Canary {
        outside,
        home: Some(home.to_str().unwrap().to_owned()),
    };
    let (response, _) = bench.ask(&request, &[]);
    let Response::Canary { findings } = response else {
        panic!("{response:?}")
    };
    let errno = |attempt: &str| {
        findings
            .iter()
            .find(|finding| finding.attempt == attempt)
            .unwrap()
            .errno
    };
    for attempt in attempts::ALL {
        errno(attempt);
    }
    for open in [
        attempts::CREATE,
        attempts::CHMOD,
        attempts::READ_HOME,
        attempts::UNIX,
        attempts::PROCESSES,
    ] {
        assert_eq!(errno(open), 0, "{open}");
    }
    assert_eq!(bench.names(), ["home-file"]);
}

#[test]
fn a_path_that_is_not_there_is_no_open_door() {
    let bench = Bench::new();
    let request = Request::Canary {
        outside: vec!["/nonexistent".into()],
        home: Some("/nonexistent/x".into()),
    };
    let (Response::Canary { findings }, _) = bench.ask(&request, &[]) else {
        panic!()
    };
    for finding in findings.iter().filter(|finding| {
        [attempts::CREATE, attempts::CHMOD, attempts::READ_HOME].contains(&finding.attempt.as_str())
    }) {
        assert_eq!(finding.errno, 2, "{finding:?}");
    }
}
