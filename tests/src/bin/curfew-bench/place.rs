//! Where it is measured: a tmpfs, a workspace on it, and copies of the programs. HOME is the
//! operator's: what a profile finds there is part of what a start costs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FsWord, statfs};
use tempfile::TempDir;

const TMPFS: FsWord = 0x0102_1994;

pub struct Place {
    /// Removed when dropped.
    _dir: TempDir,
    pub curfew: PathBuf,
    pub bench: PathBuf,
    pub ws: PathBuf,
    pub state: PathBuf,
    pub home: PathBuf,
}

impl Place {
    pub fn new(binary: &Path) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(base())
            .unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["ws", "state", "bin"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        std::fs::copy(binary, at("bin/curfew")).unwrap();
        // A call sees its workspace, and of a folder like /tmp nothing else.
        std::fs::copy(std::env::current_exe().unwrap(), at("ws/bench")).unwrap();
        Place {
            curfew: at("bin/curfew"),
            bench: at("ws/bench"),
            ws: at("ws"),
            state: at("state"),
            home: std::env::var_os("HOME").map_or_else(|| at("state"), PathBuf::from),
            _dir: dir,
        }
    }

    /// A command in the workspace with an environment from nothing, saying nothing.
    pub fn quiet(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
            .env("HOME", &self.home)
            .env("CURFEW_HOME", &self.state);
        command.env("OPENAI_API_KEY", "sk-bench");
        for name in ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.current_dir(&self.ws);
        command
    }

    /// Kernel, file system, processors, versions.
    pub fn heading(&self) -> String {
        let read = |path: &str| {
            std::fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let cpus = std::thread::available_parallelism().unwrap();
        let cpu = read("/proc/cpuinfo");
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.map_or("", |rest| rest.trim_start_matches([' ', '\t', ':']));
        let version = |program: &str| {
            let output = Command::new(program).arg("--version").output();
            output.map_or("absent".to_owned(), |o| {
                String::from_utf8_lossy(&o.stdout).trim().to_owned()
            })
        };
        let load = read("/proc/loadavg");
        format!(
            "- kernel: Linux {}, {cpus} processors ({model}), load at the start {}\n\
             - file system: tmpfs for workspace, state and binaries\n\
             - {}; {}\n",
            read("/proc/sys/kernel/osrelease"),
            load.split(' ').next().unwrap_or(""),
            version(self.curfew.to_str().unwrap()),
            version("bwrap"),
        )
    }
}

fn base() -> PathBuf {
    let places = ["CURFEW_BENCH_DIR"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    // Not /dev/shm: each call has its own, so nothing there can be a workspace.
    let mut places = places.chain([PathBuf::from("/tmp")]);
    let tmpfs = |place: &PathBuf| statfs(place).is_ok_and(|fs| fs.f_type == TMPFS);
    places
        .find(tmpfs)
        .expect("a tmpfs: /tmp, or the folder CURFEW_BENCH_DIR names")
}
