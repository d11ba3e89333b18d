//! Everything that was typed and found, before anything is started. Every fault here is one of
//! usage, or of a session that cannot be opened.

use curfew_engine::Fold;
use curfew_store::Store;

use crate::cli::RunArgs;
use crate::config::{Config, Environment};
use crate::confine::{self, Wanted};
use crate::fault::Fault;
use crate::outfile::OutFile;
use crate::prompt;
use crate::session::{self, Target};

/// Everything that was typed and found, before anything is started.
pub(super) struct Ready {
    pub args: RunArgs,
    pub prompt: Option<String>,
    pub wanted: Wanted,
    pub store: Store,
    pub resumed: Option<String>,
    pub out: Option<OutFile>,
    pub config: Config,
    pub environment: Environment,
}

/// Whether a run can begin without a prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Prompt,
    Nothing,
}

pub(super) fn ready(
    mut args: RunArgs,
    target: Target,
    environment: Environment,
    needs: Needs,
) -> Result<Ready, Fault> {
    let prompt = prompt::given(&args)?;
    let config = environment.config()?;
    let store = Store::new(environment.state_dir()?.join("sessions"));
    let here = crate::workspace::directory(
        args.confine.cwd.as_deref().unwrap_or(".".as_ref()),
        "workspace",
    )?;
    let inspected = session::find(&store, &target, &here)?;
    let last = match inspected {
        Some(inspected) => {
            let id = inspected.header.id.clone();
            let fold = Fold::of(inspected.header, &inspected.events)
                .map_err(|error| Fault::storage(format!("session {id}: {error}")))?;
            session::inherit(&mut args.confine, fold.header(), fold.confinement());
            Some((id, fold.confinement().cloned()))
        }
        None => None,
    };
    if prompt.is_none() && last.is_none() && needs == Needs::Prompt {
        return Err(Fault::usage("there is no prompt")
            .remedy("say what to do with -p TEXT, --prompt-file FILE or -"));
    }
    let wall_ms = None;
    let mut wanted = confine::wanted(&args.confine, wall_ms, &environment, &config)?;
    if let Some((_, Some(logged))) = &last {
        session::narrow(&mut wanted, &logged.confinement)?;
    }
    let out = args
        .output
        .output_last_message
        .as_deref()
        .map(OutFile::open)
        .transpose()?;
    let resumed = last.map(|(id, _)| id);
    Ok(Ready {
        args,
        prompt,
        wanted,
        store,
        resumed,
        out,
        config,
        environment,
    })
}
