//! Pieces of a stream to blocks: grouped by index, concatenated, never assigned.

use std::collections::BTreeMap;

use crate::event::Block;

/// What a stream said, as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembled {
    pub text: String,
    pub reasoning: String,
    /// In the order of the provider's indexes: the model's order.
    pub calls: Vec<AssembledCall>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssembledCall {
    pub index: u32,
    /// The provider's id, as its first piece gave it.
    pub id: Option<String>,
    pub name: String,
    /// Raw; possibly not JSON.
    pub arguments: String,
}

impl Assembled {
    pub fn from_pieces<'a>(pieces: impl IntoIterator<Item = (&'a Block, &'a str)>) -> Self {
        let mut whole = Self::default();
        let mut calls: BTreeMap<u32, AssembledCall> = BTreeMap::new();
        for (block, piece) in pieces {
            match block {
                Block::Text => whole.text.push_str(piece),
                Block::Reasoning => whole.reasoning.push_str(piece),
                Block::Call { index, id, name } => {
                    let call = calls.entry(*index).or_default();
                    call.index = *index;
                    // Some servers repeat id and name in every piece: the first one counts.
                    if call.id.is_none() {
                        call.id.clone_from(id);
                    }
                    if call.name.is_empty() {
                        call.name = name.clone().unwrap_or_default();
                    }
                    call.arguments.push_str(piece);
                }
            }
        }
        whole.calls = calls.into_values().collect();
        whole
    }

    /// Nothing a person or a tool could use: neither text nor a call.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }
}
