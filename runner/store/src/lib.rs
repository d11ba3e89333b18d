//! Session logs on disk: one directory a session, `log.jsonl` in it, one record a line.
//!
//! May touch the directory it was given and nothing else; 0700 and 0600 throughout. Knows bytes,
//! files, locks and threads; what a record means, how it is encoded and what a crash left open is
//! the engine's. What holds:
//!
//! - A session has one writer: an exclusive lock for its life, and a look at the length before each
//!   write. Reading needs no lock and changes nothing.
//! - A directory that bears an id has a durable header.
//! - Notes come in the order in which things happened: `Written` after the write, `Durable` after
//!   the flush that covers it. After a failed write or flush nothing more is taken.
//! - A log ends with a whole record, but for the trace of a crash in the last one, which the next
//!   opening cuts and says so. On a full disk the reserve takes the closing events.
//!
//! Start with [`Store`] (`store.rs`), then [`Writer`] (`writer.rs`) and what its thread does
//! (`commit.rs`). [`disk`] is the seam below all of it.

mod blobs;
mod commit;
pub mod disk;
mod error;
mod holder;
mod id;
mod lines;
mod list;
mod reader;
mod repair;
mod reserve;
mod store;
mod writer;

pub use blobs::{BLOB_BYTES_MAX, BLOB_PAGE_BYTES_MAX, Blobs, SESSION_BLOB_BYTES_MAX};
pub use commit::{Barrier, Note, Notify};
pub use error::{Cause, Damage, Holder, StoreError, WriteFault};
pub use id::ID_BYTES_MAX;
pub use list::{Entry, LIST_CHECK_BYTES_MAX};
pub use reader::{LogReader, Record, Tail, Torn};
pub use reserve::{CLOSING_BYTES, RESERVE_BYTES};
pub use store::{Inspected, LoadNote, Loaded, Store};
pub use writer::{Closed, Status, Takes, Writer};
