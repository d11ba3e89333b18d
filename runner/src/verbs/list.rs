//! `curfew session list`.

use curfew_store::Entry;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{faced, json as print_json, store};
use crate::output::{Printer, Reader};
use crate::session::storage;

pub fn run(as_json: bool) -> i32 {
    faced(|printer| {
        for entry in store()?.list().map_err(|error| storage(&error))? {
            if printer.reader() == Reader::Gone {
                break;
            }
            if as_json {
                print_json(printer, &object(&entry))?;
            } else {
                line(&entry, printer);
            }
        }
        Ok(0)
    })
}

fn object(entry: &Entry) -> Value {
    let mut object =
        json!({ "id": entry.id, "bytes": entry.bytes, "damaged": entry.damaged.is_some() });
    if let Some(header) = &entry.header {
        object["createdAt"] = json!(header.created_at);
        object["cwd"] = json!(header.cwd);
        object["profile"] = json!(header.profile);
        object["curfew"] = json!(header.curfew);
        object["host"] = json!(header.host);
    }
    if let Some(events) = entry.events {
        object["events"] = json!(events);
    }
    if entry.torn {
        object["torn"] = json!(true);
    }
    if let Some(why) = &entry.damaged {
        object["damage"] = json!(why);
    }
    object
}

fn line(entry: &Entry, printer: &mut Printer) {
    let (made, cwd) = match &entry.header {
        Some(header) => (moment(header.created_at), header.cwd.clone()),
        None => (String::from("-"), String::from("-")),
    };
    let events = entry
        .events
        .map_or_else(|| String::from("?"), |events| events.to_string());
    let state = match (&entry.damaged, entry.torn) {
        (Some(why), _) => format!("  DAMAGED: {why}"),
        (None, true) => String::from("  last record not whole"),
        (None, false) => String::new(),
    };
    printer.line(&format!(
        "{}  {made}  {events} events  {cwd}{state}",
        entry.id
    ));
}

/// UTC, to the second.
pub fn moment(ms: u64) -> String {
    let at = i64::try_from(ms / 1000)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    at.map_or_else(|| String::from("?"), |at| at.to_string())
}
