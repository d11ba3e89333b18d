//! Frames between the supervisor, a broker and a worker.
//!
//! A frame is a little-endian u32 length, then that many bytes. A JSON frame is an object with
//! `v` and `kind`; bulk bytes travel in raw frames announced by a JSON frame. An unknown version
//! or an oversized frame ends the call: the peer is hostile.
//!
//! A [`Channel`] blocks. Give it a deadline before a peer that may stall: the deadline is for the
//! whole of a frame, so a peer that sends one byte a second does not extend it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
#[path = "frame/rights.rs"]
mod rights;
#[cfg(not(target_os = "linux"))]
#[path = "frame/no_rights.rs"]
mod rights;

/// Frame format version, the `v` of every JSON frame.
pub const VERSION: u32 = 1;
/// The most bytes a frame may hold.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// The most file descriptors a frame may carry.
pub const FDS_MAX: usize = 8;

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer ended the stream between two frames.
    #[error("the peer closed the channel")]
    Closed,
    /// The peer ended the stream inside a frame.
    #[error("the peer closed the channel inside a frame")]
    Cut,
    #[error("a frame of {bytes} bytes, at most {FRAME_BYTES_MAX} are allowed")]
    TooLarge { bytes: usize },
    #[error("announced bulk of {bytes} bytes, at most {most} are allowed")]
    BulkTooLarge { bytes: u64, most: u64 },
    /// A raw frame that does not fit what was announced.
    #[error("bulk frames do not add up to the announced {bytes} bytes")]
    BulkMismatch { bytes: u64 },
    #[error("frame version {found}, this side speaks {VERSION}")]
    Version { found: u32 },
    #[error("not a frame of the expected kind: {0}")]
    Json(#[from] serde_json::Error),
    #[error("what was sent is not a JSON object with a kind")]
    NotAnObject,
    #[error("more than {FDS_MAX} file descriptors on a frame")]
    TooManyFds,
    #[error("the peer did not answer in time")]
    Timeout,
    #[error("{op}: {source}")]
    Io {
        op: &'static str,
        #[source]
        source: io::Error,
    },
}

/// Whether file descriptors that the peer attaches are taken. A call is hostile: descriptors it
/// sends are closed by the kernel and never seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    Refused,
    Accepted,
}

/// A blocking stream of frames over a Unix stream socket.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    rights: Rights,
    deadline: Option<Instant>,
    buffer: Vec<u8>,
}

#[derive(Deserialize)]
struct Envelope {
    v: u32,
}

impl Channel {
    pub fn new(stream: UnixStream, rights: Rights) -> Channel {
        Channel {
            stream,
            rights,
            deadline: None,
            buffer: Vec::new(),
        }
    }

    /// Two connected ends, close-on-exec.
    pub fn pair(rights: Rights) -> Result<(Channel, Channel), FrameError> {
        let (a, b) = UnixStream::pair().map_err(|source| FrameError::Io {
            op: "socketpair",
            source,
        })?;
        Ok((Channel::new(a, rights), Channel::new(b, rights)))
    }

    /// A second handle on the same socket, e.g. to send from one thread and receive in another.
    pub fn try_clone(&self) -> Result<Channel, FrameError> {
        let stream = self.stream.try_clone().map_err(|source| FrameError::Io {
            op: "dup of the channel",
            source,
        })?;
        Ok(Channel::new(stream, self.rights))
    }

    /// From now on each send and receive fails with [`FrameError::Timeout`] at this instant.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Ends both directions; a peer blocked in a receive wakes up with [`FrameError::Closed`].
    pub fn shutdown(&self) -> Result<(), FrameError> {
        self.stream
            .shutdown(std::net::Shutdown::Both)
            .map_err(|source| FrameError::Io {
                op: "shutdown",
                source,
            })
    }

    /// Sends `body`, which must serialize to an object (a tagged enum), with `fds` attached to its
    /// first byte.
    pub fn send_json<T: Serialize>(
        &mut self,
        body: &T,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), FrameError> {
        if fds.len() > FDS_MAX {
            return Err(FrameError::TooManyFds);
        }
        let json = serde_json::to_vec(body)?;
        let Some(rest) = json.strip_prefix(b"{\"") else {
            return Err(FrameError::NotAnObject);
        };
        let mut bytes = Vec::with_capacity(json.len() + 16);
        bytes.extend_from_slice(format!("{{\"v\":{VERSION},\"").as_bytes());
        bytes.extend_from_slice(rest);
        self.send_frame(&bytes, fds)
    }

