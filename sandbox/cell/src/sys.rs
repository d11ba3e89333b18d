//! System calls that nix and rustix do not wrap, and the only `unsafe` of the workspace.
//!
//! Each function is safe to call: whatever its system call demands of its arguments is held by the
//! types or established inside, and each block says how. Seccomp lives in [`seccomp`].

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::mount::MountAttrFlags;

pub mod seccomp;

/// What a new process starts with.
pub struct Spawned {
    pub pid: libc::pid_t,
    /// Close-on-exec, names exactly this process even after its pid is reused.
    pub pidfd: OwnedFd,
}

/// clone3(2) as fork: `None` in the child. `namespaces` are CLONE_NEW* flags.
///
/// Unlike fork(3) it runs no handlers of libc; the child of a single-threaded process can still
/// allocate, because no other thread can have held a lock.
pub fn clone_into(namespaces: libc::c_int) -> io::Result<Option<Spawned>> {
    let mut pidfd: RawFd = -1;
    let mut args = libc::clone_args {
        flags: (namespaces | libc::CLONE_PIDFD) as u64,
        pidfd: &raw mut pidfd as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    // SAFETY: clone3 reads `size` bytes of `args`, a live local of exactly that size, and writes one
    // int through `pidfd`, which points to a live local. Without CLONE_VM and with stack 0 the child
    // gets its own copy of the memory and goes on on a copy of this very stack, so no Rust object is
    // shared; CLONE_SETTLS is not asked for, so the thread register stays valid. The broker and init
    // have one thread (`single_threaded` is checked at start), so no lock can be held in the child.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    })?;
    if pid == 0 {
        return Ok(None);
    }
    // SAFETY: with CLONE_PIDFD a successful clone3 has stored a new descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Some(Spawned {
        pid: pid as libc::pid_t,
        pidfd,
    }))
}

/// Bytes of stack for [`spawn_sharing_memory`]: what a command's set-up needs, many times over.
const SPAWN_STACK_BYTES: usize = 256 << 10;

/// A child that shares this process's memory until it executes a program or ends, during which this
/// process stands still (clone(2), CLONE_VM and CLONE_VFORK; what posix_spawn(3) does). `body` runs
/// in the child and returns its exit code if it does not execute anything.
///
/// Descriptors, credentials, signal mask and working directory are the child's own. What `body`
/// changes in memory stays changed here, so it must leave behind only what may stay.
pub fn spawn_sharing_memory(mut body: &mut dyn FnMut() -> i32) -> io::Result<libc::pid_t> {
    extern "C" fn enter(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `argument` is the pointer to `body` passed to clone below. The parent is suspended
        // until this process has executed a program or ended, so that frame is alive and nobody
        // else uses the reference.
        let body = unsafe { &mut *argument.cast::<&mut dyn FnMut() -> i32>() };
        body()
    }
    let mut stack = vec![0u128; SPAWN_STACK_BYTES / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: `top` is the aligned upper end of a live buffer that the child alone uses as its stack;
    // with CLONE_VFORK the parent does not run, and so does not free it, before the child has left
    // this memory. `enter` has the required signature and a panic in it aborts the child (extern
    // "C"). No thread exists that could hold a lock the child needs.
    let pid =
        check(unsafe { libc::clone(enter, top.cast(), flags, (&raw mut body).cast()) }.into())?;
    drop(stack);
    Ok(pid as libc::pid_t)
}

/// Ends the process without running destructors or exit handlers: what a forked child must do.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}

/// What to do with a range of descriptors.
#[derive(Clone, Copy, Debug)]
pub enum CloseRange {
    Close,
    /// Only mark them close-on-exec.
    OnExec,
}

/// close_range(2) over descriptors of the caller that no Rust object of this process uses any more,
/// or, with [`CloseRange::OnExec`], over any.
///
/// Closing is for a freshly forked child that lists in `keep` what it goes on using and never runs
/// the destructors of the rest ([`exit_now`] or exec).
pub fn close_except(keep: &[RawFd], how: CloseRange) -> io::Result<()> {
    let flags = match how {
        CloseRange::Close => 0,
        CloseRange::OnExec => libc::CLOSE_RANGE_CLOEXEC,
    };
    let mut keep: Vec<u32> = keep.iter().map(|fd| *fd as u32).collect();
    keep.sort_unstable();
    let mut first = 0u32;
    for kept in keep {
        if kept > first {
            close_gap(first, kept - 1, flags)?;
        }
        first = first.max(kept + 1);
    }
    close_gap(first, u32::MAX, flags)
}

fn close_gap(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: close_range takes no pointers. That descriptors vanish under their owners is the
    // contract of `close_except`: the caller is a child that only goes on with what it keeps.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) })?;
    Ok(())
}

/// mount_setattr(2) with AT_EMPTY_PATH on a mount's descriptor: sets and clears attributes.
pub fn mount_setattr(
    mount: BorrowedFd<'_>,
    reach: Reach,
    set: MountAttrFlags,
    clear: MountAttrFlags,
) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        attr_set: u64,
        attr_clr: u64,
        propagation: u64,
        userns_fd: u64,
    }
    let attr = MountAttr {
        attr_set: u64::from(set.bits()),
        attr_clr: u64::from(clear.bits()),
        propagation: 0,
        userns_fd: 0,
    };
    let flags = match reach {
        Reach::One => libc::AT_EMPTY_PATH,
        Reach::Below => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is a NUL-terminated literal; `attr` is a live local laid out as struct
    // mount_attr version 0 (four u64, linux/mount.h) and its exact size is passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })?;
    Ok(())
}

