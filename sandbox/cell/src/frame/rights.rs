//! Sending and receiving with file descriptors attached (SCM_RIGHTS, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::FDS_MAX;

const SPACE_BYTES: usize = rustix::cmsg_space!(ScmRights(FDS_MAX));

/// NOSIGNAL: the broker runs with SIGPIPE at its default, because its children inherit that.
pub fn send(stream: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); SPACE_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let slices = [IoSlice::new(bytes)];
    Ok(sendmsg(stream, &slices, &mut control, SendFlags::NOSIGNAL)?)
}

/// Appends what arrives to `fds`, close-on-exec. The kernel closes those that do not fit; that is
/// an error, not a shorter list.
pub fn recv(stream: &UnixStream, into: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); SPACE_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(into)];
    let got = recvmsg(stream, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other("file descriptors were cut off"));
    }
    Ok(got.bytes)
}
