//! The supervisor's end of a broker: starts it, makes calls, hears what became of them.
//!
//! One thread reads; whoever calls writes. A broker that dies takes its calls with it, and every
//! one of them is reported as lost.

mod worker_socket;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use curfew_cell::frame::{Channel, FrameError, Rights};
use curfew_cell::plan::{CallLimits, Plan};
use curfew_cell::protocol::{FromBroker, ReadyFacts, SetupFault, ToBroker, What};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub use worker_socket::{WorkerError, WorkerSocket};

/// The hidden first argument that makes the executable a broker.
pub const BROKER_ARGUMENT: &str = "__broker";
/// Set-up of namespaces takes milliseconds; the scan for protected names is bounded.
const READY: Duration = Duration::from_secs(30);
/// A broker ends at once when its channel closes; one that does not is killed.
const LEAVE: Duration = Duration::from_secs(2);

/// What the reader thread passes on.
#[derive(Debug)]
pub enum BrokerEvent {
    Said(FromBroker),
    /// The broker is gone; these calls had not ended.
    Lost {
        calls: Vec<u64>,
    },
}

/// What is told of every event, on the reader's thread.
pub type OnEvent = Box<dyn FnMut(BrokerEvent) + Send>;

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{op} for a broker: {source}")]
    Io { op: &'static str, source: io::Error },
    #[error("to the broker: {0}")]
    Frame(#[from] FrameError),
    /// It tried and could not: nothing ran.
    #[error("the broker could not set up: {} ({})", .0.step, .0.text)]
    Setup(Box<SetupFault>),
    #[error("the broker {} ended before it was ready", exe.display())]
    Died { exe: PathBuf },
    #[error("the broker was not ready within {} s", READY.as_secs())]
    Slow,
}

/// Why a call could not be asked for.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{op} for call {call}: {source}")]
    Io {
        op: &'static str,
        call: u64,
        source: io::Error,
    },
    #[error("call {call} to the broker: {source}")]
    Frame { call: u64, source: FrameError },
}

/// The ends of a command's output that are read.
#[derive(Debug)]
pub struct Pipes {
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// What is to be run by [`Client::command`].
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// `argv[0]` is an absolute path.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
}

/// A running broker. Dropping it ends the broker and all its calls.
#[derive(Debug)]
pub struct Client {
    channel: Mutex<Channel>,
    calls: Arc<Mutex<BTreeSet<u64>>>,
    facts: ReadyFacts,
    pid: u32,
    reader: Option<JoinHandle<()>>,
}

impl Client {
    /// Starts `exe` as a broker for `plan` and waits until it is ready.
    pub fn start(exe: &Path, plan: &Plan, on_event: OnEvent) -> Result<Self, StartError> {
        let (ours, theirs) = UnixStream::pair().map_err(|source| StartError::Io {
            op: "socketpair",
            source,
        })?;
        let child = spawn(exe, theirs.into())?;
        let pid = child.id();
        let mut channel = Channel::new(ours, Rights::Refused);
        let reading = channel.try_clone()?;
        let calls = Arc::new(Mutex::new(BTreeSet::new()));
        let (ready, is_ready) = sync_channel(1);
        let reader = Reader {
            channel: reading,
            child,
            calls: Arc::clone(&calls),
            on_event,
        };
        let reader = std::thread::Builder::new()
            .name("broker".to_owned())
            .spawn(move || reader.run(&ready))
            .map_err(|source| StartError::Io {
                op: "thread",
                source,
            })?;
        // A broker that is gone already says why through the reader.
        let sent = channel.send_json(
            &ToBroker::Plan {
                plan: Box::new(plan.clone()),
            },
            &[],
        );
        let mut client = Self {
            channel: Mutex::new(channel),
            calls,
            facts: ReadyFacts::default(),
            pid,
            reader: Some(reader),
        };
        client.facts = first_word(exe, &is_ready)?;
        sent?;
        Ok(client)
    }

    /// What the broker found when it set up.
    pub fn facts(&self) -> &ReadyFacts {
        &self.facts
    }

