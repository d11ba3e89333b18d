//! Text that others wrote, made harmless for a terminal and for the eye.
//!
//! Escape sequences are shown, not stripped: an unterminated OSC would otherwise hide all text
//! after it, and what a person approves must be what will run.

use std::fmt::Write as _;

/// Streamed text: line breaks, tabs and scripts survive; whatever could move a cursor, start an
/// escape sequence or reorder what is read is shown as its code.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for symbol in text.chars() {
        if symbol == '\n' || symbol == '\t' || !commands_a_terminal(symbol) {
            out.push(symbol);
        } else {
            show(&mut out, symbol);
        }
    }
    out
}

/// One line: also line breaks, tabs and invisible characters are shown.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if commands_a_terminal(symbol) || is_invisible(symbol) => show(&mut out, symbol),
            _ => out.push(symbol),
        }
    }
    out
}

/// At most `chars_max` characters of [`line`], with `…` where it was cut.
pub fn line_cut(full: &str, chars_max: usize) -> String {
    let shown = line(full);
    if shown.chars().count() <= chars_max {
        return shown;
    }
    let mut cut: String = shown.chars().take(chars_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

fn show(out: &mut String, symbol: char) {
    let code = u32::from(symbol);
    // Writing to a String cannot fail.
    let written = if code < 0x100 {
        write!(out, "\\x{code:02x}")
    } else {
        write!(out, "\\u{{{code:x}}}")
    };
    debug_assert!(written.is_ok());
}

/// C0, DEL and C1 controls, and the characters that reorder text (CVE-2021-42574).
fn commands_a_terminal(symbol: char) -> bool {
    symbol.is_control()
        || matches!(symbol, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

fn is_invisible(symbol: char) -> bool {
    matches!(
        symbol,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests;
