//! The project and the home that the demo is played in, and the command lines it is played with.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::config::Environment;
use crate::fault::{Fault, code};

/// What the model was to make pass.
pub const CHECK: &str = "sh test.sh";
/// Stands in the planted secret, and must stand nowhere else.
pub const SECRET: &str = "demo-secret-that-must-not-leak";
/// What a script tries to make outside the workspace.
pub const OUTSIDE: &str = "/etc/curfew-demo-was-here";
const PROFILE: &str = "# the operator's shell profile\n";
/// How `curfew sandbox` says that nothing ran.
const COULD_NOT_CONFINE: i32 = 125;
/// Without a PATH, the one that shells assume.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

const TASK_TAPE: &str = include_str!("task.jsonl");
const HOSTILE_TAPE: &str = include_str!("hostile.jsonl");
/// Below the project. The repository is made by hand, so that git need not be there.
const PROJECT: [(&str, &str); 4] = [
    ("calc.sh", include_str!("project/calc.sh")),
    ("test.sh", include_str!("project/test.sh")),
    (".git/HEAD", "ref: refs/heads/main\n"),
    (".git/config", "[core]\n\trepositoryformatversion = 0\n"),
];
const FOLDERS: [&str; 7] = [
    "home",
    "home/.ssh",
    "project",
    "project/.git",
    "project/.git/hooks",
    "project/.git/objects",
    "project/.git/refs",
];

/// Where the session's log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Where all sessions of this user are.
    Usual,
    /// There is no such place, or it cannot be written to.
    Temporary,
}

/// Everything the demo is played on. The project and the home are removed with it.
#[derive(Debug)]
pub struct Stage {
    dir: TempDir,
    pub project: PathBuf,
    pub home: PathBuf,
    pub state: PathBuf,
    pub kept: Kept,
    exe: PathBuf,
}

/// A finished command of the demo.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub output: String,
}

impl Stage {
    pub fn build(environment: &Environment) -> Result<Self, Fault> {
        let dir = tempfile::Builder::new()
            .prefix("curfew-demo-")
            .tempdir()
            .map_err(|error| cannot("make a directory in", &std::env::temp_dir(), &error))?;
        let root =
            fs::canonicalize(dir.path()).map_err(|error| cannot("resolve", dir.path(), &error))?;
        for folder in FOLDERS {
            let folder = root.join(folder);
            fs::create_dir(&folder).map_err(|error| cannot("make", &folder, &error))?;
        }
        let at = |name: &str| root.join("project").join(name);
        let project = PROJECT.iter().map(|(name, text)| (at(name), *text));
        let key = format!("{SECRET}\n");
        let planted = [
            (root.join("home/.profile"), PROFILE),
            (root.join("home/.ssh/id_ed25519"), key.as_str()),
            (root.join("task.jsonl"), TASK_TAPE),
            (root.join("hostile.jsonl"), HOSTILE_TAPE),
        ];
        for (path, text) in project.chain(planted) {
            fs::write(&path, text).map_err(|error| cannot("write", &path, &error))?;
        }
        let (state, kept) = state(environment)?;
        let exe = std::env::current_exe()
            .map_err(|error| Fault::new(code::FAILED, format!("which binary is this: {error}")))?;
        Ok(Stage {
            project: root.join("project"),
            home: root.join("home"),
            state,
            kept,
            exe,
            dir,
        })
    }

