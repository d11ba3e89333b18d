//! The cell, tested through real processes and judged from the host.
//!
//! Without arguments this is a test runner; with one of the modes of `modes` it is the broker under
//! test or a probe inside a call.

#![cfg(target_os = "linux")]

mod bench;
mod modes;
mod plans;
mod runner;
mod smoke;
mod support;

fn main() -> std::process::ExitCode {
    if let Some(code) = modes::enter() {
        return code;
    }
    let mut tests = runner::Tests::default();
    smoke::register(&mut tests);
    bench::register(&mut tests);
    tests.run()
}
