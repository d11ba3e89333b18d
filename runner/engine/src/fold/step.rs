//! The part of the state that lives as long as a turn or a step.

use crate::assemble::{Assembled, AssembledCall};
use crate::event::{Block, FileSeen, ToolErrorCode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    pub turn: u64,
    /// Steps started in it.
    pub steps: u64,
    pub step: Option<OpenStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenStep {
    pub step: u64,
    pub phase: Phase,
    /// The running request of the step: 0, then 1 for the first retry …
    pub attempt: u32,
    /// Chunks of the running attempt.
    pub chunks: Vec<Piece>,
    /// Calls of the answer, in model order.
    pub calls: Vec<OpenCall>,
    /// Results so far: always a prefix of `calls`.
    pub results: usize,
}

/// How far a step came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    Sent,
    Answered,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub seq: u64,
    pub block: Block,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    pub call_id: String,
    /// What the model asked, raw.
    pub asked: AssembledCall,
    pub stage: Stage,
}

/// How far a call came. `Called` is the point after which an effect is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Declared,
    /// A person is being asked about arguments with this digest.
    Asked {
        digest: String,
    },
    Granted {
        digest: String,
    },
    Refused,
    Called,
    Completed(Completion),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub seq: u64,
    pub content: String,
    pub is_error: bool,
    pub error: Option<ToolErrorCode>,
    /// Files it read; the model has seen them once the results are shown.
    pub read: Vec<FileSeen>,
}

impl OpenStep {
    pub(super) fn new(step: u64) -> Self {
        Self {
            step,
            phase: Phase::Open,
            attempt: 0,
            chunks: Vec::new(),
            calls: Vec::new(),
            results: 0,
        }
    }

    pub fn assembled(&self) -> Assembled {
        Assembled::from_pieces(
            self.chunks
                .iter()
                .map(|piece| (&piece.block, piece.text.as_str())),
        )
    }

    pub fn call(&self, call_id: &str) -> Option<&OpenCall> {
        self.calls.iter().find(|call| call.call_id == call_id)
    }

    pub(super) fn call_mut(&mut self, call_id: &str) -> Option<&mut OpenCall> {
        self.calls.iter_mut().find(|call| call.call_id == call_id)
    }

    /// The first call without a result.
    pub fn pending(&self) -> Option<&OpenCall> {
        self.calls.get(self.results)
    }

    /// Whether nothing is owed: no answer to a request, no result to a call.
    pub fn is_settled(&self) -> bool {
        match self.phase {
            Phase::Open => true,
            Phase::Sent => false,
            Phase::Answered => self.pending().is_none(),
        }
    }
}
