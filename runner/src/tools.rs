//! The six tools. Each is a confined call; nothing here opens a path of the workspace.

pub mod args;
pub mod cut;
pub mod render;
pub mod schema;
