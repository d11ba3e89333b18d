//! The model crate against a server that sends exact bytes, at any split, and then stalls, closes
//! or resets. Nothing here leaves loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod ask;
mod deadlines;
mod failures;
mod models;
mod recording;
mod secrets;
mod server;
mod transport;
mod what_servers_send;
