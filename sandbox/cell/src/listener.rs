//! Answers the notifications of a call's syscall filter.
//!
//! Two kinds arrive. A refused call gets its errno from here, whatever its arguments are by now:
//! nothing is read that could change. An observed call is looked at for the report and always goes
//! on: the kernel decides it, by mounts and Landlock, so a race between the look and the decision
//! changes what is written down and nothing else (seccomp_unotify(2) forbids more).

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::evidence::Evidence;
use crate::filter;
use crate::look::{self, Shape};
use crate::plan::{SyscallAction, SyscallRule};
use crate::protocol::{Denial, Trust};
use crate::session::Fenced;
use crate::sys::seccomp::{self, Answer, Notification};
use crate::syscalls::name_of;

/// Whether a listener can still bring notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    Closed,
}

/// Takes one notification, answers it and notes what it was.
pub fn answer(listener: BorrowedFd<'_>, fenced: &Fenced, evidence: &mut Evidence) -> State {
    let asked = match seccomp::receive(listener) {
        Ok(asked) => asked,
        // Of a filter without tasks nothing can come, and its descriptor is ready for ever.
        Err(_) if hung_up(listener) => return State::Closed,
        Err(e) => return state_after(&e),
    };
    let row = fenced.rows.row_of(asked.nr, &asked.args);
    let reply = match row.map(|row| (row, row.action)) {
        Some((row, SyscallAction::Refuse { errno })) => {
            evidence.note(refused(row, &asked, errno));
            Answer::Refuse { errno }
        }
        Some((_, SyscallAction::Observe)) => {
            if let Some((op, shape)) = fenced.rows.shape_of(asked.nr)
                && let Some(denial) = fenced.lookout.foresee(op, shape, &asked)
                // Or what was read belongs to a task that got its pid.
                && seccomp::still_waits(listener, asked.id)
            {
                evidence.note(denial);
            }
            Answer::Continue
        }
        // The filter and the rows come from one list; a notification without a row is refused.
        Some((_, SyscallAction::Quiet { .. })) | None => Answer::Refuse { errno: libc::EPERM },
    };
    match seccomp::answer(listener, asked.id, reply) {
        Ok(()) => State::Open,
        Err(e) => state_after(&e),
    }
}

/// Whether no task is left under the filter (EPOLLHUP, seccomp_notify_poll).
fn hung_up(listener: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::empty())];
    matches!(poll(&mut fds, PollTimeout::ZERO), Ok(n) if n > 0)
}

/// ENOENT is one task that went away; anything else is the end of the listener.
fn state_after(error: &std::io::Error) -> State {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::EINTR | Errno::EAGAIN) => State::Open,
        _ => State::Closed,
    }
}

fn refused(row: &SyscallRule, asked: &Notification, errno: i32) -> Denial {
    Denial {
        op: name_of(asked.nr.into()).to_owned(),
        path: None,
        address: None,
        errno,
        layer: "seccomp".to_owned(),
        rule: row.rule.clone().into_owned(),
        remedy: "no profile opens this kernel interface to a call".to_owned(),
        trust: Trust::Kernel,
        count: 1,
    }
}

/// The rows a notification can come from, by syscall number.
pub struct Rows {
    by_number: Vec<(i32, SyscallRule)>,
    shapes: BTreeMap<i32, (&'static str, Shape)>,
}

impl Rows {
    /// Takes rows in the order in which the filter tries them.
    pub fn new<'a>(rows: impl Iterator<Item = &'a SyscallRule>) -> Rows {
        let known = rows.filter_map(|row| match crate::syscalls::by_name(&row.name) {
            Some(crate::syscalls::Known::Number(number)) => Some((number as i32, row.clone())),
            _ => None,
        });
        let mut by_number: Vec<_> = known.collect();
        by_number.sort_by_key(|(number, _)| *number);
        let shapes = by_number
            .iter()
            .filter(|(_, row)| row.action == SyscallAction::Observe)
            .filter_map(|(number, row)| Some((*number, look::shape_of(&row.name)?)))
            .collect();
        Rows { by_number, shapes }
    }

    fn shape_of(&self, number: i32) -> Option<(&'static str, Shape)> {
        self.shapes.get(&number).copied()
    }

    fn row_of(&self, number: i32, args: &[u64; 6]) -> Option<&SyscallRule> {
        let first = self.by_number.partition_point(|(n, _)| *n < number);
        self.by_number[first..]
            .iter()
            .take_while(|(n, _)| *n == number)
            .map(|(_, row)| row)
            .find(|row| filter::matches(row, args))
    }
}
