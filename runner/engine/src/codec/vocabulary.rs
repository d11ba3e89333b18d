//! The one list of event types, used by readers and writers alike.

use serde_json::value::RawValue;

use super::{Cause, EncodeError};
use crate::event::{Body, Event};

macro_rules! vocabulary {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// The `type` of an event.
        pub fn type_name(body: &Body) -> &str {
            match body {
                $(Body::$variant(_) => $name,)+
                Body::Unknown { kind, .. } => kind,
            }
        }

        pub(super) fn encode_data(body: &Body) -> Result<String, EncodeError> {
            match body {
                $(Body::$variant(data) => {
                    serde_json::to_string(data).map_err(|source| EncodeError::Json { source })
                })+
                Body::Unknown { data, .. } => Ok(data.get().to_owned()),
            }
        }

        pub(super) fn decode_data(kind: &str, data: &RawValue, ignorable: bool) -> Result<Body, Cause> {
            match kind {
                $($name => serde_json::from_str(data.get())
                    .map(Body::$variant)
                    .map_err(|error| Cause::BadData { kind: kind.to_owned(), text: error.to_string() }),)+
                _ if ignorable => Ok(Body::Unknown { kind: kind.to_owned(), data: data.to_owned() }),
                _ => Err(Cause::UnknownRequired { kind: kind.to_owned() }),
            }
        }

        fn is_known(kind: &str) -> bool {
            matches!(kind, $($name)|+)
        }
    };
}

vocabulary! {
    TurnStart = "turn/start",
    TurnEnd = "turn/end",
    StepStart = "step/start",
    StepEnd = "step/end",
    UserMessage = "user/message",
    AssistantChunk = "assistant/chunk",
    AssistantMessage = "assistant/message",
    ToolCall = "tool/call",
    ToolCompleted = "tool/completed",
    ToolResult = "tool/result",
    RequestHeader = "request/header",
    RequestSent = "request/sent",
    ModelRetry = "model/retry",
    ApprovalAsked = "approval/asked",
    ApprovalDecided = "approval/decided",
    SandboxConfinement = "sandbox/confinement",
    SandboxDenied = "sandbox/denied",
    LimitHit = "limit/hit",
    WorkspaceChanged = "workspace/changed",
    CheckResult = "check/result",
    Result = "result",
}

/// A foreign event may be written only if every reader may skip it.
pub(super) fn check_foreign(kind: &str, event: &Event) -> Result<(), EncodeError> {
    if is_known(kind) {
        return Err(EncodeError::Untyped {
            kind: kind.to_owned(),
        });
    }
    if !event.ignorable {
        return Err(EncodeError::UnknownRequired {
            kind: kind.to_owned(),
        });
    }
    match &event.body {
        Body::Unknown { data, .. } if data.get().contains('\n') => Err(EncodeError::LineBreak),
        _ => Ok(()),
    }
}
