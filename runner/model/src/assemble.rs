//! From chunks to deltas: pieces grouped by call, the first close wins, nothing lost and nothing
//! doubled.

use curfew_engine::event::{Block, Finish, Usage};
use curfew_engine::turn::io::Delta;

use crate::wire::chunk::{CallPiece, Choice, Content, Part, Piece, WireUsage};

/// More calls in one answer is a server gone wrong.
const CALLS_MAX: usize = 256;
/// A server's own numbering is kept below this.
const INDEX_MAX: u32 = 65_536;

#[derive(Debug, thiserror::Error)]
pub(crate) enum AssembleFault {
    #[error("more than {CALLS_MAX} tool calls in one answer")]
    TooManyCalls,
    #[error("content after the finish reason")]
    AfterFinish,
    #[error("a piece of arguments is not valid: {0}")]
    Arguments(serde_json::Error),
    #[error("unknown finish reason {0:?}")]
    UnknownFinish(String),
    #[error("the server stopped with finish reason \"error\"")]
    FinishError,
}

/// A call under way.
struct Call {
    /// The index of its block in our deltas.
    index: u32,
    /// The index the server uses for it now; absent in servers that send none.
    server_index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    /// Its first delta, which carries id and name, has been given out.
    opened: bool,
}

#[derive(Default)]
pub(crate) struct Assembler {
    calls: Vec<Call>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    wrote: bool,
}

impl Assembler {
    /// Takes one choice; its deltas go to `out` in order.
    pub(crate) fn choice(
        &mut self,
        choice: Choice,
        out: &mut Vec<Delta>,
    ) -> Result<(), AssembleFault> {
        // We ask for one answer; pieces of others are not ours.
        if choice.index.unwrap_or(0) != 0 {
            return Ok(());
        }
        for piece in choice.delta.into_iter().chain(choice.message) {
            self.piece(piece, out)?;
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => Ok(()),
            Some(_) if self.finish.is_some() => Ok(()),
            Some(reason) => {
                self.finish = Some(finish_of(reason)?);
                self.open_nameless(out);
                Ok(())
            }
        }
    }

    pub(crate) fn usage(&mut self, usage: &WireUsage) {
        let cached = usage
            .prompt_tokens_details
            .as_ref()
            .and_then(|details| details.cached_tokens)
            .or(usage.prompt_cache_hit_tokens);
        let (Some(prompt), output) = (usage.prompt_tokens, usage.completion_tokens.unwrap_or(0))
        else {
            return;
        };
        // Buckets are disjoint; servers count the cached part into the prompt.
        let input = prompt.saturating_sub(cached.unwrap_or(0));
        self.usage = Some(Usage {
            input,
            output,
            cache_read: cached,
        });
    }

    pub(crate) fn finish(&self) -> Option<Finish> {
        self.finish
    }

    pub(crate) fn usage_seen(&self) -> Option<Usage> {
        self.usage
    }

    /// Whether the answer holds anything at all.
    pub(crate) fn wrote(&self) -> bool {
        self.wrote
    }

    /// Whether the server says `stop` in the middle of a call's arguments. Gateways make up a
    /// finish reason when their upstream breaks off (seen in litellm 1.108); a model that calls
    /// tools ends with another word, and a model that wrote broken arguments closes them.
    pub(crate) fn stopped_inside_a_call(&self) -> bool {
        self.finish == Some(Finish::Stop) && self.calls.iter().any(Call::is_cut)
    }

    fn piece(&mut self, piece: Piece, out: &mut Vec<Delta>) -> Result<(), AssembleFault> {
        let other_name = match piece.reasoning {
            Some(serde_json::Value::String(text)) => Some(text),
            _ => None,
        };
        let reasoning = piece.reasoning_content.or(other_name);
        self.text(Block::Reasoning, reasoning.as_deref().unwrap_or(""), out)?;
        for part in piece.content.iter().flat_map(Content::parts) {
            match part {
                Part::Text(text) => self.text(Block::Text, text, out)?,
                Part::Thinking(text) => self.text(Block::Reasoning, text, out)?,
            }
        }
        self.text(Block::Text, piece.refusal.as_deref().unwrap_or(""), out)?;
        for call in piece.tool_calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        if let Some(function) = piece.function_call {
            self.call(
                CallPiece {
                    index: Some(0),
                    id: None,
                    function: Some(function),
                },
                out,
            )?;
        }
        Ok(())
    }

