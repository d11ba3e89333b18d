//! The broker: sets a session up once, makes calls, ends them.
//!
//! [`serve`] answers a supervisor over a channel; [`InPlace`] is the broker inside the process that
//! was started for one command. Both must run before the process has a second thread. Start
//! reading at [`Broker::turn`].

mod in_place;
mod rest;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::WorkerFn;
use crate::fault::{At, broken};
use crate::frame::{Channel, FrameError, Rights};
use crate::init::{self, Extent, Seed};
use crate::plan::{CallLimits, Plan};
use crate::processes;
use crate::protocol::{FromBroker, ReadyFacts, SetupFault, ToBroker, What};
use crate::running::Running;
use crate::session::Session;
use crate::stdio;
use crate::sys::{self, Spawned, exit_now};
use crate::wire::Order;

pub use in_place::{InPlace, run_one};
pub(crate) use rest::Rest;

/// Calls at one time; a supervisor that asks for more gets a fault.
const CALLS_MAX: usize = 64;

/// Exit codes of a broker process.
const DONE: i32 = 0;
const NO_PLAN: i32 = 2;
const NOT_READY: i32 = 7;

/// Serves one supervisor until it closes the channel or dies, then ends every call.
pub fn serve(mut channel: Channel, worker: WorkerFn) -> i32 {
    let plan = match channel.recv_json() {
        Ok((ToBroker::Plan { plan }, _)) => plan,
        Ok(_) | Err(_) => return NO_PLAN,
    };
    let ahead = match plan.fence {
        Some(_) => Ahead::One,
        None => Ahead::None,
    };
    let opened = Broker::open(&plan, worker, ahead).and_then(|(mut broker, facts)| {
        broker.compile_for_worker()?;
        broker.listen_to(channel.as_fd())?;
        Ok((broker, facts))
    });
    let (mut broker, facts) = match opened {
        Ok(opened) => opened,
        Err(fault) => {
            // A supervisor that is gone needs no answer.
            return match channel.send_json(&FromBroker::Failed { fault }, &[]) {
                Ok(()) | Err(_) => NOT_READY,
            };
        }
    };
    drop(plan);
    if channel
        .send_json(&FromBroker::Ready { facts }, &[])
        .is_err()
    {
        return broker.end_all(&channel);
    }
    broker.make_ahead();
    let mut events = VecDeque::new();
    loop {
        for event in events.drain(..) {
            if channel.send_json(&event, &[]).is_err() {
                return broker.end_all(&channel);
            }
        }
        let woken = broker.turn(Some(channel.as_fd()), &mut events);
        if woken == Woken::ByOther && broker.obey(&mut channel, &mut events).is_err() {
            return broker.end_all(&channel);
        }
    }
}

