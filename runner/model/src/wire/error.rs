//! Error documents of servers and gateways, read into what classification needs.

use serde_json::Value;

/// Words and numbers of an error, in whichever shape it came.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub message: Option<String>,
    /// `code` and `type`, in lower case.
    pub words: Vec<String>,
    /// A numeric `code` or `status`, also when written as a string.
    pub number: Option<u16>,
    /// The server said how full the context is (llama-server's `n_prompt_tokens` and `n_ctx`).
    pub counts_context: bool,
}

impl ServerError {
    /// Reads an error document; `None` when the bytes are not JSON.
    pub(crate) fn from_document(body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        Some(Self::from_value(&value))
    }

    /// Reads an error value: an object with or without an `error` member, a list of such (Gemini's
    /// compatible endpoint), or a plain string.
    pub(crate) fn from_value(value: &Value) -> Self {
        match value {
            Value::Array(items) => items.first().map(Self::from_value).unwrap_or_default(),
            Value::String(text) => Self {
                message: Some(text.clone()),
                ..Self::default()
            },
            Value::Object(object) => match object.get("error") {
                Some(inner) if !inner.is_null() => {
                    let mut error = Self::from_value(inner);
                    error.take_marks(value);
                    if error.message.is_none() {
                        error.message = message_of(value);
                    }
                    error
                }
                _ => {
                    let mut error = Self {
                        message: message_of(value),
                        ..Self::default()
                    };
                    error.take_marks(value);
                    error
                }
            },
            _ => Self::default(),
        }
    }

    fn take_marks(&mut self, object: &Value) {
        for name in ["code", "type", "status"] {
            match object.get(name) {
                Some(Value::String(word)) => match word.parse() {
                    Ok(number) => self.number = self.number.or(Some(number)),
                    Err(_) => self.words.push(word.to_ascii_lowercase()),
                },
                Some(Value::Number(number)) => {
                    let number = number
                        .as_u64()
                        .and_then(|number| u16::try_from(number).ok());
                    self.number = self.number.or(number);
                }
                _ => {}
            }
        }
        self.counts_context |=
            object.get("n_ctx").is_some() && object.get("n_prompt_tokens").is_some();
    }

    pub(crate) fn says(&self, words: &[&str]) -> bool {
        self.words
            .iter()
            .any(|word| words.iter().any(|wanted| word.contains(wanted)))
    }
}

/// Only fields meant for people: a raw document may repeat the request.
fn message_of(object: &Value) -> Option<String> {
    for name in ["message", "detail", "msg", "title"] {
        match object.get(name) {
            Some(Value::String(text)) => return Some(text.clone()),
            Some(Value::Array(items)) => {
                if let Some(text) = items.first().and_then(message_of) {
                    return Some(text);
                }
            }
            Some(inner @ Value::Object(_)) => {
                if let Some(text) = message_of(inner) {
                    return Some(text);
                }
            }
            _ => {}
        }
    }
    None
}
