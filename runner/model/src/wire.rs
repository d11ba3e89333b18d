//! Formats: what is sent to a server, what comes back, and what a recording holds. Serde lives
//! here and nowhere else in this crate.

pub(crate) mod chunk;
pub(crate) mod echo;
pub(crate) mod error;
pub(crate) mod models;
pub mod openai_chat_1;
pub(crate) mod record;
