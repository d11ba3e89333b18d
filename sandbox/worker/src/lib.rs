//! The file tools: read, write, edit, glob, grep, and the workspace manifest.
//!
//! Runs inside a call, so the kernel judges every path; nothing here looks at a path to decide
//! whether it is allowed. Speaks frames on one socket, one request, one response. Safe code only.

pub mod protocol;
