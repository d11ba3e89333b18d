//! `true` in a call of a session that stands, against bare vfork and exec.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use curfew_cell::plan::CallLimits;
use curfew_cell::protocol::FromBroker;
use curfew_policy::profile::Profile;
use curfew_policy::resolve::{Asked, Host, resolve};
use curfew_sandbox::client::CommandLine;
use curfew_sandbox::{BrokerEvent, Client};

use crate::place::Place;
use curfew_tests::stats::{Row, Samples, ms};

const ROUNDS: u64 = 2000;
const WARM: u64 = 50;

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
    let row = |what: &str, bound, percent| Row {
        what: format!("`true` in a call, {what}"),
        bound,
        measured: measured(percent),
        n: call.count(),
        command: "curfew_sandbox::Client::command, against posix_spawn and wait".to_owned(),
    };
    vec![row("p50", "+0.6 ms", 50), row("p95", "+2 ms", 95)]
}

fn spawn_bare(place: &Place) -> std::time::Duration {
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

    fn call(&self, number: u64) -> std::time::Duration {
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
