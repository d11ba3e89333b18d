//! What is shown while the demo runs: the events of a child's `--json`, each as it happens.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use curfew_engine::codec::{Decoder, LineEnd, Record};
use curfew_engine::event::{
    Block, Body, CheckResult, MessageSource, SandboxDenied, ToolCall, ToolCompleted,
};
use serde_json::Value;

use super::stage::{Stage, said_in};
use crate::fault::{Fault, code};
use crate::output::inert::line_cut;
use crate::output::sheet::{Ink, Sheet};

/// Characters of a line that are shown.
const SHOWN_CHARS_MAX: usize = 100;
/// Lines of a command's output that are shown.
const OUTPUT_LINES_MAX: usize = 4;

/// Follows one session through its runs.
pub struct Live<'a> {
    stage: &'a Stage,
    decoder: Decoder,
    session: Option<String>,
    calls: HashMap<String, ToolCall>,
    text: String,
}

impl<'a> Live<'a> {
    pub fn new(stage: &'a Stage) -> Self {
        Live {
            stage,
            decoder: Decoder::new(),
            session: None,
            calls: HashMap::new(),
            text: String::new(),
        }
    }

    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Runs a command line and shows its events until it ends. A failed check is no fault.
    pub fn run(&mut self, command: &Command, sheet: &mut Sheet) -> Result<(), Fault> {
        let failed = |error: std::io::Error| Fault::new(code::FAILED, error.to_string());
        let mut stderr = tempfile::tempfile().map_err(failed)?;
        let mut command = again(command);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::from(stderr.try_clone().map_err(failed)?));
        let mut child = command.spawn().map_err(failed)?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                self.line(&line.map_err(failed)?, sheet)?;
            }
        }
        let status = child.wait().map_err(failed)?;
        match status.code() {
            Some(code::FINISHED | code::FAILED) => Ok(()),
            Some(other) => Err(Fault::new(other, said_in(&mut stderr))),
            None => Err(Fault::new(code::FAILED, "a run of the demo was killed")),
        }
    }

    /// One line of the log. A second run begins with the header again.
    fn line(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if self.session.is_some() && line.starts_with(b"{\"type\":\"session\"") {
            return Ok(());
        }
        let record = self.decoder.line(line, LineEnd::Newline);
        match record.map_err(|error| Fault::storage(error.to_string()))? {
            Record::Header(header) => self.session = Some(header.id),
            Record::Event(event) => self.event(event.body, sheet),
        }
        Ok(())
    }

    fn event(&mut self, body: Body, sheet: &mut Sheet) {
        match body {
            Body::UserMessage(message) if message.source == MessageSource::User => {
                for line in message.text.lines() {
                    sheet.line(&[(Ink::Faint, "   > "), (Ink::Plain, line)]);
                }
            }
            Body::StepStart(_) => self.text.clear(),
            Body::AssistantChunk(chunk) if chunk.block == Block::Text => {
                self.text.push_str(&chunk.text);
            }
            Body::AssistantMessage(_) => self.answer(sheet),
            Body::ToolCall(call) => {
                sheet.line(&[
                    (Ink::Name, "   ● "),
                    (Ink::Strong, &call.name),
                    (Ink::Plain, " "),
                    (Ink::Plain, &self.shown(&main_argument(&call))),
                ]);
                self.calls.insert(call.call_id.clone(), call);
            }
            Body::SandboxDenied(denial) => self.denied(&denial, sheet),
            Body::ToolCompleted(completed) => self.completed(&completed, sheet),
            Body::CheckResult(check) => checked(&check, sheet),
            _ => {}
        }
    }

    fn answer(&mut self, sheet: &mut Sheet) {
        let text = std::mem::take(&mut self.text);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            sheet.line(&[(Ink::Faint, "   "), (Ink::Plain, &self.shown(line))]);
        }
    }

    fn denied(&self, denial: &SandboxDenied, sheet: &mut Sheet) {
        sheet.line(&[
            (Ink::Bad, "     denied "),
            (Ink::Bad, "by "),
            (Ink::Bad, &denial.layer),
            (Ink::Plain, &self.shown(&denial_target(denial))),
            (Ink::Faint, "  rule "),
            (Ink::Faint, &denial.rule),
        ]);
    }

    /// What a command printed, and its exit code. What the model is told beside it is the log's.
    fn completed(&self, completed: &ToolCompleted, sheet: &mut Sheet) {
        let Some(call) = self.calls.get(&completed.call_id) else {
            return;
        };
        let lines = completed
            .content
            .lines()
            .filter(|line| !line.starts_with('['));
        if call.name == "bash" || (completed.is_error && completed.facts.denied == 0) {
            for line in lines.take(OUTPUT_LINES_MAX) {
                sheet.line(&[(Ink::Faint, "     "), (Ink::Faint, &self.shown(line))]);
            }
        }
        if call.name == "bash" && completed.facts.denied == 0 {
            let (ink, word) = exit(completed.facts.exit_code);
            sheet.line(&[(Ink::Plain, "     "), (ink, &word)]);
        }
    }

    fn shown(&self, text: &str) -> String {
        line_cut(&self.stage.brief(text), SHOWN_CHARS_MAX)
    }
}

/// ` open-write ~/.profile`, and how often.
pub fn denial_target(denial: &SandboxDenied) -> String {
    let target = denial.path.as_deref().or(denial.address.as_deref());
    let times = match denial.count {
        0 | 1 => String::new(),
        count => format!(", {count} times"),
    };
    format!("  {} {}{times}", denial.op, target.unwrap_or(""))
}

fn checked(check: &CheckResult, sheet: &mut Sheet) {
    let (ink, word) = exit(check.exit_code);
    sheet.line(&[
        (Ink::Name, "   ● "),
        (Ink::Strong, "check "),
        (Ink::Plain, &check.command),
        (Ink::Plain, "  "),
        (ink, &word),
    ]);
}

pub fn exit(code: Option<i32>) -> (Ink, String) {
    match code {
        Some(0) => (Ink::Good, String::from("exit 0")),
        Some(code) => (Ink::Bad, format!("exit {code}")),
        None => (Ink::Bad, String::from("killed")),
    }
}

/// The command of bash, the path of the others.
fn main_argument(call: &ToolCall) -> String {
    let arguments: Result<Value, _> = serde_json::from_str(&call.arguments);
    let main = arguments.ok().and_then(|arguments| {
        ["command", "path", "pattern"]
            .iter()
            .find_map(|name| arguments[*name].as_str().map(str::to_owned))
    });
    let main = main.unwrap_or_else(|| call.arguments.clone());
    match main.trim_end().split_once('\n') {
        Some((first, _)) => format!("{first} …"),
        None => main,
    }
}

/// The same command line once more: spawning wants it mutable, its maker does not.
fn again(command: &Command) -> Command {
    let mut same = Command::new(command.get_program());
    same.args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            same.env(name, value);
        }
    }
    if let Some(cwd) = command.get_current_dir() {
        same.current_dir(cwd);
    }
    same.stdin(Stdio::null());
    same
}
