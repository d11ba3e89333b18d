//! The list of models, asked only when nobody configured one.

use curfew_engine::event::FailureKind;
use curfew_model::{ModelInfo, Provider, Stopped};
use tokio_util::sync::CancellationToken;

use crate::ask::{patient, provider};
use crate::server::{Server, whole};

async fn models(status: &str, body: &str) -> Result<Vec<ModelInfo>, Stopped> {
    let server = Server::start(vec![whole(status, "", body)]).await;
    let listed = provider(&server, patient())
        .models(&CancellationToken::new())
        .await;
    let request = server.requests().pop().unwrap();
    assert!(
        request.starts_with("GET /v1/models HTTP/1.1\r\n"),
        "{request}"
    );
    listed
}

fn model(id: &str, context_window: Option<u64>) -> ModelInfo {
    ModelInfo {
        id: id.to_owned(),
        context_window,
    }
}

#[tokio::test]
async fn llama_server_says_the_context_it_runs_with() {
    let listed = models(
        "200 OK",
        include_str!("../fixtures/llama-server-models.json"),
    )
    .await
    .unwrap();
    assert_eq!(listed, [model("1.5b", Some(4096))]);
}

#[tokio::test]
async fn other_servers_name_the_window_otherwise_or_not_at_all() {
    let body = r#"{"object":"list","data":[{"id":"a","max_model_len":8192},{"id":"b","context_length":200000},{"id":"c"}]}"#;
    let listed = models("200 OK", body).await.unwrap();
    assert_eq!(
        listed,
        [
            model("a", Some(8192)),
            model("b", Some(200_000)),
            model("c", None)
        ]
    );
}

#[tokio::test]
async fn what_is_not_a_list_of_models_is_a_typed_failure() {
    for (status, body, expected) in [
        ("200 OK", "<html>", FailureKind::NotAModel),
        ("200 OK", r#"{"ok":true}"#, FailureKind::NotAModel),
        (
            "401 Unauthorized",
            r#"{"error":{"message":"no"}}"#,
            FailureKind::Auth,
        ),
        ("302 Found", "", FailureKind::NotAModel),
    ] {
        match models(status, body).await {
            Err(Stopped::Failed(failure)) => assert_eq!(failure.kind, expected, "{status} {body}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn providers_without_a_server_have_none() {
    assert_eq!(
        Provider::Echo
            .models(&CancellationToken::new())
            .await
            .unwrap(),
        []
    );
}
