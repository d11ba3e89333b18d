//! Where the prompt comes from. stdin is read only when it was asked for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::cli::RunArgs;
use crate::fault::Fault;

/// The system prompt of every session: reviewed text, byte-stable, no clock and no id.
pub const SYSTEM: &str = include_str!("prompt.md");

/// The cap of [`SYSTEM`], so that it does not grow unnoticed.
pub const SYSTEM_BYTES_MAX: usize = 4096;
const _: () = assert!(SYSTEM.len() <= SYSTEM_BYTES_MAX);

/// A prompt longer than this is a mistake (a wrong file, an endless pipe).
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// The prompt that was given, if any.
pub fn given(args: &RunArgs) -> Result<Option<String>, Fault> {
    let text = match (&args.prompt, &args.prompt_file, args.stdin) {
        (Some(text), _, _) if text == "-" => from_stdin()?,
        (Some(text), _, _) => text.clone(),
        (None, Some(file), _) if file == Path::new("-") => from_stdin()?,
        (None, Some(file), _) => from_file(file)?,
        (None, None, Some(_)) => from_stdin()?,
        (None, None, None) => return Ok(None),
    };
    if text.trim().is_empty() {
        return Err(Fault::usage("the prompt is empty").remedy("say what to do with -p TEXT"));
    }
    Ok(Some(text))
}

fn from_stdin() -> Result<String, Fault> {
    bounded(io::stdin().lock(), "stdin")
}

fn from_file(file: &Path) -> Result<String, Fault> {
    let name = format!("prompt file {}", file.display());
    let failed = |error: io::Error| Fault::usage(format!("{name} cannot be read: {error}"));
    let meta = std::fs::metadata(file).map_err(failed)?;
    if !meta.is_file() {
        return Err(Fault::usage(format!("{name} is not a regular file")).remedy("use - for stdin"));
    }
    bounded(File::open(file).map_err(failed)?, &name)
}

fn bounded(source: impl Read, name: &str) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    source
        .take(PROMPT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Fault::usage(format!("{name} cannot be read: {error}")))?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        let fault = Fault::usage(format!("{name} holds more than {PROMPT_BYTES_MAX} bytes"));
        return Err(fault.remedy("put it into the workspace and name the file in the prompt"));
    }
    String::from_utf8(bytes)
        .map_err(|_| Fault::usage(format!("{name} is not UTF-8")).remedy("convert it with iconv"))
}
