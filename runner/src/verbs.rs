//! Verbs that need no model.

pub mod demo;
pub mod doctor;
pub mod list;
pub mod replay;
pub mod sandbox;
pub mod show;
pub mod verify;
pub mod why;

use curfew_store::Store;

use crate::config::Environment;
use crate::fault::{Fault, code};
use crate::output::Printer;

/// Runs a verb and turns its fault into a line and a code.
fn faced(body: impl FnOnce(&mut Printer) -> Result<i32, Fault>) -> i32 {
    let mut printer = Printer::plain();
    let done = body(&mut printer);
    let fault = match done {
        Ok(code) => match printer.failure() {
            Some(fault) => fault,
            None => return code,
        },
        Err(fault) => fault,
    };
    printer.fault(&fault);
    fault.code
}

/// The sessions of this user.
fn store() -> Result<Store, Fault> {
    Ok(Store::new(
        Environment::read().state_dir()?.join("sessions"),
    ))
}

/// One JSON document or line of the product.
fn json(printer: &mut Printer, value: &serde_json::Value) -> Result<(), Fault> {
    let text = serde_json::to_string(value)
        .map_err(|error| Fault::new(code::FAILED, format!("internal: {error}")))?;
    printer.record(text.as_bytes());
    Ok(())
}
