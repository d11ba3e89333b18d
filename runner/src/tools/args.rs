//! What the model may pass to each tool. The types are the parser and the schema at once.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Arguments longer than this are not parsed.
const ARGUMENTS_BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    /// File to read; or the blob that a cut output names.
    pub path: String,
    /// First line to show, counted from 1.
    #[serde(default)]
    pub offset: Option<u64>,
    /// How many lines to show; 2000 without it.
    #[serde(default)]
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArgs {
    /// File to create or replace.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    /// File to change.
    pub path: String,
    /// Text to replace, exactly as it stands in the file, with enough around it to be unique.
    pub old_string: String,
    /// Text to put in its place.
    pub new_string: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashArgs {
    /// Command line for the shell, run in the workspace.
    pub command: String,
    /// Seconds until it is killed.
    #[serde(default)]
    pub timeout: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobArgs {
    /// Pattern such as **/*.rs.
    pub pattern: String,
    /// Directory to look in; the workspace without it.
    #[serde(default)]
    pub path: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepArgs {
    /// Regular expression.
    pub pattern: String,
    /// File or directory to look in; the workspace without it.
    #[serde(default)]
    pub path: Option<String>,
}

/// A call whose arguments have been understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    Read(ReadArgs),
    Write(WriteArgs),
    Edit(EditArgs),
    Bash(BashArgs),
    Glob(GlobArgs),
    Grep(GrepArgs),
}

/// Why a call cannot be started; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentFault {
    #[error("There is no tool {name:?}. The tools are {}.{}", super::schema::NAMES.join(", "), near.as_ref().map(|n| format!(" Did you mean {n}?")).unwrap_or_default())]
    UnknownTool { name: String, near: Option<String> },
    #[error("The arguments of {tool} were not accepted: {why}. {tool} takes {fields}.")]
    Invalid {
        tool: &'static str,
        why: String,
        fields: String,
    },
}

/// Understands a call: `arguments` is the very string that was logged.
pub fn parse(name: &str, arguments: &str) -> Result<Tool, ArgumentFault> {
    Ok(match name {
        "read" => Tool::Read(fields("read", arguments, |a: &ReadArgs| vec![&a.path])?),
        "write" => Tool::Write(fields("write", arguments, |a: &WriteArgs| vec![&a.path])?),
        "edit" => Tool::Edit(fields("edit", arguments, |a: &EditArgs| vec![&a.path])?),
        "bash" => Tool::Bash(fields("bash", arguments, |a: &BashArgs| vec![&a.command])?),
        "glob" => Tool::Glob(fields("glob", arguments, |a: &GlobArgs| {
            once(&a.pattern, a.path.as_ref())
        })?),
        "grep" => Tool::Grep(fields("grep", arguments, |a: &GrepArgs| {
            once(&a.pattern, a.path.as_ref())
        })?),
        _ => {
            let near = crate::fault::nearest(name, super::schema::NAMES).map(str::to_owned);
            return Err(ArgumentFault::UnknownTool {
                name: name.chars().take(64).collect(),
                near,
            });
        }
    })
}

fn once<'a>(first: &'a String, second: Option<&'a String>) -> Vec<&'a String> {
    std::iter::once(first).chain(second).collect()
}

/// `words` names the fields that become paths or arguments of a process: no NUL can be in them.
fn fields<T: DeserializeOwned>(
    tool: &'static str,
    arguments: &str,
    words: impl Fn(&T) -> Vec<&String>,
) -> Result<T, ArgumentFault> {
    let invalid = |why: String| ArgumentFault::Invalid {
        tool,
        why,
        fields: super::schema::fields_of(tool),
    };
    if arguments.len() > ARGUMENTS_BYTES_MAX {
        return Err(invalid(format!(
            "they are longer than {ARGUMENTS_BYTES_MAX} bytes"
        )));
    }
    // A model that wants no arguments may send none at all.
    let text = if arguments.trim().is_empty() {
        "{}"
    } else {
        arguments
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let value: T =
        serde_path_to_error::deserialize(&mut json).map_err(|error| invalid(because(&error)))?;
    json.end().map_err(|error| invalid(error.to_string()))?;
    match words(&value).into_iter().any(|word| word.contains('\0')) {
        true => Err(invalid(String::from(
            "a NUL character cannot stand in a path, pattern or command",
        ))),
        false => Ok(value),
    }
}

fn because(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    match path.as_str() {
        "." => error.inner().to_string(),
        _ => format!("{path}: {}", error.inner()),
    }
}

impl Tool {
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Read(_) => "read",
            Tool::Write(_) => "write",
            Tool::Edit(_) => "edit",
            Tool::Bash(_) => "bash",
            Tool::Glob(_) => "glob",
            Tool::Grep(_) => "grep",
        }
    }

    /// Whether it could change the workspace.
    pub fn writes(&self) -> bool {
        matches!(self, Tool::Write(_) | Tool::Edit(_) | Tool::Bash(_))
    }
}

#[cfg(test)]
mod tests;
