//! One call that is running, as the broker sees it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use rustix::process::{Signal, pidfd_send_signal};

use crate::broker::{Init, Rest};
use crate::evidence::Evidence;
use crate::fault::broken;
use crate::frame::{Channel, FrameError};
use crate::init::Extent;
use crate::processes::Ended;
use crate::protocol::{CallEnd, FromBroker, SetupFault};
use crate::session::Session;
use crate::sys::seccomp;
use crate::watch::Seen;
use crate::wire::{Exit, Report};

/// How long a call without a PID namespace may take to end its descendants before its init is
/// killed as well and the broker looks for what is left.
const GRACE: Duration = Duration::from_secs(3);

pub struct Running {
    id: u64,
    pub pid: i32,
    pidfd: OwnedFd,
    /// `None` once its end was seen.
    report: Option<Channel>,
    listener: Option<OwnedFd>,
    began: Instant,
    deadline: Option<Instant>,
    /// When to kill init itself.
    last_resort: Option<Instant>,
    ready: Ready,
    exit: Option<(Exit, Instant)>,
    fault: Option<SetupFault>,
    end: CallEnd,
    /// Init is gone; there is nothing more to wait for.
    over: bool,
    /// The end has been told.
    told: bool,
    evidence: Evidence,
    rest: Rc<Rest>,
}

/// What the last poll found.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    report: bool,
    listener: bool,
    init: bool,
}

impl Running {
    /// An init that got no call: only its end is waited for.
    pub fn dismissed(init: Init, rest: &Rc<Rest>) -> io::Result<Running> {
        let never = (Instant::now(), Duration::ZERO);
        let mut running = Running::new(u64::MAX, init, never, rest)?;
        running.told = true;
        running.deadline = None;
        running.kill_init();
        Ok(running)
    }

    pub fn new(
        id: u64,
        init: Init,
        (began, wall): (Instant, Duration),
        rest: &Rc<Rest>,
    ) -> io::Result<Running> {
        rest.add(init.process.pidfd.as_fd())?;
        rest.add(init.report.as_fd())?;
        Ok(Running {
            id,
            pid: init.process.pid,
            pidfd: init.process.pidfd,
            report: Some(init.report),
            listener: None,
            began,
            // A limit beyond what the clock can hold is none.
            deadline: began.checked_add(wall),
            last_resort: None,
            ready: Ready::default(),
            exit: None,
            fault: None,
            end: CallEnd::default(),
            over: false,
            told: false,
            evidence: Evidence::default(),
            rest: Rc::clone(rest),
        })
    }

    /// When this call must be looked at even if nothing happens.
    pub fn deadline(&self) -> Option<Instant> {
        [self.deadline, self.last_resort]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether init saw its call to the end.
    pub fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    /// Whether this id means this call; an ended one does not have it any more.
    pub fn is_called(&self, id: u64) -> bool {
        self.id == id && !self.told
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Where the call's notifications come from, once it has said so.
    pub fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// The next of `ready` is the listener's, if there is one.
    pub fn note_listener(&mut self, ready: &mut impl Iterator<Item = bool>) {
        self.ready.listener = self.listener.is_some() && ready.next() == Some(true);
    }

    fn end_report(&mut self) {
        if let Some(report) = self.report.take() {
            self.rest.remove(report.as_fd());
        }
    }

    /// In the order that [`Running::note_ready`] reads.
    pub fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.push(PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN));
        let report = self.report.as_ref().map(AsFd::as_fd);
        let listener = self.listener.as_ref().map(AsFd::as_fd);
        for fd in [report, listener].into_iter().flatten() {
            fds.push(PollFd::new(fd, PollFlags::POLLIN));
        }
    }

    pub fn note_ready(&mut self, ready: &mut impl Iterator<Item = bool>) {
        let mut next = |waits: bool| waits && ready.next() == Some(true);
        self.ready = Ready {
            init: next(true),
            report: next(self.report.is_some()),
            listener: next(self.listener.is_some()),
        };
    }

    /// Handles what became ready, and the limits.
    pub fn attend(
        &mut self,
        session: &mut Session,
        now: Instant,
        events: &mut VecDeque<FromBroker>,
    ) {
        let ready = std::mem::take(&mut self.ready);
        if ready.listener {
            self.answer(session);
        }
        if ready.report {
            self.read_report(events);
            let alone = self.exit.is_some_and(|(exit, _)| exit.background == 0);
            if alone && session.extent() == Extent::Namespace {
                // Only init is left, on its way out. What that takes (a mount namespace goes after
                // a grace period of the kernel) is not part of the call.
                self.tell(Ended::default(), events);
            }
        }
        if ready.init {
            self.collect(events);
            return;
        }
        if self.deadline.is_some_and(|at| now >= at) {
            self.deadline = None;
            self.end.timed_out = true;
            self.stop(session.extent());
        }
        if self.last_resort.is_some_and(|at| now >= at) {
            self.last_resort = None;
            self.kill_init();
        }
    }

