//! The answer to `GET {baseUrl}/models`.

use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct ModelList {
    #[serde(default)]
    data: Option<Vec<ModelEntry>>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
    /// vLLM.
    #[serde(default)]
    max_model_len: Option<u64>,
    /// OpenRouter.
    #[serde(default)]
    context_length: Option<u64>,
    /// llama-server.
    #[serde(default)]
    meta: Option<ModelMeta>,
}

#[derive(Deserialize)]
struct ModelMeta {
    /// What this server runs with, not `n_ctx_train`, what the model was trained for.
    #[serde(default)]
    n_ctx: Option<u64>,
}

/// A model a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    pub id: String,
    /// Tokens, where the server says it.
    pub context_window: Option<u64>,
}

impl ModelList {
    /// `None` when the document is not a model list.
    pub(crate) fn parse(body: &[u8]) -> Option<Vec<ModelInfo>> {
        let list: Self = serde_json::from_slice(body).ok()?;
        Some(list.data?.into_iter().map(ModelEntry::into_info).collect())
    }
}

impl ModelEntry {
    fn into_info(self) -> ModelInfo {
        let window = self
            .max_model_len
            .or(self.context_length)
            .or(self.meta.and_then(|meta| meta.n_ctx));
        ModelInfo {
            id: self.id,
            context_window: window,
        }
    }
}
