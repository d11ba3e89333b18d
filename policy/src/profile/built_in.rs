//! The built-in profile as tables that `build.rs` made of `profiles/*.toml`.

use std::borrow::Cow;

use super::raw::{self, RawLimits, RawNet};
use super::{DEFAULT as NAME, Origin, Profile, ProtectRow, Row, RowKind};
use crate::PolicyError;

include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// A profile file: rows as they are used, the few single values as they were written.
pub(super) struct Written {
    mode: Option<&'static str>,
    net: Option<&'static str>,
    evidence: Option<bool>,
    env: &'static [&'static str],
    wall: Option<&'static str>,
    memory: Option<&'static str>,
    output: Option<&'static str>,
    private: Option<&'static str>,
    processes: Option<u64>,
    read: &'static [Row],
    write: &'static [Row],
    mask: &'static [Row],
    protect: &'static [ProtectRow],
}

/// What [`raw::parse`] makes of the file.
pub(super) fn default() -> Result<Profile, PolicyError> {
    let written = &DEFAULT;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let limits = RawLimits {
        wall: owned(written.wall),
        memory: owned(written.memory),
        processes: written.processes,
        output: owned(written.output),
        private: owned(written.private),
    };
    let net = written.net.map(|word| RawNet::Word(word.to_owned()));
    let mode = written.mode.map(|mode| raw::mode_of(NAME, mode));
    Ok(Profile {
        name: NAME.to_owned(),
        extends: None,
        mode: mode.transpose()?,
        read: written.read.to_vec(),
        write: written.write.to_vec(),
        mask: written.mask.to_vec(),
        protect: written.protect.to_vec(),
        net: net.map(|net| raw::net_of(NAME, net)).transpose()?,
        env: raw::env_rows(NAME, written.env)?,
        limits: raw::limits_of(NAME, &limits)?,
        evidence: written.evidence,
    })
}
