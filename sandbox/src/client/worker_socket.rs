//! One request to a file worker and its answer. The worker is a hostile peer: it runs beside what
//! the model wrote, so every size and wait is bounded here.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use curfew_cell::frame::{Channel, FrameError, Rights};
use curfew_worker::protocol::{Request, Response};

/// Lists of paths and matches are bounded by entries in the request; this bounds their bytes.
const LIST_BYTES_MAX: u64 = 16 << 20;
/// A manifest of the largest size a supervisor asks for.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("file worker: {0}")]
    Frame(#[from] FrameError),
    #[error("the file worker answered {answer} to {request}")]
    Mismatch {
        request: &'static str,
        answer: &'static str,
    },
}

/// The supervisor's end of a worker's socket.
#[derive(Debug)]
pub struct WorkerSocket {
    channel: Channel,
}

impl WorkerSocket {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            channel: Channel::new(stream, Rights::Refused),
        }
    }

    /// Sends `request` and the bulk it announces, and takes the answer with its bulk.
    pub fn exchange(
        &mut self,
        request: &Request,
        bulk: &[&[u8]],
        deadline: Instant,
    ) -> Result<(Response, Vec<u8>), WorkerError> {
        self.channel.set_deadline(Some(deadline));
        self.channel.send_json(request, &[])?;
        for bytes in bulk {
            self.channel.send_bulk(bytes)?;
        }
        let (response, _) = self.channel.recv_json::<Response>()?;
        let Some(bytes) = bulk_of(request, &response) else {
            return Err(WorkerError::Mismatch {
                request: name_of(request),
                answer: answer_of(&response),
            });
        };
        let bulk = self.channel.recv_bulk(bytes, bulk_max(request))?;
        Ok((response, bulk))
    }
}

/// The bulk that follows, or `None` when the answer does not belong to the request.
fn bulk_of(request: &Request, response: &Response) -> Option<u64> {
    match (request, response) {
        (Request::Read { .. }, Response::Read { bytes, .. })
        | (Request::Glob { .. }, Response::Glob { bytes, .. })
        | (Request::Grep { .. }, Response::Grep { bytes, .. })
        | (Request::Manifest { .. }, Response::Manifest { bytes, .. }) => Some(*bytes),
        (Request::Write { .. }, Response::Written { .. })
        | (Request::Edit { .. }, Response::Edited { .. })
        | (Request::Sweep { .. }, Response::Swept { .. })
        | (Request::Canary { .. }, Response::Canary { .. })
        | (_, Response::Error { .. }) => Some(0),
        _ => None,
    }
}

fn bulk_max(request: &Request) -> u64 {
    match request {
        // A lossy read may replace each bad byte by three.
        Request::Read { bytes_max, .. } => bytes_max.saturating_mul(3),
        Request::Manifest { .. } => MANIFEST_BYTES_MAX,
        _ => LIST_BYTES_MAX,
    }
}

fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Read { .. } => "read",
        Request::Write { .. } => "write",
        Request::Edit { .. } => "edit",
        Request::Glob { .. } => "glob",
        Request::Grep { .. } => "grep",
        Request::Manifest { .. } => "manifest",
        Request::Sweep { .. } => "sweep",
        Request::Canary { .. } => "canary",
    }
}

fn answer_of(response: &Response) -> &'static str {
    match response {
        Response::Read { .. } => "read",
        Response::Written { .. } => "written",
        Response::Edited { .. } => "edited",
        Response::Glob { .. } => "glob",
        Response::Grep { .. } => "grep",
        Response::Manifest { .. } => "manifest",
        Response::Swept { .. } => "swept",
        Response::Canary { .. } => "canary",
        Response::Error { .. } => "error",
    }
}
