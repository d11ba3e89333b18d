//! Sums and facts that outlive a turn: runs, files the model has seen, repeats.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{CheckResult, FileAccess, FileSeen, TurnEndReason, Usage};
use crate::hash::sha256_hex;

/// One run of curfew over the session: from `sandbox/confinement` to `result`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// 1 for the first.
    pub run: u64,
    pub started_ms: u64,
    /// Its `result` was logged.
    pub ended: bool,
    pub steps: u64,
    pub usage: Usage,
    pub denials: u64,
    pub changed: BTreeSet<String>,
    pub checks: Vec<CheckResult>,
    /// How its turns ended.
    pub reasons: Vec<TurnEndReason>,
    /// The last text the model answered with.
    pub final_message: Option<String>,
}

impl Run {
    pub(super) fn add_usage(&mut self, usage: &Usage) {
        add_usage(&mut self.usage, usage);
    }
}

pub(super) fn add_usage(sum: &mut Usage, usage: &Usage) {
    sum.input = sum.input.saturating_add(usage.input);
    sum.output = sum.output.saturating_add(usage.output);
    if let Some(read) = usage.cache_read {
        sum.cache_read = Some(sum.cache_read.unwrap_or(0).saturating_add(read));
    }
}

/// What the model has seen of a file, at one content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub sha256: String,
    /// 1-based inclusive line ranges: sorted, apart from each other.
    pub seen: Vec<(u64, u64)>,
}

pub type Files = BTreeMap<String, Observed>;

/// A later access replaces what was known; at the same content the ranges add up.
pub(super) fn observe(files: &mut Files, file: &FileSeen) {
    let mut seen = file.seen.clone();
    if file.access == FileAccess::Read
        && let Some(known) = files.get(&file.path)
        && known.sha256 == file.sha256
    {
        seen.extend_from_slice(&known.seen);
    }
    let observed = Observed {
        sha256: file.sha256.clone(),
        seen: merge(seen),
    };
    files.insert(file.path.clone(), observed);
}

fn merge(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.retain(|(first, last)| first <= last);
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// How often the model was shown the same result of the same call, without anything else between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeat {
    call: Streak,
    step: Streak,
    /// Calls and results of the open step.
    in_step: Vec<String>,
    highest_in_step: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Streak {
    key: String,
    count: u32,
}

impl Streak {
    fn add(&mut self, key: String) -> u32 {
        if self.key == key {
            self.count = self.count.saturating_add(1);
        } else {
            *self = Self { key, count: 1 };
        }
        self.count
    }
}

impl Repeat {
    pub(super) fn step_starts(&mut self) {
        self.in_step.clear();
        self.highest_in_step = 0;
    }

    pub(super) fn result(&mut self, name: &str, arguments: &str, content: &str) {
        let lengths = format!("{}:{}:", name.len(), arguments.len());
        let key = sha256_hex(&[
            lengths.as_bytes(),
            name.as_bytes(),
            arguments.as_bytes(),
            content.as_bytes(),
        ]);
        // Twice in one answer counts once: the model had not seen the result yet.
        let again = self.call.key == key && self.in_step.last() == Some(&key);
        if !again {
            let count = self.call.add(key.clone());
            self.highest_in_step = self.highest_in_step.max(count);
        }
        self.in_step.push(key);
    }

    pub(super) fn step_ends(&mut self) {
        if self.in_step.is_empty() {
            self.step = Streak::default();
        } else {
            let count = self.step.add(self.in_step.join(" "));
            self.highest_in_step = self.highest_in_step.max(count);
        }
    }

    /// The longest streak that the last step took part in: of one call, or of whole steps alike.
    pub fn streak(&self) -> u32 {
        self.highest_in_step
    }
}
