//! The six tools. Each is a confined call; nothing here opens a path of the workspace.

pub mod args;
pub mod blob;
pub mod capture;
pub mod cut;
pub mod render;
pub mod run;
pub mod schema;

/// Lines a read shows at most …
pub const LINES_MAX: u64 = 2000;
/// … characters of each …
pub const LINE_CHARS_MAX: u64 = 2000;
/// … and bytes in all.
pub const WINDOW_BYTES_MAX: u64 = 50 << 10;
