//! Frames between the supervisor, a broker and a worker.
//!
//! A frame is a little-endian u32 length, then that many bytes. A JSON frame is an object with
//! `v` and `kind`; bulk bytes travel in raw frames announced by a JSON frame. An unknown version
//! or an oversized frame ends the call: the peer is hostile.

/// Frame format version, the `v` of every JSON frame.
pub const VERSION: u32 = 1;
/// The most bytes a frame may hold.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
