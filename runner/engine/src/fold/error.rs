//! Why an event cannot follow the log before it.

use thiserror::Error;

use crate::surface::SurfaceError;

/// A refused event. The fold is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {seq} ({kind}): {rule}")]
pub struct FoldError {
    pub seq: u64,
    pub kind: String,
    pub rule: Rule,
}

/// The rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Rule {
    #[error("expected seq {expected}")]
    Seq { expected: u64 },
    #[error("unknown type that is not ignorable")]
    UnknownRequired,
    #[error("only surface nodes carry surfaceOp and sourceEventSeqs")]
    NotANode,
    #[error("a surface node needs {what}")]
    NodeNeeds { what: &'static str },
    #[error("no run is open: sandbox/confinement comes first")]
    NoRun,
    #[error("run {run} is still open")]
    RunOpen { run: u64 },
    #[error("it says run {found}, run {expected} is open")]
    RunNumber { found: u64, expected: u64 },
    #[error("no turn is open")]
    NoTurn,
    #[error("turn {turn} is still open")]
    TurnOpen { turn: u64 },
    #[error("it says turn {found}, expected {expected}")]
    TurnNumber { found: u64, expected: u64 },
    #[error("no step is open")]
    NoStep,
    #[error("step {step} is still open")]
    StepOpen { step: u64 },
    #[error("it says step {found}, expected {expected}")]
    StepNumber { found: u64, expected: u64 },
    #[error("no request/header is in force")]
    NoHeader,
    #[error("the header's reason must be {expected}")]
    HeaderReason { expected: &'static str },
    #[error("a number in it is not finite")]
    NotFinite,
    #[error("the step's request was already sent")]
    AlreadySent,
    #[error("the step's request was not sent")]
    NotSent,
    #[error("the step was already answered")]
    AlreadyAnswered,
    #[error("it belongs to attempt {found}, attempt {expected} is running")]
    Attempt { found: u32, expected: u32 },
    #[error("its sources must be exactly the chunks of its attempt, in order")]
    NotItsChunks,
    #[error("its calls are not those of its chunks: {what}")]
    NotItsCalls { what: &'static str },
    #[error("calls of a cut answer must be dropped")]
    CutCalls,
    #[error("call id {call_id} was already used")]
    CallIdUsed { call_id: String },
    #[error("call {call_id} is not one of this step")]
    NoSuchCall { call_id: String },
    #[error("call {call_id} is not known in this session")]
    UnknownCall { call_id: String },
    #[error("call {call_id} cannot take this now: {state}")]
    CallState {
        call_id: String,
        state: &'static str,
    },
    #[error("call {call_id}: {what} differs from what the model asked")]
    NotWhatWasAsked { call_id: String, what: &'static str },
    #[error("call {call_id}: code {code} does not fit how far the call came")]
    CompletionCode { call_id: String, code: String },
    #[error("results come in model order: {expected} is next")]
    ResultOrder { expected: String },
    #[error("its source must be the call's completion")]
    NotItsCompletion,
    #[error("call {call_id} lacks a result")]
    CallWithoutResult { call_id: String },
    #[error("what was streamed is in no answer")]
    StreamWithoutAnswer,
    #[error("an answer or a result is awaited")]
    Awaiting,
    #[error("a replaced result must cover exactly its own call's result and bring content")]
    ResultReplacement,
    #[error("only user messages and results replace")]
    CannotReplace,
    #[error("it would tear call {call_id} from its result")]
    TearsPair { call_id: String },
    #[error("it must name an event before it")]
    NotBefore,
    #[error(transparent)]
    Surface(#[from] SurfaceError),
}
