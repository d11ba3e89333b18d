//! Time and signals, as happenings.

use std::time::Duration;

use curfew_engine::outcome::Signal;
use curfew_engine::turn::io::TimerId;
use tokio::signal::unix::{SignalKind, signal};

use super::{Happening, Tell, now_ms};
use crate::fault::{Fault, code};

/// How long a second Ctrl-C waits for the log before it leaves anyway.
const LEAVE: Duration = Duration::from_secs(2);

/// Wakes the engine at `at_ms`, epoch milliseconds.
pub(super) fn set(id: TimerId, at_ms: u64, tell: Tell) {
    let wait = Duration::from_millis(at_ms.saturating_sub(now_ms()));
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        drop(tell.send(Happening::Due(id)));
    });
}

/// `--timeout`.
pub fn time_up_after(wait: Duration, tell: Tell) {
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        drop(tell.send(Happening::TimeUp));
    });
}

/// From here on SIGINT, SIGTERM and SIGHUP are happenings.
pub fn listen(tell: &Tell) -> Result<(), Fault> {
    let kinds = [
        (SignalKind::interrupt(), Signal::Interrupt),
        (SignalKind::terminate(), Signal::Terminate),
        (SignalKind::hangup(), Signal::Terminate),
    ];
    for (kind, meaning) in kinds {
        let mut source = signal(kind).map_err(|error| {
            Fault::new(code::FAILED, format!("cannot listen for signals: {error}"))
        })?;
        let tell = tell.clone();
        tokio::spawn(async move {
            while source.recv().await.is_some() {
                if tell.send(Happening::Signal(meaning)).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// A person who asks twice is let go, whatever still hangs; cold repair closes the log.
pub(super) fn leave_soon(signal: Signal) {
    let code = curfew_engine::outcome::ExitCode::Signal(signal).code();
    let spawned = std::thread::Builder::new()
        .name(String::from("leave"))
        .spawn(move || {
            std::thread::sleep(LEAVE);
            std::process::exit(code);
        });
    if spawned.is_err() {
        std::process::exit(code);
    }
}
