//! The command line: what can be typed. Only what is built is accepted.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use curfew_policy::{Guarantee, Mode};

pub mod names;
pub mod usage;

pub use usage::{parse, parse_sandbox};

#[derive(Debug, Parser)]
#[command(
    name = "curfew",
    version,
    about = "Run a coding agent unattended; the kernel, not the prompt, decides what it may touch.",
    after_help = names::EXAMPLES,
    after_long_help = names::HELP_TAIL,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run one prompt to its end and exit with a code that says how it went.
    #[command(after_help = names::RUN_EXAMPLES)]
    Run(RunArgs),
    /// Go on with a session: curfew resume ID -p "and now the tests".
    Resume(ResumeArgs),
    /// Run a command under the same confinement, without a model: curfew sandbox -- make test.
    Sandbox(SandboxArgs),
    /// Show what this host can enforce: each guarantee and the layers behind it.
    Doctor(DoctorArgs),
    /// Watch a recorded task run for real, and hostile steps be denied: offline, no key needed.
    Demo(DemoArgs),
    /// Explain what a call was refused: curfew why call_3.
    Why(WhyArgs),
    /// Look into the sessions on this machine.
    Session(SessionArgs),
}

/// What may be touched.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfineArgs {
    /// The workspace; the current directory without it.
    #[arg(short = 'C', long, value_name = "DIR", help_heading = "Confinement")]
    pub cwd: Option<PathBuf>,
    /// Another directory that may be changed (repeatable).
    #[arg(long, value_name = "DIR", help_heading = "Confinement")]
    pub add_dir: Vec<PathBuf>,
    /// How much may be changed [default: workspace-write].
    #[arg(short = 's', long, alias = "sandbox", value_name = "MODE", value_parser = mode_parser(), help_heading = "Confinement")]
    pub mode: Option<Mode>,
    /// A built-in profile or a TOML file outside the workspace [default: default].
    #[arg(long, value_name = "NAME|FILE", help_heading = "Confinement")]
    pub profile: Option<String>,
    /// What calls may reach [default: off].
    #[arg(long, value_enum, value_name = "NET", help_heading = "Confinement")]
    pub net: Option<NetArg>,
    /// Pass an environment variable, or set it, in calls (repeatable).
    #[arg(long, value_name = "NAME[=V]", help_heading = "Confinement")]
    pub env: Vec<String>,
    /// Refuse to start unless this guarantee is enforced (repeatable).
    #[arg(long, value_name = "GUARANTEE", value_parser = guarantee_parser(), help_heading = "Confinement")]
    pub require: Vec<Guarantee>,
    /// Start although this guarantee is weaker than promised (repeatable).
    #[arg(long, value_name = "GUARANTEE", value_parser = guarantee_parser(), help_heading = "Confinement")]
    pub allow_missing: Vec<Guarantee>,
}

/// Which model answers.
#[derive(Args, Clone, Debug, Default)]
pub struct ModelArgs {
    /// The model's name; without it the server's only model is taken.
    #[arg(short = 'm', long, value_name = "NAME", help_heading = "Model")]
    pub model: Option<String>,
    /// Base URL with /v1; requests go to {URL}/chat/completions.
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub base_url: Option<String>,
    /// openai, echo (answers with the prompt), or replay:FILE (recorded wire bytes).
    #[arg(long, value_name = "PROVIDER", value_parser = provider, help_heading = "Model")]
    pub provider: Option<ProviderArg>,
    /// Record what the server sends, in the format replay: reads.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub record: Option<PathBuf>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// What the agent should do; - reads it from stdin.
    #[arg(
        short = 'p',
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub prompt: Option<String>,
    /// Read the prompt from a file.
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// Only -: read the prompt from stdin, which is never read otherwise.
    #[arg(value_name = "-", value_parser = dash, conflicts_with_all = ["prompt", "prompt_file"])]
    pub stdin: Option<Dash>,
    /// Go on with this session.
    #[arg(short = 'r', long, value_name = "ID", conflicts_with = "continue_last")]
    pub resume: Option<String>,
    /// Go on with the newest session of this workspace.
    #[arg(short = 'c', long = "continue")]
    pub continue_last: bool,
    #[command(flatten)]
    pub confine: ConfineArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub bounds: BoundArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// When it ends.
#[derive(Args, Clone, Debug, Default)]
pub struct BoundArgs {
    /// Steps (model answers) before the run ends with code 3 [default: 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Bounds")]
    pub max_steps: Option<u64>,
    /// Wall time of the whole run, such as 30s, 10m or 2h.
    #[arg(long, value_name = "TIME", value_parser = names::duration, help_heading = "Bounds")]
    pub timeout: Option<Duration>,
    /// After the last turn, run this confined; only its exit code 0 makes the run succeed (repeatable).
    #[arg(long, value_name = "CMD", help_heading = "Bounds")]
    pub check: Vec<String>,
    /// What happens to a call that would need a yes: run never asks.
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Bounds")]
    pub on_approval: Option<OnApproval>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// text: the answer as it streams; json: one result document; stream-json: the log's lines.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        conflicts_with = "json",
        help_heading = "Output"
    )]
    pub output_format: Option<Format>,
    /// Short for --output-format stream-json.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write the last answer to this file.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output_last_message: Option<PathBuf>,
    /// Colour on a terminal.
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Output")]
    pub color: Option<Color>,
    /// Nothing on stderr but errors.
    #[arg(short = 'q', long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// More on stderr: arguments, retries, limits.
    #[arg(short = 'v', long, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
}

