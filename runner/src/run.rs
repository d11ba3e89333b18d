//! One run of the agent, from what was typed to the exit code.
//!
//! In order: what is wanted is resolved (faults of usage end here, nothing has been started); the
//! broker is started; only then is the key read; the session is made and its first line is out; the
//! confinement is logged; then the prompt.

mod begin;
mod ready;

use curfew_engine::event::{ErrorClass, TurnEndReason};
use curfew_engine::outcome::{ExitCode, Signal};
use curfew_engine::turn::RunEnd;

use crate::check::{Check, Passed};
use crate::cli::RunArgs;
use crate::config::Environment;
use crate::confine::Stood;
use crate::drive::{Approver, Drive, channel};
use crate::fault::{Fault, code};
use crate::outfile::OutFile;
use crate::output::{Printer, Tone};
use crate::preset::Attendance;
use crate::repl::Terminal;
use crate::session::Target;
use crate::view::View;

use begin::{Barred, Begun, begin};
use ready::{Needs, Ready, ready};

/// What a resumed session is told when nothing else is said.
const GO_ON: &str =
    "Go on where you were interrupted. Look at what is there before you repeat anything.";

/// `run`, `resume`, and a prompt typed after a bare `curfew`.
pub fn once(args: RunArgs, target: Target) -> i32 {
    face(args, target, Needs::Prompt, drive_once)
}