    /// What the session's watch saw while this call ran.
    pub fn note_watch(&mut self, seen: &[Seen]) {
        self.evidence.note_watch(seen);
    }

    /// The host replaced a protected name: this call could write to the new one.
    pub fn end_replaced(&mut self, seen: &[Seen]) {
        self.evidence.note_replaced(seen);
        self.kill(Extent::Namespace);
    }

    /// The supervisor asks for the end.
    pub fn kill(&mut self, extent: Extent) {
        if self.exit.is_none() {
            self.end.killed = true;
        }
        self.stop(extent);
    }

    fn stop(&mut self, extent: Extent) {
        match (extent, &self.report) {
            (Extent::Namespace, _) | (_, None) => self.kill_init(),
            (Extent::Descendants, Some(report)) => {
                // Init takes the end of the report for "end everything".
                if report.shutdown().is_err() {
                    self.kill_init();
                }
                self.last_resort = Instant::now().checked_add(GRACE);
            }
        }
    }

    fn kill_init(&self) {
        match pidfd_send_signal(&self.pidfd, Signal::KILL) {
            // ESRCH: it has ended by itself, which the pidfd tells as well.
            Ok(()) | Err(_) => {}
        }
    }

    fn answer(&mut self, session: &mut Session) {
        let (Some(listener), Some(fenced)) = (&self.listener, &session.fence) else {
            return;
        };
        let open = crate::listener::answer(listener.as_fd(), fenced, &mut self.evidence);
        if open == crate::listener::State::Closed {
            self.listener = None;
        }
    }

    fn read_report(&mut self, events: &mut VecDeque<FromBroker>) {
        let Some(report) = self.report.as_mut() else {
            return;
        };
        let call = self.id;
        match report.recv_json() {
            Ok((Report::Listener, fds)) => {
                self.listener = fds.into_iter().next();
                if let Some(listener) = &self.listener {
                    // Older kernels answer a little slower, that is all.
                    self.evidence.slow |= seccomp::sync_wake_up(listener.as_fd()).is_err();
                }
            }
            Ok((Report::Started, _)) => events.push_back(FromBroker::Started { call }),
            Ok((Report::NotRun { fault }, _)) => self.fault = Some(fault),
            Ok((Report::Exited { exit }, _)) => self.exit = Some((exit, Instant::now())),
            Err(FrameError::Closed) => self.end_report(),
            Err(e) => {
                self.end_report();
                self.fault = Some(broken("report", None, libc::EPROTO, e.to_string()));
                self.kill_init();
            }
        }
    }

    /// Init has ended, and with it, in a namespace, everything.
    fn collect(&mut self, events: &mut VecDeque<FromBroker>) {
        while self.report.is_some() {
            self.read_report(events);
        }
        let flags = WaitPidFlag::WEXITED;
        // Reaped by pidfd, so no other child can be meant.
        let reaped = waitid(Id::PIDFd(self.pidfd.as_fd()), flags);
        debug_assert!(reaped.is_ok());
        self.rest.remove(self.pidfd.as_fd());
        self.over = true;
    }

    /// Reports everything there is to say about an ended call, once.
    pub fn tell(&mut self, orphans: Ended, events: &mut VecDeque<FromBroker>) {
        let call = self.id;
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        self.deadline = None;
        if let Some(fault) = self.fault.take() {
            events.push_back(FromBroker::NotRun { call, fault });
            return;
        }
        for denial in std::mem::take(&mut self.evidence).into_denials() {
            events.push_back(FromBroker::Denied { call, denial });
        }
        let mut end = self.end.clone();
        let ended_at = match self.exit {
            Some((exit, at)) => {
                end.exit_code = exit.exit_code;
                end.signal = exit.signal;
                end.background = exit.background;
                end.survivors = exit.survivors;
                at
            }
            None => {
                end.signal = Some(libc::SIGKILL);
                Instant::now()
            }
        };
        if orphans.found > 0 {
            end.background += orphans.found;
            end.survivors += orphans.left;
        }
        end.wall_us = (ended_at - self.began).as_micros() as u64;
        events.push_back(FromBroker::Ended { call, end });
    }
}
