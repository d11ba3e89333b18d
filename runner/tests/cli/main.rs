//! The built binary, as a person or a script meets it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod echo;
mod ends;
mod replayed;
mod resumed;
mod server;
mod usage;
mod verbs;
