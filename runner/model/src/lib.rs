//! Asking a model: the bytes of a request out, the pieces of its answer in.
//!
//! May touch: one TCP connection to the configured server, a recording file it was told to read or
//! write, and the proxy variables of the environment. It never opens, reads or runs anything of a
//! workspace, follows no redirect, and keeps no conversation: a request is the bytes it is given.
//!
//! A step is driven like this: `Provider::run` with the step's bytes; on `Stopped::Failed` ask
//! [`retry::decide`] for the wait (`attempt` counts from 0, `elapsed_ms` from the first failure);
//! after the wait the same bytes again.
//!
//! Start with [`Provider::run`]; then `answer` (bytes to deltas, no I/O), `assemble` (pieces to
//! calls), `failure` (what went wrong, typed), [`retry`] (when to try again, pure) and
//! [`wire::openai_chat_1`] (how a request body is made, frozen).

mod answer;
mod assemble;
mod deadline;
mod exchange;
mod failure;
mod http;
mod key;
mod provider;
mod record;
mod replay;
pub mod retry;
mod retry_after;
mod sse;
pub mod wire;

pub use answer::End;
pub use deadline::Deadlines;
pub use failure::FAILURE_TEXT_CHARS_MAX;
pub use http::{Http, HttpError};
pub use key::{ApiKey, KeyError};
pub use provider::{Provider, Stopped};
pub use record::{RecordError, Recorder};
pub use replay::{Replay, ReplayError};
pub use sse::{EVENT_BYTES_MAX, STREAM_BYTES_MAX};
pub use wire::models::ModelInfo;
pub use wire::openai_chat_1::OpenAiChat;
