//! One-line errors: what happened, where, what helps, and the exit code of the class.

use std::fmt;

use curfew_engine::event::ErrorClass;

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

    /// What a run that ends with this says of itself.
    pub fn class(&self) -> Option<ErrorClass> {
        match self.code {
            code::PROVIDER => Some(ErrorClass::Provider),
            code::AUTH => Some(ErrorClass::Auth),
            code::SANDBOX => Some(ErrorClass::Sandbox),
            // A log that refuses what belongs in it takes nothing more.
            code::STORAGE | code::FAILED => Some(ErrorClass::Storage),
            _ => None,
        }
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

/// The entry of `known` closest to `typed`, if it is close enough to be what was meant: a slip of
/// the hand, or the beginning of a longer word.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const SIMILARITY_MIN: f64 = 0.7;
    let slips_max = 1.max(typed.chars().count() / 3);
    let close = |name: &str| {
        let slips = strsim::damerau_levenshtein(typed, name);
        let similar = strsim::jaro_winkler(typed, name);
        (slips <= slips_max || similar >= SIMILARITY_MIN).then_some((slips, similar))
    };
    known
        .into_iter()
        .filter_map(|name| close(name).map(|score| (score, name)))
        .min_by(|a, b| a.0.0.cmp(&b.0.0).then(b.0.1.total_cmp(&a.0.1)))
        .map(|(_, name)| name)
}
