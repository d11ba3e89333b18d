//! What a server asks us to wait, in every form it is written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;

/// Longer than any reset; keeps arithmetic far from overflow.
const WAIT_MS_MAX: u64 = 400 * 24 * 3600 * 1000;

/// Reads the wait from headers, else from the words of the message.
pub(crate) fn read(headers: &HeaderMap, message: &str, now: SystemTime) -> Option<u64> {
    from_headers(headers, now)
        .or_else(|| from_text(message))
        .map(|wait| wait.min(WAIT_MS_MAX))
}

fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Some(ms.ceil() as u64);
    }
    if let Some(value) = text("retry-after") {
        // RFC 9110, 10.2.3: seconds or a date. Fractions are seen in the wild.
        if let Some(wait) = number(value)
            .map(seconds_to_ms)
            .or_else(|| until_date(value, now))
        {
            return Some(wait);
        }
    }
    // Only the bucket that is empty says when it makes sense to return.
    let empty = ["requests", "tokens"]
        .iter()
        .filter(|bucket| text(&format!("x-ratelimit-remaining-{bucket}")) == Some("0"))
        .filter_map(|bucket| span_ms(text(&format!("x-ratelimit-reset-{bucket}"))?))
        .max();
    empty.or_else(|| reset(text("x-ratelimit-reset")?, now))
}

/// `try again in 1s`, `retry after 20 seconds`.
fn from_text(message: &str) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    ["try again in ", "retry after ", "retry in "]
        .iter()
        .find_map(|words| {
            lower
                .find(words)
                .and_then(|at| span_ms(&lower[at + words.len()..]))
        })
}

/// A bare number is seconds from now or, when large, a moment in epoch seconds or milliseconds.
fn reset(text: &str, now: SystemTime) -> Option<u64> {
    let Some(value) = number(text) else {
        return span_ms(text);
    };
    let epoch_ms = match value {
        value if value > 1e11 => value,
        value if value > 1e9 => value * 1000.0,
        value => return Some(seconds_to_ms(value)),
    };
    Some(wait_until(
        UNIX_EPOCH + Duration::from_millis(epoch_ms as u64),
        now,
    ))
}

fn until_date(text: &str, now: SystemTime) -> Option<u64> {
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    let since_epoch = Duration::from_millis(u64::try_from(at.as_millisecond()).unwrap_or(0));
    Some(wait_until(UNIX_EPOCH + since_epoch, now))
}

/// A moment that has passed asks for no wait.
fn wait_until(at: SystemTime, now: SystemTime) -> u64 {
    at.duration_since(now).map_or(0, |wait| {
        u64::try_from(wait.as_millis()).unwrap_or(WAIT_MS_MAX)
    })
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value >= 0.0)
}

fn seconds_to_ms(seconds: f64) -> u64 {
    (seconds * 1000.0).ceil() as u64
}

/// A span like `6m0s`, `1h2m3.5s`, `20ms`, `2 seconds`, `1.5`, at the start of a text.
fn span_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut sum: Option<f64> = None;
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Some(value) = number(rest[..digits].trim_end_matches('.')) else {
            break;
        };
        let after = rest[digits..].trim_start_matches(' ');
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let scale = match &after[..letters] {
            "ms" | "millisecond" | "milliseconds" => 1.0,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + value * scale);
        rest = &after[letters..];
        if letters == 0 {
            break;
        }
    }
    sum.map(|ms| ms.ceil() as u64)
}

#[cfg(test)]
mod tests;
