//! Which calls of an answer may run now, and which results may be shown.
//!
//! Exclusive is the default and runs alone; safe calls run together, a bounded number at once.
//! Results are committed strictly in model order: the pointer only moves forward, over calls that
//! are done, whatever order they finished in.

/// How a tool shares the workspace with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Only reads; may run beside other safe calls.
    Safe,
    /// Runs alone: nothing before it is unfinished, nothing after it has started.
    Exclusive,
}

/// Safe calls running at once.
pub const SAFE_RUNNING_MAX: usize = 4;

#[derive(Clone, Debug)]
pub struct Batch {
    slots: Vec<(Class, Progress)>,
    committed: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Waiting,
    Running,
    Done,
}

impl Batch {
    /// One slot for each call, in model order.
    pub fn new(classes: impl IntoIterator<Item = Class>) -> Self {
        Self {
            slots: classes
                .into_iter()
                .map(|class| (class, Progress::Waiting))
                .collect(),
            committed: 0,
        }
    }

    /// Marks every call that may start now as running and names them in model order.
    pub fn admit(&mut self) -> Vec<usize> {
        let mut admitted = Vec::new();
        let mut running = self
            .slots
            .iter()
            .filter(|slot| slot.1 == Progress::Running)
            .count();
        let mut all_before_done = true;
        for (at, (class, progress)) in self.slots.iter_mut().enumerate() {
            match (*class, *progress) {
                (_, Progress::Done) => continue,
                (Class::Exclusive, Progress::Waiting) if all_before_done => {
                    *progress = Progress::Running;
                    admitted.push(at);
                    break;
                }
                (Class::Exclusive, _) => break,
                (Class::Safe, Progress::Waiting) if running < SAFE_RUNNING_MAX => {
                    *progress = Progress::Running;
                    running += 1;
                    admitted.push(at);
                }
                (Class::Safe, _) => {}
            }
            all_before_done = false;
        }
        admitted
    }

    /// The call ended, or will never start.
    pub fn finish(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at) {
            slot.1 = Progress::Done;
        }
    }

    /// Calls that have not started, in model order.
    pub fn waiting(&self) -> Vec<usize> {
        let waiting = |at: &usize| self.slots[*at].1 == Progress::Waiting;
        (0..self.slots.len()).filter(waiting).collect()
    }

    /// Calls whose results may be shown now and were not yet, in model order.
    pub fn commit(&mut self) -> std::ops::Range<usize> {
        let from = self.committed;
        while self
            .slots
            .get(self.committed)
            .is_some_and(|slot| slot.1 == Progress::Done)
        {
            self.committed += 1;
        }
        from..self.committed
    }

    /// Every result was committed.
    pub fn is_over(&self) -> bool {
        self.committed == self.slots.len()
    }
}

#[cfg(test)]
mod tests;
