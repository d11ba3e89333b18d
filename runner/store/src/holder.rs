//! What a lock file says: who holds the session, for the one who finds it locked.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::error::Holder;

pub(crate) fn of_this_process(now: SystemTime) -> Vec<u8> {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let since =
        jiff::Timestamp::try_from(now).map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let since = since.unwrap_or_else(|_| "an unknown time".to_owned());
    let mut text = json!({ "pid": std::process::id(), "host": host, "since": since }).to_string();
    text.push('\n');
    text.into_bytes()
}

/// `None` when the holder has not finished writing, or wrote something else.
pub(crate) fn parse(text: &[u8]) -> Option<Holder> {
    let value: Value = serde_json::from_slice(text).ok()?;
    Some(Holder {
        pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
        host: value.get("host")?.as_str()?.to_owned(),
        since: value.get("since")?.as_str()?.to_owned(),
    })
}
