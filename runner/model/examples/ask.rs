//! One request with retries against any OpenAI-compatible server, for trying servers by hand.
//!
//! `ask BASE_URL TEXT [MODEL] [IDLE_MS] [RECORDING]` prints each delta, each wait and the end, and
//! exits with curfew's code for the failure's class. It offers one tool, `bash`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use curfew_engine::event::FailureKind;
use curfew_model::{ApiKey, Deadlines, Http, Provider, Recorder, Stopped, retry};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [base_url, text, ..] = args.as_slice() else {
        return Err("usage: ask BASE_URL TEXT [MODEL] [IDLE_MS] [RECORDING]".into());
    };
    let mut deadlines = Deadlines::default();
    if let Some(idle_ms) = args.get(3) {
        deadlines.idle = Duration::from_millis(idle_ms.parse()?);
    }
    let key = std::env::var("OPENAI_API_KEY")
        .ok()
        .map(|key| ApiKey::new(&key))
        .transpose()?;
    let mut http = Http::new(base_url, key, deadlines)?;
    if let Some(path) = args.get(4) {
        http = http.with_recorder(Recorder::create(Path::new(path))?);
    }
    let body = body(text, args.get(2).map_or("m", String::as_str));
    Ok(ask(&Provider::Http(Box::new(http)), body).await?)
}

async fn ask(provider: &Provider, body: Bytes) -> std::io::Result<ExitCode> {
    let mut out = std::io::stdout();
    let mut first_failure: Option<Instant> = None;
    for attempt in 0.. {
        let mut deltas = Vec::new();
        let cancel = CancellationToken::new();
        let ended = provider
            .run(body.clone(), &cancel, &mut |delta| deltas.push(delta))
            .await;
        for delta in deltas {
            writeln!(out, "delta {:?} {:?}", delta.block, delta.text)?;
        }
        let failure = match ended {
            Ok(end) => {
                writeln!(out, "end {end:?}")?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(Stopped::Failed(failure)) => failure,
            Err(other) => {
                writeln!(out, "stopped {other}")?;
                return Ok(ExitCode::FAILURE);
            }
        };
        writeln!(out, "failed {failure:?}")?;
        let since = first_failure
            .get_or_insert_with(Instant::now)
            .elapsed()
            .as_millis();
        let jitter = SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .subsec_micros()
            % 1000;
        match retry::decide(&failure, attempt, since as u64, f64::from(jitter) / 1000.0) {
            Some(delay_ms) => {
                writeln!(out, "waiting {delay_ms} ms")?;
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            }
            None => {
                return Ok(ExitCode::from(match failure.kind {
                    FailureKind::Auth => 6,
                    FailureKind::ContextWindow => 8,
                    _ => 5,
                }));
            }
        }
    }
    Ok(ExitCode::FAILURE)
}

fn body(text: &str, model: &str) -> Bytes {
    let body = serde_json::json!({
        "model": model, "stream": true, "stream_options": {"include_usage": true},
        "temperature": 0, "max_tokens": 128,
        "tools": [{"type": "function", "function": {"name": "bash", "description": "Run a shell command",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}],
        "messages": [{"role": "user", "content": text}],
    });
    Bytes::from(body.to_string())
}
