//! Turns the lists of `profiles/` into Rust tables, so that no program start pays for reading TOML.
//!
//! The TOML files stay the only source. Nothing is judged here: the crate's own parsers do that in
//! a test, which holds these tables equal to what they make of the same files.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

#[derive(Deserialize)]
struct Profile {
    mode: Option<String>,
    net: Option<String>,
    evidence: Option<bool>,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    limits: BTreeMap<String, toml::Value>,
    #[serde(default)]
    read: Vec<Row>,
    #[serde(default)]
    write: Vec<Row>,
    #[serde(default)]
    mask: Vec<Row>,
    #[serde(default)]
    protect: Vec<Name>,
}

#[derive(Deserialize)]
struct Row {
    path: String,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    closed: bool,
    why: Option<String>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
    why: Option<String>,
}

#[derive(Deserialize)]
struct Calls {
    row: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    names: Vec<String>,
    arch: Option<String>,
    #[serde(default)]
    args: Vec<Arg>,
    #[serde(rename = "do")]
    action: String,
    errno: Option<String>,
    rule: String,
    why: String,
}

#[derive(Deserialize)]
struct Arg {
    index: u8,
    #[serde(default)]
    low32: bool,
    is: String,
    mask: Option<toml::Value>,
    value: Option<toml::Value>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let default: Profile = read("default")?;
    let protected: Profile = read("protected")?;
    fs::write(out.join("profiles.rs"), profiles(&default, &protected)?)?;
    let calls: Calls = read("seccomp")?;
    fs::write(out.join("seccomp.rs"), syscalls(&calls)?)?;
    Ok(())
}

fn read<T: for<'a> Deserialize<'a>>(name: &str) -> Result<T, Box<dyn Error>> {
    let path = Path::new("../profiles").join(format!("{name}.toml"));
    println!("cargo::rerun-if-changed={}", path.display());
    Ok(toml::from_str(&fs::read_to_string(path)?)?)
}

fn profiles(default: &Profile, protected: &Profile) -> Result<String, Box<dyn Error>> {
    let mut out = String::new();
    writeln!(out, "pub(super) static DEFAULT: Written = Written {{")?;
    writeln!(out, "    mode: {:?},", default.mode)?;
    writeln!(out, "    net: {:?},", default.net)?;
    writeln!(out, "    evidence: {:?},", default.evidence)?;
    writeln!(out, "    env: &{:?},", default.env)?;
    for limit in ["wall", "memory", "output", "private"] {
        let value = default.limits.get(limit).and_then(toml::Value::as_str);
        writeln!(out, "    {limit}: {value:?},")?;
    }
    let processes = default.limits.get("processes");
    let processes = processes.and_then(toml::Value::as_integer);
    writeln!(out, "    processes: {processes:?},")?;
    for (list, rows) in [
        ("read", &default.read),
        ("write", &default.write),
        ("mask", &default.mask),
    ] {
        writeln!(out, "    {list}: &[")?;
        rows.iter().try_for_each(|row| path_row(&mut out, row))?;
        writeln!(out, "    ],")?;
    }
    writeln!(out, "    protect: &{},\n}};", names(&default.protect))?;
    let protected = names(&protected.protect);
    writeln!(
        out,
        "pub(super) static PROTECTED: &[ProtectRow] = &{protected};"
    )?;
    Ok(out)
}

fn path_row(out: &mut String, row: &Row) -> std::fmt::Result {
    let kind = match (row.private, row.closed) {
        (true, _) => "Private",
        (false, true) => "Closed",
        (false, false) => "Plain",
    };
    let (path, why) = (text(&row.path), optional(row.why.as_ref()));
    let optional = row.optional;
    writeln!(
        out,
        "Row {{ path: {path}, optional: {optional}, kind: RowKind::{kind}, origin: Origin::BuiltIn, why: {why} }},"
    )
}

fn names(rows: &[Name]) -> String {
    let row = |row: &Name| {
        let (name, why) = (text(&row.name), optional(row.why.as_ref()));
        format!("ProtectRow {{ name: {name}, why: {why} }}")
    };
    list(rows.iter().map(row))
}

fn syscalls(calls: &Calls) -> Result<String, Box<dyn Error>> {
    let mut out = String::from("static ROWS: &[SyscallRow] = &[\n");
    for call in &calls.row {
        let arch = match call.arch.as_deref() {
            None => "Any",
            Some("x86_64") => "X86_64",
            Some(other) => return Err(format!("unknown arch {other}").into()),
        };
        let errno = match call.errno.as_deref() {
            None | Some("EPERM") => 1,
            Some("EACCES") => 13,
            Some("ENOSYS") => 38,
            Some(other) => return Err(format!("unknown errno {other}").into()),
        };
        let action = match call.action.as_str() {
            "refuse" => format!("Refuse {{ errno: {errno} }}"),
            "quiet" => format!("Quiet {{ errno: {errno} }}"),
            "observe" => "Observe".to_owned(),
            other => return Err(format!("unknown action {other}").into()),
        };
        let names = list(call.names.iter().map(|name| text(name)));
        let args: Result<Vec<String>, _> = call.args.iter().map(argument).collect();
        let args = list(args?.into_iter());
        let (rule, why) = (text(&call.rule), text(&call.why));
        writeln!(
            out,
            "SyscallRow {{ names: Cow::Borrowed(&{names}), arch: Arch::{arch}, args: Cow::Borrowed(&{args}), action: Action::{action}, rule: {rule}, why: {why} }},"
        )?;
    }
    out.push_str("];\n");
    Ok(out)
}

fn argument(arg: &Arg) -> Result<String, Box<dyn Error>> {
    let mask = arg.mask.as_ref().map(number).transpose()?;
    let value = arg.value.as_ref().map(number).transpose()?;
    let test = match (arg.is.as_str(), mask, value) {
        ("equals", None, Some(value)) => format!("Equals {{ value: {value} }}"),
        ("differs", None, Some(value)) => format!("Differs {{ value: {value} }}"),
        ("any-bit", Some(mask), None) => format!("AnyBit {{ mask: {mask} }}"),
        ("masked", Some(mask), Some(value)) => {
            format!("Masked {{ mask: {mask}, value: {value} }}")
        }
        (other, ..) => return Err(format!("{other} with these operands is no test").into()),
    };
    let (index, low32) = (arg.index, arg.low32);
    Ok(format!(
        "ArgCondition {{ index: {index}, low32: {low32}, test: ArgTest::{test} }}"
    ))
}

fn number(value: &toml::Value) -> Result<u64, Box<dyn Error>> {
    if let Some(plain) = value.as_integer() {
        return Ok(u64::try_from(plain)?);
    }
    let text = value.as_str().ok_or("a number that is neither")?;
    Ok(match text.split_at_checked(2) {
        Some(("0x", digits)) => u64::from_str_radix(digits, 16)?,
        Some(("0o", digits)) => u64::from_str_radix(digits, 8)?,
        _ => text.parse()?,
    })
}

fn text(text: &str) -> String {
    format!("Cow::Borrowed({text:?})")
}

fn optional(why: Option<&String>) -> String {
    why.map_or("None".to_owned(), |why| format!("Some({})", text(why)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
