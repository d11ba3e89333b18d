//! From what was typed to a confinement that stands, and what it really gives.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use curfew_cell::plan::Plan;
use curfew_engine::event::{Enforcement, SandboxConfinement};
use curfew_policy::confinement::Net;
use curfew_policy::guarantee::{Shortfall, Verdict, decide};
use curfew_policy::profile::{DEFAULT, EnvRow, PROFILE_BYTES_MAX, Profile};
use curfew_policy::{Asked, Confinement, GuaranteeReport, Mode, PolicyError, State};
use curfew_sandbox::client::StartError;
use curfew_sandbox::{
    Explanation, Operator, Tier, compile, explain, explain_compile, probe, report,
};
use curfew_worker::protocol::{Finding, Response};

use crate::cells::{Cells, OnDenied};
use crate::cli::{ConfineArgs, NetArg};
use crate::config::{Config, Environment};
use crate::fault::{Fault, code};
use crate::workspace;

/// What is wanted: absolute facts, nothing tried on the host yet.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub confinement: Confinement,
    pub shell: PathBuf,
    /// For the operator.
    pub notices: Vec<String>,
}

/// A broker that is ready, and what it gives; or why there is none.
#[derive(Debug)]
pub enum Stood {
    Up {
        cells: Arc<Cells>,
        plan: Box<Plan>,
        enforcement: Enforcement,
    },
    Down {
        why: Explanation,
        enforcement: Enforcement,
    },
}

/// Resolves flags, profile and workspace. Every fault here is one of usage.
pub fn wanted(
    args: &ConfineArgs,
    wall_ms: Option<u64>,
    environment: &Environment,
    configured: &Config,
) -> Result<Wanted, Fault> {
    let name = args
        .profile
        .as_deref()
        .or(configured.profile.as_deref())
        .unwrap_or(DEFAULT);
    let typed = args.cwd.as_deref().unwrap_or(Path::new("."));
    let workspace = workspace::directory(typed, "workspace")?;
    let add_dirs: Result<Vec<PathBuf>, Fault> = args
        .add_dir
        .iter()
        .map(|dir| workspace::directory(dir, "--add-dir"))
        .collect();
    let add_dirs = add_dirs?;
    let roots: Vec<PathBuf> = std::iter::once(&workspace)
        .chain(&add_dirs)
        .cloned()
        .collect();
    let operator = Operator::of(&workspace);
    let profile = load_profile(name, environment, &roots)?;
    let mode = args.mode.or(profile.mode).unwrap_or(Mode::WorkspaceWrite);
    let homes: Vec<PathBuf> = operator
        .home
        .iter()
        .chain(&operator.passwd_home)
        .cloned()
        .collect();
    let warning = workspace::judge(&workspace, mode, &homes)?;
    let env: Result<Vec<EnvRow>, String> =
        args.env.iter().map(|text| EnvRow::parse(text)).collect();
    let asked = Asked {
        mode: args.mode,
        net: args.net.map(net),
        workspace,
        add_dirs,
        secrets: configured.key_file.iter().cloned().collect(),
        env: env.map_err(|why| Fault::usage(format!("--env {why}")))?,
        wall_ms,
        identity: operator.git_identity(),
    };
    let resolved = operator
        .resolve(&profile, &asked)
        .map_err(|error| refused(&error))?;
    let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
    let shell = curfew_sandbox::host::shell(&roots);
    let notices = warning.into_iter().chain(resolved.notices).collect();
    Ok(Wanted {
        confinement: resolved.confinement,
        shell,
        notices,
    })
}

fn net(typed: NetArg) -> Net {
    match typed {
        NetArg::Off => Net::Off,
        NetArg::Full => Net::Full,
    }
}

/// A built-in profile, `profiles/NAME.toml` beside the configuration, or a file. Never one from a
/// workspace: what may be changed there must not say what may be changed.
fn load_profile(
    name: &str,
    environment: &Environment,
    roots: &[PathBuf],
) -> Result<Profile, Fault> {
    let trouble: RefCell<Option<Fault>> = RefCell::new(None);
    let text = |name: &str| match profile_text(name, environment, roots) {
        Ok(text) => text,
        Err(fault) => {
            trouble.borrow_mut().get_or_insert(fault);
            None
        }
    };
    let loaded = Profile::load(name, &text);
    match (trouble.into_inner(), loaded) {
        (Some(fault), _) => Err(fault),
        (None, loaded) => loaded.map_err(|error| refused(&error)),
    }
}

fn profile_text(
    name: &str,
    environment: &Environment,
    roots: &[PathBuf],
) -> Result<Option<String>, Fault> {
    let typed_as_path = name.contains('/') || name.ends_with(".toml");
    let file = match (typed_as_path, environment.config_dir()) {
        (true, _) => PathBuf::from(name),
        (false, Some(folder)) => folder.join("profiles").join(format!("{name}.toml")),
        (false, None) => return Ok(None),
    };
    let at = file.display();
    let meta = match fs::metadata(&file) {
        Ok(meta) => meta,
        Err(error) if !typed_as_path && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => {
            return Err(Fault::usage(format!(
                "profile {at} cannot be read: {error}"
            )));
        }
    };
    if !meta.is_file() || meta.len() > PROFILE_BYTES_MAX as u64 {
        return Err(Fault::usage(format!(
            "profile {at} is no file of at most {PROFILE_BYTES_MAX} bytes"
        )));
    }
    let real =
        fs::canonicalize(&file).map_err(|error| Fault::usage(format!("profile {at}: {error}")))?;
    if roots.iter().any(|root| real.starts_with(root)) {
        let fault = Fault::usage(format!(
            "profile {at} lies in the workspace, where the agent could write it"
        ));
        return Err(fault.remedy("move it out, for example to ~/.config/curfew/profiles"));
    }
    fs::read_to_string(&real)
        .map(Some)
        .map_err(|error| Fault::usage(format!("profile {at} cannot be read: {error}")))
}

