//! The messages of a request, made from the log anew each time and dropped after use.
//!
//! This is the only module that holds a list of messages. What it makes always pairs: the fold
//! refuses a log in which a call could be shown without its result, or a result without its call.

use serde_json::Value;

use crate::fold::{Fold, Node};

/// Longest part of unusable arguments that is told back to the model.
pub const INVALID_ARGUMENTS_SENT_BYTES_MAX: usize = 2000;
/// Tool names longer than this are refused by servers.
const NAME_CHARS_MAX: usize = 64;

/// One message, ready for a wire. The system prompt and the tools are in the request header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    User {
        text: String,
    },
    /// `text` may be empty when there are calls.
    Assistant {
        text: String,
        calls: Vec<MessageCall>,
    },
    Tool {
        call_id: String,
        content: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageCall {
    /// Ours, unique in the session.
    pub id: String,
    /// Never empty, only characters that servers take.
    pub name: String,
    /// Always a JSON object.
    pub arguments: String,
}

/// What the model is shown of a session.
pub fn messages(fold: &Fold) -> Vec<Message> {
    fold.nodes().filter_map(message).collect()
}

fn message(node: &Node) -> Option<Message> {
    match node {
        Node::User { text, .. } => (!text.is_empty()).then(|| Message::User { text: text.clone() }),
        Node::Answer { text, calls } => {
            if text.trim().is_empty() && calls.is_empty() {
                return None;
            }
            let calls = calls
                .iter()
                .map(|call| MessageCall {
                    id: call.call_id.clone(),
                    name: sent_name(&call.name),
                    arguments: sent_arguments(&call.arguments),
                })
                .collect();
            Some(Message::Assistant {
                text: text.clone(),
                calls,
            })
        }
        Node::Result { place, content } => Some(Message::Tool {
            call_id: place.call_id.clone(),
            content: content.clone(),
        }),
    }
}

/// Arguments as they are sent back. Servers answer 500 to every later request once a history holds
/// arguments that are no JSON object, so such text is wrapped into one; the log keeps the original.
pub fn sent_arguments(raw: &str) -> String {
    if raw.trim().is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Value>(raw) {
        Ok(Value::Object(_)) => raw.to_owned(),
        _ => {
            let told = cut(raw, INVALID_ARGUMENTS_SENT_BYTES_MAX);
            Value::Object(
                [(
                    "invalid_arguments".to_owned(),
                    Value::String(told.to_owned()),
                )]
                .into_iter()
                .collect(),
            )
            .to_string()
        }
    }
}

/// A tool name as it is sent back: servers refuse what is not `[a-zA-Z0-9_-]{1,64}`.
pub fn sent_name(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let sent: String = name.chars().take(NAME_CHARS_MAX).map(safe).collect();
    if sent.is_empty() {
        "unnamed".to_owned()
    } else {
        sent
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
