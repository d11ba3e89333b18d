//! From clap's errors to one line: what was typed, where, and the nearest thing that exists.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser};

use super::{Cli, SandboxArgs};
use crate::fault::{Fault, nearest};

/// What came of the arguments.
#[derive(Debug)]
pub enum Parsed<T> {
    Run(T),
    /// `--help` or `--version`: product, for stdout.
    Print(String),
}

pub fn parse(args: Vec<OsString>) -> Result<Parsed<Cli>, Fault> {
    match Cli::try_parse_from(&args) {
        Ok(cli) => Ok(Parsed::Run(cli)),
        Err(error) => refused(&error, &args),
    }
}

/// The short way for `curfew sandbox`: builds only the flags of this verb.
pub fn parse_sandbox(args: Vec<OsString>) -> Result<Parsed<SandboxArgs>, Fault> {
    let command =
        SandboxArgs::augment_args(clap::Command::new("sandbox").bin_name("curfew sandbox"))
            .about("Run a command under the same confinement, without a model.");
    let parsed = command
        .try_get_matches_from(args.iter().skip(1))
        .and_then(|mut matches| SandboxArgs::from_arg_matches_mut(&mut matches));
    match parsed {
        Ok(sandbox) => Ok(Parsed::Run(sandbox)),
        Err(error) => refused(&error, &args),
    }
}

fn refused<T>(error: &clap::Error, args: &[OsString]) -> Result<Parsed<T>, Fault> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Ok(Parsed::Print(error.render().to_string()))
        }
        _ => Err(one_line(error, args)),
    }
}

fn one_line(error: &clap::Error, args: &[OsString]) -> Fault {
    let typed = text(error, ContextKind::InvalidArg);
    let value = text(error, ContextKind::InvalidValue);
    let what = match error.kind() {
        ErrorKind::UnknownArgument => format!("unknown flag or argument '{typed}'"),
        ErrorKind::InvalidSubcommand => format!(
            "unknown verb '{}'",
            text(error, ContextKind::InvalidSubcommand)
        ),
        ErrorKind::InvalidValue if value.is_empty() => format!("{typed} needs a value"),
        ErrorKind::InvalidValue => format!("'{value}' is no value of {typed}"),
        ErrorKind::ValueValidation if is_first(&value, args) => format!("unknown verb '{value}'"),
        // A bare word is the argument that only `-` may be; with more words clap sees a conflict.
        ErrorKind::ArgumentConflict if typed.is_empty() => match first_word(args) {
            Some(word) => format!("unknown verb '{word}'"),
            None => first_line(error),
        },
        ErrorKind::ValueValidation => format!("'{value}' for {typed}: {}", cause(error)),
        ErrorKind::MissingRequiredArgument => format!("missing {typed}"),
        ErrorKind::ArgumentConflict => format!(
            "{typed} cannot stand beside {}",
            text(error, ContextKind::PriorArg)
        ),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            String::from("a verb is missing")
        }
        _ => first_line(error),
    };
    Fault::usage(what).remedy(remedy(error, &typed, args))
}

/// The nearest match, or else where to read on.
fn remedy(error: &clap::Error, typed: &str, args: &[OsString]) -> String {
    let help = format!("see {} --help", verb_of(args));
    let offered = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .map(|kind| text(error, kind))
    .find(|found| !found.is_empty());
    let valid = text(error, ContextKind::ValidValue);
    if let Some(found) = offered {
        return format!("did you mean '{}'? {help}", found.trim_end_matches(','));
    }
    if !valid.is_empty() {
        return format!("possible values: {valid}");
    }
    let value = text(error, ContextKind::InvalidValue);
    let near = match (error.kind(), first_word(args)) {
        (ErrorKind::ArgumentConflict, Some(word)) if typed.is_empty() => verb_near(word),
        (ErrorKind::UnknownArgument, _) => elsewhere(typed),
        _ if is_first(&value, args) => verb_near(&value),
        _ => None,
    };
    match near {
        Some(near) => format!("did you mean '{near}'? {help}"),
        None => help,
    }
}

/// What stands where a verb belongs, if it is no flag.
fn first_word(args: &[OsString]) -> Option<&str> {
    let word = args.get(1)?.to_str()?;
    (!word.starts_with('-')).then_some(word)
}

/// A word right after `curfew` was meant as a verb.
fn is_first(value: &str, args: &[OsString]) -> bool {
    !value.is_empty() && args.get(1).is_some_and(|first| first == value)
}

fn verb_near(typed: &str) -> Option<String> {
    let command = Cli::command();
    nearest(
        typed,
        command.get_subcommands().map(clap::Command::get_name),
    )
    .map(str::to_owned)
}

/// The nearest flag of any verb: clap looks only at the verb that was typed.
fn elsewhere(typed: &str) -> Option<String> {
    let bare = typed.strip_prefix("--")?;
    let command = Cli::command();
    let mut flags: Vec<String> = Vec::new();
    for verb in std::iter::once(&command).chain(command.get_subcommands()) {
        flags.extend(
            verb.get_arguments()
                .filter_map(|arg| arg.get_long().map(str::to_owned)),
        );
    }
    // A flag that another verb takes is not what was meant.
    let others = flags
        .iter()
        .map(String::as_str)
        .filter(|flag| *flag != bare);
    nearest(bare, others).map(|found| format!("--{found}"))
}

fn verb_of(args: &[OsString]) -> String {
    let command = Cli::command();
    let verb = args
        .get(1)
        .and_then(|verb| verb.to_str())
        .and_then(|verb| command.find_subcommand(verb));
    verb.map_or_else(
        || String::from("curfew"),
        |found| format!("curfew {}", found.get_name()),
    )
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(value)) => value.clone(),
        Some(ContextValue::Strings(values)) => values.join(", "),
        Some(ContextValue::StyledStr(value)) => value.to_string(),
        Some(ContextValue::StyledStrs(values)) => values
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        _ => String::new(),
    }
}

fn cause(error: &clap::Error) -> String {
    std::error::Error::source(error).map_or_else(|| first_line(error), ToString::to_string)
}

fn first_line(error: &clap::Error) -> String {
    let full = error.render().to_string();
    full.lines()
        .next()
        .unwrap_or("bad usage")
        .trim_start_matches("error: ")
        .to_owned()
}
