//! The heart: events, their codec and hash chain, the fold, the surface, the projection of
//! messages, and the turn machine.
//!
//! Pure: no I/O, clock, environment, threads or randomness. Time, ids and bytes are arguments.
//! The same log always folds to the same state and projects to the same messages.
//!
//! Start with [`turn`] (the machine), then [`event`] (the vocabulary) and INVARIANTS.md.

pub mod event;
pub mod turn;
