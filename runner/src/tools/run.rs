//! One call of a tool: confined, followed to its end, told to the model and to the log.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curfew_cell::protocol::Denial;
use curfew_engine::event::{
    Body, CallFacts, FileAccess, LimitHit, SandboxDenied, ToolCompleted, ToolErrorCode,
};
use curfew_policy::Confinement;
use curfew_store::Blobs;
use curfew_worker::protocol::{Observation, Request, Response};

use super::args::{BashArgs, Tool};
use super::capture::{self, Output};
use super::render::{self, Rendered};
use super::{LINE_CHARS_MAX, LINES_MAX, WINDOW_BYTES_MAX, blob};
use crate::cells::{CellError, Cells, Ended};
use crate::changes::Changes;
use crate::denied;

/// Paths a glob lists and matches a grep shows, before the text is cut.
const ENTRIES_MAX: u64 = 2000;
/// Observations sent with a write; a frame holds about five thousand.
const OBSERVATIONS_MAX: usize = 2000;

/// What a call needs besides its arguments.
#[derive(Debug)]
pub struct Toolbox {
    pub cells: Arc<Cells>,
    pub blobs: Blobs,
    /// The absolute path of the shell, outside every write root.
    pub shell: PathBuf,
    pub confinement: Confinement,
    pub known: Mutex<blob::Known>,
    pub changes: Mutex<Changes>,
    pub names: Names,
}

/// Which call of the log a number of the broker stands for.
pub type Names = Arc<Mutex<HashMap<u64, String>>>;

/// A call that was logged and may run.
#[derive(Debug)]
pub struct Job {
    pub call_id: String,
    /// Its number for the broker.
    pub number: u64,
    pub tool: Tool,
    pub observations: Vec<Observation>,
}

/// What came of it.
#[derive(Debug)]
pub struct Done {
    pub completed: ToolCompleted,
    /// Refusals that only the worker saw; the broker's have been told already.
    pub denials: Vec<SandboxDenied>,
    /// Facts to log beside it.
    pub events: Vec<Body>,
}

impl Toolbox {
    /// Denials of this number belong to this call from now on.
    pub fn name(&self, number: u64, call_id: &str) {
        lock(&self.names).insert(number, call_id.to_owned());
    }

    /// Runs the call on this thread.
    pub fn run(&self, job: Job) -> Done {
        match &job.tool {
            Tool::Bash(args) => self.bash(&job.call_id, job.number, args),
            Tool::Read(args) if args.path.starts_with(blob::PREFIX) => {
                let known = lock(&self.known).clone();
                self.done(
                    &job.call_id,
                    blob::read(args, &known, &self.blobs),
                    &Ended::default(),
                    Cut::Whole,
                )
            }
            _ => self.file(job),
        }
    }

    fn bash(&self, call_id: &str, number: u64, args: &BashArgs) -> Done {
        let mut limits = self.cells.limits();
        // Models that fill in every field say 0 for "none".
        if let Some(seconds) = args.timeout.filter(|seconds| *seconds > 0) {
            limits.wall_ms = seconds.saturating_mul(1000).min(limits.wall_ms);
        }
        let mut events = Vec::new();
        let mut changes = lock(&self.changes);
        changes.before(&self.cells);
        let shell = self.shell.to_string_lossy().into_owned();
        let argv = vec![shell, String::from("-c"), args.command.clone()];
        let mut running =
            match self
                .cells
                .command(number, argv, self.confinement.env.clone(), limits)
            {
                Ok(running) => running,
                Err(error) => return failed(call_id, &error),
            };
        let output = capture::read_all(&mut running, &self.blobs);
        let mut ended = match running.wait() {
            Ok(ended) => ended,
            Err(error) => return failed(call_id, &error),
        };
        let (swept, note) = self.sweep(call_id);
        ended
            .denials
            .extend(swept.iter().map(|(denial, _)| denial.clone()));
        let changed = changes.after(&self.cells, Some(call_id));
        drop(changes);
        events.extend(changed.map(Body::WorkspaceChanged));
        events.extend(note.as_ref().map(|_| limit("sweep", call_id, 0)));
        if ended.end.timed_out {
            events.push(limit("wall", call_id, limits.wall_ms));
        }
        let mut notes = bash_notes(&output, &ended, limits.wall_ms);
        notes.extend(note);
        let end = &ended.end;
        let error = end.killed.then_some(ToolErrorCode::Cancelled);
        let is_error = end.killed || end.timed_out || end.exit_code != Some(0);
        let mut done = self.finish(call_id, output, notes, &ended);
        done.completed.is_error = is_error;
        done.completed.error = error;
        done.events.extend(events);
        done.denials = swept.into_iter().map(|(_, event)| event).collect();
        done
    }

