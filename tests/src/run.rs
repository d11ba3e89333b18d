//! Running the binary under test: environment from nothing, a chosen uid, and a deadline after
//! which the run counts as hung.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::world::{World, own_uid};
use crate::{binary, wait};

/// No run of these tests takes longer unless it hangs.
pub const HANG_S: u64 = 120;

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Ran {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Everything about it, for a failing assertion.
    pub fn told(&self) -> String {
        format!(
            "exit {:?} signal {:?}\n-- stdout\n{}\n-- stderr\n{}",
            self.code,
            self.signal,
            self.out(),
            self.err()
        )
    }
}

/// A command line of curfew in a world.
pub struct Curfew {
    program: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    uid: u32,
    cwd: PathBuf,
    folder: PathBuf,
    stdin: Option<Vec<u8>>,
}

impl Curfew {
    pub fn new(world: &World) -> Self {
        let path = std::env::var_os("PATH").expect("PATH is set");
        let own = |name: &str, value: &OsStr| (OsString::from(name), value.to_owned());
        Curfew {
            program: vec![binary::reachable().into()],
            args: Vec::new(),
            env: vec![
                own("PATH", &path),
                own("HOME", world.home.as_os_str()),
                own("CURFEW_HOME", world.path().join("home/.curfew").as_os_str()),
                own("LANG", OsStr::new("C.UTF-8")),
            ],
            uid: world.uid,
            cwd: world.ws.clone(),
            folder: world.path().to_path_buf(),
            stdin: None,
        }
    }

    /// `curfew sandbox --mode MODE -- ARGV`.
    pub fn sandbox<A: AsRef<OsStr>>(world: &World, mode: &str, argv: &[A]) -> Self {
        Curfew::new(world)
            .args(["sandbox", "--mode", mode, "--"])
            .args(argv)
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    pub fn cwd(mut self, cwd: &Path) -> Self {
        self.cwd = cwd.to_path_buf();
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Another program in front, such as `unshare`.
    pub fn under<A: AsRef<OsStr>>(mut self, wrapper: &[A]) -> Self {
        let wrapper = wrapper.iter().map(|arg| arg.as_ref().to_owned());
        self.program = wrapper.chain(std::mem::take(&mut self.program)).collect();
        self
    }

    /// The folder of the world it runs in.
    pub fn world_folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves the change of uid to a wrapper.
    pub fn as_own_uid(mut self) -> Self {
        self.uid = own_uid();
        self
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(&self.args);
        command
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.cwd);
        if self.uid != own_uid() {
            command.uid(self.uid).gid(self.uid);
        }
        command
    }

    /// Starts it with pipes on stdout and stderr; stdin is closed unless text was given.
    pub fn spawn(&self) -> Child {
        let stdin = if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let mut command = self.command();
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", self.program))
    }

    pub fn run(&self) -> Ran {
        self.run_within(Duration::from_secs(HANG_S))
    }

    /// Runs to the end. Panics when it is still there after `limit`: a hang is a failure.
    pub fn run_within(&self, limit: Duration) -> Ran {
        let mut child = self.spawn();
        if let Some(bytes) = self.stdin.clone() {
            let mut pipe = child.stdin.take().unwrap();
            std::thread::spawn(move || std::io::Write::write_all(&mut pipe, &bytes));
        }
        finish(child, limit, &format!("{:?} {:?}", self.program, self.args))
    }
}

/// Collects a child's output and end. The end is that of the process, not of its pipes; both have
/// to come within the limit.
pub fn finish(mut child: Child, limit: Duration, what: &str) -> Ran {
    let (tell, told) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child
            .stdout
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        child
            .stderr
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    ];
    for (index, pipe) in pipes.into_iter().enumerate() {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut bytes)
                    .expect("a pipe of a child can be read");
            }
            // The receiver is gone only when the test has failed already.
            tell.send((index, bytes)).ok();
        });
    }
    if !wait::ended(child.id(), limit) {
        child.kill().expect("a child of ours can be killed");
        child.wait().expect("a child of ours can be waited for");
        panic!("still running after {limit:?}: {what}");
    }
    let status = child.wait().expect("a child of ours can be waited for");
    let mut outputs = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let (index, bytes) = told
            .recv_timeout(limit)
            .unwrap_or_else(|_| panic!("ended, but its output is still held open: {what}"));
        outputs[index] = bytes;
    }
    let [stdout, stderr] = outputs;
    Ran {
        code: status.code(),
        signal: status.signal(),
        stdout,
        stderr,
    }
}
