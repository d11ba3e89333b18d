//! The canary: attempts that must fail inside a call, made with safe calls and no lasting effect.

use crate::protocol::Finding;

/// Each attempt once, or once for each path.
#[cfg(target_os = "linux")]
pub(crate) fn try_all(outside: &[String], home: Option<&str>) -> Vec<Finding> {
    linux::try_all(outside, home)
}

/// Nothing is tried where nothing is enforced.
#[cfg(not(target_os = "linux"))]
pub(crate) fn try_all(_outside: &[String], _home: Option<&str>) -> Vec<Finding> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(test)]
mod tests;
