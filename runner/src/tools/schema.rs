//! Tools as the model is told of them: generated from the argument types, byte-stable, flat.
//!
//! Some servers refuse `$schema`, `$ref`, `format` or a list as `type`; none of them is ever sent.

use curfew_engine::event::ToolSchema;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::args::{BashArgs, EditArgs, GlobArgs, GrepArgs, ReadArgs, WriteArgs};

/// In the order they are sent.
pub const NAMES: [&str; 6] = ["read", "write", "edit", "bash", "glob", "grep"];

const READ: &str =
    "Read a text file. Lines are numbered; long files come in windows (offset, limit).";
const WRITE: &str =
    "Create a file, or replace one that you have read whole. Parent directories are made.";
const EDIT: &str = "Replace one exact, unique piece of text in a file that you have read.";
const BASH: &str = "Run a shell command in the workspace. Standard input is empty. Background processes end with the command. \
                    Long output is cut; the result then says how to read the rest.";
const GLOB: &str = "List files whose path matches a pattern, honouring .gitignore.";
const GREP: &str = "Search file contents with a regular expression, honouring .gitignore.";

/// Everything the request header says about tools.
pub fn all() -> Vec<ToolSchema> {
    vec![
        one("read", READ, &parameters::<ReadArgs>()),
        one("write", WRITE, &parameters::<WriteArgs>()),
        one("edit", EDIT, &parameters::<EditArgs>()),
        one("bash", BASH, &parameters::<BashArgs>()),
        one("glob", GLOB, &parameters::<GlobArgs>()),
        one("grep", GREP, &parameters::<GrepArgs>()),
    ]
}

/// `path (string), offset (integer, optional)`: for the text of a refusal.
pub fn fields_of(tool: &str) -> String {
    let schema = match tool {
        "read" => parameters::<ReadArgs>(),
        "write" => parameters::<WriteArgs>(),
        "edit" => parameters::<EditArgs>(),
        "bash" => parameters::<BashArgs>(),
        "glob" => parameters::<GlobArgs>(),
        _ => parameters::<GrepArgs>(),
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let field = |(name, shape): (&String, &Value)| {
        let kind = shape["type"].as_str().unwrap_or("string");
        let optional = if required.contains(&Value::String(name.clone())) {
            ""
        } else {
            ", optional"
        };
        format!("{name} ({kind}{optional})")
    };
    properties.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn one(name: &str, description: &str, parameters: &Value) -> ToolSchema {
    // A Value always serializes, and what it serializes to is JSON.
    let text = canonical(parameters);
    let raw = RawValue::from_string(text).unwrap_or_default();
    ToolSchema {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: raw,
    }
}

fn parameters<T: JsonSchema>() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let mut schema = generator.root_schema_for::<T>().to_value();
    flatten(&mut schema);
    schema
}

/// Drops what servers choke on; `["integer","null"]` becomes `"integer"`, since optional fields
/// are said by `required`.
fn flatten(value: &mut Value) {
    if let Value::Object(object) = value {
        for key in ["$schema", "$defs", "format", "title", "default", "minimum"] {
            if object
                .get(key)
                .is_some_and(|found| !found.is_object() || key == "$defs")
            {
                object.remove(key);
            }
        }
        if object.contains_key("properties") {
            object.remove("description");
        }
        if let Some(Value::Array(kinds)) = object.get("type") {
            let kind = kinds.iter().find(|kind| **kind != "null").cloned();
            object.insert(
                String::from("type"),
                kind.unwrap_or_else(|| Value::from("string")),
            );
        }
        object.values_mut().for_each(flatten);
    }
}

/// Keys sorted, whatever map serde_json was built with.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            let pairs: Vec<String> = keys
                .into_iter()
                .map(|key| format!("{}:{}", Value::from(key.as_str()), canonical(&object[key])))
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(canonical).collect::<Vec<_>>().join(",")
        ),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests;
