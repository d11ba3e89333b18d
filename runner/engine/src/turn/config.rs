//! What the machine is told once.

use crate::batch::Class;
use crate::wire::Wire;

pub struct EngineConfig {
    pub tools: Vec<ToolConfig>,
    /// The renderer of the request header in force.
    pub wire: Box<dyn Wire>,
    pub max_steps_per_turn: u64,
    pub max_steps_per_run: u64,
    /// Requests a step may make in all: the first and its retries.
    pub attempts_max: u32,
    /// How long a person may think about an approval; then nobody answered.
    pub ask_deadline_ms: u64,
}

pub struct ToolConfig {
    pub name: String,
    pub class: Class,
    pub asks: Asks,
    /// Judges raw arguments; the text of a refusal is shown to the model.
    pub validate: fn(&str) -> Result<(), String>,
    /// The last resort against a call that never ends, whatever its tool declares: it is killed
    /// then, and its result is written without it. Above the wall limit that the cell enforces.
    pub deadline_ms: u64,
}

/// Whether a person decides about each call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    Never,
    Always { why: String },
}

/// Longest prompt that is taken.
pub const PROMPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls of one answer that are run; more are dropped and the model is told.
pub const CALLS_PER_STEP_MAX: usize = 64;
/// After this a killed call is given up and its result written without it.
pub const KILL_GRACE_MS: u64 = 2_000;
/// First wait when an answer was empty; it doubles with each attempt.
pub const EMPTY_RETRY_MS: u64 = 500;
/// Answers cut by the length limit in a row, in one turn, after which the turn ends.
pub const LENGTH_CUTS_MAX: u32 = 3;
/// Identical calls with identical results at which the model is reminded.
pub const REPEAT_REMINDERS: [u32; 3] = [3, 5, 8];
/// One more than the last reminder: the turn ends.
pub const REPEATS_MAX: u32 = 9;
