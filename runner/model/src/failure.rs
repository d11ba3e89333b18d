//! Typed failures: from a status, a body, an in-band error or a fault of ours to a `ModelFailure`.

use std::time::SystemTime;

use curfew_engine::event::{FailureKind, ModelFailure};
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::key::ApiKey;
use crate::retry_after;
use crate::wire::error::ServerError;

/// Longest text of a failure, for people.
pub const FAILURE_TEXT_CHARS_MAX: usize = 500;
/// What is kept of a server's message before secrets are taken out of it.
const RAW_TEXT_CHARS_MAX: usize = 4000;
/// A piece of the request this long in a server's message is an echo of the request.
const ECHO_BYTES: usize = 24;
/// Echoes further back are cut off anyway.
const ECHO_SEARCH_CHARS: usize = FAILURE_TEXT_CHARS_MAX + 2 * ECHO_BYTES;

pub(crate) fn failure(kind: FailureKind, text: impl Into<String>) -> ModelFailure {
    ModelFailure {
        kind,
        status: None,
        retry_after_ms: None,
        text: text.into(),
    }
}

/// An answer whose status is not 2xx.
pub(crate) fn of_status(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> ModelFailure {
    let document = ServerError::from_document(body);
    let json = document.is_some();
    let error = document.unwrap_or_default();
    let message = error.message.clone().unwrap_or_else(|| plain_text(body));
    let kind = if (300..400).contains(&status) || (!json && matches!(status, 404 | 405 | 410)) {
        FailureKind::NotAModel
    } else {
        known_kind(Some(status), &error, &message).unwrap_or_else(|| kind_of_status(status))
    };
    let retry_after_ms = match kind {
        FailureKind::RateLimit | FailureKind::Server | FailureKind::Quota => {
            retry_after::read(headers, &message, now)
        }
        _ => None,
    };
    // A per-minute limit that calls itself a quota says when to come back.
    let passing =
        kind == FailureKind::Quota && !error.says(QUOTA_WORDS) && retry_after_ms.is_some();
    let kind = if passing {
        FailureKind::RateLimit
    } else {
        kind
    };
    let text = match (
        status,
        headers
            .get("location")
            .and_then(|value| value.to_str().ok()),
    ) {
        (300..400, Some(place)) => {
            format!(
                "HTTP {status}: redirects to {}",
                place.split(['?', '#']).next().unwrap_or("")
            )
        }
        _ if message.is_empty() => format!("HTTP {status} without a message"),
        _ => format!("HTTP {status}: {message}"),
    };
    ModelFailure {
        kind,
        status: Some(status),
        retry_after_ms,
        text: first_chars(&text, RAW_TEXT_CHARS_MAX),
    }
}

/// An error inside a stream that began well.
pub(crate) fn of_error_value(value: &Value) -> ModelFailure {
    let error = ServerError::from_value(value);
    let message = error.message.clone().unwrap_or_default();
    let kind = known_kind(error.number, &error, &message).unwrap_or(match error.number {
        Some(408 | 409 | 425) | None => FailureKind::InBandError,
        Some(400..=499) => FailureKind::BadRequest,
        Some(_) => FailureKind::InBandError,
    });
    let retry_after_ms = match kind {
        FailureKind::RateLimit => {
            retry_after::read(&HeaderMap::new(), &message, SystemTime::UNIX_EPOCH)
        }
        _ => None,
    };
    let code = error
        .number
        .map(|number| format!(" {number}"))
        .unwrap_or_default();
    let words = if message.is_empty() {
        error.words.join(", ")
    } else {
        message
    };
    let text = first_chars(
        &format!("error{code} inside the stream: {words}"),
        RAW_TEXT_CHARS_MAX,
    );
    ModelFailure {
        kind,
        status: None,
        retry_after_ms,
        text,
    }
}

/// Takes the key, echoes of the request and control characters out of a text, then cuts it.
pub(crate) fn for_people(
    mut failure: ModelFailure,
    key: Option<&ApiKey>,
    request: &[u8],
) -> ModelFailure {
    let text = first_chars(&failure.text, RAW_TEXT_CHARS_MAX);
    let text = key.map_or_else(|| text.clone(), |key| key.hide_in(&text));
    let text = without_echo(&first_chars(&text, ECHO_SEARCH_CHARS), request);
    let inert: String = text
        .chars()
        .map(|c| if c.is_control() || is_bidi(c) { ' ' } else { c })
        .collect();
    failure.text = first_chars(inert.trim(), FAILURE_TEXT_CHARS_MAX);
    failure
}

/// What the words of an error say, if they say anything; `status` may come from its code.
fn known_kind(status: Option<u16>, error: &ServerError, message: &str) -> Option<FailureKind> {
    let lower = message.to_ascii_lowercase();
    let has = |patterns: &[&str]| patterns.iter().any(|pattern| lower.contains(pattern));
    if error.counts_context || error.says(CONTEXT_WORDS) {
        return Some(FailureKind::ContextWindow);
    }
    if status == Some(402) || error.says(QUOTA_WORDS) {
        return Some(FailureKind::Quota);
    }
    if matches!(status, Some(401 | 403))
        || (status.is_none_or(|status| status >= 500) && error.says(AUTH_WORDS))
    {
        return Some(FailureKind::Auth);
    }
    if status == Some(429) || (status.is_none_or(|status| status >= 500) && error.says(RATE_WORDS))
    {
        let quota = has(QUOTA_PATTERNS);
        return Some(if quota {
            FailureKind::Quota
        } else {
            FailureKind::RateLimit
        });
    }
    // The last resort: servers without a code for it, also gateways that wrap it into a 500.
    let may_be_context = matches!(status, None | Some(400 | 413 | 422 | 500));
    (may_be_context && has(CONTEXT_PATTERNS)).then_some(FailureKind::ContextWindow)
}

const CONTEXT_WORDS: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context_window_exceeded",
    "contextwindowexceeded",
];
const QUOTA_WORDS: &[&str] = &[
    "insufficient_quota",
    "billing",
    "quota_exceeded",
    "insufficient_balance",
];
const AUTH_WORDS: &[&str] = &[
    "invalid_api_key",
    "authentication",
    "permission_denied",
    "unauthorized",
];
const RATE_WORDS: &[&str] = &[
    "rate_limit",
    "too_many_requests",
    "ratelimit",
    "resource_exhausted",
];
const QUOTA_PATTERNS: &[&str] = &[
    "exceeded your current quota",
    "billing details",
    "insufficient balance",
];
const CONTEXT_PATTERNS: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "context_length_exceeded",
    "context window",
    "exceeds the available context size",
    "exceed context size",
    "exceeds the context size",
    "exceed the context",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
];