    /// The broker's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Runs a program with stdin from /dev/null.
    pub fn command(
        &self,
        call: u64,
        line: CommandLine,
        limits: CallLimits,
    ) -> Result<Pipes, CallError> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| io_error("pipe", call, errno));
        let (stdout, stdout_end) = pipe()?;
        let (stderr, stderr_end) = pipe()?;
        let null = null(call)?;
        let CommandLine { argv, env, cwd } = line;
        self.call(
            call,
            What::Command { argv, env, cwd },
            limits,
            &[&null, &stdout_end, &stderr_end],
        )?;
        Ok(Pipes { stdout, stderr })
    }

    /// Like [`Client::command`], with one pipe for both streams: what was written comes out in the
    /// order it was written.
    pub fn command_merged(
        &self,
        call: u64,
        line: CommandLine,
        limits: CallLimits,
    ) -> Result<OwnedFd, CallError> {
        let (output, end) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| io_error("pipe", call, errno))?;
        let null = null(call)?;
        let CommandLine { argv, env, cwd } = line;
        self.call(
            call,
            What::Command { argv, env, cwd },
            limits,
            &[&null, &end, &end],
        )?;
        Ok(output)
    }

    /// Runs a file worker.
    pub fn worker(
        &self,
        call: u64,
        cwd: PathBuf,
        limits: CallLimits,
    ) -> Result<WorkerSocket, CallError> {
        let (ours, theirs) = UnixStream::pair().map_err(|source| CallError::Io {
            op: "socketpair",
            call,
            source,
        })?;
        let (null, theirs) = (null(call)?, OwnedFd::from(theirs));
        self.call(
            call,
            What::Worker { cwd },
            limits,
            &[&null, &null, &null, &theirs],
        )?;
        Ok(WorkerSocket::new(ours))
    }

    /// Ends a call now. Its end is reported like any other.
    pub fn kill(&self, call: u64) -> Result<(), CallError> {
        self.send(call, &ToBroker::Kill { call }, &[])
    }

    fn call(
        &self,
        call: u64,
        what: What,
        limits: CallLimits,
        fds: &[&OwnedFd],
    ) -> Result<(), CallError> {
        lock(&self.calls).insert(call);
        let sent = self.send(call, &ToBroker::Call { call, what, limits }, fds);
        if sent.is_err() {
            lock(&self.calls).remove(&call);
        }
        sent
    }

    fn send(&self, call: u64, frame: &ToBroker, fds: &[&OwnedFd]) -> Result<(), CallError> {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        lock(&self.channel)
            .send_json(frame, &fds)
            .map_err(|source| CallError::Frame { call, source })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A socket that cannot be shut down is closed already, and the reader has seen it.
        if lock(&self.channel).shutdown().is_err() {
            return;
        }
        if let Some(reader) = self.reader.take()
            && reader.thread().id() != std::thread::current().id()
            && reader.join().is_err()
        {
            // The callback panicked on its own thread, which said so; the broker saw the end of
            // its channel all the same.
        }
    }
}

/// Waits for `Ready` or `Failed`.
fn first_word(exe: &Path, is_ready: &Receiver<FromBroker>) -> Result<ReadyFacts, StartError> {
    use std::sync::mpsc::RecvTimeoutError;
    match is_ready.recv_timeout(READY) {
        Ok(FromBroker::Ready { facts }) => Ok(facts),
        Ok(FromBroker::Failed { fault }) => Err(StartError::Setup(Box::new(fault))),
        Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(StartError::Died {
            exe: exe.to_path_buf(),
        }),
        Err(RecvTimeoutError::Timeout) => Err(StartError::Slow),
    }
}

/// On the `posix_spawn` path of std: no `pre_exec`, no uid, so a large supervisor is not copied.
/// Everything else a supervisor has open is close-on-exec.
fn spawn(exe: &Path, socket: OwnedFd) -> Result<Child, StartError> {
    Command::new(exe)
        .arg(BROKER_ARGUMENT)
        .env_clear()
        .current_dir("/")
        // Ctrl-C at a terminal is the supervisor's to hear: it ends calls one by one and logs that.
        .process_group(0)
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| StartError::Io {
            op: "spawn",
            source,
        })
}

fn null(call: u64) -> Result<OwnedFd, CallError> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| io_error("open /dev/null", call, errno))
}

fn io_error(op: &'static str, call: u64, errno: rustix::io::Errno) -> CallError {
    CallError::Io {
        op,
        call,
        source: errno.into(),
    }
}

/// What a panicking thread held is still whole: each holder does one insert, remove or send.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Reader {
    channel: Channel,
    child: Child,
    calls: Arc<Mutex<BTreeSet<u64>>>,
    on_event: OnEvent,
}

impl Reader {
    fn run(mut self, ready: &SyncSender<FromBroker>) {
        // Anything that is no frame of ours ends the broker: it can no longer be followed.
        while let Ok((said, _)) = self.channel.recv_json::<FromBroker>() {
            match &said {
                FromBroker::Ready { .. } | FromBroker::Failed { .. } => {
                    if ready.try_send(said).is_err() {
                        break;
                    }
                    continue;
                }
                FromBroker::Ended { call, .. } | FromBroker::NotRun { call, .. } => {
                    lock(&self.calls).remove(call);
                }
                FromBroker::Started { .. } | FromBroker::Denied { .. } => {}
            }
            (self.on_event)(BrokerEvent::Said(said));
        }
        self.end();
        let calls = std::mem::take(&mut *lock(&self.calls));
        if !calls.is_empty() {
            (self.on_event)(BrokerEvent::Lost {
                calls: calls.into_iter().collect(),
            });
        }
    }

    /// Waits for the broker to leave, or makes it.
    fn end(&mut self) {
        // Fails only when the channel is down already, which is what is wanted.
        let down = self.channel.shutdown();
        if down.is_ok() && !left_by_itself(&self.child) {
            // Fails only for a child that has been waited for.
            self.child.kill().unwrap_or_default();
        }
        self.child.wait().map(drop).unwrap_or_default();
    }
}

fn left_by_itself(child: &Child) -> bool {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return false;
    };
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let wait = rustix::event::Timespec {
        tv_sec: LEAVE.as_secs() as i64,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&wait)).is_ok_and(|ready| ready > 0)
}
