//! Which model answers: flags over environment over configuration.

use std::time::{Duration, Instant};

use curfew_engine::event::{ContextWindow, ModelFailure, WindowSource};
use curfew_model::{Deadlines, Http, ModelInfo, Provider, Recorder, Replay, Stopped, retry};
use tokio_util::sync::CancellationToken;

use crate::cli::{ModelArgs, ProviderArg};
use crate::config::{Config, Environment};
use crate::fault::{Fault, code};
use crate::key;
use crate::output::{Printer, Tone};

/// Where requests go when nothing else is said.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
/// What is said of a model's window when neither the user nor the server says anything. Nothing is
/// refused by it.
const CONTEXT_WINDOW_ASSUMED_TOKENS: u64 = 32_768;
/// Models that are named when one must be chosen.
const MODELS_SHOWN_MAX: usize = 20;

/// Somebody who answers, and how the log calls them.
#[derive(Debug)]
pub struct Chosen {
    pub provider: Provider,
    pub endpoint: String,
    /// Why no request may be made: a key is missing or unreadable.
    pub locked: Option<Fault>,
}

/// The model's name and its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub name: String,
    pub window: Option<ContextWindow>,
}

pub fn choose(
    args: &ModelArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Chosen, Fault> {
    match args.provider.as_ref().unwrap_or(&ProviderArg::OpenAi) {
        ProviderArg::Echo => {
            no_recording(args)?;
            Ok(Chosen {
                provider: Provider::Echo,
                endpoint: String::from("echo"),
                locked: None,
            })
        }
        ProviderArg::Replay(file) => {
            no_recording(args)?;
            let replay = Replay::open(file).map_err(|error| Fault::usage(error.to_string()))?;
            Ok(Chosen {
                provider: Provider::Replay(replay),
                endpoint: String::from("replay"),
                locked: None,
            })
        }
        ProviderArg::OpenAi => server(args, config, environment),
    }
}

fn no_recording(args: &ModelArgs) -> Result<(), Fault> {
    match &args.record {
        Some(_) => Err(Fault::usage("--record needs a server").remedy("leave out --provider")),
        None => Ok(()),
    }
}

fn server(args: &ModelArgs, config: &Config, environment: &Environment) -> Result<Chosen, Fault> {
    let base_url = [&args.base_url, &environment.base_url, &config.base_url];
    let base_url = base_url
        .into_iter()
        .flatten()
        .next()
        .map_or(DEFAULT_BASE_URL, String::as_str);
    let deadlines = deadlines(config);
    let keyless = Http::new(base_url, None, deadlines).map_err(|error| {
        Fault::usage(error.to_string()).remedy("--base-url http://127.0.0.1:8080/v1, for example")
    })?;
    let endpoint = keyless.endpoint().to_owned();
    let (http, locked) = match key::find(config) {
        Ok(Some(key)) => match Http::new(base_url, Some(key), deadlines) {
            Ok(http) => (http, None),
            Err(error) => (keyless, Some(Fault::new(code::AUTH, error.to_string()))),
        },
        // What runs on this machine seldom asks for a key.
        Ok(None) if is_local(&endpoint) => (keyless, None),
        Ok(None) => (keyless, Some(key::missing(&endpoint))),
        Err(fault) => (keyless, Some(fault)),
    };
    let http = match &args.record {
        Some(file) => http.with_recorder(
            Recorder::create(file).map_err(|error| Fault::usage(error.to_string()))?,
        ),
        None => http,
    };
    Ok(Chosen {
        provider: Provider::Http(Box::new(http)),
        endpoint,
        locked,
    })
}

fn deadlines(config: &Config) -> Deadlines {
    let usual = Deadlines::default();
    let or = |seconds: Option<u64>, usual| seconds.map_or(usual, Duration::from_secs);
    Deadlines {
        first_byte: or(config.first_byte_seconds, usual.first_byte),
        idle: or(config.idle_seconds, usual.idle),
        ..usual
    }
}

fn is_local(endpoint: &str) -> bool {
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The model that was named, or the server's only one. `Ok(Err(fault))` is a failure of the
/// server, which the run's log will tell; `Err` is a choice the operator must make.
pub async fn model(
    chosen: &Chosen,
    args: &ModelArgs,
    config: &Config,
    printer: &mut Printer,
) -> Result<Result<Model, Fault>, Fault> {
    let configured = config.context_window.map(|tokens| ContextWindow {
        tokens,
        source: WindowSource::Configured,
    });
    let assumed = Some(ContextWindow {
        tokens: CONTEXT_WINDOW_ASSUMED_TOKENS,
        source: WindowSource::Default,
    });
    let named = args.model.as_ref().or(config.model.as_ref());
    if let Some(name) = named {
        return Ok(Ok(Model {
            name: name.clone(),
            window: configured.or(assumed),
        }));
    }
    if !matches!(chosen.provider, Provider::Http(_)) {
        return Ok(Ok(Model {
            name: chosen.endpoint.clone(),
            window: configured.or(assumed),
        }));
    }
    if let Some(fault) = &chosen.locked {
        return Ok(Err(fault.clone()));
    }
    let offered = match offered(chosen, printer).await {
        Ok(offered) => offered,
        Err(Stopped::Failed(failure)) => {
            let class = match failure.kind {
                curfew_engine::event::FailureKind::Auth => code::AUTH,
                _ => code::PROVIDER,
            };
            let fault = Fault::new(class, unlisted(chosen, &failure));
            let remedy = match class {
                code::AUTH => "set OPENAI_API_KEY, or keyFile or keyCommand in config.toml",
                _ => "name one with --model, or correct --base-url",
            };
            return Ok(Err(fault.remedy(remedy)));
        }
        Err(other) => return Ok(Err(Fault::new(code::PROVIDER, other.to_string()))),
    };
    only(&offered, chosen, configured, assumed).map(Ok)
}

/// What the server offers. A server that still loads its model says so with a 503: it is asked
/// again by the rules of a request.
async fn offered(chosen: &Chosen, printer: &mut Printer) -> Result<Vec<ModelInfo>, Stopped> {
    let mut failing_since = None;
    let mut attempt = 0;
    loop {
        let failure = match chosen.provider.models(&CancellationToken::new()).await {
            Err(Stopped::Failed(failure)) => failure,
            other => return other,
        };
        let since = *failing_since.get_or_insert_with(Instant::now);
        let elapsed_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Some(delay_ms) = retry::decide(&failure, attempt, elapsed_ms, jitter()) else {
            return Err(Stopped::Failed(failure));
        };
        let text = format!("{}; again in {delay_ms} ms", unlisted(chosen, &failure));
        printer.note(Tone::Warning, &text);
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        attempt += 1;
    }
}

fn unlisted(chosen: &Chosen, failure: &ModelFailure) -> String {
    format!(
        "{} was asked for its models: {}",
        chosen.endpoint, failure.text
    )
}

/// Anything from 0 to 1: clients that fail together must not return together.
pub fn jitter() -> f64 {
    let random = uuid::Uuid::now_v7().as_u128() & u128::from(u32::MAX);
    f64::from(u32::try_from(random).unwrap_or(0)) / f64::from(u32::MAX)
}

fn only(
    offered: &[ModelInfo],
    chosen: &Chosen,
    configured: Option<ContextWindow>,
    assumed: Option<ContextWindow>,
) -> Result<Model, Fault> {
    match offered {
        [] => Err(Fault::usage(format!("{} offers no model", chosen.endpoint))
            .remedy("name one with --model")),
        [model] => {
            let said = model.context_window.map(|tokens| ContextWindow {
                tokens,
                source: WindowSource::Provider,
            });
            Ok(Model {
                name: model.id.clone(),
                window: configured.or(said).or(assumed),
            })
        }
        many => {
            let mut names: Vec<&str> = many
                .iter()
                .take(MODELS_SHOWN_MAX)
                .map(|model| model.id.as_str())
                .collect();
            if many.len() > MODELS_SHOWN_MAX {
                names.push("…");
            }
            let what = format!(
                "{} offers {} models: {}",
                chosen.endpoint,
                many.len(),
                names.join(", ")
            );
            Err(Fault::usage(what).remedy("choose one with --model"))
        }
    }
}