/// Resolves what was typed, drives it, and turns a fault into a line and a code.
fn face<F: Future<Output = Result<i32, Fault>>>(
    args: RunArgs,
    target: Target,
    needs: Needs,
    body: impl FnOnce(Ready) -> F,
) -> i32 {
    let target = match (&args.resume, args.continue_last) {
        (Some(id), _) => Target::Id(id.clone()),
        (None, true) => Target::Newest,
        (None, false) => target,
    };
    let environment = Environment::read();
    let printer = Printer::new(&args.output, environment.no_color);
    let mut view = View::new(printer, args.output.format());
    let session = args.resume.clone().or(match &target {
        Target::Id(id) => Some(id.clone()),
        Target::New | Target::Newest => None,
    });
    let done =
        ready(args, target, environment, needs).and_then(|ready| runtime()?.block_on(body(ready)));
    match done {
        Ok(code) => code,
        Err(fault) => {
            view.refused(&fault, session);
            fault.code
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.map_err(|error| Fault::new(code::FAILED, format!("no runtime: {error}")))
}

async fn drive_once(ready: Ready) -> Result<i32, Fault> {
    let Begun {
        mut drive,
        stood,
        barred,
    } = begin(&ready, Attendance::Unattended, Approver::Nobody, channel()).await?;
    let failure = match barred {
        Some(barred) => Err(barred),
        None => work(&mut drive, &ready, &stood)
            .await
            .map_err(|fault| (fault.clone(), fault.class())),
    };
    conclude(drive, failure, ready.out.as_ref()).await
}

/// The turn, and the checks if it went well.
async fn work(
    drive: &mut Drive,
    ready: &Ready,
    stood: &Stood,
) -> Result<Option<ErrorClass>, Fault> {
    let text = ready.prompt.clone().unwrap_or_else(|| GO_ON.to_owned());
    match drive.turn(text).await? {
        TurnEndReason::Completed => checks(drive, ready, stood).await,
        _ => Ok(None),
    }
}

/// Whatever ended the work, the run has its `result`.
async fn conclude(
    mut drive: Drive,
    failure: Result<Option<ErrorClass>, Barred>,
    out: Option<&OutFile>,
) -> Result<i32, Fault> {
    let failure = failure.unwrap_or_else(|(fault, class)| {
        drive.view.printer.fault(&fault);
        class
    });
    let end = RunEnd {
        failure,
        ..RunEnd::default()
    };
    finish(drive, end, out).await
}

/// Whether there is something to do without a conversation.
pub fn has_prompt(args: &RunArgs) -> bool {
    args.prompt.is_some() || args.prompt_file.is_some() || args.stdin.is_some()
}

/// The REPL: a turn for each line. Ctrl-C ends a turn, not the conversation.
pub fn conversation(args: RunArgs, target: Target) -> i32 {
    face(args, target, Needs::Nothing, converse)
}

async fn converse(ready: Ready) -> Result<i32, Fault> {
    let (tell, heard) = channel();
    let (mut terminal, approver) = Terminal::start(tell.clone())?;
    let begun = begin(&ready, Attendance::Attended, approver, (tell, heard)).await?;
    let Begun {
        mut drive,
        stood,
        barred,
    } = begun;
    let failure = match barred {
        Some(barred) => Err(barred),
        None => talk(&mut drive, &mut terminal, &ready, &stood)
            .await
            .map_err(|fault| (fault.clone(), fault.class())),
    };
    conclude(drive, failure, ready.out.as_ref()).await
}

/// A turn for each line, until there is none or something ends the run.
async fn talk(
    drive: &mut Drive,
    terminal: &mut Terminal,
    ready: &Ready,
    stood: &Stood,
) -> Result<Option<ErrorClass>, Fault> {
    drive.settle().await?;
    while let Some(line) = drive.idle(terminal.line()).await? {
        if matches!(line.trim(), "/exit" | "/quit") {
            break;
        }
        match drive.turn(line).await {
            // A prompt that is too long; the next one may do.
            Err(fault) if fault.code == code::USAGE => drive.view.printer.fault(&fault),
            done => drop(done?),
        }
        if drive.stop.signal == Some(Signal::Interrupt) {
            drive.stop.signal = None;
        }
    }
    checks(drive, ready, stood).await
}

/// Runs every check, whatever the ones before it gave, unless the run is to end.
async fn checks(
    drive: &mut Drive,
    ready: &Ready,
    stood: &Stood,
) -> Result<Option<ErrorClass>, Fault> {
    let Stood::Up { plan, .. } = stood else {
        return Ok(None);
    };
    for command in &ready.args.bounds.check {
        if drive.stop.is_set() {
            break;
        }
        let after_seq = drive.engine.fold().next_seq().saturating_sub(1);
        let checked = match Check::prepare(&ready.wanted, plan, command, after_seq) {
            Ok(check) => drive.check(check).await,
            Err(fault) => Err(fault),
        };
        let checked = match checked {
            Ok(checked) => checked,
            Err(fault) => {
                drive.view.printer.fault(&fault);
                return Ok(Some(ErrorClass::Sandbox));
            }
        };
        drive.record(checked.facts).await?;
        checked
            .swept
            .iter()
            .for_each(|line| drive.view.printer.note(Tone::Denied, line));
        if checked.passed == Passed::No {
            checked
                .tail
                .lines()
                .for_each(|line| drive.view.printer.note(Tone::Plain, &format!("  {line}")));
        }
    }
    Ok(None)
}

/// Logs the run's `result`, shows it, and gives the exit code.
async fn finish(mut drive: Drive, mut end: RunEnd, out: Option<&OutFile>) -> Result<i32, Fault> {
    drive.catch_up()?;
    end.signal = drive.stop.signal;
    if drive.stop.time_up && end.failure.is_none() {
        end.failure = Some(ErrorClass::Budget);
    }
    let result = drive.end_run(end).await?;
    let mut code = result.exit_code;
    drive.close();
    drive.view.result(&result)?;
    if let (Some(out), Some(message)) = (out, &result.final_message)
        && let Err(fault) = out.write(message)
    {
        drive.view.printer.fault(&fault);
        code = if code == ExitCode::Finished.code() {
            fault.code
        } else {
            code
        };
    }
    if let Some(fault) = drive.view.printer.failure() {
        drive.view.printer.fault(&fault);
        code = if code == ExitCode::Finished.code() {
            fault.code
        } else {
            code
        };
    }
    Ok(code)
}
