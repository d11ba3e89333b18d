//! How a request's bytes are made from the log. Implemented by the model crate.

use crate::event::RequestHeader;
use crate::projection::Message;

/// A released renderer. Once released it is never edited, only added: old logs replay for ever.
pub trait Wire {
    /// As in `request/header.wire`, such as `openai-chat/1`.
    fn name(&self) -> &'static str;

    /// A pure function of its arguments. Everything fixed comes first and the messages last, so
    /// that a body with more messages begins with `bytes[..prefix_len]` of the one before.
    fn render(&self, header: &RequestHeader, messages: &[Message]) -> RequestBody;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestBody {
    pub bytes: Vec<u8>,
    /// How far the next step's body must agree with this one.
    pub prefix_len: usize,
}
