//! TOML to [`Profile`]. Unknown keys are refused by name and line, with the nearest known one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::{
    EnvRow, LimitRows, Origin, PROFILE_BYTES_MAX, Profile, ProtectRow, ROWS_MAX, Row, RowKind,
};
use crate::confinement::Net;
use crate::{Mode, PolicyError, nearest, units};

const KEYS: [&str; 10] = [
    "extends", "mode", "read", "write", "mask", "protect", "net", "env", "limits", "evidence",
];
const LIMITS: [&str; 5] = ["wall", "memory", "processes", "output", "private"];
const READ: [&str; 3] = ["path", "optional", "why"];
const WRITE: [&str; 4] = ["path", "optional", "private", "why"];
const MASK: [&str; 4] = ["path", "optional", "closed", "why"];
const PROTECT: [&str; 2] = ["name", "why"];

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawProfile {
    extends: Option<String>,
    mode: Option<String>,
    read: Vec<RawRow>,
    write: Vec<RawRow>,
    mask: Vec<RawRow>,
    protect: Vec<RawProtect>,
    net: Option<RawNet>,
    env: Vec<String>,
    limits: RawLimits,
    evidence: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum RawRow {
    Path(String),
    Table {
        path: String,
        #[serde(default)]
        optional: bool,
        #[serde(default)]
        private: bool,
        #[serde(default)]
        closed: bool,
        #[serde(default)]
        why: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum RawProtect {
    Name(String),
    Table {
        name: String,
        #[serde(default)]
        why: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum RawNet {
    Word(String),
    Rules(Vec<String>),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    pub wall: Option<String>,
    pub memory: Option<String>,
    pub processes: Option<u64>,
    pub output: Option<String>,
    pub private: Option<String>,
}

/// One layer, as written. What it extends is not looked at.
///
/// # Errors
/// The first thing that is wrong, with profile, line or key, and remedy.
pub fn parse(name: &str, text: &str, origin: Origin) -> Result<Profile, PolicyError> {
    if text.len() > PROFILE_BYTES_MAX {
        return Err(value(
            name,
            "file",
            format!("larger than {PROFILE_BYTES_MAX} bytes"),
        ));
    }
    // A built-in file is checked by a test; parsing it twice would be on the way of every command.
    if origin == Origin::Operator {
        check_keys(name, text)?;
    }
    let raw: RawProfile = typed(name, text)?;
    let rows = |key, rows: Vec<RawRow>| rows_of(name, key, rows, origin);
    let mode = raw
        .mode
        .as_deref()
        .map(|mode| mode_of(name, mode))
        .transpose()?;
    Ok(Profile {
        name: name.to_owned(),
        extends: raw.extends,
        mode,
        read: rows("read", raw.read)?,
        write: rows("write", raw.write)?,
        mask: rows("mask", raw.mask)?,
        protect: protect_rows(name, raw.protect)?,
        net: raw.net.map(|net| net_of(name, net)).transpose()?,
        env: env_rows(name, &raw.env)?,
        limits: limits_of(name, &raw.limits)?,
        evidence: raw.evidence,
    })
}

/// A list of names that are protected under every profile.
#[cfg(test)]
pub(super) fn protected(text: &str) -> Result<Vec<ProtectRow>, PolicyError> {
    const NAME: &str = "protected";
    let raw: RawProfile = typed(NAME, text)?;
    protect_rows(NAME, raw.protect)
}

fn value(profile: &str, key: &str, text: String) -> PolicyError {
    PolicyError::Value {
        profile: profile.to_owned(),
        key: key.to_owned(),
        text,
    }
}

fn syntax(profile: &str, text: &str, fault: &toml::de::Error) -> PolicyError {
    let at = fault.span().map_or(0, |span| span.start);
    PolicyError::Syntax {
        profile: profile.to_owned(),
        line: line_of(text, at),
        text: one_line(fault.message()),
    }
}

fn typed(profile: &str, text: &str) -> Result<RawProfile, PolicyError> {
    let deserializer =
        toml::Deserializer::parse(text).map_err(|fault| syntax(profile, text, &fault))?;
    serde_path_to_error::deserialize(deserializer).map_err(|fault| {
        let key = fault.path().to_string();
        value(profile, &key, one_line(fault.inner().message()))
    })
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// serde names an unknown key but neither its line nor what was meant; this does.
pub(super) fn check_keys(profile: &str, text: &str) -> Result<(), PolicyError> {
    let table = DeTable::parse(text).map_err(|fault| syntax(profile, text, &fault))?;
    let table = table.get_ref();
    check_table(profile, text, table, &KEYS)?;
    let lists: [(&str, &[&str]); 4] = [
        ("read", &READ),
        ("write", &WRITE),
        ("mask", &MASK),
        ("protect", &PROTECT),
    ];
    for (list, known) in lists {
        let rows = table.get(list).and_then(|list| list.get_ref().as_array());
        for row in rows.into_iter().flat_map(|rows| rows.iter()) {
            if let Some(row) = row.get_ref().as_table() {
                check_table(profile, text, row, known)?;
            }
        }
    }
    match table
        .get("limits")
        .and_then(|limits| limits.get_ref().as_table())
    {
        Some(limits) => check_table(profile, text, limits, &LIMITS),
        None => Ok(()),
    }
}

fn check_table(
    profile: &str,
    text: &str,
    table: &DeTable<'_>,
    known: &[&str],
) -> Result<(), PolicyError> {
    for key in table.keys() {
        let name = key.get_ref().as_ref();
        if !known.contains(&name) {
            return Err(PolicyError::UnknownKey {
                profile: profile.to_owned(),
                line: line_of(text, key.span().start),
                name: nearest::unknown("key", name, known),
            });
        }
    }
    Ok(())
}

pub(super) fn env_rows(
    profile: &str,
    rows: &[impl AsRef<str>],
) -> Result<Vec<EnvRow>, PolicyError> {
    rows.iter()
        .map(|row| EnvRow::parse(row.as_ref()))
        .collect::<Result<_, _>>()
        .map_err(|text| value(profile, "env", text))
}

pub(super) fn mode_of(profile: &str, text: &str) -> Result<Mode, PolicyError> {
    let mode: Mode = text
        .parse()
        .map_err(|name: nearest::UnknownName| value(profile, "mode", name.to_string()))?;
    if mode == Mode::DangerFullAccess {
        let text = "danger-full-access is only ever typed with --mode, never configured".to_owned();
        return Err(value(profile, "mode", text));
    }
    Ok(mode)
}

pub(super) fn net_of(profile: &str, net: RawNet) -> Result<Net, PolicyError> {
    match net {
        RawNet::Word(word) if word == "off" => Ok(Net::Off),
        RawNet::Word(word) if word == "full" => Ok(Net::Full),
        RawNet::Word(word) => Err(value(
            profile,
            "net",
            format!("`{word}` is neither \"off\" nor \"full\""),
        )),
        RawNet::Rules(_) => {
            let text = "rules for hosts are not built yet; write \"off\" or \"full\"".to_owned();
            Err(value(profile, "net", text))
        }
    }
}

pub(super) fn limits_of(profile: &str, raw: &RawLimits) -> Result<LimitRows, PolicyError> {
    let size = |key: &str, text: &Option<String>| {
        let bytes = text.as_deref().map(units::bytes).transpose();
        bytes.map_err(|text| value(profile, key, text))
    };
    let wall = raw.wall.as_deref().map(units::duration_ms).transpose();
    if raw.processes == Some(0) {
        return Err(value(profile, "limits.processes", "at least 1".to_owned()));
    }
    Ok(LimitRows {
        wall_ms: wall.map_err(|text| value(profile, "limits.wall", text))?,
        memory_bytes: size("limits.memory", &raw.memory)?,
        processes: raw.processes,
        output_bytes: size("limits.output", &raw.output)?,
        private_bytes: size("limits.private", &raw.private)?,
    })
}

fn rows_of(
    profile: &str,
    key: &str,
    rows: Vec<RawRow>,
    origin: Origin,
) -> Result<Vec<Row>, PolicyError> {
    if rows.len() > ROWS_MAX {
        return Err(value(profile, key, format!("more than {ROWS_MAX} rows")));
    }
    rows.into_iter()
        .map(|row| {
            let row = match row {
                RawRow::Path(path) => Row {
                    path: Cow::Owned(path),
                    optional: false,
                    kind: RowKind::Plain,
                    origin,
                    why: None,
                },
                RawRow::Table {
                    path,
                    optional,
                    private,
                    closed,
                    why,
                } => {
                    let kind = match (private, closed) {
                        (true, _) => RowKind::Private,
                        (false, true) => RowKind::Closed,
                        (false, false) => RowKind::Plain,
                    };
                    Row {
                        path: Cow::Owned(path),
                        optional,
                        kind,
                        origin,
                        why: why.map(Cow::Owned),
                    }
                }
            };
            check_path(&row.path).map_err(|text| value(profile, key, text))?;
            Ok(row)
        })
        .collect()
}

/// What any row's path must be before it is expanded.
fn check_path(path: &str) -> Result<(), String> {
    let starts_well = path.starts_with(['/', '$']) || path == "~" || path.starts_with("~/");
    if !starts_well {
        return Err(format!(
            "`{path}` is not absolute; begin with /, ~/ or $NAME"
        ));
    }
    if path.contains('\0') || path.split('/').any(|part| part == "..") {
        return Err(format!(
            "`{}` holds `..` or NUL; write the path itself",
            path.escape_debug()
        ));
    }
    Ok(())
}

fn protect_rows(profile: &str, rows: Vec<RawProtect>) -> Result<Vec<ProtectRow>, PolicyError> {
    if rows.len() > ROWS_MAX {
        return Err(value(
            profile,
            "protect",
            format!("more than {ROWS_MAX} rows"),
        ));
    }
    rows.into_iter()
        .map(|row| {
            let (name, why) = match row {
                RawProtect::Name(name) => (name, None),
                RawProtect::Table { name, why } => (name, why),
            };
            let row = ProtectRow {
                name: Cow::Owned(name),
                why: why.map(Cow::Owned),
            };
            let mut parts = row.name.split('/');
            let good = parts.clone().all(|part| !matches!(part, "" | "." | ".."));
            // Between two others: in front it is what every name has, behind it is everything.
            let open_end = parts.next() == Some("**") || parts.next_back() == Some("**");
            if !good || open_end || row.name.contains('\0') {
                let text = format!(
                    "`{}` is no name; write it relative, without `..`, `*` for one component, `**` between two for any number",
                    row.name.escape_debug()
                );
                return Err(value(profile, "protect", text));
            }
            Ok(row)
        })
        .collect()
}
