//! The turn machine: `handle(now, input)` then `poll() -> effect` until `None`.
//!
//! No effect that touches the world leaves before the `persisted` of its intent event.

pub mod io;
