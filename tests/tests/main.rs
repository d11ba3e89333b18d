//! One test binary: the rules of the tree, then the built binary as its users meet it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(target_os = "linux")]
mod adversary;
#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod end_to_end;
#[cfg(target_os = "linux")]
mod golden;
#[cfg(target_os = "linux")]
mod kill;
mod tidy;
