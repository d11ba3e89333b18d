//! Mount points out of /proc/self/mountinfo (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The fifth field of each line.
pub(super) fn mount_points(text: &[u8]) -> impl Iterator<Item = PathBuf> {
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, tail)) = rest.split_first() {
        let octal = tail
            .first_chunk::<3>()
            .filter(|digits| *byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match octal {
            Some([a, b, c]) => {
                out.push(
                    (a - b'0')
                        .wrapping_mul(64)
                        .wrapping_add((b - b'0') * 8 + (c - b'0')),
                );
                rest = &tail[3..];
            }
            None => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    out
}
