//! `--check CMD`: what the supervisor has run after the last turn. Only its exit code counts.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use curfew_cell::plan::Plan;
use curfew_engine::event::{Body, CheckResult};

use crate::cells::Cells;
use crate::confine::{Wanted, no_sandbox, why_not};
use crate::fault::Fault;

/// The end of a failed check's output that a person is shown.
const TAIL_BYTES: usize = 2000;

/// A check that is about to run: in a confinement of its own, with the same grants, but with
/// private areas and processes that no call of the agent has touched.
#[derive(Debug)]
pub struct Check {
    pub cells: Arc<Cells>,
    pub number: u64,
    command: String,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    after_seq: u64,
}

/// A check's result, and the end of what it wrote.
#[derive(Debug)]
pub struct Checked {
    pub facts: Vec<Body>,
    pub passed: Passed,
    pub tail: String,
    /// What it left that tools outside would obey, for the operator.
    pub swept: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    Yes,
    No,
}

impl Check {
    pub fn prepare(
        wanted: &Wanted,
        plan: &Plan,
        command: &str,
        after_seq: u64,
    ) -> Result<Self, Fault> {
        let exe = Path::new("/proc/self/exe");
        let cells = Cells::start(exe, plan, Box::new(|_, _| {}))
            .map_err(|error| no_sandbox(&why_not(&error)))?;
        let shell = wanted.shell.to_string_lossy().into_owned();
        Ok(Check {
            number: cells.number(),
            cells: Arc::new(cells),
            command: command.to_owned(),
            argv: vec![shell, String::from("-c"), command.to_owned()],
            env: wanted.confinement.env.clone(),
            after_seq,
        })
    }

    /// Runs it on this thread.
    pub fn run(self) -> Result<Checked, Fault> {
        let mut tail = Vec::new();
        let started = self
            .cells
            .command(self.number, self.argv, self.env, self.cells.limits());
        let ended = started.and_then(|mut running| {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count) = running.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                tail.extend_from_slice(&buffer[..count]);
                tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
            }
            running.wait()
        });
        let end = ended
            .map_err(|error| Fault::sandbox(format!("the check could not be run: {error}")))?
            .end;
        let swept = match self.cells.sweep() {
            Ok(swept) => curfew_sandbox::sweep::lines(&swept),
            Err(error) => vec![error.to_string()],
        };
        let passed = if end.exit_code == Some(0) && !end.timed_out {
            Passed::Yes
        } else {
            Passed::No
        };
        let check = CheckResult {
            command: self.command,
            exit_code: end.exit_code,
            signal: end.signal,
            timed_out: end.timed_out,
            after_seq: self.after_seq,
        };
        let tail = String::from_utf8_lossy(&tail).into_owned();
        Ok(Checked {
            facts: vec![Body::CheckResult(check)],
            passed,
            tail,
            swept,
        })
    }
}