impl OutputArgs {
    pub fn format(&self) -> Format {
        match (self.json, self.output_format) {
            (true, _) => Format::StreamJson,
            (false, Some(format)) => format,
            (false, None) => Format::Text,
        }
    }
}

#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The session's id, from `curfew session list`.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Args, Debug)]
#[command(override_usage = "curfew sandbox [OPTIONS] -- CMD [ARG]...", after_help = names::SANDBOX_EXAMPLES)]
pub struct SandboxArgs {
    #[command(flatten)]
    pub confine: ConfineArgs,
    /// Wall time of the command, such as 30s, 10m or 2h.
    #[arg(long, value_name = "TIME", value_parser = names::duration)]
    pub timeout: Option<Duration>,
    /// Nothing on stderr but errors and the command's own.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// The command, after --.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub confine: ConfineArgs,
    /// One JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Colour on a terminal.
    #[arg(long, value_enum, value_name = "WHEN")]
    pub color: Option<Color>,
}

#[derive(Args, Debug)]
pub struct WhyArgs {
    /// The call, such as call_3, from the folded lines or `session show`.
    #[arg(value_name = "CALL")]
    pub call: String,
    /// The session; the newest without it.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// One object a line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct SessionArgs {
    #[command(subcommand)]
    pub verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// Sessions, newest first.
    List {
        /// One object a line.
        #[arg(long)]
        json: bool,
    },
    /// What happened, calls folded to one line each.
    Show {
        #[arg(value_name = "ID")]
        id: String,
        /// The log's lines as they stand.
        #[arg(long)]
        raw: bool,
    },
    /// Check the chain, the order, the pairing and every request body.
    Verify {
        #[arg(value_name = "ID")]
        id: String,
        /// One JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Print the exact bytes of a step's request.
    Replay {
        #[arg(value_name = "ID")]
        id: String,
        /// Which step, counted from 1 over the whole session.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        step: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dash;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderArg {
    OpenAi,
    Echo,
    Replay(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetArg {
    /// Loopback of the session only.
    Off,
    /// The host's network.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnApproval {
    /// The call gets a denial as its result and the run goes on.
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    StreamJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(names::MODES.map(|(name, _)| name))
        .map(|name| names::lookup(&names::MODES, &name))
}

fn guarantee_parser() -> impl TypedValueParser<Value = Guarantee> {
    PossibleValuesParser::new(names::GUARANTEES.map(|(name, _)| name))
        .map(|name| names::lookup(&names::GUARANTEES, &name))
}

fn provider(typed: &str) -> Result<ProviderArg, String> {
    match typed.split_once(':') {
        None if typed == "openai" => Ok(ProviderArg::OpenAi),
        None if typed == "echo" => Ok(ProviderArg::Echo),
        Some(("replay", file)) if !file.is_empty() => Ok(ProviderArg::Replay(file.into())),
        _ => Err(String::from("expected openai, echo or replay:FILE")),
    }
}

fn dash(typed: &str) -> Result<Dash, String> {
    match typed {
        "-" => Ok(Dash),
        _ => Err(String::from("a prompt is given with -p TEXT")),
    }
}

#[cfg(test)]
mod tests;
