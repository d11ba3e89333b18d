//! `curfew session replay ID --step N`: the exact bytes that were sent, made again from the log.

use curfew_engine::verify::{VerifyError, request_of_step};
use curfew_model::OpenAiChat;

use super::{faced, store};
use crate::fault::Fault;
use crate::session::storage;

pub fn run(id: &str, step: u64) -> i32 {
    faced(|printer| {
        let session = store()?.inspect(id).map_err(|error| storage(&error))?;
        let body = request_of_step(session.header, &session.events, step, &[&OpenAiChat]).map_err(
            |error| match error {
                VerifyError::NoSuchStep { .. } | VerifyError::NothingSent { .. } => {
                    Fault::usage(error.to_string())
                }
                _ => Fault::storage(error.to_string()),
            },
        )?;
        printer.bytes(&body.bytes);
        Ok(0)
    })
}
