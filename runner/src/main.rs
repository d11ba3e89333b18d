//! The binary. What it becomes is chosen here, before any thread or runtime exists.

use std::process::ExitCode;

fn main() -> ExitCode {
    curfew::entry::enter(std::env::args_os().collect())
}
