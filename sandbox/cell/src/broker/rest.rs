//! One descriptor for all that seldom happens.
//!
//! A write-open of a command waits while the broker polls, and poll(2) enters and leaves the wait
//! queue of each descriptor it is given. So a turn polls the listeners and one epoll(7) instance
//! that stands for everything else; only when that is ready is everything looked at.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

#[derive(Debug)]
pub struct Rest {
    epoll: OwnedFd,
}

impl Rest {
    pub fn new() -> io::Result<Rest> {
        Ok(Rest {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    pub fn add(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // Level-triggered, and which one it was is found by a poll of all.
        Ok(epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(0),
            EventFlags::IN,
        )?)
    }

    /// Before a descriptor is closed: a forked init may hold a copy, and then its end would be
    /// ready for ever.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        // It was added when it was made; without it there is nothing to remove.
        let removed = epoll::delete(&self.epoll, fd);
        debug_assert!(removed.is_ok());
    }
}

impl AsFd for Rest {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
