//! Closing what a dead run left open, in the file. What to write is the engine's business
//! ([`curfew_engine::repair`]); here it is read, written and flushed.

use std::path::Path;

use curfew_engine::event::Event;
use curfew_engine::fold::{Fold, FoldError};
use curfew_engine::repair::{self, Closing};

use crate::commit::Core;
use crate::error::{Cause, StoreError, WriteFault};
use crate::reader::LogReader;

/// Folds the rest of a log, showing each event to `sink` as well.
pub(crate) fn fold_rest(
    reader: &mut LogReader,
    sink: &mut dyn FnMut(Event),
) -> Result<Fold, StoreError> {
    let mut fold = Fold::new(reader.header().clone());
    loop {
        let Some(record) = reader.next_record()? else {
            return Ok(fold);
        };
        if let Err(e) = fold.apply(&record.event) {
            let (number, offset, seq) = (record.number, record.offset, record.event.seq);
            return Err(reader.damage_at(number, offset, seq, Cause::Fold(e)));
        }
        sink(record.event);
    }
}

/// Appends what cold repair calls for, flushed. Returns it.
pub(crate) fn append(
    core: &mut Core,
    fold: &mut Fold,
    now_ms: u64,
) -> Result<Vec<Event>, StoreError> {
    let failed = |path: &Path, fault| StoreError::Write {
        path: path.to_owned(),
        fault,
    };
    let events = repair::plan(fold, now_ms).map_err(|e| failed(&core.path, not_closed(&e)))?;
    if events.is_empty() {
        return Ok(events);
    }
    for event in &events {
        fold.apply(event)
            .map_err(|e| failed(&core.path, not_closed(&e)))?;
    }
    core.commit_closing(&events);
    match core.fault() {
        None => Ok(events),
        Some(fault) => Err(failed(&core.path, fault)),
    }
}

/// On the writer thread of a run that can go no further: closes it with `error{storage}`, from
/// what is on disk. The run's own state may be ahead of that.
pub(crate) fn end_run(core: &mut Core, now_ms: u64) {
    let folded = LogReader::open(&*core.disk, &core.path, &core.id)
        .and_then(|mut reader| fold_rest(&mut reader, &mut |_| {}));
    let planned = match &folded {
        Ok(fold) => repair::close(fold, now_ms, Closing::Storage).map_err(|e| not_closed(&e)),
        Err(e) => Err(WriteFault::NotClosed(e.to_string())),
    };
    match planned {
        Ok(events) if events.is_empty() => {}
        Ok(events) => core.commit_closing(&events),
        Err(fault) => core.refuse(fault),
    }
}

fn not_closed(error: &FoldError) -> WriteFault {
    WriteFault::NotClosed(error.to_string())
}
