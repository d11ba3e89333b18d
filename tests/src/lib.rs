//! What the tests stand on: the tree's rules as functions, the built binary, a scripted model
//! server, a reader of session logs, and worlds to attack.
//!
//! Test code: it may panic and print. It touches only temporary directories it made, loopback, and
//! processes it started. Start with [`tidy`] for the rules of the tree and [`curfew`] for the
//! binary under test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

pub mod binary;
pub mod log;
pub mod net;
pub mod procs;
pub mod run;
pub mod server;
pub mod skip;
pub mod stats;
pub mod tidy;
pub mod tree;
pub mod wait;
pub mod world;