    /// Sends bulk bytes as one raw frame.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.send_frame(bytes, &[])
    }

    /// Sends bytes of any length as as many raw frames as it takes (none when empty).
    pub fn send_bulk(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        bytes
            .chunks(FRAME_BYTES_MAX)
            .try_for_each(|chunk| self.send_raw(chunk))
    }

    /// Receives a JSON frame and the descriptors on it (always none when rights are refused).
    pub fn recv_json<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>), FrameError> {
        let mut fds = Vec::new();
        let mut buffer = std::mem::take(&mut self.buffer);
        let parsed = self
            .recv_frame(&mut buffer, &mut fds)
            .and_then(|()| parse(&buffer));
        self.buffer = buffer;
        Ok((parsed?, fds))
    }

    /// Receives one raw frame.
    pub fn recv_raw(&mut self) -> Result<Vec<u8>, FrameError> {
        let mut bytes = Vec::new();
        self.recv_frame(&mut bytes, &mut Vec::new())?;
        Ok(bytes)
    }

    /// Receives the raw frames of [`Channel::send_bulk`]: exactly `bytes` in all, at most `most`.
    pub fn recv_bulk(&mut self, bytes: u64, most: u64) -> Result<Vec<u8>, FrameError> {
        if bytes > most {
            return Err(FrameError::BulkTooLarge { bytes, most });
        }
        let mut bulk = Vec::new();
        while (bulk.len() as u64) < bytes {
            let frame = self.recv_raw()?;
            if frame.is_empty() || (bulk.len() + frame.len()) as u64 > bytes {
                return Err(FrameError::BulkMismatch { bytes });
            }
            bulk.extend_from_slice(&frame);
        }
        Ok(bulk)
    }

    fn send_frame(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), FrameError> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes: bytes.len() });
        }
        // One buffer, so that a small frame is one system call and one packet of rights.
        let mut frame = Vec::with_capacity(bytes.len() + 4);
        frame.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        frame.extend_from_slice(bytes);
        let mut sent = 0;
        let mut fds = fds;
        while sent < frame.len() {
            self.arm("send")?;
            match rights::send(&self.stream, &frame[sent..], fds) {
                Ok(n) => {
                    sent += n;
                    fds = &[];
                }
                Err(e) => retry("send", e)?,
            }
        }
        Ok(())
    }

    fn recv_frame(&mut self, into: &mut Vec<u8>, fds: &mut Vec<OwnedFd>) -> Result<(), FrameError> {
        let mut head = [0; 4];
        self.fill(&mut head, fds, FrameError::Closed)?;
        let bytes = u32::from_le_bytes(head) as usize;
        if bytes > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes });
        }
        into.clear();
        into.resize(bytes, 0);
        self.fill(into, fds, FrameError::Cut)
    }

    /// Fills `buffer`; the end of the stream before its first byte is `at_start`.
    fn fill(
        &mut self,
        buffer: &mut [u8],
        fds: &mut Vec<OwnedFd>,
        at_start: FrameError,
    ) -> Result<(), FrameError> {
        let mut got = 0;
        while got < buffer.len() {
            self.arm("receive")?;
            let rest = &mut buffer[got..];
            let received = match self.rights {
                Rights::Accepted => rights::recv(&self.stream, rest, fds),
                Rights::Refused => io::Read::read(&mut self.stream, rest),
            };
            match received {
                Ok(0) if got == 0 => return Err(at_start),
                Ok(0) => return Err(FrameError::Cut),
                Ok(n) => got += n,
                Err(e) => retry("receive", e)?,
            }
            if fds.len() > FDS_MAX {
                return Err(FrameError::TooManyFds);
            }
        }
        Ok(())
    }

    /// Sets the socket's timeouts to what is left of the deadline.
    fn arm(&mut self, op: &'static str) -> Result<(), FrameError> {
        let Some(deadline) = self.deadline else {
            return Ok(());
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(FrameError::Timeout);
        }
        // SO_RCVTIMEO counts in microseconds and reads zero as "for ever".
        let left = Some(left.max(Duration::from_micros(1)));
        self.stream
            .set_read_timeout(left)
            .and_then(|()| self.stream.set_write_timeout(left))
            .map_err(|source| FrameError::Io { op, source })
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl From<OwnedFd> for Channel {
    /// A channel that takes no descriptors, as between a worker and the supervisor.
    fn from(fd: OwnedFd) -> Channel {
        Channel::new(UnixStream::from(fd), Rights::Refused)
    }
}

/// `Ok` when the operation should be tried again. A timeout of the socket comes back here and is
/// found by the next look at the deadline.
fn retry(op: &'static str, error: io::Error) -> Result<(), FrameError> {
    match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(()),
        // A peer that is gone: one meaning, whichever direction finds it first.
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Err(FrameError::Closed),
        _ => Err(FrameError::Io { op, source: error }),
    }
}

/// The version is judged before anything else is looked at.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    let envelope: Envelope = serde_json::from_slice(bytes)?;
    if envelope.v != VERSION {
        return Err(FrameError::Version { found: envelope.v });
    }
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests;
