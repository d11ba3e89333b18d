//! Confined calls: one broker, many calls, each followed to its end on the thread that made it.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use curfew_cell::plan::{CallLimits, Plan};
use curfew_cell::protocol::{CallEnd, Denial, FromBroker, ReadyFacts, SetupFault};
use curfew_sandbox::client::{
    BrokerEvent, CallError, Client, CommandLine, StartError, WorkerError,
};
use curfew_worker::protocol::{Request, Response, Swept};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A broker ends a call within its wall limit; this is how much longer its word may take.
const END_GRACE: Duration = Duration::from_secs(20);

/// How often a silent command is looked at for its end.
const LOOK: Duration = Duration::from_millis(50);

/// Why a call has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    #[error("the call could not be set up: {} ({})", .0.step, .0.text)]
    NotRun(Box<SetupFault>),
    #[error("the broker is gone: {0}")]
    Broker(#[from] CallError),
    #[error("the broker ended while the call ran")]
    Lost,
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("new protected names were not looked for: {0}")]
    Sweep(String),
}

/// What the broker said about one call.
#[derive(Debug)]
enum Said {
    NotRun(SetupFault),
    Denied(Denial),
    Ended(CallEnd),
    Lost,
}

type Routes = Arc<Mutex<HashMap<u64, Sender<Said>>>>;

/// Hears of each denial as it happens, with the number of its call.
pub type OnDenied = Box<dyn FnMut(u64, &Denial) + Send>;

/// The calls of one confinement.
#[derive(Debug)]
pub struct Cells {
    client: Client,
    routes: Routes,
    next: AtomicU64,
    workspace: PathBuf,
    limits: CallLimits,
    /// Absent where no call can plant anything.
    sweep: Option<Request>,
}

/// A command that runs. Reading it gives its output, both streams in the order of writing, until
/// its end.
#[derive(Debug)]
pub struct Running {
    call: Call,
    output: OwnedFd,
}

/// A call and the broker's words about it.
#[derive(Debug)]
struct Call {
    number: u64,
    said: Receiver<Said>,
    routes: Routes,
    deadline: Instant,
    denials: Vec<Denial>,
    outcome: Option<Result<CallEnd, CellError>>,
}

/// How a call ended and what it was refused.
#[derive(Debug, Default)]
pub struct Ended {
    pub end: CallEnd,
    pub denials: Vec<Denial>,
}

impl Cells {
    /// Starts a broker and waits until it is ready.
    pub fn start(exe: &Path, plan: &Plan, mut on_denied: OnDenied) -> Result<Self, StartError> {
        let routes = Routes::default();
        let heard = Arc::clone(&routes);
        let on_event = Box::new(move |event| hear(&heard, &mut on_denied, event));
        let client = Client::start(exe, plan, on_event)?;
        let (workspace, limits) = (plan.workspace.clone(), plan.limits);
        let sweep = curfew_sandbox::sweep::request(plan, client.facts());
        Ok(Cells {
            client,
            routes,
            next: AtomicU64::new(1),
            workspace,
            limits,
            sweep,
        })
    }

    pub fn facts(&self) -> &ReadyFacts {
        self.client.facts()
    }

    pub fn limits(&self) -> CallLimits {
        self.limits
    }

    /// A number for a call; [`Cells::kill`] may already name it.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a command in the workspace.
    pub fn command(
        &self,
        number: u64,
        argv: Vec<String>,
        env: Vec<(String, String)>,
        limits: CallLimits,
    ) -> Result<Running, CellError> {
        let call = self.call(number, limits);
        let line = CommandLine {
            argv,
            env,
            cwd: self.workspace.clone(),
        };
        let output = self.client.command_merged(number, line, limits)?;
        Ok(Running { call, output })
    }

    /// Runs a file worker for one request.
    pub fn worker(
        &self,
        number: u64,
        request: &Request,
        bulk: &[&[u8]],
    ) -> Result<(Response, Vec<u8>, Ended), CellError> {
        let call = self.call(number, self.limits);
        let mut socket = self
            .client
            .worker(number, self.workspace.clone(), self.limits)?;
        let exchanged = socket.exchange(request, bulk, call.deadline);
        drop(socket);
        let ended = match (&exchanged, call.wait()) {
            (_, Ok(ended)) => ended,
            // The reason why there was no call says more than a closed socket.
            (Err(_), Err(error)) => return Err(error),
            (Ok(_), Err(_)) => Ended::default(),
        };
        let (response, bulk) = exchanged?;
        Ok((response, bulk, ended))
    }

