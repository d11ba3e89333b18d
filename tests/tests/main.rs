//! One test binary: the rules of the tree, then the built binary as its users meet it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod golden;
mod tidy;
