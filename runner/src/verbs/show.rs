//! `curfew session show ID`: what happened, in the order it happened.

use super::{faced, store};
use crate::fault::Fault;
use crate::output::{Printer, Reader};
use crate::session::storage;
use crate::ui::{self, Shown, Ui};

pub fn run(id: &str, raw: bool) -> i32 {
    faced(|printer| {
        if raw {
            lines(id, printer)
        } else {
            folded(id, printer)
        }
    })
}

fn lines(id: &str, printer: &mut Printer) -> Result<i32, Fault> {
    let mut reader = store()?.read(id).map_err(|error| storage(&error))?;
    printer.record(reader.header_line());
    while let Some(record) = reader.next_record().map_err(|error| storage(&error))? {
        if printer.reader() == Reader::Gone {
            break;
        }
        printer.record(record.line);
    }
    Ok(0)
}

fn folded(id: &str, printer: &mut Printer) -> Result<i32, Fault> {
    let mut reader = store()?.read(id).map_err(|error| storage(&error))?;
    let header = reader.header();
    let made = super::list::moment(header.created_at);
    printer.line(&format!("session {}  {made}  {}", header.id, header.cwd));
    let mut ui = Ui::default();
    while let Some(record) = reader.next_record().map_err(|error| storage(&error))? {
        if printer.reader() == Reader::Gone {
            break;
        }
        let mut shown = ui.event(&record.event);
        if let curfew_engine::event::Body::Result(result) = &record.event.body {
            shown.push(ui::result_line(result));
        }
        shown.into_iter().for_each(|shown| show(shown, printer));
    }
    printer.end_stream();
    Ok(0)
}

fn show(shown: Shown, printer: &mut Printer) {
    match shown {
        Shown::Line { text, .. } => {
            printer.end_stream();
            printer.line(&format!("  {text}"));
        }
        Shown::Prompt { from, text } => {
            printer.end_stream();
            printer.line(&format!("{from}:"));
            text.lines()
                .for_each(|line| printer.line(&format!("> {line}")));
        }
        Shown::Answer(text) => printer.stream(&text),
        Shown::Detail(_) => {}
    }
}
