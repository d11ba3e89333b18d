//! The heart: events, their codec and hash chain, the fold, the surface, the projection of
//! messages, and the turn machine.
//!
//! Pure: no I/O, clock, environment, threads or randomness. Time, ids and bytes are arguments.
//! The same log always folds to the same state and projects to the same messages.
//!
//! Start with [`turn`] (the machine), then [`event`] (the vocabulary) and INVARIANTS.md.

pub mod assemble;
pub mod batch;
pub mod codec;
pub mod event;
pub mod fold;
pub mod hash;
pub mod outcome;
pub mod projection;
pub mod repair;
pub mod surface;
pub mod turn;
pub mod ui;
pub mod verify;
pub mod wire;

pub use codec::{Chain, Decoder};
pub use event::{Event, Header};
pub use fold::{Fold, FoldError};
pub use projection::Message;
pub use turn::io::{Effect, Input};
pub use turn::{Engine, EngineConfig, EngineError};
pub use wire::{RequestBody, Wire};
