//! The HTTP transport: one POST, one streamed response, no redirects, no surprises.

use std::error::Error;
use std::net::IpAddr;
use std::sync::OnceLock;

use bytes::Bytes;
use curfew_engine::event::{FailureKind, ModelFailure};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::deadline::{Deadlines, Waited, wait};
use crate::exchange::total_timeout;
use crate::failure::failure;
use crate::key::{ApiKey, KeyError};
use crate::{Recorder, Stopped};

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the base URL {url:?} is not a URL: {why}")]
    NotAUrl { url: String, why: String },
    #[error("the base URL {url:?} is neither http nor https")]
    Scheme { url: String },
    #[error(
        "the base URL holds a user name or password; give the key as OPENAI_API_KEY or keyFile"
    )]
    Credentials,
    #[error("the base URL {url:?} has a query or a fragment")]
    Query { url: String },
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A model server and how to talk to it.
#[derive(Debug)]
pub struct Http {
    base: Url,
    headers: HeaderMap,
    pub(crate) key: Option<ApiKey>,
    pub(crate) deadlines: Deadlines,
    pub(crate) recorder: Option<Recorder>,
    client: OnceLock<Client>,
}

impl Http {
    /// `base_url` includes `/v1`. Nothing is opened, read or resolved before the first request.
    pub fn new(
        base_url: &str,
        key: Option<ApiKey>,
        deadlines: Deadlines,
    ) -> Result<Self, HttpError> {
        let base = parse_base(base_url)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            headers.insert(AUTHORIZATION, key.bearer()?);
        }
        Ok(Self {
            base,
            headers,
            key,
            deadlines,
            recorder: None,
            client: OnceLock::new(),
        })
    }

    /// Records every response from now on.
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// The base URL as it may be logged: it holds no secret.
    pub fn endpoint(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Sends a request body and waits for the headers of the response.
    pub(crate) async fn post(
        &self,
        body: Bytes,
        started: Instant,
        cancel: &CancellationToken,
    ) -> Result<Response, Stopped> {
        let request = self
            .client()?
            .post(self.url("chat/completions"))
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
            .body(body);
        self.send(request, started, cancel).await
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        started: Instant,
        cancel: &CancellationToken,
    ) -> Result<Response, Stopped> {
        let request = self
            .client()?
            .get(self.url(path))
            .headers(self.headers.clone());
        self.send(request, started, cancel).await
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        started: Instant,
        cancel: &CancellationToken,
    ) -> Result<Response, Stopped> {
        let Deadlines {
            first_byte, total, ..
        } = self.deadlines;
        let sent = wait(request.send(), started + first_byte.min(total), cancel).await;
        match sent {
            Waited::Cancelled => Err(Stopped::Cancelled),
            Waited::Ready(Ok(response)) => Ok(response),
            Waited::Ready(Err(fault)) => Err(of_send_fault(&fault, self.endpoint()).into()),
            Waited::Elapsed if total < first_byte => Err(total_timeout(&self.deadlines).into()),
            Waited::Elapsed => {
                let text = format!("no byte of an answer within {} s", first_byte.as_secs_f32());
                Err(failure(FailureKind::FirstByteTimeout, text).into())
            }
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.endpoint())
    }

    fn client(&self) -> Result<&Client, ModelFailure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = build_client(&self.base, &self.deadlines).map_err(|fault| {
            failure(
                FailureKind::BadRequest,
                format!("no HTTP client: {}", chain(&fault)),
            )
        })?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn parse_base(base_url: &str) -> Result<Url, HttpError> {
    let url = base_url.trim();
    // A URL with a password in it must not reach a message.
    let shown = || url.rsplit('@').next().unwrap_or("").to_owned();
    let base = Url::parse(url).map_err(|why| HttpError::NotAUrl {
        url: shown(),
        why: why.to_string(),
    })?;
    if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
        return Err(HttpError::Scheme { url: shown() });
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(HttpError::Credentials);
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(HttpError::Query { url: shown() });
    }
    Ok(base)
}

/// Proxies: the variables that curl honours (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) are
/// honoured, but what is on this machine is never reached through another one.
fn build_client(base: &Url, deadlines: &Deadlines) -> Result<Client, reqwest::Error> {
    install_crypto();
    let local = is_loopback(base);
    let mut builder = Client::builder()
        .user_agent(concat!("curfew/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .pool_max_idle_per_host(1)
        .connect_timeout(deadlines.connect);
    if local {
        builder = builder.no_proxy();
    }
    // Without TLS there is no reason to read some 140 root certificates before the first request.
    if base.scheme() == "http" && (local || !proxy_for_http()) {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// A proxy for plain requests may itself be reached by TLS.
fn proxy_for_http() -> bool {
    let names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    names.iter().any(|name| std::env::var_os(name).is_some())
}

/// The one place where the process gets its TLS provider.
fn install_crypto() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::ring::default_provider()
            .install_default()
            .is_err()
        {
            tracing::debug!("a TLS provider was installed before ours");
        }
    });
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or("");
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback() || ip.is_unspecified(),
        Err(_) => bare == "localhost" || bare.ends_with(".localhost"),
    }
}

/// A fault before any response.
fn of_send_fault(fault: &reqwest::Error, endpoint: &str) -> ModelFailure {
    let (kind, what) = if sources(fault).any(|source| tls_fault(source).is_some()) {
        (FailureKind::NotAModel, "no trusted TLS server at")
    } else if sources(fault).any(is_not_http) {
        (FailureKind::NotAModel, "no HTTP server at")
    } else if fault.is_connect() {
        (FailureKind::Connect, "cannot connect to")
    } else {
        (FailureKind::Transport, "the connection broke to")
    };
    failure(kind, format!("{what} {endpoint}: {}", chain(fault)))
}

/// A fault after the headers.
pub(crate) fn of_body_fault(fault: &reqwest::Error) -> ModelFailure {
    failure(
        FailureKind::Transport,
        format!("the connection broke: {}", chain(fault)),
    )
}

fn sources(fault: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(fault.source(), |source: &&(dyn Error + 'static)| {
        (*source).source()
    })
}

/// TLS faults travel inside I/O errors, sometimes more than one deep.
fn tls_fault<'a>(source: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut source = source;
    while let Some(inner) = source
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref)
    {
        source = inner;
    }
    source.downcast_ref()
}

fn is_not_http(source: &(dyn Error + 'static)) -> bool {
    source
        .downcast_ref::<hyper::Error>()
        .is_some_and(hyper::Error::is_parse)
}

/// The causes of an error in one line, without the outermost, which only says that there are some.
fn chain(fault: &reqwest::Error) -> String {
    let causes: Vec<String> = sources(fault).map(ToString::to_string).collect();
    match causes.as_slice() {
        [] => "the request failed".to_owned(),
        [only] => only.clone(),
        [_, inner @ ..] => inner.join(": "),
    }
}

#[cfg(test)]
mod tests;
