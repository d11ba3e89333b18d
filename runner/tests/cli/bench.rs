//! A home, a workspace, and curfew run in them with a deadline.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A hang is a failure.
pub const DEADLINE: Duration = Duration::from_secs(90);

pub struct Bench {
    dir: TempDir,
    pub workspace: PathBuf,
}

pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Bench {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("ws");
        for name in ["ws", "home", "curfew"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Bench {
            workspace: fs::canonicalize(workspace).unwrap(),
            dir,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_curfew"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("CURFEW_HOME", self.path("curfew"))
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        finish(self.command(args).spawn().unwrap())
    }

    /// `curfew run -p do` against recorded answers.
    pub fn replay(&self, answers: &[String], more: &[&str]) -> Ran {
        let file = self.path("replay.jsonl");
        fs::write(&file, answers.concat()).unwrap();
        let provider = format!("replay:{}", file.display());
        let args = [&["run", "-p", "do", "--provider", &provider], more].concat();
        self.run(&args)
    }

    /// Ids of all sessions, newest first.
    pub fn sessions(&self) -> Vec<String> {
        let listed = self.run(&["session", "list", "--json"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        listed
            .objects()
            .iter()
            .map(|object| object["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The log of the only session: header and events.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log_path()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn log_path(&self) -> PathBuf {
        let sessions = self.path("curfew").join("sessions");
        let mut found: Vec<PathBuf> = fs::read_dir(sessions)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0).join("log.jsonl")
    }

    /// The completions of calls, in order.
    pub fn completed(&self) -> Vec<Value> {
        of_type(&self.log(), "tool/completed")
    }
}

impl Ran {
    pub fn objects(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn ok(&self) -> &Self {
        assert_eq!(
            self.code,
            Some(0),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }
}

pub fn of_type(log: &[Value], kind: &str) -> Vec<Value> {
    log.iter()
        .filter(|event| event["type"] == kind)
        .map(|event| event["data"].clone())
        .collect()
}

/// Waits for the end, but not for ever.
pub fn finish(child: Child) -> Ran {
    let pid = child.id();
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = told.recv_timeout(DEADLINE) else {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        panic!("curfew did not end within {DEADLINE:?}");
    };
    let Output {
        status,
        stdout,
        stderr,
    } = output.unwrap();
    Ran {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// A recorded answer that says `text`.
pub fn says(text: &str) -> String {
    record(
        &[json!({ "delta": { "role": "assistant", "content": text }, "index": 0 })],
        "stop",
    )
}

/// A recorded answer that makes these calls.
pub fn calls(calls: &[(&str, Value)]) -> String {
    let raw: Vec<(&str, String)> = calls
        .iter()
        .map(|(name, arguments)| (*name, arguments.to_string()))
        .collect();
    calls_raw(&raw)
}

/// Arguments as the model wrote them.
pub fn calls_raw(calls: &[(&str, String)]) -> String {
    let list: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments });
            json!({ "index": at, "id": format!("c{at}"), "type": "function", "function": function })
        })
        .collect();
    record(
        &[json!({ "delta": { "tool_calls": list }, "index": 0 })],
        "tool_calls",
    )
}

fn record(choices: &[Value], finish: &str) -> String {
    json!({ "status": 200, "headers": { "content-type": "text/event-stream" }, "body": stream(choices, finish) })
        .to_string()
        + "\n"
}

/// The body of a streamed answer.
pub fn stream(choices: &[Value], finish: &str) -> String {
    let end = json!({ "delta": {}, "index": 0, "finish_reason": finish });
    let chunks = choices
        .iter()
        .cloned()
        .chain([end])
        .map(|choice| json!({ "choices": [choice] }));
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 } });
    let lines: String = chunks
        .chain([usage])
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    lines + "data: [DONE]\n\n"
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