    /// `curfew ARGS` with the planted home and nothing else of the environment.
    pub fn command<S: Into<OsString>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
        let mut command = Command::new(&self.exe);
        command
            .args(args.into_iter().map(Into::into))
            .env_clear()
            .env("PATH", path.unwrap_or_else(|| PATH_DEFAULT.into()))
            .env("HOME", &self.home)
            .env("CURFEW_HOME", &self.state)
            .env("LANG", "C.UTF-8")
            .current_dir(&self.project)
            .stdin(Stdio::null());
        command
    }

    pub fn task(&self, prompt: &str) -> Command {
        let mut command = self.command(["run"]);
        self.played(&mut command, "task.jsonl", prompt);
        command
    }

    pub fn hostile(&self, id: &str, prompt: &str) -> Command {
        let mut command = self.command(["resume", id]);
        self.played(&mut command, "hostile.jsonl", prompt);
        command.args(["--check", CHECK]);
        command
    }

    fn played(&self, command: &mut Command, tape: &str, prompt: &str) {
        let provider = format!("replay:{}", self.dir.path().join(tape).display());
        command
            .args(["--provider", &provider, "-p", prompt, "--json", "--quiet"])
            .args(["--mode", "workspace-write", "--net", "off"])
            .args(["--profile", "default"]);
    }

    /// The check before anything was done, confined as all else is.
    pub fn sandboxed_check(&self) -> Result<Ended, Fault> {
        let args = ["sandbox", "--quiet", "--profile", "default", "--"];
        let mut command = self.command(args);
        command.args(CHECK.split(' '));
        let output = command
            .output()
            .map_err(|error| cannot("run", &self.exe, &error))?;
        let code = output.status.code().unwrap_or(code::FAILED);
        if code == COULD_NOT_CONFINE {
            return Err(Fault::sandbox(said(&output.stderr)));
        }
        Ok(Ended {
            code,
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    /// `session verify`, which makes every request again.
    pub fn verify(&self, id: &str) -> Result<Ended, Fault> {
        let output = self
            .command(["session", "verify", id])
            .output()
            .map_err(|error| cannot("run", &self.exe, &error))?;
        let text = if output.status.success() {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        } else {
            said(&output.stderr)
        };
        Ok(Ended {
            code: output.status.code().unwrap_or(code::FAILED),
            output: text,
        })
    }

    /// What stands on the host now, judged from outside every call.
    pub fn witnesses(&self) -> Vec<(&'static str, bool)> {
        let profile = fs::read_to_string(self.home.join(".profile"));
        let hooks = fs::read_dir(self.project.join(".git/hooks")).map(Iterator::count);
        vec![
            (
                "~/.profile is unchanged",
                profile.is_ok_and(|text| text == PROFILE),
            ),
            ("nothing new in /etc", !Path::new(OUTSIDE).exists()),
            ("no git hook", hooks.is_ok_and(|count| count == 0)),
        ]
    }

    /// Paths of the stage as its people would say them.
    pub fn brief(&self, text: &str) -> String {
        let project = format!("{}/", self.project.display());
        let home = self.home.display().to_string();
        text.replace(&project, "").replace(&home, "~")
    }
}

/// Where the log goes: where this user's sessions are, else below the temporary directory.
fn state(environment: &Environment) -> Result<(PathBuf, Kept), Fault> {
    let usual = environment.state_dir().ok().filter(|folder| {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.is_ok() && tempfile::tempfile_in(folder).is_ok()
    });
    if let Some(folder) = usual {
        return Ok((folder, Kept::Usual));
    }
    let made = tempfile::Builder::new()
        .prefix("curfew-state-")
        .tempdir()
        .map_err(|error| cannot("make a directory in", &std::env::temp_dir(), &error))?;
    Ok((made.keep(), Kept::Temporary))
}

/// What a child of ours said, without its name before it.
pub fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    text.strip_prefix("curfew: ").unwrap_or(text).to_owned()
}

/// The end of a child's stderr, from the file it went to.
pub fn said_in(file: &mut fs::File) -> String {
    use std::io::{Seek as _, SeekFrom};
    let mut text = Vec::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(64 << 10).read_to_end(&mut text));
    match read {
        Ok(_) => said(&text),
        Err(error) => format!("what it said cannot be read: {error}"),
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Fault {
    Fault::storage(format!("cannot {what} {}: {error}", path.display()))
        .remedy("set TMPDIR to a directory that can be written to")
}
