//! `curfew sandbox -- CMD`: the broker in this very process, standard streams passed through.

use std::ffi::OsString;

use curfew_cell::protocol::{CallEnd, Denial, SetupFault};
use curfew_policy::{Confinement, Mode};
use curfew_sandbox::broker::{RunError, run_in_place};
use curfew_sandbox::client::CommandLine;
use curfew_sandbox::program::{ProgramError, find};
use curfew_sandbox::{compile, explain, explain_compile, probe, render_denial, sweep};

use crate::cli::SandboxArgs;
use crate::config::Environment;
use crate::confine::{self, Judged, Stood, Wanted};
use crate::entry;
use crate::fault::{Fault, code};
use crate::output::{Printer, Tone};

const COULD_NOT_CONFINE: i32 = 125;
const CANNOT_EXECUTE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// As timeout(1) says it.
const TIMED_OUT: i32 = 124;
const ENOENT: i32 = 2;
/// Denials that are told one by one.
const DENIALS_SHOWN_MAX: usize = 20;

pub fn run(args: &SandboxArgs) -> i32 {
    let mut printer = Printer::plain();
    match confined(args, &mut printer) {
        Ok(code) => code,
        Err(fault) => {
            printer.fault(&fault);
            // Usage keeps its own code: no sandbox was asked for in a way that can be understood.
            if fault.code == code::SANDBOX {
                COULD_NOT_CONFINE
            } else {
                fault.code
            }
        }
    }
}

fn confined(args: &SandboxArgs, printer: &mut Printer) -> Result<i32, Fault> {
    let environment = Environment::read();
    let config = environment.config()?;
    let wall_ms = args
        .timeout
        .and_then(|wait| u64::try_from(wait.as_millis()).ok());
    let wanted = confine::wanted(&args.confine, wall_ms, &environment, &config)?;
    announce(&wanted, args, printer);
    if !args.confine.require.is_empty() {
        judged(&wanted, args)?;
    }
    if wanted.confinement.mode == Mode::DangerFullAccess {
        // With fences the broker does it, after it has written its uid map.
        entry::hide()?;
    }
    let Confinement { env, workspace, .. } = &wanted.confinement;
    let mut argv = words(&args.command)?;
    match find(argv.first().map_or("", String::as_str), env, workspace) {
        Ok(program) => argv[0] = program.to_string_lossy().into_owned(),
        Err(error) => {
            let code = match error {
                ProgramError::NotFound { .. } => NOT_FOUND,
                ProgramError::NotExecutable { .. } => CANNOT_EXECUTE,
            };
            printer.fault(&Fault::new(code, error.to_string()));
            return Ok(code);
        }
    }
    let facts = probe(&wanted.confinement).map_err(|error| Fault::sandbox(error.to_string()))?;
    let plan = compile(&wanted.confinement, &facts)
        .map_err(|error| confine::no_sandbox(&explain_compile(&error)))?;
    let line = CommandLine {
        argv,
        env: env.clone(),
        cwd: workspace.clone(),
    };
    match run_in_place(&plan, line) {
        Ok(ran) => {
            if !args.quiet {
                tell(&ran.denials, printer);
            }
            // Said even when quiet: something of the workspace was renamed.
            for line in sweep::told(&ran.swept) {
                printer.note(Tone::Denied, &format!("curfew: {line}"));
            }
            Ok(exit_code(&ran.end, printer))
        }
        Err(RunError::Setup(fault)) => not_run(&fault, printer),
        Err(error @ RunError::Stdio(_)) => Err(Fault::sandbox(error.to_string())),
    }
}

/// Full access is said on every run; other modes need no words.
fn announce(wanted: &Wanted, args: &SandboxArgs, printer: &mut Printer) {
    if !args.quiet {
        wanted
            .notices
            .iter()
            .for_each(|notice| printer.note(Tone::Warning, notice));
    }
    if wanted.confinement.mode == Mode::DangerFullAccess {
        printer.note(
            Tone::Alarm,
            "DANGER: full access. No fence stands between this command and this machine.",
        );
    }
}

/// `--require` is proven by a canary before anything runs.
fn judged(wanted: &Wanted, args: &SandboxArgs) -> Result<(), Fault> {
    let stood: Stood = confine::stand(wanted, Box::new(|_, _| {}));
    match wanted.judge(&stood, &args.confine) {
        Judged::May(_) => Ok(()),
        Judged::Refused(fault) => Err(fault),
    }
}

fn words(command: &[OsString]) -> Result<Vec<String>, Fault> {
    let words: Option<Vec<String>> = command
        .iter()
        .map(|word| word.to_str().map(str::to_owned))
        .collect();
    words.ok_or_else(|| Fault::usage("an argument of the command is not UTF-8"))
}

fn tell(denials: &[Denial], printer: &mut Printer) {
    for denial in denials.iter().take(DENIALS_SHOWN_MAX) {
        printer.note(Tone::Denied, &format!("curfew: {}", render_denial(denial)));
    }
    if denials.len() > DENIALS_SHOWN_MAX {
        printer.note(
            Tone::Denied,
            &format!(
                "curfew: and {} more denials",
                denials.len() - DENIALS_SHOWN_MAX
            ),
        );
    }
}

fn exit_code(end: &CallEnd, printer: &mut Printer) -> i32 {
    if end.timed_out {
        printer.note(
            Tone::Warning,
            "curfew: the command ran into its time limit and was killed",
        );
        return TIMED_OUT;
    }
    match (end.exit_code, end.signal) {
        (_, Some(signal)) => 128 + signal,
        (Some(code), None) => code,
        (None, None) => COULD_NOT_CONFINE,
    }
}

/// A command that could not be executed is the command's affair; anything before it is ours.
fn not_run(fault: &SetupFault, printer: &mut Printer) -> Result<i32, Fault> {
    if fault.step != "exec" {
        return Err(confine::no_sandbox(&explain(fault)));
    }
    let code = if fault.errno == ENOENT {
        NOT_FOUND
    } else {
        CANNOT_EXECUTE
    };
    printer.fault(&Fault::new(code, fault.text.clone()));
    Ok(code)
}
