//! The crate in one file: runs a command confined to a workspace.
//!
//! `confine --ws DIR [--mode read-only|workspace-write|danger-full-access] -- CMD ARG…`
//!
//! Also what the integration tests start as a broker.

use std::path::PathBuf;
use std::process::ExitCode;

use curfew_policy::{Asked, Mode, Profile};
use curfew_sandbox::broker::{RunError, broker_main, run_in_place};
use curfew_sandbox::client::{BROKER_ARGUMENT, CommandLine};
use curfew_sandbox::program::find;
use curfew_sandbox::{Operator, compile, explain, explain_compile, probe, render_denial, sweep};

/// Nothing ran.
const NOT_CONFINED: u8 = 125;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    if args.peek().is_some_and(|arg| arg == BROKER_ARGUMENT) {
        return code(broker_main());
    }
    let (mut workspace, mut mode) = (PathBuf::from("."), None);
    let mut argv = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--ws" => workspace = args.next().map(PathBuf::from).unwrap_or_default(),
            "--mode" => mode = args.next().and_then(|name| mode_named(&name)),
            "--" => argv.extend(args.by_ref()),
            other => return failed(&format!("unknown argument {other}")),
        }
    }
    match run(workspace, mode, argv) {
        Ok(code) => code,
        Err(text) => failed(&text),
    }
}

fn run(workspace: PathBuf, mode: Option<Mode>, mut argv: Vec<String>) -> Result<ExitCode, String> {
    let workspace = std::fs::canonicalize(workspace).map_err(|error| error.to_string())?;
    let operator = Operator::of(&workspace);
    let profile = Profile::load("default", &|_| None).map_err(|error| error.to_string())?;
    let asked = Asked {
        mode,
        net: None,
        workspace: workspace.clone(),
        add_dirs: Vec::new(),
        secrets: Vec::new(),
        env: Vec::new(),
        wall_ms: None,
        identity: operator.git_identity(),
    };
    let confinement = operator
        .resolve(&profile, &asked)
        .map_err(|error| error.to_string())?
        .confinement;
    let facts = probe(&confinement).map_err(|error| error.to_string())?;
    let plan = compile(&confinement, &facts).map_err(|error| text_of(&explain_compile(&error)))?;
    let name = argv.first().ok_or("no command")?;
    let program = find(name, &confinement.env, &workspace).map_err(|error| error.to_string())?;
    argv[0] = program.to_string_lossy().into_owned();
    let line = CommandLine {
        argv,
        env: confinement.env,
        cwd: workspace,
    };
    match run_in_place(&plan, line) {
        Ok(ran) => {
            ran.denials
                .iter()
                .for_each(|denial| say(&render_denial(denial)));
            sweep::told(&ran.swept).iter().for_each(|line| say(line));
            Ok(code(
                ran.end
                    .exit_code
                    .unwrap_or(128 + ran.end.signal.unwrap_or(0)),
            ))
        }
        Err(RunError::Setup(fault)) => Err(text_of(&explain(&fault))),
        Err(error) => Err(error.to_string()),
    }
}

fn mode_named(name: &str) -> Option<Mode> {
    match name {
        "read-only" => Some(Mode::ReadOnly),
        "workspace-write" => Some(Mode::WorkspaceWrite),
        "danger-full-access" => Some(Mode::DangerFullAccess),
        _ => None,
    }
}

fn text_of(explanation: &curfew_sandbox::Explanation) -> String {
    std::iter::once(&explanation.reason)
        .chain(&explanation.remedies)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n  ")
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn failed(text: &str) -> ExitCode {
    say(text);
    ExitCode::from(NOT_CONFINED)
}

#[expect(clippy::print_stderr, reason = "a command line program")]
fn say(text: &str) {
    eprintln!("confine: {text}");
}