    /// Looks for protected names that appeared, and renames what could run or be obeyed outside.
    pub fn sweep(&self) -> Result<Swept, CellError> {
        let Some(request) = &self.sweep else {
            return Ok(Swept::default());
        };
        match self.worker(self.number(), request, &[])? {
            (Response::Swept { swept }, ..) => Ok(swept),
            (Response::Error { error }, ..) => Err(CellError::Sweep(error.text)),
            _ => Err(CellError::Sweep(String::from("another answer"))),
        }
    }

    /// Ends a call now. One that has ended already is none of the broker's any more.
    pub fn kill(&self, number: u64) -> Result<(), CallError> {
        self.client.kill(number)
    }

    fn call(&self, number: u64, limits: CallLimits) -> Call {
        let (tell, said) = channel();
        lock(&self.routes).insert(number, tell);
        let deadline = Instant::now() + Duration::from_millis(limits.wall_ms) + END_GRACE;
        let routes = Arc::clone(&self.routes);
        Call {
            number,
            said,
            routes,
            deadline,
            denials: Vec::new(),
            outcome: None,
        }
    }
}

impl Running {
    /// Waits for the end; the output should have been read before.
    pub fn wait(self) -> Result<Ended, CellError> {
        drop(self.output);
        self.call.wait()
    }
}

impl Read for Running {
    /// Ends when nobody can write any more; or, where something outlived its call (no process
    /// namespace in danger-full-access), when the call has ended and nothing is left to read.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let wait = if self.call.outcome.is_some() {
                Duration::ZERO
            } else {
                LOOK
            };
            if readable(&self.output, wait)? {
                return Ok(rustix::io::read(&self.output, buffer)?);
            }
            if self.call.outcome.is_some() {
                return Ok(0);
            }
            self.call.hear(Duration::ZERO);
        }
    }
}

fn readable(fd: &OwnedFd, wait: Duration) -> io::Result<bool> {
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    Ok(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&wait))? > 0)
}

impl Call {
    fn wait(mut self) -> Result<Ended, CellError> {
        while self.outcome.is_none() {
            self.hear(self.deadline.saturating_duration_since(Instant::now()));
        }
        let end = self.outcome.take().unwrap_or(Err(CellError::Lost))?;
        Ok(Ended {
            end,
            denials: std::mem::take(&mut self.denials),
        })
    }

    /// Takes the next word, waiting so long for it.
    fn hear(&mut self, wait: Duration) {
        match self.said.recv_timeout(wait) {
            Ok(Said::Denied(denial)) => self.denials.push(denial),
            Ok(Said::Ended(end)) => self.outcome = Some(Ok(end)),
            Ok(Said::NotRun(fault)) => self.outcome = Some(Err(CellError::NotRun(Box::new(fault)))),
            Err(RecvTimeoutError::Timeout) if Instant::now() < self.deadline => {}
            Ok(Said::Lost) | Err(_) => self.outcome = Some(Err(CellError::Lost)),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.routes).remove(&self.number);
    }
}

/// On the reader's thread: the denial is told before the end of its call can be.
fn hear(routes: &Routes, on_denied: &mut OnDenied, event: BrokerEvent) {
    let tell = |call: u64, said: Said| {
        if let Some(route) = lock(routes).get(&call) {
            // A caller that has left wants to hear no more.
            drop(route.send(said));
        }
    };
    match event {
        BrokerEvent::Said(FromBroker::Denied { call, denial }) => {
            on_denied(call, &denial);
            tell(call, Said::Denied(denial));
        }
        BrokerEvent::Said(FromBroker::NotRun { call, fault }) => tell(call, Said::NotRun(fault)),
        BrokerEvent::Said(FromBroker::Ended { call, end }) => tell(call, Said::Ended(end)),
        BrokerEvent::Said(
            FromBroker::Started { .. } | FromBroker::Ready { .. } | FromBroker::Failed { .. },
        ) => {}
        BrokerEvent::Lost { calls } => calls.into_iter().for_each(|call| tell(call, Said::Lost)),
    }
}

/// What a panicking thread held is still whole: each holder does one insert, remove or look-up.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