    fn text(
        &mut self,
        block: Block,
        text: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), AssembleFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.still_open()?;
        self.wrote = true;
        out.push(Delta {
            block,
            text: text.to_owned(),
        });
        Ok(())
    }

    fn call(&mut self, piece: CallPiece, out: &mut Vec<Delta>) -> Result<(), AssembleFault> {
        let function = piece.function.unwrap_or_default();
        let arguments = function
            .arguments_text()
            .map_err(AssembleFault::Arguments)?;
        let (id, name) = (
            piece.id.unwrap_or_default(),
            function.name.unwrap_or_default(),
        );
        if id.is_empty() && name.is_empty() && arguments.is_empty() {
            return Ok(());
        }
        self.still_open()?;
        let at = self.slot(piece.index, &id, &name)?;
        self.wrote = true;
        let call = &mut self.calls[at];
        // The first id and name stand; servers repeat them in every piece.
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        call.arguments.push_str(&arguments);
        if call.opened {
            if !arguments.is_empty() {
                let block = Block::Call {
                    index: call.index,
                    id: None,
                    name: None,
                };
                out.push(Delta {
                    block,
                    text: arguments,
                });
            }
        } else if !call.name.is_empty() {
            out.push(call.open());
        }
        Ok(())
    }

    /// The place of the call a piece belongs to, made if it is new.
    fn slot(
        &mut self,
        server_index: Option<u32>,
        id: &str,
        name: &str,
    ) -> Result<usize, AssembleFault> {
        let known = match server_index {
            Some(index) => self
                .calls
                .iter()
                .rposition(|call| call.server_index == Some(index)),
            None => self
                .calls
                .iter()
                .rposition(|call| !id.is_empty() && call.id == id)
                .or_else(|| self.calls.len().checked_sub(1)),
        };
        if let Some(at) = known
            && !self.calls[at].ends_before(server_index, id, name)
        {
            return Ok(at);
        }
        if self.calls.len() == CALLS_MAX {
            return Err(AssembleFault::TooManyCalls);
        }
        let free = self
            .calls
            .iter()
            .map(|call| call.index + 1)
            .max()
            .unwrap_or(0);
        let taken = |index: u32| self.calls.iter().any(|call| call.index == index);
        let index = server_index
            .filter(|index| *index < INDEX_MAX && !taken(*index))
            .unwrap_or(free);
        self.calls.push(Call {
            index,
            server_index,
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
            opened: false,
        });
        Ok(self.calls.len() - 1)
    }

    /// A call whose name never came is given out as it is: an unknown tool for the engine.
    fn open_nameless(&mut self, out: &mut Vec<Delta>) {
        out.extend(
            self.calls
                .iter_mut()
                .filter(|call| !call.opened)
                .map(Call::open),
        );
    }

    fn still_open(&self) -> Result<(), AssembleFault> {
        if self.finish.is_some() {
            Err(AssembleFault::AfterFinish)
        } else {
            Ok(())
        }
    }
}

impl Call {
    fn open(&mut self) -> Delta {
        self.opened = true;
        let id = Some(self.id.clone()).filter(|id| !id.is_empty());
        let block = Block::Call {
            index: self.index,
            id,
            name: Some(self.name.clone()),
        };
        Delta {
            block,
            text: self.arguments.clone(),
        }
    }

    fn is_cut(&self) -> bool {
        let fault = serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).err();
        !self.arguments.is_empty() && fault.is_some_and(|fault| fault.is_eof())
    }

    /// Whether a piece that points here is the start of another call: some servers give every call
    /// the same index, or none. Repeating id and name in each piece of one call is common as well,
    /// so a new call needs its own name, and another id or arguments that are already whole.
    fn ends_before(&self, server_index: Option<u32>, id: &str, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let other_id = !id.is_empty() && !self.id.is_empty() && id != self.id;
        let same_id = !id.is_empty() && id == self.id;
        let whole = serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok();
        match server_index {
            Some(_) => other_id && whole,
            None => other_id || (!same_id && !self.name.is_empty() && whole),
        }
    }
}

fn finish_of(reason: &str) -> Result<Finish, AssembleFault> {
    match reason {
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" | "STOP" => Ok(Finish::Stop),
        "tool_calls" | "function_call" | "tool_use" => Ok(Finish::ToolCalls),
        "length" | "max_tokens" | "model_length" | "MAX_TOKENS" => Ok(Finish::Length),
        "content_filter" | "refusal" | "safety" | "SAFETY" => Ok(Finish::ContentFilter),
        "error" => Err(AssembleFault::FinishError),
        other => Err(AssembleFault::UnknownFinish(
            other.chars().take(64).collect(),
        )),
    }
}

#[cfg(test)]
mod tests;
