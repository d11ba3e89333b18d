//! The runner: command line, drive loop, tools, and what people see.
//!
//! Touches: its own state folder (through the store), the user's configuration, sockets of the
//! model server, and broker processes. Never opens a path below a granted root itself: every such
//! act is a call, confined by the sandbox.
//!
//! Start with `main.rs` (entry modes), then [`cli`] (what can be typed).

pub mod cells;
pub mod changes;
pub mod check;
pub mod cli;
pub mod config;
pub mod confine;
pub mod denied;
pub mod drive;
pub mod entry;
pub mod fault;
pub mod instructions;
pub mod key;
pub mod outfile;
pub mod output;
pub mod preset;
pub mod prompt;
pub mod provider;
pub mod repl;
pub mod run;
pub mod session;
pub mod tools;
pub mod ui;
pub mod verbs;
pub mod view;
pub mod workspace;
