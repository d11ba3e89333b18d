//! The API key: held here, sent in one header, never printed.

use std::fmt;

use reqwest::header::HeaderValue;

/// Longer than any key in use; a file given by mistake is not a key.
const KEY_BYTES_MAX: usize = 4096;

/// How much of a key must appear in a text for the word around it to be hidden. Servers answer a
/// wrong key with its first and last characters.
const KEY_PREFIX_CHARS: usize = 6;

/// A bearer token. `Debug` and error texts never show it.
#[derive(Clone)]
pub struct ApiKey(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    #[error("the API key is empty")]
    Empty,
    #[error("the API key is longer than {KEY_BYTES_MAX} bytes: is it the right file?")]
    TooLong,
    #[error("the API key holds a space, a control character or something that is not ASCII")]
    Characters,
}

impl ApiKey {
    /// Takes a key as read from a file or variable: white space around it is dropped.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let key = text.trim();
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Characters);
        }
        Ok(Self(key.to_owned()))
    }

    /// The `authorization` header, marked so that HTTP code does not print or index it.
    pub(crate) fn bearer(&self) -> Result<HeaderValue, KeyError> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0))
            .map_err(|_| KeyError::Characters)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Hides the key, and any word that begins like it, in a text for people.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        let hidden = text.replace(&self.0, "[key]");
        let Some(prefix) = self.0.get(..KEY_PREFIX_CHARS) else {
            return hidden;
        };
        let mut out = String::with_capacity(hidden.len());
        let mut rest = hidden.as_str();
        while let Some(at) = rest.find(prefix) {
            out.push_str(&rest[..at]);
            out.push_str("[key]");
            let tail = &rest[at..];
            rest = tail
                .find(char::is_whitespace)
                .map_or("", |end| &tail[end..]);
        }
        out.push_str(rest);
        out
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

#[cfg(test)]
mod tests;
