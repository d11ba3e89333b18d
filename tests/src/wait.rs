//! Waiting for a condition, never for time to pass.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Whether a process of ours ends within `limit`: poll(2) on its pidfd.
pub fn ended(pid: u32, limit: Duration) -> bool {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // Gone and reaped already.
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll(2) on a pidfd: {error}"),
        }
    }
}

/// Whether a condition about the host comes true within `limit`. For facts that nothing can be
/// waited on, such as a file of another process appearing.
pub fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        pause(2_000_000);
    }
}

/// Gives the processor away between two looks at something that changes fast.
pub fn blink() {
    pause(50_000);
}

/// poll(2) on nothing.
fn pause(nanos: i64) {
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: nanos,
    };
    match poll(&mut [], Some(&tick)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => panic!("poll(2) on nothing: {error}"),
    }
}
