//! Installing a filter and talking to its listener (seccomp(2), seccomp_unotify(2)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use seccompiler::sock_filter;

use super::check;

/// linux/seccomp.h, Linux 6.6: the answering thread runs on the CPU of the asking one.
const SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: u64 = 1;

/// Installs `program` on the calling thread.
pub fn install(program: &[sock_filter]) -> io::Result<()> {
    set_filter(program, 0)?;
    Ok(())
}

/// Installs `program` and returns its listener.
///
/// WAIT_KILLABLE_RECV: a task whose notification was received is only interrupted by a fatal
/// signal, so that a Go program's preemption signals do not restart the call for ever.
pub fn install_with_listener(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let fd = set_filter(program, flags)?;
    // SAFETY: with NEW_LISTENER a successful call returns a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn set_filter(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    #[repr(C)]
    struct Program {
        len: libc::c_ushort,
        filter: *const sock_filter,
    }
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = Program {
        len,
        filter: program.as_ptr(),
    };
    // SAFETY: the kernel reads one struct sock_fprog (same layout as `Program`, linux/filter.h) and
    // `len` instructions from `filter`; both live until the call returns, and seccompiler's
    // sock_filter is repr(C) with the kernel's four members.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })
}

/// One system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    pub id: u64,
    /// In the reader's PID namespace.
    pub pid: i32,
    pub nr: i32,
    pub args: [u64; 6],
}

/// The answer to a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The kernel goes on with the call and decides.
    Continue,
    /// The call returns this errno.
    Refuse { errno: i32 },
}

/// Makes answers wake the asking task on this CPU. Kernels before 6.6 do not know it.
pub fn sync_wake_up(listener: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: SET_FLAGS takes its flags by value; no memory is involved.
    check(
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
                SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP,
            )
        }
        .into(),
    )?;
    Ok(())
}

/// Receives one notification. Blocks: poll first. ENOENT means its task is already gone.
pub fn receive(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    // SAFETY: seccomp_notif is plain integers and must be zeroed before the call (seccomp_unotify(2)).
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: NOTIF_RECV writes one struct seccomp_notif of the size encoded in the request number,
    // and `raw` is a live local of that type.
    check(
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut raw,
            )
        }
        .into(),
    )?;
    Ok(Notification {
        id: raw.id,
        pid: raw.pid as i32,
        nr: raw.data.nr,
        args: raw.data.args,
    })
}

/// Whether the task of a notification still waits. What was read from its memory before a "yes"
/// came from that task and not from one that got its pid.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: ID_VALID reads one u64 from the pointer, a live local.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const id,
        ) == 0
    }
}

/// Answers a notification. ENOENT means its task is gone.
pub fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> io::Result<()> {
    let (error, flags) = match answer {
        Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Answer::Refuse { errno } => (-errno, 0),
    };
    let mut response = libc::seccomp_notif_resp {
        id,
        val: 0,
        error,
        flags,
    };
    // SAFETY: NOTIF_SEND reads one struct seccomp_notif_resp, a live local of that type.
    check(
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut response,
            )
        }
        .into(),
    )?;
    Ok(())
}
