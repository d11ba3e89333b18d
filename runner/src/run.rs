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

use begin::{Begun, begin};
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
    let mut printer = Printer::new(&args.output, environment.no_color);
    let done =
        ready(args, target, environment, needs).and_then(|ready| runtime()?.block_on(body(ready)));
    match done {
        Ok(code) => code,
        Err(fault) => {
            printer.fault(&fault);
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
    let mut end = RunEnd::default();
    match barred {
        Some((fault, class)) => {
            drive.view.printer.fault(&fault);
            end.failure = Some(class);
        }
        None => {
            let text = ready.prompt.clone().unwrap_or_else(|| GO_ON.to_owned());
            let reason = drive.turn(text).await?;
            if reason == TurnEndReason::Completed {
                end.failure = checks(&mut drive, &ready, &stood).await?;
            }
        }
    }
    finish(drive, end, ready.out.as_ref()).await
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
    let mut end = RunEnd::default();
    if let Some((fault, class)) = barred {
        drive.view.printer.fault(&fault);
        end.failure = Some(class);
        return finish(drive, end, ready.out.as_ref()).await;
    }
    drive.settle().await;
    while let Some(line) = terminal.line().await {
        if matches!(line.trim(), "/exit" | "/quit") {
            break;
        }
        drive.turn(line).await?;
        if drive.stop.signal == Some(Signal::Interrupt) {
            drive.stop.signal = None;
        }
        if drive.stop.is_set() {
            break;
        }
    }
    end.failure = checks(&mut drive, &ready, &stood).await?;
    finish(drive, end, ready.out.as_ref()).await
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
