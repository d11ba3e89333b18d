//! One question to a person. Nobody there, no answer, or anything but yes: denied.

use std::fmt;

use curfew_engine::event::ApprovalOutcome;

use super::{Happening, Tell};
use crate::output::inert;
use crate::view::View;

/// Characters of the arguments that a question shows; what is longer is said to be.
const ARGUMENTS_CHARS_MAX: usize = 4000;

/// What is to be decided.
#[derive(Clone, Debug)]
pub struct Question {
    pub call_id: String,
    pub name: String,
    pub arguments: String,
    pub digest: String,
    pub why: String,
}

/// Who is asked.
pub enum Approver {
    /// Unattended: nobody.
    Nobody,
    /// The person at the terminal. Says whether the question will be put at all.
    Person(Box<dyn Fn(Question) -> bool>),
}

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Approver::Nobody => "Nobody",
            Approver::Person(_) => "Person",
        })
    }
}

impl Approver {
    pub(super) fn ask(&self, question: Question, view: &mut View, tell: &Tell) {
        let unavailable = Happening::Decided {
            call_id: question.call_id.clone(),
            digest: question.digest.clone(),
            outcome: ApprovalOutcome::Unavailable,
        };
        let asked = match self {
            Approver::Nobody => false,
            Approver::Person(ask) => {
                view.before_question();
                ask(question)
            }
        };
        if !asked {
            drop(tell.send(unavailable));
        }
    }
}

impl Question {
    /// What the person reads: the exact arguments, nothing hidden, nothing that a terminal obeys.
    pub fn text(&self) -> String {
        let shown = inert::line_cut(&self.arguments, ARGUMENTS_CHARS_MAX);
        format!(
            "{} wants {} {shown} ({}). Allow once? [y/N] ",
            self.call_id,
            self.name,
            inert::line(&self.why)
        )
    }
}
