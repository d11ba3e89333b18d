//! The broker inside the process that was started for one command: no channel, no supervisor.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::{Ahead, Broker, Woken};
use crate::WorkerFn;
use crate::call::NOT_RUN;
use crate::fault::At;
use crate::plan::{CallLimits, MountOp, Plan};
use crate::protect::{Bounds, find};
use crate::protocol::{Appeared, CallEnd, Denial, FromBroker, ReadyFacts, SetupFault, What};

/// A session in this very process. SIGINT, SIGTERM and SIGHUP end its running call.
pub struct InPlace {
    broker: Broker,
    asked: SignalFd,
    limits: CallLimits,
    protects: Vec<MountOp>,
    calls: u64,
    pub facts: ReadyFacts,
}

impl InPlace {
    /// Carries out the plan in this process, for good.
    pub fn open(plan: &Plan, worker: WorkerFn) -> Result<InPlace, SetupFault> {
        let (broker, facts) = Broker::open(plan, worker, Ahead::InPlace)?;
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None).at("signals")?;
        let asked = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC).at("signals")?;
        broker.listen_to(asked.as_fd())?;
        let steps = plan.fence.iter().flat_map(|fence| &fence.mounts);
        let protects = steps
            .filter(|step| matches!(step, MountOp::Protect { .. }))
            .cloned()
            .collect();
        Ok(InPlace {
            broker,
            asked,
            limits: plan.limits,
            protects,
            calls: 0,
            facts,
        })
    }

    /// Runs one call and waits for its end; the end carries a signal that asked for it. `fds` are
    /// stdin, stdout, stderr, and for a worker its socket.
    pub fn run(
        &mut self,
        what: What,
        fds: Vec<OwnedFd>,
    ) -> Result<(CallEnd, Vec<Denial>), SetupFault> {
        let id = self.calls;
        self.calls += 1;
        self.broker.start(id, what, self.limits, fds)?;
        let mut events = VecDeque::new();
        let mut denials = Vec::new();
        let mut by = None;
        loop {
            if self.broker.turn(Some(self.asked.as_fd()), &mut events) == Woken::ByOther {
                let signal = self.asked.read_signal().at("signals")?;
                by = signal.map(|s| s.ssi_signo as i32);
                self.broker.kill(id);
            }
            for event in events.drain(..) {
                match event {
                    FromBroker::NotRun { fault, .. } => return Err(fault),
                    FromBroker::Denied { denial, .. } => denials.push(denial),
                    FromBroker::Ended { mut end, .. } => {
                        end.signal = by.or(end.signal);
                        return Ok((end, denials));
                    }
                    FromBroker::Started { .. }
                    | FromBroker::Ready { .. }
                    | FromBroker::Failed { .. } => {}
                }
            }
        }
    }

    /// Protected names that were not there when the session began. Names only: nothing of what
    /// stands there is looked at.
    pub fn appeared(&self) -> Result<Appeared, SetupFault> {
        let known: BTreeSet<&PathBuf> = self.facts.pinned.iter().collect();
        let mut appeared = Appeared::default();
        for step in &self.protects {
            let MountOp::Protect {
                root,
                names,
                entries_max,
                depth_max,
            } = step
            else {
                continue;
            };
            let bounds = Bounds {
                entries_max: *entries_max,
                depth_max: *depth_max,
            };
            let scanned = find(root, names, bounds)?;
            let found = scanned
                .names
                .into_iter()
                .chain(scanned.led_to.into_keys())
                // Whoever sweeps opens them.
                .chain(scanned.closed)
                .map(|name| root.join(name));
            let new = found.filter(|path| !known.contains(path));
            appeared.names.extend(new);
            appeared.cut |= scanned.cut;
        }
        Ok(appeared)
    }

    /// Before a process ends that somebody waits for: what the session has open stays open until
    /// then, because the inits of its calls wait for that and close it afterwards.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

/// Runs one command under `plan` in this very process and waits for its end.
pub fn run_one(
    plan: &Plan,
    what: What,
    stdio: [OwnedFd; 3],
) -> Result<(CallEnd, Vec<Denial>), SetupFault> {
    let mut session = InPlace::open(plan, no_worker)?;
    let ended = session.run(what, stdio.into())?;
    session.leave();
    Ok(ended)
}

/// `run_one` makes no worker calls.
fn no_worker(_: OwnedFd, _: &std::path::Path) -> i32 {
    NOT_RUN
}
