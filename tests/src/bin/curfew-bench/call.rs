//! `true` in a call of a session that stands, against bare vfork and exec, and a file read by its
//! worker.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use curfew_cell::plan::CallLimits;
use curfew_cell::protocol::FromBroker;
use curfew_policy::profile::Profile;
use curfew_policy::resolve::{Asked, Host, resolve};
use curfew_sandbox::client::CommandLine;
use curfew_sandbox::{BrokerEvent, Client};
use curfew_worker::protocol::{Request, Response};

use crate::place::Place;
use curfew_tests::stats::{Row, Samples, ms};

const ROUNDS: u64 = 2000;
const READS: u64 = 500;
const WARM: u64 = 50;
/// For one read.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn rows(place: &Place) -> Vec<Row> {
    let (mut bare, mut call) = (Samples::default(), Samples::default());
    let session = Session::new(place);
    for round in 0..ROUNDS + WARM {
        let one = spawn_bare(place);
        let other = session.call(round);
        if round >= WARM {
            bare.add(one);
            call.add(other);
        }
    }
    let measured = |percent| {
        let (call, bare) = (ms(call.at(percent)), ms(bare.at(percent)));
        format!("{call:.3} ms, bare {bare:.3} ms: +{:.3} ms", call - bare)
    };
    let over = |percent| call.at(percent).saturating_sub(bare.at(percent));
    let row = |what: &str, bound, most: Duration, percent| Row {
        what: format!("`true` in a call, {what}"),
        bound,
        met: over(percent) <= most,
        measured: measured(percent),
        n: call.count(),
        command: "curfew_sandbox::Client::command, against posix_spawn and wait".to_owned(),
    };
    let calls = [
        row("p50", "+0.6 ms", Duration::from_micros(600), 50),
        row("p95", "+2 ms", Duration::from_millis(2), 95),
    ];
    calls.into_iter().chain([reads(place, &session)]).collect()
}

fn reads(place: &Place, session: &Session) -> Row {
    let line = format!("{}\n", "x".repeat(63));
    std::fs::write(place.ws.join("read"), line.repeat(64)).unwrap();
    let mut took = Samples::default();
    for round in 0..READS + WARM {
        let one = session.read(2 * (ROUNDS + WARM) + round, "read");
        if round >= WARM {
            took.add(one);
        }
    }
    Row {
        what: "a file of 4 KB read in a call".to_owned(),
        bound: "1 ms",
        met: took.at(50) <= Duration::from_millis(1),
        measured: format!(
            "p50 {:.3} ms, p95 {:.3} ms",
            ms(took.at(50)),
            ms(took.at(95))
        ),
        n: took.count(),
        command: "curfew_sandbox::Client::worker, until its answer".to_owned(),
    }
}

fn spawn_bare(place: &Place) -> Duration {
    let mut command = Command::new("/bin/true");
    command.env_clear().current_dir(&place.ws);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let start = Instant::now();
    let status = command.spawn().unwrap().wait().unwrap();
    let took = start.elapsed();
    assert!(status.success());
    took
}

struct Session {
    client: Client,
    ended: Receiver<u64>,
    limits: CallLimits,
    line: CommandLine,
}

impl Session {
    fn new(place: &Place) -> Self {
        let confinement = confinement(place);
        let facts = curfew_sandbox::probe(&confinement).expect("this host can be probed");
        let plan = curfew_sandbox::compile(&confinement, &facts).expect("this host can confine");
        let (tell, ended) = channel();
        let told = Box::new(move |event| match event {
            BrokerEvent::Said(FromBroker::Ended { call, end }) => {
                assert_eq!(end.exit_code, Some(0), "true failed in a call");
                tell.send(call).expect("the bench waits for every call");
            }
            BrokerEvent::Said(FromBroker::NotRun { fault, .. }) => panic!("not run: {fault:?}"),
            BrokerEvent::Said(_) | BrokerEvent::Lost { .. } => {}
        });
        let client = Client::start(&place.curfew, &plan, told).expect("a broker starts");
        let line = CommandLine {
            argv: vec!["/bin/true".to_owned()],
            env: confinement.env.clone(),
            cwd: place.ws.clone(),
        };
        Session {
            client,
            ended,
            limits: plan.limits,
            line,
        }
    }

    fn call(&self, number: u64) -> Duration {
        let line = self.line.clone();
        let start = Instant::now();
        let pipes = self
            .client
            .command(number, line, self.limits)
            .expect("a call starts");
        assert_eq!(self.ended.recv().expect("the broker lives"), number);
        let took = start.elapsed();
        drop(pipes);
        took
    }

    /// Until the answer is here; the end of its process is waited for but not counted.
    fn read(&self, number: u64, path: &str) -> Duration {
        let request = Request::Read {
            path: path.to_owned(),
            offset: 1,
            lines_max: 2000,
            line_chars_max: 2000,
            bytes_max: 50 << 10,
        };
        let start = Instant::now();
        let cwd = self.line.cwd.clone();
        let mut socket = self
            .client
            .worker(number, cwd, self.limits)
            .expect("a worker starts");
        let (response, bulk) = socket
            .exchange(&request, &[], start + PATIENCE)
            .expect("a worker answers");
        let took = start.elapsed();
        assert!(matches!(response, Response::Read { .. }), "{response:?}");
        assert_eq!(bulk.len(), 4096);
        drop(socket);
        assert_eq!(self.ended.recv().expect("the broker lives"), number);
        took
    }
}

fn confinement(place: &Place) -> curfew_policy::Confinement {
    let profile = Profile::load("default", &|_| None).expect("the built-in profile loads");
    let asked = Asked {
        mode: None,
        net: None,
        workspace: std::fs::canonicalize(&place.ws).unwrap(),
        add_dirs: Vec::new(),
        secrets: Vec::new(),
        env: Vec::new(),
        wall_ms: None,
        identity: Default::default(),
    };
    let path = std::env::var("PATH").unwrap();
    let variables = BTreeMap::from([("PATH".to_owned(), path)]);
    let host = Host {
        home: Some(&place.home),
        passwd_home: Some(Path::new("/root")),
        user: "root",
        shell: Path::new("/bin/sh"),
        variables: &variables,
        look: &|path| std::fs::canonicalize(path).ok(),
    };
    resolve(&profile, &asked, &host)
        .expect("the built-in profile resolves")
        .confinement
}
