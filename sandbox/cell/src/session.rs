//! What is set up once and shared by all calls of a broker.

use std::path::{Path, PathBuf};

use nix::unistd::sethostname;

use crate::domain::Domain;
use crate::fault::{At, broken};
use crate::filter::{self, Filter, Listener};
use crate::init::Extent;
use crate::listener::Rows;
use crate::look::Lookout;
use crate::mounts;
use crate::plan::{Audience, Fence, NetPlan, Plan, SyscallRule};
use crate::protect::Pins;
use crate::protocol::{ReadyFacts, SetupFault};
use crate::sys::{self, CloseRange};
use crate::watch::{Meaning, Seen, Watch};
use crate::{caps, domain, identity, netns, processes, stdio};

/// A broker's side of a confinement, ready to make calls.
pub struct Session {
    pub fence: Option<Fenced>,
}

/// What a fenced session has.
pub struct Fenced {
    pub gear: Gear,
    worker_rows: Vec<SyscallRule>,
    /// The rows a notification can come from.
    pub rows: Rows,
    pub lookout: Lookout,
    pub watch: Watch,
    pub pins: Pins,
    /// The host replaced a pinned name since it was pinned.
    pub pins_lost: bool,
}

/// What init and the command of a fenced call need of it.
pub struct Gear {
    pub domain: Domain,
    pub command_filter: Filter,
    /// Compiled before the first worker call.
    worker_filter: Option<Filter>,
    pub listener: Listener,
}

impl Gear {
    pub fn worker_filter(&self) -> Result<&Filter, SetupFault> {
        let missing = || {
            broken(
                "seccomp",
                None,
                libc::EINVAL,
                "the worker's filter is missing",
            )
        };
        self.worker_filter.as_ref().ok_or_else(missing)
    }
}

impl Session {
    /// Carries out the plan in this process, for good.
    pub fn open(plan: &Plan) -> Result<(Session, ReadyFacts), SetupFault> {
        single_thread()?;
        sys::close_except(&[0, 1, 2], CloseRange::OnExec).at("close-descriptors")?;
        sys::reset_ignored_signals().at("signals")?;
        match &plan.fence {
            None => open_unfenced(),
            Some(fence) => open_fenced(fence),
        }
    }

    pub fn extent(&self) -> Extent {
        match self.fence {
            Some(_) => Extent::Namespace,
            None => Extent::Descendants,
        }
    }

    /// In an init: its gear. Everything else belongs to the broker; here its descriptors are about
    /// to be closed all at once, so its destructors must not run.
    pub fn into_gear(self) -> Option<Gear> {
        let Fenced {
            gear,
            rows,
            lookout,
            watch,
            pins,
            ..
        } = self.fence?;
        std::mem::forget((rows, lookout, watch, pins));
        Some(gear)
    }

    /// Namespaces of a call; the session's user namespace owns them.
    pub fn call_namespaces(&self) -> libc::c_int {
        match self.fence {
            None => 0,
            Some(_) => {
                libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS
            }
        }
    }
}

impl Fenced {
    /// Looks at what the watch saw; whether a pin was lost just now.
    pub fn judge(&mut self, seen: &[Seen]) -> bool {
        let of_pins = |s: &Seen| matches!(s.meaning, Meaning::Pinned | Meaning::Above);
        let lost = seen.iter().any(of_pins) && !self.pins.intact();
        self.pins_lost |= lost;
        lost
    }

    /// Before a worker call. The worker says itself what it was refused, so nothing listens.
    pub fn compile_for_worker(&mut self) -> Result<(), SetupFault> {
        if self.gear.worker_filter.is_none() {
            let rows = std::mem::take(&mut self.worker_rows);
            let filter = filter::compile(&rows, Audience::Worker, Listener::Absent)?;
            self.gear.worker_filter = Some(filter);
        }
        Ok(())
    }

    /// Before a call, and only when one was lost: pins what the host replaced meanwhile.
    pub fn restore_pins(&mut self) -> Result<(), SetupFault> {
        self.pins.restore()?;
        self.watch.pins(&self.pins).or_else(gone)?;
        self.pins_lost = !self.pins.intact();
        Ok(())
    }
}

/// A name that is not there now cannot be watched; the next call looks again.
fn gone(fault: SetupFault) -> Result<(), SetupFault> {
    if fault.errno == libc::ENOENT {
        Ok(())
    } else {
        Err(fault)
    }
}

fn open_unfenced() -> Result<(Session, ReadyFacts), SetupFault> {
    nix::sys::prctl::set_child_subreaper(true).at("subreaper")?;
    Ok((Session { fence: None }, ReadyFacts::default()))
}

fn open_fenced(fence: &Fence) -> Result<(Session, ReadyFacts), SetupFault> {
    fresh_keyring()?;
    identity::settle(&fence.identity)?;
    identity::enter_user_namespace(&fence.identity)?;
    let network = match fence.net {
        NetPlan::Empty => Some(netns::begin()?),
        NetPlan::Host => None,
    };
    identity::enter_namespaces()?;
    sethostname(&fence.hostname).at("hostname")?;
    rustix::process::umask(rustix::fs::Mode::empty());
    let mut lookout = Lookout::new(fence.net)?;
    identity::forbid_nesting(lookout.proc())?;
    let pid_max = processes::has_own_pid_max(lookout.proc())?;
    stdio::settle(lookout.proc()).at("stdio")?;
    let view = mounts::build(&fence.mounts)?;
    // The old one could be a directory that the view shows otherwise.
    rustix::process::chdir("/").at_path("cwd", Path::new("/"))?;
    caps::lock()?;
    let domain = domain::prepare(&fence.landlock)?;
    let listener = if fence.evidence {
        Listener::Present
    } else {
        Listener::Absent
    };
    let rows = &fence.syscalls;
    let command_filter = filter::compile(rows, Audience::Command, listener)?;
    if let Some(network) = network {
        network.join()?;
    }
    let pinned: Vec<PathBuf> = view.pins.names().collect();
    lookout.set_pinned(pinned.clone());
    let facts = ReadyFacts {
        pinned,
        scan_cut: view.scan_cut,
        listener: listener == Listener::Present,
        pid_max,
    };
    let fenced = Fenced {
        gear: Gear {
            domain,
            command_filter,
            worker_filter: None,
            listener,
        },
        worker_rows: rows.clone(),
        rows: Rows::new(filter::in_order(rows, Audience::Command)),
        lookout,
        watch: view.watch,
        pins: view.pins,
        pins_lost: false,
    };
    let session = Session {
        fence: Some(fenced),
    };
    Ok((session, facts))
}

/// What forks here must not inherit another thread's locks, and unshare(2) of a user namespace
/// refuses threads.
fn single_thread() -> Result<(), SetupFault> {
    let path = Path::new("/proc/self/task");
    let links = rustix::fs::stat(path)
        .at_path("single-thread", path)?
        .st_nlink;
    if links == 3 {
        return Ok(());
    }
    let text = "a broker must be started before any thread is";
    Err(broken("single-thread", None, libc::EINVAL, text))
}

/// A kernel without keyrings, or a container that refuses keyctl, has none to leak.
fn fresh_keyring() -> Result<(), SetupFault> {
    match sys::join_new_keyring() {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
        joined => joined.at("keyring"),
    }
}
