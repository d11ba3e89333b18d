//! A world of its own for each test: a workspace, a directory outside, a home; and a session on it.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use curfew_cell::plan::CallLimits;
use curfew_cell::protocol::{CallEnd, Denial, FromBroker};
use curfew_policy::{Asked, Confinement, Mode, Profile};
use curfew_sandbox::client::{BrokerEvent, Client, CommandLine, WorkerSocket};
use curfew_sandbox::{Operator, compile, probe, program};
use curfew_worker::protocol::{Request, Response};

/// Longer than anything here takes; a hang is a failure, not a wait.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Not below /tmp, which is private inside: what is outside must be visible to be attacked.
pub struct World {
    pub temp: tempfile::TempDir,
    pub workspace: PathBuf,
    pub outside: PathBuf,
    pub home: PathBuf,
}

impl World {
    pub fn new() -> Self {
        let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = std::fs::canonicalize(temp.path()).unwrap();
        let make = |name: &str| {
            let path = base.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (workspace, outside, home) = (make("ws"), make("outside"), make("home"));
        std::fs::write(outside.join("victim"), "victim\n").unwrap();
        std::fs::create_dir(home.join(".ssh")).unwrap();
        std::fs::write(home.join(".ssh/id_rsa"), "SECRET-CANARY\n").unwrap();
        Self {
            temp,
            workspace,
            outside,
            home,
        }
    }

    /// The default profile, with this world's home closed too.
    pub fn confinement(&self, mode: Mode) -> Confinement {
        let mut operator = Operator::of(&self.workspace);
        // Toolchains are the real user's; the world's home is one more closed one.
        operator.passwd_home = operator.home.clone();
        let asked = Asked {
            mode: Some(mode),
            net: None,
            workspace: self.workspace.clone(),
            add_dirs: Vec::new(),
            secrets: Vec::new(),
            env: Vec::new(),
            wall_ms: Some(PATIENCE.as_millis() as u64),
            identity: operator.git_identity(),
        };
        let profile = Profile::load("default", &|_| None).unwrap();
        let mut confinement = operator.resolve(&profile, &asked).unwrap().confinement;
        if mode != Mode::DangerFullAccess {
            confinement.closed.push(self.home.clone());
        }
        confinement
    }

    pub fn session(&self, mode: Mode) -> Session {
        Session::on(self.confinement(mode))
    }

    /// A shell script inside, and what it wrote.
    pub fn run(&self, mode: Mode, script: &str) -> Ran {
        self.session(mode).shell(script)
    }
}

/// The example of this crate, which is also a broker.
pub fn broker() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().unwrap().parent().unwrap();
    let path = target.join("examples/confine");
    assert!(path.exists(), "{} is built by `cargo test`", path.display());
    path
}

pub struct Session {
    pub client: Client,
    pub confinement: Confinement,
    pub limits: CallLimits,
    events: Receiver<BrokerEvent>,
    calls: std::cell::Cell<u64>,
}

/// What became of a command.
#[derive(Debug)]
pub struct Ran {
    pub end: CallEnd,
    pub stdout: String,
    pub stderr: String,
    pub denials: Vec<Denial>,
}

impl Ran {
    pub fn ok(self) -> Self {
        assert_eq!(self.end.exit_code, Some(0), "{self:#?}");
        self
    }
}

impl Session {
    pub fn on(confinement: Confinement) -> Self {
        let facts = probe(&confinement).unwrap();
        let plan = compile(&confinement, &facts).unwrap();
        let (tell, events) = channel();
        let on_event = Box::new(move |event| tell.send(event).unwrap_or_default());
        let client = Client::start(&broker(), &plan, on_event).unwrap();
        Self {
            client,
            confinement,
            limits: plan.limits,
            events,
            calls: std::cell::Cell::new(0),
        }
    }

    pub fn next_call(&self) -> u64 {
        self.calls.set(self.calls.get() + 1);
        self.calls.get()
    }

    pub fn line(&self, argv: &[&str]) -> CommandLine {
        let (env, cwd) = (
            self.confinement.env.clone(),
            self.confinement.workspace.clone(),
        );
        let program = program::find(argv[0], &env, &cwd).unwrap();
        let mut argv: Vec<String> = argv.iter().map(|arg| (*arg).to_owned()).collect();
        argv[0] = program.to_str().unwrap().to_owned();
        CommandLine { argv, env, cwd }
    }

    pub fn shell(&self, script: &str) -> Ran {
        self.command(&["sh", "-c", script])
    }

    pub fn command(&self, argv: &[&str]) -> Ran {
        let call = self.next_call();
        let pipes = self
            .client
            .command(call, self.line(argv), self.limits)
            .unwrap();
        let stderr = std::thread::spawn(move || read_all(pipes.stderr));
        let stdout = read_all(pipes.stdout);
        let stderr = stderr.join().unwrap();
        let (end, denials) = self.end_of(call);
        Ran {
            end,
            stdout,
            stderr,
            denials,
        }
    }

    /// Waits for the end of a call.
    pub fn end_of(&self, call: u64) -> (CallEnd, Vec<Denial>) {
        let mut denials = Vec::new();
        loop {
            match self.event() {
                BrokerEvent::Said(FromBroker::Ended { call: ended, end }) if ended == call => {
                    return (end, denials);
                }
                BrokerEvent::Said(FromBroker::Denied { call: of, denial }) if of == call => {
                    denials.push(denial)
                }
                BrokerEvent::Said(FromBroker::NotRun { fault, .. }) => panic!("not run: {fault:?}"),
                BrokerEvent::Lost { calls } => panic!("lost {calls:?}"),
                BrokerEvent::Said(_) => {}
            }
        }
    }

    pub fn event(&self) -> BrokerEvent {
        self.events
            .recv_timeout(PATIENCE)
            .expect("an event of the broker")
    }

    /// One request to a fresh worker.
    pub fn ask(&self, request: &Request, bulk: &[&[u8]]) -> (Response, Vec<u8>) {
        let call = self.next_call();
        let mut socket: WorkerSocket = self
            .client
            .worker(call, self.confinement.workspace.clone(), self.limits)
            .unwrap();
        let answer = socket
            .exchange(request, bulk, Instant::now() + PATIENCE)
            .unwrap();
        self.end_of(call);
        answer
    }
}

pub fn read_all(fd: std::os::fd::OwnedFd) -> String {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(fd), &mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A host command that must work.
pub fn host(cwd: &Path, argv: &[&str]) -> Output {
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{argv:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Everything a call must not change about a tree: names, bytes, kinds, modes, owners, times.
pub fn state_of(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut state = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(path) = left.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() {
            format!("{:?}", std::fs::read(&path).unwrap())
        } else if meta.is_symlink() {
            format!("{:?}", std::fs::read_link(&path).unwrap())
        } else {
            String::new()
        };
        if meta.is_dir() {
            left.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let facts = (
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.mtime_nsec(),
            meta.mtime(),
            meta.ctime_nsec(),
            meta.nlink(),
        );
        state.insert(path, format!("{facts:?} {content}"));
    }
    state
}
