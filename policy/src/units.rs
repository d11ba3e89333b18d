//! Durations and sizes as people write them: `10m`, `4GiB`.

/// Milliseconds of `30s`, `10m`, `2h`, `500ms`.
///
/// # Errors
/// One sentence that says what is accepted.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let wanted = || format!("`{text}` is no duration; write 500ms, 30s, 10m or 2h");
    let (number, unit) = split(text).ok_or_else(wanted)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wanted()),
    };
    number
        .checked_mul(factor)
        .filter(|ms| *ms > 0)
        .ok_or_else(wanted)
}

/// Bytes of `64MiB`, `4GiB`, `512KiB`, `100B`; `M` and `MB` mean MiB.
///
/// # Errors
/// One sentence that says what is accepted.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || format!("`{text}` is no size; write 512KiB, 64MiB or 4GiB");
    let (number, unit) = split(text).ok_or_else(wanted)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(wanted()),
    };
    number
        .checked_mul(factor)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(wanted)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(at);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests;
