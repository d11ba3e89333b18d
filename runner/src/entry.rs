//! Entry modes: a broker, a sandboxed command, or one of the verbs.

use std::ffi::OsString;
use std::process::ExitCode;

use curfew_sandbox::broker::broker_main;
use curfew_sandbox::client::BROKER_ARGUMENT;
use rustix::process::DumpableBehavior;

use crate::cli::usage::Parsed;
use crate::cli::{self, Cli, SessionVerb, Verb};
use crate::fault::{Fault, code};
use crate::output::Printer;
use crate::session::Target;
use crate::{repl, run, verbs};

pub fn enter(args: Vec<OsString>) -> ExitCode {
    let first = args.get(1).and_then(|first| first.to_str());
    let code = match first {
        Some(BROKER_ARGUMENT) => broker_main(),
        // No runtime, no thread, no other verb's flags: this is on the way of every command.
        Some("sandbox") => match cli::parse_sandbox(args) {
            Ok(Parsed::Run(sandbox)) => verbs::sandbox::run(&sandbox),
            Ok(Parsed::Print(text)) => print(&text),
            Err(fault) => refuse(&fault),
        },
        _ => match cli::parse(args) {
            Ok(Parsed::Run(cli)) => dispatch(cli),
            Ok(Parsed::Print(text)) => print(&text),
            Err(fault) => refuse(&fault),
        },
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn dispatch(cli: Cli) -> i32 {
    if let Err(fault) = hide() {
        return refuse(&fault);
    }
    match cli.verb {
        None if run::has_prompt(&cli.run) => run::once(cli.run, Target::New),
        None => repl::talk(cli.run, Target::New),
        Some(Verb::Run(args)) => run::once(args, Target::New),
        Some(Verb::Resume(resume)) if resume.run.resume.is_some() || resume.run.continue_last => {
            let fault = Fault::usage("resume takes one session: its id is there already");
            refuse(&fault.remedy("leave out --resume and --continue"))
        }
        Some(Verb::Resume(resume)) => run::once(resume.run, Target::Id(resume.id)),
        Some(Verb::Sandbox(args)) => verbs::sandbox::run(&args),
        Some(Verb::Demo(args)) => verbs::demo::run(&args),
        Some(Verb::Doctor(args)) => verbs::doctor::run(&args),
        Some(Verb::Why(args)) => verbs::why::run(&args),
        Some(Verb::Session(args)) => match args.verb {
            SessionVerb::List { json } => verbs::list::run(json),
            SessionVerb::Show { id, raw } => verbs::show::run(&id, raw),
            SessionVerb::Verify { id, json } => verbs::verify::run(&id, json),
            SessionVerb::Replay { id, step } => verbs::replay::run(&id, step),
        },
    }
}

/// A process that holds a key is not dumpable: a call that shares its uid and its /proc (under
/// danger-full-access) cannot read its environment or memory, and no core file holds them
/// (proc(5), PR_SET_DUMPABLE). A broker gets a dumpable process again by its exec.
pub fn hide() -> Result<(), Fault> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| Fault::sandbox(format!("this process cannot be hidden: {errno}")))
}

fn print(text: &str) -> i32 {
    let mut printer = Printer::plain();
    printer.bytes(text.as_bytes());
    printer.failure().map_or(code::FINISHED, |fault| fault.code)
}

fn refuse(fault: &Fault) -> i32 {
    Printer::plain().fault(fault);
    fault.code
}
