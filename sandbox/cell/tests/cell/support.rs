//! A supervisor in small: starts a broker as a given uid, makes calls, collects what comes back.

use std::fs;
use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use curfew_cell::frame::{Channel, Rights};
use curfew_cell::plan::{CallLimits, Plan};
use curfew_cell::protocol::*;

use crate::plans::{self, Who};

/// A folder of one test, below a place that any uid can reach, removed at the end.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    /// Outside the private areas, so that a call sees what is beside its workspace.
    pub fn new(who: Who) -> Folder {
        Folder::below(who, Path::new("/var/lib"))
    }

    pub fn below(who: Who, base: &Path) -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("curfew-cell-{}-{number}", std::process::id());
        let path = base.join(name);
        fs::create_dir(&path).unwrap();
        let folder = Folder { path };
        folder.give(who, "");
        fs::create_dir(folder.join("ws")).unwrap();
        folder.give(who, "ws");
        folder
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn ws(&self) -> PathBuf {
        self.join("ws")
    }

    pub fn write(&self, who: Who, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        let mut missing = Vec::new();
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|d| !d.exists()) {
            missing.push(dir.to_owned());
            parent = dir.parent();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        for made in missing.iter().chain([&path]) {
            std::os::unix::fs::chown(made, Some(who.uid()), Some(who.uid())).unwrap();
        }
        path
    }

    pub fn give(&self, who: Who, name: &str) {
        let path = self.join(name);
        std::os::unix::fs::chown(&path, Some(who.uid()), Some(who.uid())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).unwrap();
    }
}

/// What a finished call was.
#[derive(Debug)]
pub struct Done {
    pub end: CallEnd,
    pub denials: Vec<Denial>,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn code(&self) -> i32 {
        self.end.exit_code.unwrap_or(-1)
    }

    pub fn denied(&self, op: &str, path: &str) -> Option<&Denial> {
        self.denials
            .iter()
            .find(|d| d.op == op && d.path.as_deref() == Some(path))
    }

    pub fn denied_address(&self, op: &str, address: &str) -> Option<&Denial> {
        self.denials
            .iter()
            .find(|d| d.op == op && d.address.as_deref() == Some(address))
    }
}

pub struct Broker {
    pub process: Child,
    pub channel: Channel,
    pub facts: ReadyFacts,
    pub cwd: PathBuf,
    next: u64,
}

static COPY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();

/// At the end of all tests.
pub fn remove_own_binary() {
    if let Some(copy) = COPY.get() {
        fs::remove_file(copy).unwrap();
    }
}

