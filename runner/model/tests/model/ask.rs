//! Asking in tests: one request, its deltas and how it ended.

use std::time::Duration;

use bytes::Bytes;
use curfew_engine::event::{Block, FailureKind, ModelFailure};
use curfew_engine::turn::io::Delta;
use curfew_model::{Deadlines, End, Http, Provider, Stopped};
use tokio_util::sync::CancellationToken;

use crate::server::{Act, Server};

pub const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"what a request looks like"}]}"#;

/// Long enough for any machine; a test that waits this long is broken.
pub fn patient() -> Deadlines {
    let long = Duration::from_secs(60);
    Deadlines {
        connect: long,
        first_byte: long,
        idle: long,
        total: long,
    }
}

pub struct Answered {
    pub deltas: Vec<Delta>,
    pub ended: Result<End, Stopped>,
}

impl Answered {
    pub fn end(&self) -> End {
        match &self.ended {
            Ok(end) => *end,
            Err(stopped) => panic!("stopped: {stopped:?}"),
        }
    }

    pub fn failure(&self) -> &ModelFailure {
        match &self.ended {
            Err(Stopped::Failed(failure)) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    pub fn kind(&self) -> FailureKind {
        self.failure().kind
    }

    pub fn text(&self) -> String {
        self.joined(|block| *block == Block::Text)
    }

    pub fn reasoning(&self) -> String {
        self.joined(|block| *block == Block::Reasoning)
    }

    /// Id, name and arguments of the calls, by index.
    pub fn calls(&self) -> Vec<(u32, Option<String>, String, String)> {
        let mut calls: Vec<(u32, Option<String>, String, String)> = Vec::new();
        for delta in &self.deltas {
            let Block::Call { index, id, name } = &delta.block else {
                continue;
            };
            match calls.iter_mut().find(|call| call.0 == *index) {
                None => {
                    let Some(name) = name.clone() else {
                        panic!("the first piece does not name the tool");
                    };
                    calls.push((*index, id.clone(), name, delta.text.clone()));
                }
                Some(call) => {
                    assert_eq!(
                        (id, name),
                        (&None, &None),
                        "only the first piece carries id and name"
                    );
                    call.3.push_str(&delta.text);
                }
            }
        }
        calls.sort_by_key(|call| call.0);
        calls
    }

    fn joined(&self, wanted: impl Fn(&Block) -> bool) -> String {
        self.deltas
            .iter()
            .filter(|delta| wanted(&delta.block))
            .map(|delta| delta.text.as_str())
            .collect()
    }
}

pub async fn ask(provider: &Provider) -> Answered {
    ask_until(provider, &CancellationToken::new()).await
}

pub async fn ask_until(provider: &Provider, cancel: &CancellationToken) -> Answered {
    ask_telling(provider, cancel, || {}).await
}

/// Calls `seen` for each delta, as soon as it is there.
async fn ask_telling(
    provider: &Provider,
    cancel: &CancellationToken,
    seen: impl Fn() + Send + Sync,
) -> Answered {
    let mut deltas = Vec::new();
    let mut on_delta = |delta| {
        deltas.push(delta);
        seen();
    };
    let ended = provider
        .run(Bytes::from_static(BODY.as_bytes()), cancel, &mut on_delta)
        .await;
    Answered { deltas, ended }
}

pub fn provider(server: &Server, deadlines: Deadlines) -> Provider {
    Provider::Http(Box::new(
        Http::new(&server.base_url(), None, deadlines).unwrap(),
    ))
}

/// One request against a server that plays `acts`; its pauses end when a delta has arrived.
pub async fn answer_to(acts: Vec<Act>) -> Answered {
    let server = Server::start(vec![acts]).await;
    let provider = provider(&server, patient());
    ask_telling(&provider, &CancellationToken::new(), || server.go_on()).await
}
