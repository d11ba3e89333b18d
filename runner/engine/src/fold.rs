//! The state of a session, folded from its events one by one.
//!
//! Folding is incremental: applying events as they are written gives the same state as folding the
//! whole log again, and every prefix of a log folds. An event is validated into a plan first; a
//! refused one leaves no trace. Pairing is a rule here, not a habit of the writer: no step or turn
//! ends while a call lacks its result.

mod commit;
mod error;
mod rules;
mod step;
mod totals;

use std::collections::{BTreeMap, BTreeSet};

use crate::assemble::Assembled;
use crate::event::{Event, Header, MessageSource, RequestHeader, SandboxConfinement, Usage};
use crate::surface::{Surface, SurfacePlan};

pub use error::{FoldError, Rule};
pub use step::{Completion, OpenCall, OpenStep, OpenTurn, Phase, Piece, Stage};
pub use totals::{Files, Observed, Repeat, Run};

/// Prefix of the call ids this crate gives; a number unique in the session follows.
pub const CALL_ID_PREFIX: &str = "call_";

#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    header: Header,
    next_seq: u64,
    last_time: u64,
    turns: u64,
    steps: u64,
    turn: Option<OpenTurn>,
    surface: Surface,
    nodes: BTreeMap<u64, Node>,
    call_ids: BTreeSet<String>,
    next_call: u64,
    request_header: Option<RequestHeader>,
    confinement: Option<SandboxConfinement>,
    run: Option<Run>,
    usage: Usage,
    denials: u64,
    changed: BTreeSet<String>,
    files: Files,
    repeat: Repeat,
}

/// The text behind a surface node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    User { source: MessageSource, text: String },
    Answer { text: String, calls: Vec<NodeCall> },
    Result { place: Place, content: String },
}

/// Whose result it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub turn: u64,
    pub step: u64,
    pub call_id: String,
}

/// A call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCall {
    pub call_id: String,
    pub name: String,
    pub arguments: String,
}

/// What a checked event will do. Applying it cannot fail.
#[derive(Debug, Default)]
struct Plan {
    surface: Option<SurfacePlan>,
    answer: Option<Assembled>,
}

impl Fold {
    /// An empty session.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            next_seq: 0,
            last_time: 0,
            turns: 0,
            steps: 0,
            turn: None,
            surface: Surface::default(),
            nodes: BTreeMap::new(),
            call_ids: BTreeSet::new(),
            next_call: 1,
            request_header: None,
            confinement: None,
            run: None,
            usage: Usage::default(),
            denials: 0,
            changed: BTreeSet::new(),
            files: Files::new(),
            repeat: Repeat::default(),
        }
    }

    /// The state after all these events.
    pub fn of<'a>(
        header: Header,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, FoldError> {
        let mut fold = Self::new(header);
        for event in events {
            fold.apply(event)?;
        }
        Ok(fold)
    }

    /// Takes one more event, or refuses it and stays as it was.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        let plan = rules::check(self, event).map_err(|rule| FoldError {
            seq: event.seq,
            kind: crate::codec::type_name(&event.body).to_owned(),
            rule,
        })?;
        commit::commit(self, event, plan);
        Ok(())
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The seq of the next event.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The time of the last event; 0 before the first.
    pub fn last_time(&self) -> u64 {
        self.last_time
    }

    /// Turns started.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Steps started, over all turns.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn open_turn(&self) -> Option<&OpenTurn> {
        self.turn.as_ref()
    }

    pub fn open_step(&self) -> Option<&OpenStep> {
        self.turn.as_ref().and_then(|turn| turn.step.as_ref())
    }

    /// The request header in force.
    pub fn request_header(&self) -> Option<&RequestHeader> {
        self.request_header.as_ref()
    }

    /// The confinement of the last run.
    pub fn confinement(&self) -> Option<&SandboxConfinement> {
        self.confinement.as_ref()
    }

    /// The last run, open or ended.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    pub fn open_run(&self) -> Option<&Run> {
        self.run.as_ref().filter(|run| !run.ended)
    }

    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The nodes the model sees, in order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.surface
            .nodes()
            .iter()
            .filter_map(|seq| self.nodes.get(seq))
    }

    /// Token usage of the session.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Denials of the session, counted.
    pub fn denials(&self) -> u64 {
        self.denials
    }

    /// Paths that tools or commands changed in the session.
    pub fn changed(&self) -> &BTreeSet<String> {
        &self.changed
    }

    /// What the model has seen of files: the guard before write and edit. A read counts once its
    /// result is shown to the model, which is after the step that made it; a change of the model's
    /// own counts at once.
    pub fn files(&self) -> &Files {
        &self.files
    }

    pub fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Whether a call of this id was ever declared.
    pub fn knows_call(&self, call_id: &str) -> bool {
        self.call_ids.contains(call_id)
    }

    /// The number in the next call id.
    pub fn next_call(&self) -> u64 {
        self.next_call
    }
}

#[cfg(test)]
mod tests;