/// How far [`mount_setattr`] reaches.
#[derive(Clone, Copy, Debug)]
pub enum Reach {
    One,
    Below,
}

/// Every ignored signal back to its default: an ignored one stays ignored over exec (execve(2)),
/// and a command that never sees SIGPIPE loops for ever.
///
/// By the system call itself: libc keeps the two real-time signals it uses from sigaction(3), and
/// a parent may have left those ignored as well.
pub fn reset_ignored_signals() -> io::Result<()> {
    const SIGNALS: libc::c_long = 64;
    const SET_BYTES: usize = 8;
    /// No smaller than the kernel's struct sigaction on any architecture; the handler is first.
    type Action = [usize; 4];
    let default: Action = [libc::SIG_DFL; 4];
    for signal in 1..=SIGNALS {
        if [libc::SIGKILL as _, libc::SIGSTOP as _].contains(&signal) {
            continue;
        }
        let mut old: Action = default;
        // SAFETY: rt_sigaction reads nothing with a null `act` and writes one kernel sigaction to
        // `old`, a live local that is large enough; the set size is the kernel's own.
        check(unsafe {
            let act = std::ptr::null::<Action>();
            libc::syscall(libc::SYS_rt_sigaction, signal, act, &raw mut old, SET_BYTES)
        })?;
        if old[0] != libc::SIG_IGN {
            continue;
        }
        // SAFETY: all zeroes is SIG_DFL without flags and an empty mask; no function of ours becomes
        // a handler, so there is none whose async-signal-safety would matter.
        check(unsafe {
            let old = std::ptr::null_mut::<Action>();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const default,
                old,
                SET_BYTES,
            )
        })?;
    }
    Ok(())
}

/// A fresh, empty session keyring for this process and its children (keyctl(2)).
pub fn join_new_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name means a new anonymous keyring; no memory is read.
    check(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    })?;
    Ok(())
}

/// Sets an interface up (netdevice(7), SIOCSIFFLAGS). `socket` is any inet socket.
pub fn interface_up(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: ifreq is plain integers, arrays and a union of such; all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one struct ifreq, a live local whose name is NUL-terminated by the
    // length check above, with the flags member of the union set.
    check(
        unsafe {
            libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCSIFFLAGS as _,
                &raw mut request,
            )
        }
        .into(),
    )?;
    Ok(())
}

/// The Landlock ABI of the running kernel (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
pub fn landlock_abi() -> io::Result<u32> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the attribute must be null and its size 0; no memory is touched and no
    // descriptor is made.
    let abi = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            VERSION,
        )
    })?;
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// The result of a system call as libc reports it.
fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
