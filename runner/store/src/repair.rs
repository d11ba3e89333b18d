//! Closing what a dead run left open, in the file. What to write is the engine's business
//! ([`curfew_engine::repair`]); here it is read, written and flushed.

use curfew_engine::event::Event;
use curfew_engine::fold::Fold;

use crate::commit::Core;
use crate::error::{Cause, StoreError, WriteFault};
use crate::reader::LogReader;

/// Folds the rest of a log, showing each event to `sink` as well.
pub(crate) fn fold_rest(reader: &mut LogReader, sink: &mut dyn FnMut(Event)) -> Result<Fold, StoreError> {
    let mut fold = Fold::new();
    loop {
        let Some(record) = reader.next_record()? else { return Ok(fold) };
        if let Err(e) = fold.apply(&record.event) {
            let (number, offset, seq) = (record.number, record.offset, record.event.seq);
            return Err(reader.damage_at(number, offset, seq, Cause::Fold(e.to_string())));
        }
        sink(record.event);
    }
}

/// Appends what cold repair calls for, flushed. Returns it.
pub(crate) fn append(core: &mut Core, fold: &mut Fold, now_ms: u64) -> Result<Vec<Event>, StoreError> {
    let events = curfew_engine::repair::plan(fold, now_ms);
    if events.is_empty() {
        return Ok(events);
    }
    for event in &events {
        if let Err(e) = fold.apply(event) {
            let fault = WriteFault::Encode { seq: event.seq, error: format!("repair does not fold: {e}") };
            return Err(StoreError::Write { path: core.path.clone(), fault });
        }
    }
    core.commit_closing(&events);
    match core.fault() {
        None => Ok(events),
        Some(fault) => Err(StoreError::Write { path: core.path.clone(), fault }),
    }
}

/// On the writer thread: the run's own events no longer fit, so it is closed from what is on disk.
pub(crate) fn close(core: &mut Core, now_ms: u64) {
    let folded = LogReader::open(&*core.disk, &core.path, &core.id)
        .and_then(|mut reader| fold_rest(&mut reader, &mut |_| {}));
    match folded {
        Ok(fold) => {
            let events = curfew_engine::repair::plan(&fold, now_ms);
            if !events.is_empty() {
                core.commit_closing(&events);
            }
        }
        Err(e) => core.refuse(WriteFault::Write(e.to_string())),
    }
}
