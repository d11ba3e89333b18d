//! Denials of one call, counted and bounded.

use std::collections::BTreeMap;

use crate::protocol::{Denial, Trust};
use crate::watch::{Meaning, Seen};

/// Different denials kept of one call; the rest only counts, in one line that says so.
const DENIALS_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct Evidence {
    /// By what makes two denials the same: operation, object, errno, layer.
    denials: BTreeMap<(String, Option<String>, i32, String), Denial>,
    dropped: u64,
    /// The kernel answers notifications the slow way.
    pub slow: bool,
}

impl Evidence {
    pub fn note(&mut self, denial: Denial) {
        let object = denial.path.clone().or_else(|| denial.address.clone());
        let key = (
            denial.op.clone(),
            object,
            denial.errno,
            denial.layer.clone(),
        );
        if let Some(known) = self.denials.get_mut(&key) {
            known.count += denial.count;
        } else if self.denials.len() < DENIALS_MAX {
            self.denials.insert(key, denial);
        } else {
            self.dropped += denial.count;
        }
    }

    /// What the session's watch saw while this call ran.
    pub fn note_watch(&mut self, seen: &[Seen]) {
        for seen in seen.iter().filter(|s| s.meaning == Meaning::Masked) {
            self.note(Denial {
                op: "read-masked".to_owned(),
                path: Some(seen.path.to_string_lossy().into_owned()),
                address: None,
                errno: 0,
                layer: "mounts".to_owned(),
                rule: "mask".to_owned(),
                remedy: "the profile hides this path; remove it from `mask` to show it".to_owned(),
                trust: Trust::Kernel,
                count: 1,
            });
        }
    }

    /// Pinned names that were replaced from outside; the call was ended for it.
    pub fn note_replaced(&mut self, seen: &[Seen]) {
        for seen in seen.iter().filter(|s| s.meaning != Meaning::Masked) {
            self.note(Denial {
                op: "replaced-outside".to_owned(),
                path: Some(seen.path.to_string_lossy().into_owned()),
                address: None,
                errno: 0,
                layer: "mounts".to_owned(),
                rule: "protected-names".to_owned(),
                remedy: "it was replaced outside while the call ran, so the call was ended; run it again"
                    .to_owned(),
                trust: Trust::Kernel,
                count: 1,
            });
        }
    }

    pub fn into_denials(self) -> Vec<Denial> {
        let mut denials: Vec<Denial> = self.denials.into_values().collect();
        if self.dropped > 0 {
            denials.push(Denial {
                op: "more".to_owned(),
                path: None,
                address: None,
                errno: 0,
                layer: "seccomp".to_owned(),
                rule: "denials-max".to_owned(),
                remedy: format!("only {DENIALS_MAX} different denials of a call are kept"),
                trust: Trust::Kernel,
                count: self.dropped,
            });
        }
        denials
    }
}
