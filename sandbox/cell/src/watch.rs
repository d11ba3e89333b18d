//! What a session watches by inotify(7): masks that somebody opens, pinned names that the host
//! replaces under a running call.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::fault::At;
use crate::protect::Pins;
use crate::protocol::SetupFault;

const BUFFER_BYTES: usize = 16 << 10;

/// Why a path is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An open is a read attempt of something masked.
    Masked,
    /// The host unlinked or moved a pinned name: its read-only mount went with it.
    Pinned,
    /// The host moved a directory above one.
    Above,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub path: PathBuf,
    pub meaning: Meaning,
}

pub struct Watch {
    inotify: OwnedFd,
    paths: BTreeMap<i32, Seen>,
}

impl Watch {
    pub fn new() -> Result<Watch, SetupFault> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).at("watch")?;
        Ok(Watch {
            inotify,
            paths: BTreeMap::new(),
        })
    }

    /// Watches the inode that stands at `path` in this process's view.
    pub fn add(&mut self, path: &Path, meaning: Meaning) -> Result<(), SetupFault> {
        let events = match meaning {
            Meaning::Masked => WatchFlags::OPEN,
            // An unlinked inode that is still mounted is not deleted; its link count changes.
            Meaning::Pinned => WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF,
            Meaning::Above => WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF,
        };
        let flags = events | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
        let id = inotify::add_watch(&self.inotify, path, flags).at_path("watch", path)?;
        let seen = Seen {
            path: path.to_owned(),
            meaning,
        };
        self.paths.insert(id, seen);
        Ok(())
    }

    /// Watches everything that holds pins in place.
    pub fn pins(&mut self, pins: &Pins) -> Result<(), SetupFault> {
        for ancestor in pins.ancestors() {
            self.add(ancestor, Meaning::Above)?;
        }
        pins.names()
            .try_for_each(|name| self.add(&name, Meaning::Pinned))
    }

    /// What was seen since the last look. Never blocks.
    pub fn take(&self) -> Vec<Seen> {
        let mut space = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        let mut seen = Vec::new();
        loop {
            match reader.next() {
                // A full queue drops events: masks then lose a count, and a pinned name may have
                // been among them, which is what an overflow is taken for.
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    seen.extend(
                        self.paths
                            .values()
                            .find(|s| s.meaning == Meaning::Pinned)
                            .cloned(),
                    );
                }
                Ok(event) => seen.extend(self.paths.get(&event.wd()).cloned()),
                Err(Errno::INTR) => {}
                Err(_) => return seen,
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
