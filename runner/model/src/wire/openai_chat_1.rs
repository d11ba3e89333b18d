//! `openai-chat/1`: the body of `POST {baseUrl}/chat/completions`.
//!
//! Released: never edited, only followed by `openai-chat/2`. Logs that name it are rebuilt byte
//! for byte, for ever. The golden file beside the tests of this crate holds it still.

use curfew_engine::event::{RequestHeader, Sampling, ToolSchema};
use curfew_engine::projection::{Message, MessageCall};
use curfew_engine::{RequestBody, Wire};
use serde::Serialize;
use serde_json::value::RawValue;

pub const NAME: &str = "openai-chat/1";

/// What closes the list of messages and the body: the only bytes that the next step replaces.
const CLOSE: &[u8] = b"]}";

/// OpenAI-compatible chat completions, streamed, with usage.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn render(&self, header: &RequestHeader, messages: &[Message]) -> RequestBody {
        let mut bytes = Vec::new();
        put(&mut bytes, &Fixed::of(header));
        // The fixed part is an object; the messages are its last member.
        bytes.pop();
        bytes.extend_from_slice(b",\"messages\":[");
        let system = (!header.system.is_empty()).then(|| Out::System {
            content: &header.system,
        });
        for (at, message) in system
            .into_iter()
            .chain(messages.iter().map(Out::of))
            .enumerate()
        {
            if at > 0 {
                bytes.push(b',');
            }
            put(&mut bytes, &message);
        }
        let prefix_len = bytes.len();
        bytes.extend_from_slice(CLOSE);
        RequestBody { bytes, prefix_len }
    }
}

/// Strings, numbers and already valid JSON into memory: there is nothing that could fail.
fn put(bytes: &mut Vec<u8>, value: &impl Serialize) {
    if let Err(fault) = serde_json::to_writer(bytes, value) {
        unreachable!("a request body always encodes: {fault}");
    }
}

#[derive(Serialize)]
struct Fixed<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    /// An empty list is refused by servers, so it is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Out<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// `null` beside calls without a word: an empty string is refused by some servers.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<OutCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct OutCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: OutFunction<'a>,
}

#[derive(Serialize)]
struct OutFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Fixed<'a> {
    fn of(header: &'a RequestHeader) -> Self {
        let Sampling {
            temperature,
            max_tokens,
            seed,
            reasoning_effort,
        } = &header.sampling;
        Self {
            model: &header.model,
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
            },
            temperature: *temperature,
            max_tokens: *max_tokens,
            seed: *seed,
            reasoning_effort: reasoning_effort.as_deref(),
            tools: header.tools.iter().map(Tool::of).collect(),
        }
    }
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolSchema) -> Self {
        let ToolSchema {
            name,
            description,
            parameters,
        } = tool;
        Self {
            kind: "function",
            function: Function {
                name,
                description,
                parameters,
            },
        }
    }
}

impl<'a> Out<'a> {
    fn of(message: &'a Message) -> Self {
        match message {
            Message::User { text } => Self::User { content: text },
            Message::Assistant { text, calls } => Self::Assistant {
                content: (!text.is_empty() || calls.is_empty()).then_some(text.as_str()),
                tool_calls: calls.iter().map(OutCall::of).collect(),
            },
            Message::Tool { call_id, content } => Self::Tool {
                tool_call_id: call_id,
                content,
            },
        }
    }
}

impl<'a> OutCall<'a> {
    fn of(call: &'a MessageCall) -> Self {
        let MessageCall {
            id,
            name,
            arguments,
        } = call;
        Self {
            id,
            kind: "function",
            function: OutFunction { name, arguments },
        }
    }
}

#[cfg(test)]
mod tests;
