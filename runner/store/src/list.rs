//! All sessions, newest first. One that is damaged is listed like the others and says why.

use curfew_engine::event::Header;

use crate::disk::Kind;
use crate::error::StoreError;
use crate::id;
use crate::reader::{LogReader, Tail};
use crate::store::Store;

/// How much log `list` reads to find damage. Beyond it only the header of a session is checked.
pub const LIST_CHECK_BYTES_MAX: u64 = 256 << 20;

/// One line of a listing.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: String,
    /// `None` when it cannot be read.
    pub header: Option<Header>,
    /// Size of the log.
    pub bytes: u64,
    /// Number of events that are intact; `None` when only the header was read.
    pub events: Option<u64>,
    /// Why the session cannot be opened.
    pub damaged: Option<String>,
    /// The last record is not whole. Of a session that is being written this means nothing; of
    /// another that the next resume will cut it.
    pub torn: bool,
}

impl Store {
    /// Every session below the root.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let ids = id::all(self.disk(), self.root())?;
        let mut entries: Vec<Entry> = ids.into_iter().map(|id| self.entry(id)).collect();
        entries.sort_by(|a, b| (created_at(b), &b.id).cmp(&(created_at(a), &a.id)));
        let mut budget = LIST_CHECK_BYTES_MAX;
        for entry in &mut entries {
            if entry.damaged.is_none() && entry.bytes <= budget {
                budget -= entry.bytes;
                self.check(entry);
            }
        }
        Ok(entries)
    }

    fn entry(&self, id: String) -> Entry {
        let mut entry = Entry {
            id,
            header: None,
            bytes: 0,
            events: None,
            damaged: None,
            torn: false,
        };
        let read = self.log_path(&entry.id).and_then(|path| {
            if let Ok(Kind::File { bytes }) = self.disk().kind(&path) {
                entry.bytes = bytes;
            }
            LogReader::open(self.disk(), &path, &entry.id)
        });
        match read {
            Ok(reader) => entry.header = Some(reader.header().clone()),
            Err(e) => entry.damaged = Some(e.to_string()),
        }
        entry
    }

    fn check(&self, entry: &mut Entry) {
        let checked = self.read(&entry.id).and_then(|mut reader| {
            let tail = reader.check();
            entry.events = Some(reader.next_seq());
            tail
        });
        match checked {
            Ok(tail) => entry.torn = matches!(tail, Tail::Torn(_)),
            Err(e) => entry.damaged = Some(e.to_string()),
        }
    }
}

fn created_at(entry: &Entry) -> u64 {
    entry.header.as_ref().map_or(0, |header| header.created_at)
}
