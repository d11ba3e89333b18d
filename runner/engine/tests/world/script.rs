//! What the tape makes the model, the tools and the person do.

use std::collections::VecDeque;

use curfew_engine::event::{
    ApprovalOutcome, Block, Body, CallFacts, FailureKind, FileAccess, FileSeen, Finish,
    SandboxDenied, ToolCompleted, ToolErrorCode, Usage,
};
use curfew_engine::turn::io::Delta;

/// Numbers that decide. Over, it says 0 for ever.
pub struct Tape {
    numbers: Vec<u16>,
    at: usize,
}

impl Tape {
    pub fn new(numbers: Vec<u16>) -> Self {
        Self { numbers, at: 0 }
    }

    pub fn next(&mut self) -> u16 {
        let number = self.numbers.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        number
    }

    pub fn is_over(&self) -> bool {
        self.at >= self.numbers.len()
    }
}

#[derive(Clone, Debug)]
pub enum ModelMove {
    Delta(Delta),
    End(Finish, Option<Usage>),
    Fail(FailureKind, Option<u64>),
}

pub fn text(text: &str) -> Delta {
    Delta {
        block: Block::Text,
        text: text.to_owned(),
    }
}

pub fn call_piece(index: u32, name: Option<&str>, piece: &str) -> Delta {
    let id = name.map(|_| format!("m{index}"));
    Delta {
        block: Block::Call {
            index,
            id,
            name: name.map(str::to_owned),
        },
        text: piece.to_owned(),
    }
}

const NAMES: [&str; 8] = [
    "read", "grep", "bash", "write", "deploy", "read", "nope", "",
];
const ARGUMENTS: [&str; 7] = [
    "{\"a\":1}",
    "{\"a\":2}",
    "{}",
    "",
    "{\"a\":",
    "{\"bad\":true}",
    "[1]",
];

/// One request's stream. An empty tape gives a plain answer.
pub fn plan(tape: &mut Tape, stubborn: bool) -> VecDeque<ModelMove> {
    let usage = Some(Usage {
        input: 10,
        output: 2,
        cache_read: None,
    });
    let mut moves = VecDeque::new();
    if stubborn {
        moves.push_back(ModelMove::Delta(call_piece(0, Some("read"), "{\"a\":1}")));
        moves.push_back(ModelMove::End(Finish::ToolCalls, usage));
        return moves;
    }
    let kind = tape.next() % 16;
    if kind == 15 {
        moves.push_back(ModelMove::Fail(FailureKind::Auth, None));
        return moves;
    }
    if kind == 14 {
        moves.push_back(ModelMove::End(Finish::Stop, None));
        return moves;
    }
    moves.push_back(ModelMove::Delta(text("Let me ")));
    moves.push_back(ModelMove::Delta(text("see. ")));
    if kind % 3 == 1 {
        moves.push_back(ModelMove::Delta(Delta {
            block: Block::Reasoning,
            text: "hm".to_owned(),
        }));
    }
    if kind > 2 {
        calls(tape, &mut moves);
    }
    moves.push_back(match kind {
        13 => ModelMove::Fail(FailureKind::CutStream, Some(u64::from(tape.next() % 2000))),
        2 | 12 => ModelMove::End(Finish::Length, usage),
        11 => ModelMove::End(Finish::ContentFilter, usage),
        10 => ModelMove::Fail(
            FailureKind::Server,
            (tape.next().is_multiple_of(2)).then_some(5),
        ),
        // A provider may say `stop` and still have made calls.
        9 => ModelMove::End(Finish::Stop, usage),
        _ => ModelMove::End(
            if kind > 2 {
                Finish::ToolCalls
            } else {
                Finish::Stop
            },
            usage,
        ),
    });
    moves
}

/// Up to five calls, their pieces interleaved.
fn calls(tape: &mut Tape, moves: &mut VecDeque<ModelMove>) {
    let count = u32::from(1 + tape.next() % 5);
    let mut rests = Vec::new();
    for index in 0..count {
        let name = NAMES[usize::from(tape.next()) % NAMES.len()];
        let arguments = ARGUMENTS[usize::from(tape.next()) % ARGUMENTS.len()];
        let (head, rest) = arguments.split_at(arguments.len() / 2);
        moves.push_back(ModelMove::Delta(call_piece(index, Some(name), head)));
        rests.push((index, rest));
    }
    if tape.next().is_multiple_of(2) {
        rests.reverse();
    }
    for (index, rest) in rests {
        moves.push_back(ModelMove::Delta(call_piece(index, None, rest)));
    }
}

pub fn completion(call_id: &str, name: &str, killed: bool, variant: u16) -> ToolCompleted {
    let mut completed = super::plain_completion(
        call_id,
        if variant.is_multiple_of(2) {
            "same"
        } else {
            "other"
        },
    );
    completed.facts = CallFacts {
        killed,
        exit_code: (!killed).then_some(0),
        ..CallFacts::default()
    };
    if variant % 7 == 3 {
        completed.is_error = true;
        completed.error = Some(ToolErrorCode::Tool("not-found".to_owned()));
    }
    let access = match name {
        "read" => FileAccess::Read,
        "write" => FileAccess::Changed,
        _ => return completed,
    };
    completed.files = vec![FileSeen {
        path: format!("/w/{}", variant % 2),
        sha256: format!("{:064x}", variant % 3),
        bytes: 1,
        lines: 10,
        seen: vec![(u64::from(variant % 4) + 1, u64::from(variant % 4) + 3)],
        before_sha256: None,
        access,
    }];
    completed
}

pub fn denial(call_id: &str) -> Body {
    Body::SandboxDenied(SandboxDenied {
        call_id: call_id.to_owned(),
        op: "open".to_owned(),
        path: Some("/etc/passwd".to_owned()),
        address: None,
        errno: 30,
        layer: "mounts".to_owned(),
        rule: "r".to_owned(),
        remedy: "m".to_owned(),
        trust: "kernel".to_owned(),
        count: 1,
    })
}

/// What a person says, and whether for the arguments that were shown.
pub fn answer(number: u16) -> (ApprovalOutcome, bool) {
    let outcome = match number % 6 {
        0..=2 => ApprovalOutcome::AllowedOnce,
        3 => ApprovalOutcome::Denied,
        4 => ApprovalOutcome::Unavailable,
        _ => ApprovalOutcome::Cancelled,
    };
    (outcome, number % 4 != 3)
}
