//! The child half of the sandbox.
//!
//! A *broker* (this binary, re-executed before keys are read and before threads exist) owns a
//! confinement's namespaces and makes calls; each call is a fresh PID namespace with an `init` as
//! PID 1 and the command, or the file worker, below it. The only crate with `unsafe`, all of it in
//! `sys`. It depends on no other crate of this workspace and decides nothing: it carries out a
//! [`plan::Plan`] that was computed and checked elsewhere, step by step, and reports the step that
//! failed. It never parses anything the confined command wrote, except length-prefixed frames.

pub mod frame;
pub mod plan;
pub mod protocol;