fn kind_of_status(status: u16) -> FailureKind {
    match status {
        408 | 409 | 425 => FailureKind::Server,
        501 | 505 => FailureKind::BadRequest,
        500.. => FailureKind::Server,
        _ => FailureKind::BadRequest,
    }
}

/// The first line of a body that is not JSON; markup says nothing to a person.
fn plain_text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(RAW_TEXT_CHARS_MAX)]);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match text.chars().next() {
        Some('<') => "an HTML page".to_owned(),
        Some('{' | '[') => String::new(),
        _ => text.lines().next().unwrap_or("").trim().to_owned(),
    }
}

/// Cuts a text where it begins to repeat the request. Any echo of twice `ECHO_BYTES` holds a
/// window that starts at a multiple of it, so few windows are looked up.
fn without_echo(text: &str, request: &[u8]) -> String {
    let bytes = text.as_bytes();
    for at in (0..bytes.len().saturating_sub(ECHO_BYTES)).step_by(ECHO_BYTES) {
        let window = &bytes[at..at + ECHO_BYTES];
        if find(request, window) {
            let shared = (0..at)
                .rev()
                .take_while(|start| find(request, &bytes[*start..at + ECHO_BYTES]))
                .last();
            let cut = shared.unwrap_or(at);
            let cut = (0..=cut)
                .rev()
                .find(|cut| text.is_char_boundary(*cut))
                .unwrap_or(0);
            return format!("{}[request]", &text[..cut]);
        }
    }
    text.to_owned()
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

/// Characters that reorder text on a terminal.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn first_chars(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => {
            let end = text.char_indices().nth(max - 1).map_or(0, |(at, _)| at);
            format!("{}…", &text[..end])
        }
    }
}

#[cfg(test)]
mod tests;