fn refused(error: &PolicyError) -> Fault {
    Fault::usage(error.to_string())
}

/// Starts a broker and lets a canary try what must fail.
pub fn stand(wanted: &Wanted, on_denied: OnDenied) -> Stood {
    let confinement = &wanted.confinement;
    let facts = match probe(confinement) {
        Ok(facts) => facts,
        Err(error) => {
            let why = Explanation {
                reason: error.to_string(),
                remedies: vec![String::from("curfew doctor")],
            };
            return down(why, 0);
        }
    };
    let plan = match compile(confinement, &facts) {
        Ok(plan) => plan,
        Err(error) => return down(explain_compile(&error), facts.landlock_abi),
    };
    let cells = match Cells::start(&facts.executable, &plan, on_denied) {
        Ok(cells) => Arc::new(cells),
        Err(error) => return down(why_not(&error), facts.landlock_abi),
    };
    let findings = canary(&cells, confinement);
    let enforcement = Enforcement {
        tier: Tier::of(confinement.mode).name().to_owned(),
        abi: facts.landlock_abi,
        guarantees: report(confinement, cells.facts(), &findings),
    };
    Stood::Up {
        cells,
        plan: Box::new(plan),
        enforcement,
    }
}

/// What the kernel said to each attempt; a canary that could not sing proves nothing.
fn canary(cells: &Cells, confinement: &Confinement) -> Vec<Finding> {
    if confinement.mode == Mode::DangerFullAccess {
        return Vec::new();
    }
    let request = curfew_sandbox::canary::request(confinement);
    match cells.worker(cells.number(), &request, &[]) {
        Ok((Response::Canary { findings }, ..)) => findings,
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "no canary");
            Vec::new()
        }
    }
}

/// The reason of a broker that did not come up, and what would help.
pub fn why_not(error: &StartError) -> Explanation {
    match error {
        StartError::Setup(fault) => explain(fault),
        other => Explanation {
            reason: other.to_string(),
            remedies: vec![String::from("curfew doctor says more")],
        },
    }
}

fn down(why: Explanation, abi: u32) -> Stood {
    let absent = |name| GuaranteeReport {
        name,
        state: State::Absent,
        layers: Vec::new(),
        missing: vec![String::from("there is no sandbox")],
    };
    let guarantees = curfew_policy::Guarantee::ALL
        .into_iter()
        .map(absent)
        .collect();
    Stood::Down {
        why,
        enforcement: Enforcement {
            tier: Tier::None.name().to_owned(),
            abi,
            guarantees,
        },
    }
}

impl Stood {
    pub fn enforcement(&self) -> &Enforcement {
        match self {
            Stood::Up { enforcement, .. } | Stood::Down { enforcement, .. } => enforcement,
        }
    }
}

impl Wanted {
    /// The record of this confinement and of what it gives here.
    pub fn event(&self, enforcement: &Enforcement) -> Result<SandboxConfinement, Fault> {
        let digest = self.confinement.digest();
        Ok(SandboxConfinement {
            confinement: self.confinement.clone(),
            digest: digest.map_err(|error| refused(&error))?,
            enforcement: enforcement.clone(),
        })
    }

    /// Whether a run may start on what was found.
    pub fn judge(&self, stood: &Stood, args: &ConfineArgs) -> Judged {
        if let Stood::Down { why, .. } = stood {
            return Judged::Refused(no_sandbox(why));
        }
        let guarantees = &stood.enforcement().guarantees;
        match decide(
            guarantees,
            &self.confinement,
            &args.require,
            &args.allow_missing,
        ) {
            Verdict::Met => Judged::May(Vec::new()),
            Verdict::Waived(waived) => Judged::May(waived),
            Verdict::Refused(missing) => Judged::Refused(weaker(&missing)),
        }
    }
}

/// Whether a run may start, with what is weaker than promised.
#[derive(Debug)]
pub enum Judged {
    May(Vec<Shortfall>),
    Refused(Fault),
}

/// Exit 7: why, and what would help.
pub fn no_sandbox(why: &Explanation) -> Fault {
    Fault::new(code::SANDBOX, why.reason.clone()).remedy(why.remedies.join("; or "))
}

fn weaker(missing: &[Shortfall]) -> Fault {
    let what: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let names: Vec<String> = missing
        .iter()
        .map(|shortfall| format!("--allow-missing {}", shortfall.name))
        .collect();
    Fault::new(code::SANDBOX, what.join("; ")).remedy(format!(
        "see curfew doctor, or accept it with {}",
        names.join(" ")
    ))
}
