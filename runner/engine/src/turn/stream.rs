//! Many small deltas to few chunk events.

use super::io::Delta;
use crate::event::Block;

/// A chunk is written when it holds this much …
pub const CHUNK_BYTES_MAX: usize = 4 * 1024;
/// … or when its first piece is this old.
pub const CHUNK_AGE_MS_MAX: u64 = 1_000;

/// Gathers pieces of one block; nothing is reordered, nothing lost.
#[derive(Debug, Default)]
pub(super) struct Coalescer {
    held: Option<(Delta, u64)>,
}

impl Coalescer {
    /// Takes a piece and gives back what must be logged now, in order.
    pub(super) fn push(&mut self, now: u64, delta: Delta) -> Vec<Delta> {
        let mut ready = Vec::new();
        match &mut self.held {
            Some((held, _)) if continues(&held.block, &delta.block) => {
                held.text.push_str(&delta.text)
            }
            _ => {
                ready.extend(self.take());
                self.held = Some((delta, now));
            }
        }
        while let Some(full) = self.split_full() {
            ready.push(full);
        }
        if self
            .held
            .as_ref()
            .is_some_and(|(_, since)| now.saturating_sub(*since) >= CHUNK_AGE_MS_MAX)
        {
            ready.extend(self.take());
        }
        ready
    }

    /// What is still held: the stream has ended, well or not.
    pub(super) fn take(&mut self) -> Option<Delta> {
        self.held.take().map(|(delta, _)| delta)
    }

    fn split_full(&mut self) -> Option<Delta> {
        let (held, _) = self
            .held
            .as_mut()
            .filter(|(held, _)| held.text.len() > CHUNK_BYTES_MAX)?;
        let mut end = CHUNK_BYTES_MAX;
        while !held.text.is_char_boundary(end) {
            end -= 1;
        }
        let rest = held.text.split_off(end);
        let full = Delta {
            block: held.block.clone(),
            text: std::mem::replace(&mut held.text, rest),
        };
        held.block = continuation(&held.block);
        Some(full)
    }
}

/// Whether a piece can be appended to what is held of the same block.
fn continues(held: &Block, next: &Block) -> bool {
    match (held, next) {
        (Block::Text, Block::Text) | (Block::Reasoning, Block::Reasoning) => true,
        (
            Block::Call { index: a, id, name },
            Block::Call {
                index: b,
                id: next_id,
                name: next_name,
            },
        ) => {
            // A piece that brings what the first one lacked must keep its own place.
            a == b && (next_id.is_none() || id.is_some()) && (next_name.is_none() || name.is_some())
        }
        _ => false,
    }
}

fn continuation(block: &Block) -> Block {
    match block {
        Block::Call { index, .. } => Block::Call {
            index: *index,
            id: None,
            name: None,
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