/// Which are ready; none when the wait was interrupted.
fn poll_ready(fds: &mut [PollFd<'_>], timeout: PollTimeout) -> Vec<bool> {
    match poll(fds, timeout) {
        Ok(_) => fds.iter().map(|fd| fd.any() == Some(true)).collect(),
        Err(Errno::EINTR | Errno::EAGAIN) => Vec::new(),
        // Only ENOMEM and faults of ours are left: without a wait no limit would hold.
        Err(_) => exit_now(NOT_READY),
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// Something of the broker's own, or a timer; it has been handled.
    ByCalls,
    /// The descriptor that the caller gave.
    ByOther,
}

struct Broker {
    /// `None` only in a forked child, which takes it away.
    session: Option<Session>,
    calls: Vec<Running>,
    worker: WorkerFn,
    /// The plan's; most calls have them.
    limits: CallLimits,
    ahead: Ahead,
    /// An init with everything prepared, for the next call.
    waiting: Option<Init>,
    rest: Rc<Rest>,
    /// Whether the watch may have seen something.
    watch_ready: bool,
}

/// Whether an init is made before it is known what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ahead {
    One,
    None,
    /// None, and this process is about to end: its inits hold what is slow to close.
    InPlace,
}

/// An init and the line to it.
pub struct Init {
    pub process: Spawned,
    pub report: Channel,
}

impl Broker {
    fn open(
        plan: &Plan,
        worker: WorkerFn,
        ahead: Ahead,
    ) -> Result<(Broker, ReadyFacts), SetupFault> {
        let (session, facts) = Session::open(plan)?;
        let rest = Rc::new(Rest::new().at("rest")?);
        if let Some(fenced) = &session.fence {
            rest.add(fenced.watch.as_fd()).at("rest")?;
        }
        let broker = Broker {
            session: Some(session),
            calls: Vec::new(),
            worker,
            limits: plan.limits,
            ahead,
            waiting: None,
            rest,
            watch_ready: false,
        };
        Ok((broker, facts))
    }

    /// What init holds so that this process can end at once; see `Call::held`.
    fn held(&self) -> Result<Vec<OwnedFd>, SetupFault> {
        match (&self.session, self.ahead) {
            (
                Some(Session {
                    fence: Some(fenced),
                }),
                Ahead::InPlace,
            ) => Ok(vec![
                fenced.watch.as_fd().try_clone_to_owned().at("hold")?,
                fenced.lookout.own_mounts().at("hold")?,
            ]),
            _ => Ok(Vec::new()),
        }
    }

    /// What [`Broker::turn`] is given as `other`; before its first turn.
    fn listen_to(&self, other: BorrowedFd<'_>) -> Result<(), SetupFault> {
        self.rest.add(other).at("rest")
    }

    /// Waits until something happens and handles it: notifications first, because a call waits for
    /// their answer; then reports, ends, and limits.
    fn turn(&mut self, other: Option<BorrowedFd<'_>>, events: &mut VecDeque<FromBroker>) -> Woken {
        let woken = self.wait(other);
        let now = Instant::now();
        let Some(session) = self.session.as_mut() else {
            return Woken::ByCalls;
        };
        if let Some(fenced) = &mut session.fence
            && std::mem::take(&mut self.watch_ready)
        {
            // Inotify names no process: what was seen is told of every call that was running.
            let seen = fenced.watch.take();
            self.calls.iter_mut().for_each(|c| c.note_watch(&seen));
            if fenced.judge(&seen) {
                self.calls.iter_mut().for_each(|c| c.end_replaced(&seen));
            }
        }
        let mut at = 0;
        while let Some(running) = self.calls.get_mut(at) {
            running.attend(session, now, events);
            if running.is_over() {
                let mut running = self.calls.swap_remove(at);
                self.finish(&mut running, events);
                return woken;
            }
            at += 1;
        }
        woken
    }

    /// Waits for anything; each call's own state says what it waits for.
    fn wait(&mut self, other: Option<BorrowedFd<'_>>) -> Woken {
        let deadline = self.calls.iter().filter_map(Running::deadline).min();
        let timeout = match deadline {
            None => PollTimeout::NONE,
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
            }
        };
        let listeners = self.calls.iter().filter_map(Running::listener);
        let mut fds: Vec<_> = std::iter::once(self.rest.as_fd())
            .chain(listeners)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        let ready = poll_ready(&mut fds, timeout);
        drop(fds);
        if ready.first() == Some(&true) {
            return self.look_at_all(other);
        }
        let mut ready = ready.into_iter().skip(1);
        for running in &mut self.calls {
            running.note_listener(&mut ready);
        }
        Woken::ByCalls
    }

    fn look_at_all(&mut self, other: Option<BorrowedFd<'_>>) -> Woken {
        let mut fds = Vec::with_capacity(1 + 3 * self.calls.len());
        fds.extend(other.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        for running in &self.calls {
            running.poll_fds(&mut fds);
        }
        let ready = poll_ready(&mut fds, PollTimeout::ZERO);
        drop(fds);
        let mut of_calls = ready.iter().skip(usize::from(other.is_some())).copied();
        for running in &mut self.calls {
            running.note_ready(&mut of_calls);
        }
        self.watch_ready = true;
        if other.is_some() && ready.first() == Some(&true) {
            Woken::ByOther
        } else {
            Woken::ByCalls
        }
    }

    /// One request of the supervisor.
    fn obey(
        &mut self,
        channel: &mut Channel,
        events: &mut VecDeque<FromBroker>,
    ) -> Result<(), FrameError> {
        let (request, fds) = channel.recv_json()?;
        match request {
            ToBroker::Plan { .. } => return Err(FrameError::NotAnObject),
            ToBroker::Kill { call } => self.kill(call),
            ToBroker::Call { call, what, limits } => {
                if let Err(fault) = self.start(call, what, limits, fds) {
                    events.push_back(FromBroker::NotRun { call, fault });
                }
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        id: u64,
        what: What,
        limits: CallLimits,
        mut fds: Vec<OwnedFd>,
    ) -> Result<(), SetupFault> {
        if self.calls.len() >= CALLS_MAX || self.calls.iter().any(|c| c.is_called(id)) {
            let text = format!("call {id} is running, or {CALLS_MAX} others are");
            return Err(broken("call", None, libc::EAGAIN, text));
        }
        let began = Instant::now();
        self.look_after_session(&what)?;
        self.settle_streams(&mut fds);
        let held = self.held()?;
        let order = Order::Call {
            what,
            limits,
            held: held.len(),
        };
        let fds: Vec<BorrowedFd<'_>> = fds.iter().chain(&held).map(AsFd::as_fd).collect();
        let init = self.give(&order, &fds)?;
        let wall = Duration::from_millis(limits.wall_ms);
        let running = Running::new(id, init, (began, wall), &self.rest).at("rest")?;
        self.calls.push(running);
        self.make_ahead();
        Ok(())
    }

    /// A supervisor opened them outside.
    fn settle_streams(&self, fds: &mut [OwnedFd]) {
        let Some(fenced) = self.session.as_ref().and_then(|s| s.fence.as_ref()) else {
            return;
        };
        for fd in fds.iter_mut().take(3) {
            if let Some(new) = stdio::reopened(fd.as_fd(), fenced.lookout.proc()) {
                *fd = new;
            }
        }
    }

    /// While a call runs, or none does. It is only time that is won: where it fails, the next call
    /// makes its own and reports why it cannot.
    fn make_ahead(&mut self) {
        if self.ahead == Ahead::One && self.waiting.is_none() {
            self.waiting = self.clone_init().ok();
        }
    }

    /// What must be in order before a call of this kind.
    fn look_after_session(&mut self, what: &What) -> Result<(), SetupFault> {
        let Some(fenced) = self.session.as_mut().and_then(|s| s.fence.as_mut()) else {
            return Ok(());
        };
        if fenced.pins_lost {
            fenced.restore_pins()?;
            // It has the mounts from before.
            self.dismiss_waiting();
        }
        match what {
            What::Worker { .. } => self.compile_for_worker(),
            What::Command { .. } => Ok(()),
        }
    }

    fn compile_for_worker(&mut self) -> Result<(), SetupFault> {
        match self.session.as_mut().and_then(|s| s.fence.as_mut()) {
            Some(fenced) => fenced.compile_for_worker(),
            None => Ok(()),
        }
    }

    /// Hands the order to the init that waits, or to a new one.
    fn give(&mut self, order: &Order, fds: &[BorrowedFd<'_>]) -> Result<Init, SetupFault> {
        if let Some(mut init) = self.waiting.take() {
            match init.report.send_json(order, fds) {
                Ok(()) => return Ok(init),
                // It died; what it died of happens again to the next one, and is reported then.
                Err(FrameError::Closed) => self.dismiss(init),
                Err(e) => return Err(broken("order", None, libc::E2BIG, e.to_string())),
            }
        }
        let mut init = self.clone_init()?;
        match init.report.send_json(order, fds) {
            // Closed: its fault waits in the other direction.
            Ok(()) | Err(FrameError::Closed) => Ok(init),
            Err(e) => {
                self.dismiss(init);
                Err(broken("order", None, libc::E2BIG, e.to_string()))
            }
        }
    }

    fn clone_init(&mut self) -> Result<Init, SetupFault> {
        let (report, theirs) = Channel::pair(Rights::Accepted)
            .map_err(|e| broken("call", None, libc::EMFILE, e.to_string()))?;
        let namespaces = self.session.as_ref().map_or(0, Session::call_namespaces);
        let Some(process) = sys::clone_into(namespaces).at("call-namespaces")? else {
            drop(report);
            match self.session.take() {
                Some(session) => init::run(Seed {
                    session,
                    limits: self.limits,
                    worker: self.worker,
                    report: theirs,
                }),
                None => exit_now(NOT_READY),
            }
        };
        Ok(Init { process, report })
    }

    fn dismiss_waiting(&mut self) {
        if let Some(init) = self.waiting.take() {
            self.dismiss(init);
        }
    }

    /// Ends an init that got no call, and waits for it beside the calls.
    fn dismiss(&mut self, init: Init) {
        // Where it cannot be watched it still sees the end of its line and goes; only its zombie
        // stays until this process ends.
        self.calls.extend(Running::dismissed(init, &self.rest).ok());
    }

    fn kill(&mut self, id: u64) {
        let extent = self.extent();
        if let Some(running) = self.calls.iter_mut().find(|c| c.is_called(id)) {
            running.kill(extent);
        }
    }

    fn extent(&self) -> Extent {
        self.session
            .as_ref()
            .map_or(Extent::Namespace, Session::extent)
    }

    fn finish(&mut self, running: &mut Running, events: &mut VecDeque<FromBroker>) {
        if self.extent() == Extent::Descendants && !running.has_exited() {
            // An init that was killed left its descendants to us.
            let others: Vec<i32> = self.calls.iter().map(|c| c.pid).collect();
            running.tell(processes::end_descendants(&others), events);
        } else {
            running.tell(processes::Ended::default(), events);
        }
    }

    /// Ends every call and says so by the exit code. Without a PID namespace the inits do it.
    fn end_all(mut self, channel: &Channel) -> i32 {
        let extent = self.extent();
        // Its end would be ready for ever.
        self.rest.remove(channel.as_fd());
        self.dismiss_waiting();
        for running in &mut self.calls {
            running.kill(extent);
        }
        let mut events = VecDeque::new();
        while !self.calls.is_empty() {
            self.turn(None, &mut events);
            events.clear();
        }
        DONE
    }
}
