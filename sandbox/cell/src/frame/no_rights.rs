//! Frames without file descriptors, for systems that have no broker.

use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub fn send(mut stream: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    if fds.is_empty() {
        stream.write(bytes)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub fn recv(mut stream: &UnixStream, into: &mut [u8], _: &mut Vec<OwnedFd>) -> io::Result<usize> {
    stream.read(into)
}
