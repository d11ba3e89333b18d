//! The list of refused and observed system calls (`profiles/seccomp.toml`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::PolicyError;

include!(concat!(env!("OUT_DIR"), "/seccomp.rs"));

/// One row: these calls, under these conditions, get this action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyscallRow {
    pub names: Cow<'static, [Cow<'static, str>]>,
    pub arch: Arch,
    /// All must hold.
    pub args: Cow<'static, [ArgCondition]>,
    pub action: Action,
    /// The name in a denial.
    pub rule: Cow<'static, str>,
    pub why: Cow<'static, str>,
}

/// Where the kernel has calls of these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    Any,
    X86_64,
}

impl Arch {
    /// Whether the row applies on the architecture named as `std::env::consts::ARCH` names it.
    #[must_use]
    pub fn applies(self, arch: &str) -> bool {
        match self {
            Arch::Any => true,
            Arch::X86_64 => arch == "x86_64",
        }
    }
}

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgCondition {
    pub index: u8,
    /// Compare the low 32 bits only.
    pub low32: bool,
    pub test: ArgTest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgTest {
    Equals { value: u64 },
    Differs { value: u64 },
    AnyBit { mask: u64 },
    Masked { mask: u64, value: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Refused and reported.
    Refuse { errno: i32 },
    /// Refused without a report.
    Quiet { errno: i32 },
    /// Runs; looked at first.
    Observe,
}

/// The list this crate was built with, which is what [`parse`] makes of the file.
#[must_use]
pub fn rows() -> &'static [SyscallRow] {
    ROWS
}

/// # Errors
/// The first thing that is wrong, with the row's number.
pub fn parse(text: &str) -> Result<Vec<SyscallRow>, PolicyError> {
    let raw: RawList = toml::from_str(text).map_err(|fault| bad(0, fault.message().to_owned()))?;
    raw.row
        .into_iter()
        .enumerate()
        .map(|(at, row)| checked(at + 1, row))
        .collect()
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawList {
    row: Vec<RawRow>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    names: Vec<String>,
    #[serde(default)]
    arch: Option<String>,
    #[serde(default)]
    args: Vec<RawArg>,
    #[serde(rename = "do")]
    action: String,
    #[serde(default)]
    errno: Option<String>,
    rule: String,
    why: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArg {
    index: u8,
    #[serde(default)]
    low32: bool,
    is: String,
    #[serde(default)]
    mask: Option<RawNumber>,
    #[serde(default)]
    value: Option<RawNumber>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum RawNumber {
    Plain(u64),
    Text(String),
}

fn bad(row: usize, text: String) -> PolicyError {
    PolicyError::Value {
        profile: "seccomp".to_owned(),
        key: format!("row {row}"),
        text,
    }
}

fn checked(at: usize, row: RawRow) -> Result<SyscallRow, PolicyError> {
    if row.names.is_empty() || row.rule.is_empty() || row.why.is_empty() {
        return Err(bad(at, "names, rule and why must not be empty".to_owned()));
    }
    let arch = match row.arch.as_deref() {
        None => Arch::Any,
        Some("x86_64") => Arch::X86_64,
        Some(other) => return Err(bad(at, format!("unknown arch `{other}`"))),
    };
    let errno = match row.errno.as_deref() {
        None | Some("EPERM") => 1,
        Some("ENOSYS") => 38,
        Some("EACCES") => 13,
        Some(other) => return Err(bad(at, format!("unknown errno `{other}`"))),
    };
    let action = match row.action.as_str() {
        "refuse" => Action::Refuse { errno },
        "quiet" => Action::Quiet { errno },
        "observe" if row.errno.is_none() => Action::Observe,
        other => return Err(bad(at, format!("unknown action `{other}`"))),
    };
    let args = row
        .args
        .into_iter()
        .map(|arg| condition(at, arg))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(SyscallRow {
        names: row.names.into_iter().map(Cow::Owned).collect(),
        arch,
        args: Cow::Owned(args),
        action,
        rule: Cow::Owned(row.rule),
        why: Cow::Owned(row.why),
    })
}

fn condition(at: usize, arg: RawArg) -> Result<ArgCondition, PolicyError> {
    if arg.index > 5 {
        return Err(bad(
            at,
            format!("a system call has no argument {}", arg.index),
        ));
    }
    let mask = arg.mask.map(|number| value(at, number)).transpose()?;
    let number = arg.value.map(|number| value(at, number)).transpose()?;
    let test = match (arg.is.as_str(), mask, number) {
        ("equals", None, Some(value)) => ArgTest::Equals { value },
        ("differs", None, Some(value)) => ArgTest::Differs { value },
        ("any-bit", Some(mask), None) => ArgTest::AnyBit { mask },
        ("masked", Some(mask), Some(value)) if value & !mask == 0 => {
            ArgTest::Masked { mask, value }
        }
        (other, ..) => return Err(bad(at, format!("`{other}` with these operands is no test"))),
    };
    let widest = mask.max(number).unwrap_or(0);
    if arg.low32 && widest > u64::from(u32::MAX) {
        return Err(bad(
            at,
            "a low32 test cannot look at higher bits".to_owned(),
        ));
    }
    Ok(ArgCondition {
        index: arg.index,
        low32: arg.low32,
        test,
    })
}

fn value(at: usize, number: RawNumber) -> Result<u64, PolicyError> {
    let text = match number {
        RawNumber::Plain(value) => return Ok(value),
        RawNumber::Text(text) => text,
    };
    let parsed = match text.split_at_checked(2) {
        Some(("0x", digits)) => u64::from_str_radix(digits, 16),
        Some(("0o", digits)) => u64::from_str_radix(digits, 8),
        _ => text.parse(),
    };
    parsed.map_err(|_| bad(at, format!("`{text}` is no number")))
}

#[cfg(test)]
mod tests;
