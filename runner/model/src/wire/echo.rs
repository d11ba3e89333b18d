//! The built-in provider's view of a request, and the stream it answers with.

use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct OutChunk<'a> {
    choices: [OutChoice<'a>; 1],
}

#[derive(Serialize)]
struct OutChoice<'a> {
    index: u32,
    delta: OutDelta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct OutDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

/// The text of the last user message of a request body.
pub(crate) fn last_user_text(body: &[u8]) -> Result<String, serde_json::Error> {
    let request: Value = serde_json::from_slice(body)?;
    let sent = request["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let last = sent.iter().rev().find(|message| message["role"] == "user");
    let text = last.and_then(|message| message["content"].as_str());
    Ok(text.unwrap_or("").to_owned())
}

/// `text` as a stream of chunks, word by word, ending well.
pub(crate) fn stream_of(text: &str) -> Result<Vec<String>, serde_json::Error> {
    let mut events = Vec::new();
    for piece in text.split_inclusive(' ') {
        events.push(event(Some(piece), None)?);
    }
    events.push(event(None, Some("stop"))?);
    events.push("data: [DONE]\n\n".to_owned());
    Ok(events)
}

fn event(content: Option<&str>, finish_reason: Option<&str>) -> Result<String, serde_json::Error> {
    let choice = OutChoice {
        index: 0,
        delta: OutDelta { content },
        finish_reason,
    };
    Ok(format!(
        "data: {}\n\n",
        serde_json::to_string(&OutChunk { choices: [choice] })?
    ))
}
