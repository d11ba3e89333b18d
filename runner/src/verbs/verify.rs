//! `curfew session verify ID`: is the log what it says it is?

use curfew_engine::verify::{Verified, Verifier};
use curfew_model::OpenAiChat;
use curfew_store::{StoreError, Tail};
use serde_json::json;

use super::{faced, json as print_json, store};
use crate::fault::{Fault, code};
use crate::output::Printer;
use crate::session::storage;

pub fn run(id: &str, as_json: bool) -> i32 {
    faced(|printer| match examine(id) {
        Ok((verified, head, tail)) => good(printer, as_json, &verified, &head, tail),
        Err(fault) if fault.code == code::STORAGE && as_json => {
            print_json(
                printer,
                &json!({ "consistent": false, "damage": fault.what }),
            )?;
            Err(fault)
        }
        Err(fault) => Err(fault),
    })
}

fn examine(id: &str) -> Result<(Verified, String, Tail), Fault> {
    let store = store()?;
    let mut reader = store.read(id).map_err(|error| storage(&error))?;
    let mut verifier = Verifier::new(reader.header().clone(), &[&OpenAiChat]);
    let mut blobs = Vec::new();
    while let Some(record) = reader.next_record().map_err(|error| storage(&error))? {
        verifier.event(&record.event).map_err(|error| {
            Fault::storage(format!(
                "line {}, byte {}: {error}",
                record.number, record.offset
            ))
        })?;
        if let curfew_engine::event::Body::ToolCompleted(completed) = record.event.body {
            blobs.extend(completed.blob.map(|blob| blob.sha256));
        }
    }
    check_blobs(&store, id, &blobs).map_err(|error| storage(&error))?;
    Ok((
        verifier.finish(),
        reader.chain().head().to_owned(),
        reader.tail(),
    ))
}

fn check_blobs(store: &curfew_store::Store, id: &str, blobs: &[String]) -> Result<(), StoreError> {
    let kept = store.blobs(id)?;
    blobs.iter().try_for_each(|sha256| kept.verify(sha256))
}

fn good(
    printer: &mut Printer,
    as_json: bool,
    verified: &Verified,
    head: &str,
    tail: Tail,
) -> Result<i32, Fault> {
    let torn = matches!(tail, Tail::Torn(_));
    if as_json {
        let document = json!({
            "consistent": !torn,
            "head": head,
            "events": verified.events,
            "turns": verified.turns,
            "steps": verified.steps,
            "requests": verified.requests,
            "torn": torn,
        });
        print_json(printer, &document)?;
    } else {
        let Verified {
            events,
            turns,
            steps,
            requests,
        } = verified;
        let counts = format!(
            "{events} events, {turns} turns, {steps} steps, {requests} requests made again"
        );
        let word = if torn { "torn" } else { "consistent" };
        printer.line(&format!(
            "{word} (not a proof of origin): {counts}; head {head}"
        ));
    }
    match tail {
        Tail::Torn(torn) => {
            let what = format!(
                "line {}, byte {}: the last record is not whole",
                torn.line, torn.offset
            );
            Err(Fault::storage(what).remedy("a resume cuts it; everything before it is intact"))
        }
        Tail::Ahead | Tail::Clean | Tail::NoNewline => Ok(0),
    }
}
