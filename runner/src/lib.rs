//! The runner: command line, drive loop, tools, and what people see.
//!
//! Touches: its own state folder (through the store), the user's configuration, sockets of the
//! model server, and broker processes. Never opens a path below a granted root itself: every such
//! act is a call, confined by the sandbox.
//!
//! Start with `main.rs` (entry modes), then [`cli`] (what can be typed).

pub mod cli;
pub mod config;
pub mod fault;
pub mod output;
pub mod prompt;
pub mod tools;
pub mod workspace;
