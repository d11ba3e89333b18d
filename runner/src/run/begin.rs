//! What is started and logged before the first prompt.

use std::sync::{Arc, Mutex};

use curfew_engine::Engine;
use curfew_engine::event::ErrorClass;
use curfew_engine::outcome::ExitCode;
use curfew_engine::turn::RunStart;
use tokio::task::JoinHandle;

use super::ready::Ready;
use crate::changes::Changes;
use crate::confine::{self, Judged, Stood, Wanted};
use crate::drive::{
    Approver, Drive, Happening, Heard, Parts, Stop, Tell, listen, notify, now_ms, time_up_after,
};
use crate::fault::{Fault, code};
use crate::instructions::{self, Found};
use crate::output::{Printer, Tone};
use crate::preset::{self, Attendance};
use crate::provider::{self, Chosen, Model};
use crate::session::{self, Opened};
use crate::tools::blob::Known;
use crate::tools::run::{Names, Toolbox};
use crate::view::View;

/// A run whose confinement has been logged.
pub(super) struct Begun {
    pub drive: Drive,
    pub stood: Stood,
    /// Why no turn may be made.
    pub barred: Option<Barred>,
}

/// What was found before the first turn. Without a class it is the run's end from outside: a
/// signal, or no time left.
pub(super) type Barred = (Fault, Option<ErrorClass>);

/// Starts what must be started and logs what a run logs first.
pub(super) async fn begin(
    ready: &Ready,
    attendance: Attendance,
    approver: Approver,
    (tell, mut heard): (Tell, Heard),
) -> Result<Begun, Fault> {
    listen(&tell)?;
    if let Some(wait) = ready.args.bounds.timeout {
        time_up_after(wait, tell.clone());
    }
    let names = Names::default();
    let rising = rise(&ready.wanted, tell.clone(), &names);
    let chosen = provider::choose(&ready.args.model, &ready.config, &ready.environment)?;
    let mut printer = Printer::new(&ready.args.output, ready.environment.no_color);
    let mut stop = Stop::default();
    let model = tokio::select! {
        model = provider::model(&chosen, &ready.args.model, &ready.config, &mut printer) => model?,
        fault = stopped(&mut heard, &mut stop) => Err(fault),
    };
    let opened = match &ready.resumed {
        None => session::create(&ready.store, &ready.wanted, notify(tell.clone()))?,
        Some(id) => session::open(&ready.store, id, notify(tell.clone()))?,
    };
    let mut view = View::new(printer, ready.args.output.format());
    view.header(opened.writer.header_line(), opened.fold.next_seq());
    let (stood, found) = rising.await.map_err(|error| {
        Fault::new(
            code::FAILED,
            format!("internal: the broker's thread: {error}"),
        )
    })?;
    for note in ready
        .wanted
        .notices
        .iter()
        .chain(&opened.notes)
        .chain(&found.note)
    {
        view.printer.note(Tone::Warning, note);
    }
    let barred = barred(ready, &stood, &chosen, &model, &mut view);
    let steps_max = ready
        .args
        .bounds
        .max_steps
        .unwrap_or(preset::STEPS_MAX_DEFAULT);
    let Opened {
        writer,
        fold,
        blobs,
        ..
    } = opened;
    let mut engine = Engine::new(
        preset::engine(&ready.wanted, &stood, steps_max, attendance),
        fold,
    );
    let model = model.unwrap_or(Model {
        name: String::from("unknown"),
        window: None,
    });
    let start = RunStart {
        confinement: ready.wanted.event(stood.enforcement())?,
        header: preset::request_header(&chosen.endpoint, &model),
        context: found.message.into_iter().collect(),
    };
    engine
        .begin_run(now_ms(), start)
        .map_err(|error| Fault::storage(format!("the session takes no run: {error}")))?;
    let toolbox = toolbox(ready, &stood, &writer, blobs, names);
    let provider = Arc::new(chosen.provider);
    let mut drive = Drive::new(Parts {
        engine,
        writer,
        view,
        toolbox,
        provider,
        approver,
        channel: (tell, heard),
    });
    drive.stop = stop;
    Ok(Begun {
        drive,
        stood,
        barred,
    })
}

/// A signal, or the end of the run's time, while the server is asked for its models. The session
/// is made all the same: it says how the run ended.
async fn stopped(heard: &mut Heard, stop: &mut Stop) -> Fault {
    loop {
        match heard.recv().await {
            Some(Happening::Signal(signal)) => {
                stop.signal = Some(signal);
                let code = ExitCode::Signal(signal).code();
                return Fault::new(code, "ended by a signal before a model was chosen");
            }
            Some(Happening::TimeUp) => {
                stop.time_up = true;
                let fault = Fault::new(ExitCode::Budget.code(), "no time is left (--timeout)");
                return fault.remedy("name a model with --model, or give the run more time");
            }
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

/// Why no turn may be made, the strongest reason first.
fn barred(
    ready: &Ready,
    stood: &Stood,
    chosen: &Chosen,
    model: &Result<Model, Fault>,
    view: &mut View,
) -> Option<Barred> {
    match ready.wanted.judge(stood, &ready.args.confine) {
        Judged::Refused(fault) => return Some((fault, Some(ErrorClass::Sandbox))),
        Judged::May(waived) => {
            for shortfall in waived {
                view.printer.note(
                    Tone::Warning,
                    &format!("accepted by --allow-missing: {shortfall}"),
                );
            }
        }
    }
    if let Some(fault) = &chosen.locked {
        return Some((fault.clone(), Some(ErrorClass::Auth)));
    }
    match model {
        Err(fault) => Some((fault.clone(), fault.class())),
        Ok(_) => None,
    }
}

fn toolbox(
    ready: &Ready,
    stood: &Stood,
    writer: &curfew_store::Writer,
    blobs: Vec<String>,
    names: Names,
) -> Option<Arc<Toolbox>> {
    let Stood::Up { cells, .. } = stood else {
        return None;
    };
    let mut known = Known::default();
    blobs.iter().for_each(|sha256| known.add(sha256));
    let roots = ready
        .wanted
        .confinement
        .write
        .iter()
        .map(|root| root.to_string_lossy().into_owned())
        .collect();
    Some(Arc::new(Toolbox {
        cells: Arc::clone(cells),
        blobs: writer.blobs().clone(),
        shell: ready.wanted.shell.clone(),
        confinement: ready.wanted.confinement.clone(),
        known: Mutex::new(known),
        changes: Mutex::new(Changes::new(roots)),
        names,
    }))
}

/// The broker comes up on a thread of its own while the session is made.
type Rising = JoinHandle<(Stood, Found)>;

fn rise(wanted: &Wanted, tell: Tell, names: &Names) -> Rising {
    let (wanted, names) = (wanted.clone(), Arc::clone(names));
    let on_denied = Box::new(move |number: u64, denial: &curfew_cell::protocol::Denial| {
        let names = names
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(call_id) = names.get(&number) {
            let event = crate::denied::event(call_id, denial);
            drop(tell.send(Happening::Denied(event)));
        }
    });
    tokio::task::spawn_blocking(move || {
        let stood = confine::stand(&wanted, on_denied);
        let found = match &stood {
            Stood::Up { cells, .. } => instructions::read(cells, &wanted.confinement.workspace),
            Stood::Down { .. } => Found::default(),
        };
        (stood, found)
    })
}