/// A copy of this binary where every uid may execute it.
pub fn own_binary() -> PathBuf {
    COPY.get_or_init(|| {
        let name = format!("curfew-cell-test-{}", std::process::id());
        let to = std::env::temp_dir().join(name);
        fs::copy(std::env::current_exe().unwrap(), &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    })
    .clone()
}

pub fn as_who(command: &mut Command, who: Who) -> &mut Command {
    if who != Who::Root {
        command.uid(who.uid()).gid(who.uid());
    }
    command
}

impl Broker {
    pub fn start(who: Who, plan: &Plan) -> Broker {
        Broker::try_start(who, plan).unwrap()
    }

    pub fn try_start(who: Who, plan: &Plan) -> Result<Broker, SetupFault> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let process = as_who(&mut Command::new(own_binary()), who)
            .arg("__serve")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .env_clear()
            .current_dir("/")
            .spawn()
            .unwrap();
        let mut channel = Channel::new(ours, Rights::Accepted);
        channel.set_deadline(Some(Instant::now() + Duration::from_secs(20)));
        let plan_frame = ToBroker::Plan {
            plan: Box::new(plan.clone()),
        };
        channel.send_json(&plan_frame, &[]).unwrap();
        let (answer, _) = channel.recv_json::<FromBroker>().unwrap();
        let facts = match answer {
            FromBroker::Ready { facts } => facts,
            FromBroker::Failed { fault } => {
                let mut process = process;
                process.wait().unwrap();
                return Err(fault);
            }
            other => panic!("{other:?}"),
        };
        Ok(Broker {
            process,
            channel,
            facts,
            cwd: plan.workspace.clone(),
            next: 1,
        })
    }

    pub fn sh(&mut self, script: &str) -> Done {
        self.sh_within(script, plans::limits())
    }

    pub fn sh_within(&mut self, script: &str, limits: CallLimits) -> Done {
        let argv = vec!["/bin/sh".into(), "-c".into(), script.into()];
        self.command(argv, limits).unwrap()
    }

    pub fn launch_sh(&mut self, script: &str) -> (u64, PipeReader, PipeReader) {
        let argv = vec!["/bin/sh".into(), "-c".into(), script.into()];
        self.launch(argv, plans::limits())
    }

    /// One command in the process itself, behind a bind mount that only its parent's mount
    /// namespace has; what it wrote to stdout.
    pub fn once_behind_bind(who: Who, plan: &Plan, from: &Path, to: &Path, script: &str) -> String {
        let file = plan.workspace.with_extension("plan");
        fs::write(&file, serde_json::to_vec(plan).unwrap()).unwrap();
        let uid = who.uid();
        let outer = format!(
            "mount --make-rprivate / && mount --bind {} {} && \
             exec setpriv --reuid {uid} --regid {uid} --clear-groups {} __one {} /bin/sh -c \"$0\"",
            from.display(),
            to.display(),
            own_binary().display(),
            file.display()
        );
        let output = Command::new("unshare")
            .args(["-m", "sh", "-c", &outer, script])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a command and returns its id and output ends.
    pub fn launch(
        &mut self,
        argv: Vec<String>,
        limits: CallLimits,
    ) -> (u64, PipeReader, PipeReader) {
        let id = self.next;
        self.next += 1;
        let (out, out_end) = std::io::pipe().unwrap();
        let (err, err_end) = std::io::pipe().unwrap();
        let null = fs::File::open("/dev/null").unwrap();
        let call = ToBroker::Call {
            call: id,
            what: What::Command {
                argv,
                env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
                cwd: self.cwd.clone(),
            },
            limits,
        };
        let fds = [null.as_fd(), out_end.as_fd(), err_end.as_fd()];
        self.channel.send_json(&call, &fds).unwrap();
        (id, out, err)
    }

    pub fn command(&mut self, argv: Vec<String>, limits: CallLimits) -> Result<Done, SetupFault> {
        let (id, out, err) = self.launch(argv, limits);
        let readers = [out, err].map(|mut pipe| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                pipe.read_to_end(&mut bytes).unwrap();
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        let (end, denials) = self.wait_end(id)?;
        let [out, err] = readers.map(|r| r.join().unwrap());
        Ok(Done {
            end,
            denials,
            out,
            err,
        })
    }

    pub fn wait_end(&mut self, id: u64) -> Result<(CallEnd, Vec<Denial>), SetupFault> {
        let mut denials = Vec::new();
        self.channel
            .set_deadline(Some(Instant::now() + Duration::from_secs(40)));
        loop {
            let (event, _) = self.channel.recv_json::<FromBroker>().unwrap();
            match event {
                FromBroker::Started { .. } => {}
                FromBroker::Denied { call, denial } if call == id => denials.push(denial),
                FromBroker::Ended { call, end } if call == id => return Ok((end, denials)),
                FromBroker::NotRun { call, fault } if call == id => return Err(fault),
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn wait_started(&mut self, id: u64) {
        match self.channel.recv_json::<FromBroker>().unwrap().0 {
            FromBroker::Started { call } if call == id => {}
            other => panic!("{other:?}"),
        }
    }

    pub fn kill(&mut self, id: u64) {
        self.channel
            .send_json(&ToBroker::Kill { call: id }, &[])
            .unwrap();
    }

    /// Closes the channel as a supervisor that died would, and waits for the broker.
    pub fn close(self) -> i32 {
        let Broker {
            mut process,
            channel,
            ..
        } = self;
        drop(channel);
        process.wait().unwrap().code().unwrap_or(-1)
    }
}

/// A word that no other test and no other process has.
pub fn mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("curfew-mark-{}-{number}-", std::process::id())
}

/// Living processes (zombies left out) whose environment or command line holds `mark`.
pub fn processes_with(mark: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let Ok(line) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        if String::from_utf8_lossy(&line).contains(mark) {
            found.push(pid);
        }
    }
    found
}

/// Waits, bounded, for something that is about to become true.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !check() {
        assert!(Instant::now() < until, "did not happen: {what}");
        // poll(2) on nothing gives the processor away between two looks.
        let tick = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 2_000_000,
        };
        rustix::event::poll(&mut [], Some(&tick)).expect("poll(2) on nothing");
    }
}

pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
