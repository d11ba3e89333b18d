//! The built binary, as a person or a script meets it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod conversation;
mod echo;
mod ends;
mod faults;
mod replayed;
mod resumed;
mod server;
mod usage;
mod verbs;
