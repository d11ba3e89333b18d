//! Which events the model sees, and in which order.
//!
//! Only `user/message`, `assistant/message` and `tool/result` are nodes. A replacement takes the
//! place of a run of nodes without touching the log: what it shadows stays there, and its sources
//! are a superset of it. Validation gives a plan; applying a plan cannot fail.

use thiserror::Error;

use crate::event::SurfaceOp;

/// The current nodes, by seq, in the order the model sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surface {
    nodes: Vec<u64>,
    /// Replacements so far: while it stands still, the surface only grows at its end.
    generation: u64,
}

/// A checked change of one surface. Good only for the surface it was made from, unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurfacePlan {
    seq: u64,
    at: usize,
    covers: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SurfaceError {
    #[error("node {seq} is not on the surface")]
    NotOnSurface { seq: u64 },
    #[error("node {start} stands after node {end}")]
    Reversed { start: u64, end: u64 },
    #[error("it shadows node {seq}, which is not among its sources")]
    SourceMissing { seq: u64 },
    #[error("source {seq} is not before it")]
    SourceNotBefore { seq: u64 },
    #[error("source {seq} is named twice")]
    SourceTwice { seq: u64 },
}

impl Surface {
    pub fn nodes(&self) -> &[u64] {
        &self.nodes
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What `op` would do for the node `seq` with these sources.
    pub fn plan(
        &self,
        seq: u64,
        op: SurfaceOp,
        sources: &[u64],
    ) -> Result<SurfacePlan, SurfaceError> {
        check_sources(seq, sources)?;
        let SurfaceOp::Replace { start, end } = op else {
            return Ok(SurfacePlan {
                seq,
                at: self.nodes.len(),
                covers: 0,
            });
        };
        let first = self.position(start)?;
        let last = self.position(end)?;
        if first > last {
            return Err(SurfaceError::Reversed { start, end });
        }
        match self.nodes[first..=last]
            .iter()
            .find(|node| !sources.contains(node))
        {
            Some(node) => Err(SurfaceError::SourceMissing { seq: *node }),
            None => Ok(SurfacePlan {
                seq,
                at: first,
                covers: last - first + 1,
            }),
        }
    }

    /// The nodes that leave.
    pub fn covered(&self, plan: &SurfacePlan) -> &[u64] {
        self.nodes
            .get(plan.at..plan.at + plan.covers)
            .unwrap_or_default()
    }

    pub fn apply(&mut self, plan: &SurfacePlan) {
        let end = (plan.at + plan.covers).min(self.nodes.len());
        self.nodes.splice(plan.at.min(end)..end, [plan.seq]);
        if plan.covers > 0 {
            self.generation += 1;
        }
    }

    fn position(&self, seq: u64) -> Result<usize, SurfaceError> {
        self.nodes
            .iter()
            .rposition(|node| *node == seq)
            .ok_or(SurfaceError::NotOnSurface { seq })
    }
}

fn check_sources(seq: u64, sources: &[u64]) -> Result<(), SurfaceError> {
    let mut sorted = sources.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(SurfaceError::SourceTwice { seq: pair[0] });
    }
    match sorted.last() {
        Some(last) if *last >= seq => Err(SurfaceError::SourceNotBefore { seq: *last }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
