//! What curfew itself says to the model. Each is a `user/message` with source `notice`.

use crate::event::{MessageSource, UserMessage};

fn notice(name: &str, text: String) -> UserMessage {
    UserMessage {
        source: MessageSource::Notice {
            name: name.to_owned(),
        },
        text,
    }
}

pub(super) fn last_step(max_steps: u64) -> UserMessage {
    notice(
        "last-step",
        format!(
            "[curfew] The limit of {max_steps} steps is reached: this is the last one. Calls made now still run, but you \
             will not see their results. Say what is done and what is left."
        ),
    )
}

pub(super) fn dropped_calls(dropped: u32) -> UserMessage {
    notice(
        "dropped-calls",
        format!(
            "[curfew] Your answer was cut by the length limit. Its {dropped} tool call(s) may be incomplete and were not \
             run. Make the call again in smaller parts."
        ),
    )
}

pub(super) fn too_many_calls(dropped: u32, calls_max: usize) -> UserMessage {
    notice(
        "dropped-calls",
        format!(
            "[curfew] One answer may make {calls_max} tool calls. The last {dropped} were not run; make them again if they \
             are still needed."
        ),
    )
}

pub(super) fn repeat(count: u32, repeats_max: u32) -> UserMessage {
    notice(
        "repeat",
        format!(
            "[curfew] The same call has now given the same result {count} times. Try something else, or say why you \
             cannot go on. At {repeats_max} times this task is stopped."
        ),
    )
}
