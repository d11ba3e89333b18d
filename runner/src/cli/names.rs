//! The words of the command line: value names, units, and the texts of `--help`.

use std::time::Duration;

use curfew_policy::{Guarantee, Mode};

pub const MODES: [(&str, Mode); 3] = [
    ("read-only", Mode::ReadOnly),
    ("workspace-write", Mode::WorkspaceWrite),
    ("danger-full-access", Mode::DangerFullAccess),
];

pub const GUARANTEES: [(&str, Guarantee); 9] = [
    ("write-fence", Guarantee::WriteFence),
    ("read-fence", Guarantee::ReadFence),
    ("protected-names", Guarantee::ProtectedNames),
    ("net-fence", Guarantee::NetFence),
    ("process-fence", Guarantee::ProcessFence),
    ("ipc-fence", Guarantee::IpcFence),
    ("syscall-fence", Guarantee::SyscallFence),
    ("limits", Guarantee::Limits),
    ("secret-fence", Guarantee::SecretFence),
];

/// The value behind a name that the parser has already checked against the same table.
pub fn lookup<T: Copy, const N: usize>(table: &[(&str, T); N], name: &str) -> T {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(table[0].1, |(_, value)| *value)
}

/// The name of a value in one of the tables above.
pub fn name_of<T: Copy + PartialEq, const N: usize>(
    table: &[(&'static str, T); N],
    value: T,
) -> &'static str {
    table
        .iter()
        .find(|(_, known)| *known == value)
        .map_or("?", |(name, _)| name)
}

/// `30s`, `10m`, `2h`, `500ms`; a number alone would be ambiguous.
pub fn duration(typed: &str) -> Result<Duration, String> {
    const UNITS_MS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    const DURATION_MS_MAX: u64 = 7 * 24 * 3_600_000;
    let digits = typed.len() - typed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = typed.split_at(digits);
    let scale = UNITS_MS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale);
    let ms = number
        .parse::<u64>()
        .ok()
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale));
    match ms {
        Some(ms) if (1..=DURATION_MS_MAX).contains(&ms) => Ok(Duration::from_millis(ms)),
        _ => Err(String::from(
            "expected a time such as 30s, 10m or 2h (up to 168h)",
        )),
    }
}

pub const EXAMPLES: &str = "\
Examples:
  curfew run -p \"make the tests pass\" --check \"cargo test\"
  curfew run --json -p \"say hi\" --provider echo
  curfew sandbox -- make test
  curfew demo
  curfew doctor
  curfew                          a conversation in this directory

More with --help: exit codes, units, environment, files.";

pub const HELP_TAIL: &str = "\
Examples:
  curfew run -p \"make the tests pass\" --check \"cargo test\"
  curfew run -m qwen --base-url http://127.0.0.1:8080/v1 -p \"create hello.py\"
  curfew run --json -p \"say hi\" --provider echo
  curfew resume ID -p \"now the docs\"
  curfew sandbox --mode read-only -- grep -rn unwrap .
  curfew session list
  curfew                          a conversation in this directory

Exit codes:
  0    finished, checks passed          7    sandbox missing or weaker than asked
  1    finished, but a check failed     8    context window exhausted
  2    usage; nothing was started       9    no progress
  3    budget (steps, time) used up     11   session locked, damaged, disk full
  4    an approval was needed           75   try again later
  5    the provider failed              130  SIGINT
  6    authentication                   143  SIGTERM
  curfew sandbox passes the command's code through; 125 could not confine (nothing
  ran), 126 cannot execute, 127 not found.

Units:
  times are 500ms, 30s, 10m or 2h; sizes in profiles are bytes.

Environment:
  OPENAI_API_KEY, OPENAI_BASE_URL, NO_COLOR, XDG_CONFIG_HOME, XDG_STATE_HOME;
  CURFEW_HOME holds everything curfew stores. None of it reaches a call.

Files:
  $XDG_CONFIG_HOME/curfew/config.toml   model, baseUrl, keyFile or keyCommand,
                                        contextWindow, firstByteSeconds,
                                        idleSeconds, profile
  $XDG_STATE_HOME/curfew/sessions/ID/   log.jsonl, one record a line, and blobs
  Nothing is ever configured from a workspace.";

pub const RUN_EXAMPLES: &str = "\
Examples:
  curfew run -p \"make the tests pass\" --check \"cargo test\"
  git diff | curfew run -C /src/app -        the prompt comes from stdin
  curfew run --json -p \"say hi\" --provider echo
  curfew run -c -p \"go on\"                   the newest session of this workspace";

pub const SANDBOX_EXAMPLES: &str = "\
Examples:
  curfew sandbox -- make test
  curfew sandbox --mode read-only --net off -- sh -c 'ls; touch x'

The command's exit code is passed through; 125 could not confine (nothing ran),
126 cannot execute, 127 not found.";