    /// Names that appeared and that tools outside would obey: renamed, and told as refused.
    fn sweep(&self, call_id: &str) -> (Vec<(Denial, SandboxDenied)>, Option<String>) {
        match self.cells.sweep() {
            Ok(swept) => {
                let denials = denied::of_sweep(&swept).into_iter();
                (
                    denials
                        .map(|denial| (denial.clone(), denied::event(call_id, &denial)))
                        .collect(),
                    None,
                )
            }
            Err(error) => (Vec::new(), Some(format!("[{error}]"))),
        }
    }

    fn file(&self, job: Job) -> Done {
        let Job {
            call_id,
            number,
            tool,
            observations,
        } = job;
        let cut = if matches!(tool, Tool::Read(_)) {
            Cut::Whole
        } else {
            Cut::Long
        };
        let (request, bulk) = request(&tool, observations);
        let bulk: Vec<&[u8]> = bulk.iter().map(|text| text.as_bytes()).collect();
        let (response, bytes, ended) = match self.cells.worker(number, &request, &bulk) {
            Ok(answered) => answered,
            Err(error) => return failed(&call_id, &error),
        };
        let mut ended = ended;
        let mut told = Vec::new();
        // The broker's own evidence says more; without it, the worker's word is what there is.
        if let Response::Error { error } = &response
            && ended.denials.is_empty()
            && let Some(denial) = denied::of_worker(error, &self.confinement)
        {
            told.push(denied::event(&call_id, &denial));
            ended.denials.push(denial);
        }
        let rendered = render::response(response, bytes);
        if rendered
            .files
            .iter()
            .any(|file| file.access == FileAccess::Created)
        {
            let (swept, _) = self.sweep(&call_id);
            for (denial, event) in swept {
                ended.denials.push(denial);
                told.push(event);
            }
        }
        let changed = tool.writes().then(|| {
            let mut changes = lock(&self.changes);
            changes.wrote(&call_id, &rendered.files)
        });
        let mut done = self.done(&call_id, rendered, &ended, cut);
        done.events
            .extend(changed.flatten().map(Body::WorkspaceChanged));
        done.denials = told;
        done
    }

    fn done(&self, call_id: &str, rendered: Rendered, ended: &Ended, cut: Cut) -> Done {
        let Rendered {
            body,
            notes,
            error,
            files,
        } = rendered;
        let mut done = match cut {
            Cut::Long => self.finish(call_id, capture::of_bytes(&body, &self.blobs), notes, ended),
            Cut::Whole => {
                let content = with_notes(
                    String::from_utf8_lossy(&body).into_owned(),
                    notes,
                    &ended.denials,
                );
                plain(completed(call_id, content, ended))
            }
        };
        done.completed.is_error = error.is_some();
        done.completed.error = error;
        done.completed.files = files;
        done
    }

    /// A result with its cut, its blob and its limits.
    fn finish(&self, call_id: &str, output: Output, mut notes: Vec<String>, ended: &Ended) -> Done {
        let mut events = Vec::new();
        if let Some(error) = &output.unkept {
            notes.push(format!("[the whole output was not kept: {error}]"));
        }
        let captured = output.captured;
        if let Some(blob) = &captured.blob {
            lock(&self.known).add(&blob.sha256);
            if blob.cut {
                events.push(limit("blob", call_id, blob.bytes));
            }
        }
        let content = with_notes(captured.text, notes, &ended.denials);
        let mut completed = completed(call_id, content, ended);
        completed.facts.output_bytes = Some(captured.bytes);
        completed.facts.truncated = captured.truncated;
        completed.blob = captured.blob;
        Done {
            events,
            ..plain(completed)
        }
    }
}

/// Whether a long result is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Never: its window bounds it.
    Whole,
    Long,
}

