//! A session being opened: a new one, or one that goes on.

use std::io;
use std::path::Path;

use curfew_engine::event::{Event, Header, SandboxConfinement};
use curfew_engine::{Fold, codec};
use curfew_policy::{Confinement, Mode, intersect, narrower_or_equal};
use curfew_store::{Inspected, Notify, Store, StoreError, Writer};

use crate::cli::{ConfineArgs, NetArg};
use crate::confine::Wanted;
use crate::drive::now_ms;
use crate::fault::Fault;
use crate::preset;

/// Which session a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    New,
    /// By its id, or the beginning of it.
    Id(String),
    /// The newest session of the workspace.
    Newest,
}

/// A session that is locked and may be appended to.
pub struct Opened {
    pub writer: Writer,
    pub fold: Fold,
    /// For the operator: what opening it changed, what is different now.
    pub notes: Vec<String>,
    /// Blobs that earlier results named.
    pub blobs: Vec<String>,
}

/// Makes a session.
pub fn create(store: &Store, wanted: &Wanted, notify: Notify) -> Result<Opened, Fault> {
    let header = Header {
        version: codec::LOG_VERSION,
        id: uuid::Uuid::now_v7().to_string(),
        created_at: now_ms(),
        cwd: wanted.confinement.workspace.to_string_lossy().into_owned(),
        parent_session: None,
        seed_length: None,
        origin: None,
        delegation_depth: 0,
        agent_preset: preset::agent(),
        profile: wanted.confinement.profile.clone(),
        curfew: env!("CARGO_PKG_VERSION").to_owned(),
        host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
    };
    let writer = store
        .create(&header, notify)
        .map_err(|error| storage(&error))?;
    Ok(Opened {
        writer,
        fold: Fold::new(header),
        notes: Vec::new(),
        blobs: Vec::new(),
    })
}

/// Opens one, closing what a dead run left open.
pub fn open(store: &Store, id: &str, notify: Notify) -> Result<Opened, Fault> {
    let mut blobs = Vec::new();
    let mut sink = |event: Event| {
        if let curfew_engine::event::Body::ToolCompleted(completed) = event.body {
            blobs.extend(completed.blob.map(|blob| blob.sha256));
        }
    };
    let (writer, loaded) = store
        .open_with(id, now_ms(), notify, &mut sink)
        .map_err(|error| storage(&error))?;
    let mut notes: Vec<String> = loaded.notes.iter().map(ToString::to_string).collect();
    let now = preset::agent();
    if loaded.header.agent_preset.digest != now.digest {
        notes.push(String::from(
            "the system prompt or the tools differ from those this session was made with",
        ));
    }
    Ok(Opened {
        writer,
        fold: loaded.fold,
        notes,
        blobs,
    })
}

/// The id that a target means, and what its log says; reads only.
pub fn find(store: &Store, target: &Target, workspace: &Path) -> Result<Option<Inspected>, Fault> {
    let id = match target {
        Target::New => return Ok(None),
        Target::Id(id) => id.clone(),
        Target::Newest => newest(store, workspace)?,
    };
    store
        .inspect(&id)
        .map(Some)
        .map_err(|error| storage(&error))
}

fn newest(store: &Store, workspace: &Path) -> Result<String, Fault> {
    let here = workspace.to_string_lossy();
    let entries = store.list().map_err(|error| storage(&error))?;
    let of_here =
        |header: &Option<Header>| header.as_ref().is_some_and(|header| header.cwd == here);
    let found = entries.into_iter().find(|entry| of_here(&entry.header));
    found.map(|entry| entry.id).ok_or_else(|| {
        let fault = Fault::usage(format!(
            "no session of {} is there to be continued",
            workspace.display()
        ));
        fault.remedy("see curfew session list, or start one with curfew run")
    })
}

/// What was not typed is taken from the session's last run, except full access, which is typed
/// each time.
pub fn inherit(args: &mut ConfineArgs, header: &Header, last: Option<&SandboxConfinement>) {
    if args.cwd.is_none() {
        args.cwd = Some(header.cwd.clone().into());
    }
    let Some(SandboxConfinement { confinement, .. }) = last else {
        return;
    };
    if args.mode.is_none() && confinement.mode != Mode::DangerFullAccess {
        args.mode = Some(confinement.mode);
    }
    if args.net.is_none() && confinement.mode != Mode::DangerFullAccess {
        args.net = Some(match confinement.net {
            curfew_policy::confinement::Net::Off => NetArg::Off,
            curfew_policy::confinement::Net::Full => NetArg::Full,
        });
    }
    if args.profile.is_none() {
        args.profile = Some(confinement.profile.clone());
    }
}

/// A session goes on with what it had, or less.
pub fn narrow(wanted: &mut Wanted, logged: &Confinement) -> Result<(), Fault> {
    let met = intersect(&wanted.confinement, logged);
    let wider = narrower_or_equal(&met, logged);
    if !wider.is_empty() {
        let what: Vec<String> = wider.iter().map(ToString::to_string).collect();
        let fault = Fault::sandbox(format!(
            "this would widen the session's confinement: {}",
            what.join("; ")
        ));
        return Err(fault.remedy("leave the flag out, or start a new session with curfew run"));
    }
    wanted.confinement = met;
    Ok(())
}

/// A fault of the store is 11, but for an id that is not there.
pub fn storage(error: &StoreError) -> Fault {
    match error {
        StoreError::BadId { .. } | StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => {
            Fault::usage(error.to_string())
        }
        _ => {
            let fault = Fault::storage(error.to_string());
            match remedy(error) {
                Some(remedy) => fault.remedy(remedy),
                None => fault,
            }
        }
    }
}

/// What helps where the error does not say it itself.
fn remedy(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Io { source, .. } => match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Some("set CURFEW_HOME to a directory that can be written to")
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Some("free some space, or set CURFEW_HOME to another file system")
            }
            _ => Some("put the session back from a copy, or start a new one with curfew run"),
        },
        StoreError::Damaged(_) | StoreError::NoBlob { .. } | StoreError::BlobDamaged { .. } => {
            Some("put the session back from a copy; curfew session show prints what is whole")
        }
        _ => None,
    }
}
