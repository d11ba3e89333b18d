//! How long to wait for what, and waiting that ends at a deadline or a cancellation.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Each is its own clock. A busy server with one slot gives no byte, not even headers, until the
/// request before ours is done; a stopped one falls silent in mid-stream without closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Name lookup, TCP and TLS.
    pub connect: Duration,
    /// From sending to the first byte of the body that is not blank.
    pub first_byte: Duration,
    /// From byte to byte after that. Reasoning that a provider does not show is silence.
    pub idle: Duration,
    /// The whole request.
    pub total: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(3600),
        }
    }
}

pub(crate) enum Waited<T> {
    Ready(T),
    Elapsed,
    Cancelled,
}

pub(crate) async fn wait<T>(
    future: impl Future<Output = T>,
    until: Instant,
    cancel: &CancellationToken,
) -> Waited<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Waited::Cancelled,
        value = future => Waited::Ready(value),
        () = tokio::time::sleep_until(until) => Waited::Elapsed,
    }
}