fn request(tool: &Tool, observations: Vec<Observation>) -> (Request, Vec<String>) {
    let here = || String::from(".");
    match tool {
        Tool::Read(args) => {
            let request = Request::Read {
                path: args.path.clone(),
                offset: args.offset.unwrap_or(1).max(1),
                lines_max: args.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX),
                line_chars_max: LINE_CHARS_MAX,
                bytes_max: WINDOW_BYTES_MAX,
            };
            (request, Vec::new())
        }
        Tool::Write(args) => {
            let bytes = args.content.len() as u64;
            let observations = nearest_first(observations, &args.path);
            (
                Request::Write {
                    path: args.path.clone(),
                    bytes,
                    observations,
                },
                vec![args.content.clone()],
            )
        }
        Tool::Edit(args) => {
            let (old_bytes, new_bytes) =
                (args.old_string.len() as u64, args.new_string.len() as u64);
            let observations = nearest_first(observations, &args.path);
            let request = Request::Edit {
                path: args.path.clone(),
                old_bytes,
                new_bytes,
                observations,
            };
            (
                request,
                vec![args.old_string.clone(), args.new_string.clone()],
            )
        }
        Tool::Glob(args) => {
            let path = args.path.clone().unwrap_or_else(here);
            (
                Request::Glob {
                    pattern: args.pattern.clone(),
                    path,
                    entries_max: ENTRIES_MAX,
                },
                Vec::new(),
            )
        }
        Tool::Grep(args) => {
            let path = args.path.clone().unwrap_or_else(here);
            let (pattern, line_chars_max) = (args.pattern.clone(), LINE_CHARS_MAX);
            (
                Request::Grep {
                    pattern,
                    path,
                    matches_max: ENTRIES_MAX,
                    line_chars_max,
                },
                Vec::new(),
            )
        }
        // Not a file tool; the worker refuses the empty pattern.
        Tool::Bash(_) => (
            Request::Glob {
                pattern: String::new(),
                path: here(),
                entries_max: 0,
            },
            Vec::new(),
        ),
    }
}

/// Which of them matters only the worker knows, since it resolves the path; those with the same
/// file name come first, in case there are more than fit.
fn nearest_first(mut observations: Vec<Observation>, path: &str) -> Vec<Observation> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let wanted = name(path);
    observations.sort_by_key(|observation| name(&observation.path) != wanted);
    observations.truncate(OBSERVATIONS_MAX);
    observations
}

fn bash_notes(output: &Output, ended: &Ended, wall_ms: u64) -> Vec<String> {
    let end = &ended.end;
    let mut notes = Vec::new();
    let silent = if output.captured.bytes == 0 {
        ", no output"
    } else {
        ""
    };
    match (end.exit_code, end.signal) {
        _ if end.timed_out => notes.push(format!(
            "[killed after {} s{silent}]",
            wall_ms.div_ceil(1000)
        )),
        _ if end.killed => notes.push(format!("[cancelled{silent}]")),
        (Some(code), _) => notes.push(format!("[exit code {code}{silent}]")),
        (None, Some(signal)) => notes.push(format!("[killed by signal {signal}{silent}]")),
        (None, None) => notes.push(format!("[ended without a code{silent}]")),
    }
    if end.background > 0 {
        notes.push(format!("[{} background processes ended]", end.background));
    }
    if output.captured.lossy {
        notes.push(String::from(
            "[bytes that are not UTF-8 are shown as \u{fffd}]",
        ));
    }
    notes
}

fn with_notes(mut text: String, notes: Vec<String>, denials: &[Denial]) -> String {
    for note in notes.into_iter().chain(denied::lines(denials)) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    text
}

fn completed(call_id: &str, content: String, ended: &Ended) -> ToolCompleted {
    let end = &ended.end;
    let denied = ended.denials.iter().map(|denial| denial.count).sum::<u64>();
    let facts = CallFacts {
        exit_code: end.exit_code,
        signal: end.signal,
        timed_out: end.timed_out,
        killed: end.killed,
        denied: u32::try_from(denied).unwrap_or(u32::MAX),
        background: end.background,
        wall_us: Some(end.wall_us),
        ..CallFacts::default()
    };
    ToolCompleted {
        call_id: call_id.to_owned(),
        content,
        is_error: false,
        error: None,
        facts,
        files: Vec::new(),
        blob: None,
    }
}

/// A call that never ran, or whose outcome nobody knows.
fn failed(call_id: &str, error: &CellError) -> Done {
    let code = match error {
        CellError::Lost => ToolErrorCode::OutcomeUnknown,
        _ => ToolErrorCode::SandboxFailed,
    };
    let mut completed = completed(call_id, error.to_string(), &Ended::default());
    completed.facts.wall_us = None;
    completed.is_error = true;
    completed.error = Some(code);
    plain(completed)
}

fn limit(name: &str, call_id: &str, max: u64) -> Body {
    Body::LimitHit(LimitHit {
        limit: name.to_owned(),
        call_id: Some(call_id.to_owned()),
        max,
    })
}

/// A call the model may not have: its result says why, and nothing runs.
pub fn refused(call_id: &str, code: ToolErrorCode, text: String) -> Done {
    let mut completed = completed(call_id, text, &Ended::default());
    completed.facts = CallFacts::default();
    completed.is_error = true;
    completed.error = Some(code);
    plain(completed)
}

fn plain(completed: ToolCompleted) -> Done {
    Done {
        completed,
        denials: Vec::new(),
        events: Vec::new(),
    }
}

/// What a panicking thread held is still whole: each holder does one step on it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
