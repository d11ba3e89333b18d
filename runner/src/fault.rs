//! One-line errors: what happened, where, what helps, and the exit code of the class.

use std::fmt;

/// Exit codes, as `--help` and design list them. The codes of a turn's end are the engine's.
pub mod code {
    pub const FINISHED: i32 = 0;
    pub const FAILED: i32 = 1;
    pub const USAGE: i32 = 2;
    pub const PROVIDER: i32 = 5;
    pub const AUTH: i32 = 6;
    pub const SANDBOX: i32 = 7;
    pub const STORAGE: i32 = 11;
    pub const INTERRUPTED: i32 = 130;
    pub const TERMINATED: i32 = 143;
}

/// An error a person reads. It always fits one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: i32,
    pub what: String,
    pub remedy: Option<String>,
}

impl Fault {
    pub fn new(code: i32, what: impl Into<String>) -> Self {
        Fault {
            code,
            what: what.into(),
            remedy: None,
        }
    }

    pub fn usage(what: impl Into<String>) -> Self {
        Fault::new(code::USAGE, what)
    }

    pub fn storage(what: impl Into<String>) -> Self {
        Fault::new(code::STORAGE, what)
    }

    pub fn sandbox(what: impl Into<String>) -> Self {
        Fault::new(code::SANDBOX, what)
    }

    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = self.what.clone();
        if let Some(remedy) = &self.remedy {
            line.push_str("; ");
            line.push_str(remedy);
        }
        // Paths and server texts end up here: one line, and nothing a terminal would obey.
        out.write_str(&crate::output::inert::line(&line))
    }
}

impl std::error::Error for Fault {}

/// The entry of `known` closest to `typed`, if it is close enough to be what was meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const SIMILARITY_MIN: f64 = 0.7;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(score, _)| *score >= SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
