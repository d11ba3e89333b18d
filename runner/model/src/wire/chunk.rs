//! One `chat.completion.chunk`, or a whole `chat.completion`, as servers really write them:
//! unknown fields are accepted, `null` stands for missing, and what is optional in practice is
//! optional here.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(crate) struct Chunk {
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub usage: Option<WireUsage>,
    #[serde(default)]
    pub error: Option<Value>,
    /// `"error"` in servers that send a bare error object instead of an `error` member.
    #[serde(default)]
    pub object: Option<Value>,
    #[serde(default)]
    pub message: Option<Value>,
    #[serde(default)]
    pub detail: Option<Value>,
    #[serde(default)]
    pub code: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct Choice {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(default)]
    pub delta: Option<Piece>,
    /// The whole answer, from a server that does not stream.
    #[serde(default)]
    pub message: Option<Piece>,
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// A gateway's error about this choice.
    #[serde(default)]
    pub error: Option<Value>,
}

#[derive(Default, Deserialize)]
pub(crate) struct Piece {
    #[serde(default)]
    pub content: Option<Content>,
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// The other name of the same thing; an object in some servers, which is not text.
    #[serde(default)]
    pub reasoning: Option<Value>,
    #[serde(default)]
    pub refusal: Option<String>,
    #[serde(default)]
    pub tool_calls: Option<Vec<CallPiece>>,
    /// The single call of the older protocol.
    #[serde(default)]
    pub function_call: Option<FunctionPiece>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
pub(crate) struct ContentPart {
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub thinking: Option<Vec<ContentPart>>,
}

#[derive(Deserialize)]
pub(crate) struct CallPiece {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
pub(crate) struct FunctionPiece {
    #[serde(default)]
    pub name: Option<String>,
    /// A string by the protocol; an object in servers that forgot to encode it.
    #[serde(default)]
    pub arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(crate) struct WireUsage {
    #[serde(default)]
    pub prompt_tokens: Option<u64>,
    #[serde(default)]
    pub completion_tokens: Option<u64>,
    #[serde(default)]
    pub prompt_tokens_details: Option<PromptDetails>,
    /// DeepSeek's name for the cached part of the prompt.
    #[serde(default)]
    pub prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct PromptDetails {
    #[serde(default)]
    pub cached_tokens: Option<u64>,
}

impl FunctionPiece {
    /// The piece of arguments, decoded if it is a JSON string and as written if it is not.
    pub(crate) fn arguments_text(&self) -> Result<String, serde_json::Error> {
        match self.arguments.as_deref().map(RawValue::get) {
            None | Some("null") => Ok(String::new()),
            Some(raw) if raw.starts_with('"') => serde_json::from_str(raw),
            Some(raw) => Ok(raw.to_owned()),
        }
    }
}

pub(crate) enum Part<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

impl Content {
    pub(crate) fn parts(&self) -> Vec<Part<'_>> {
        match self {
            Self::Text(text) => vec![Part::Text(text)],
            Self::Parts(parts) => parts.iter().flat_map(ContentPart::parts).collect(),
        }
    }
}

impl ContentPart {
    fn parts(&self) -> Vec<Part<'_>> {
        let thoughts = self
            .thinking
            .iter()
            .flatten()
            .filter_map(|thought| thought.text.as_deref());
        thoughts
            .map(Part::Thinking)
            .chain(self.text.as_deref().map(Part::Text))
            .collect()
    }
}

impl Chunk {
    pub(crate) fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The error this chunk carries, in whichever of the known places.
    pub(crate) fn take_error(&mut self) -> Option<Value> {
        if let Some(error) = self.error.take() {
            return Some(error);
        }
        if let Some(error) = self
            .choices
            .iter_mut()
            .flatten()
            .find_map(|choice| choice.error.take())
        {
            return Some(error);
        }
        let bare = self.choices.is_none()
            && self.usage.is_none()
            && (self.object.as_ref().is_some_and(|object| object == "error")
                || self.message.as_ref().is_some_and(Value::is_string)
                || self.detail.is_some());
        bare.then(|| {
            let text = self
                .message
                .take()
                .or_else(|| self.detail.take())
                .unwrap_or(Value::Null);
            let mut error = serde_json::Map::new();
            error.insert("message".to_owned(), text);
            if let Some(code) = self.code.take() {
                error.insert("code".to_owned(), code);
            }
            Value::Object(error)
        })
    }
}
