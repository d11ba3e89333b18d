//! Why an input was not taken.

use thiserror::Error;

use crate::fold::FoldError;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// A bug of ours: the machine made an event that the fold refuses. It has stopped.
    #[error("the engine stopped itself: {0}")]
    Fold(#[from] FoldError),
    #[error("no run has begun")]
    NotBegun,
    #[error("a run is already open")]
    Begun,
    #[error("a turn is running")]
    Busy,
    #[error("the engine has stopped: nothing more can be logged")]
    Stopped,
    #[error("a prompt of {bytes} bytes is too long; the most is {bytes_max}")]
    PromptTooLong { bytes: usize, bytes_max: usize },
    #[error("`{kind}` is not a fact that may be logged beside a call")]
    NotAFact { kind: String },
}
