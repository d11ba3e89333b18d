//! The cell, tested through real processes and judged from the host.
//!
//! Without arguments this is a test runner; with one of the modes of `modes` it is the broker under
//! test or a probe inside a call.

#![cfg(target_os = "linux")]
// All of this is test code, but without the harness clippy cannot see that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod bench;
mod faults;
mod files;
mod modes;
mod plans;
mod processes;
mod protected;
mod reach;
mod runner;
mod support;
mod unfenced;
mod worker;

fn main() -> std::process::ExitCode {
    if let Some(code) = modes::enter() {
        return code;
    }
    let mut tests = runner::Tests::default();
    for register in [
        files::register,
        protected::register,
        processes::register,
        reach::register,
        worker::register,
        unfenced::register,
        faults::register,
    ] {
        register(&mut tests);
    }
    bench::register(&mut tests);
    tests.run()
}
