//! Calls: started on a thread each, killed by number, told when they are over.

use curfew_engine::Input;
use curfew_engine::event::{Body, ToolErrorCode};
use curfew_worker::protocol::Observation;

use super::{Drive, Happening};
use crate::tools::args::{self, ArgumentFault};
use crate::tools::run::{Done, Job, refused};

impl Drive {
    pub(super) fn start_call(&mut self, call_id: String, name: &str, arguments: &str) {
        let tool = match args::parse(name, arguments) {
            Ok(tool) => tool,
            Err(fault) => {
                let code = match fault {
                    ArgumentFault::UnknownTool { .. } => ToolErrorCode::UnknownTool,
                    ArgumentFault::Invalid { .. } => ToolErrorCode::InvalidArguments,
                };
                return self.say(Happening::Called(Box::new(refused(
                    &call_id,
                    code,
                    fault.to_string(),
                ))));
            }
        };
        let Some(toolbox) = self.toolbox.clone() else {
            let text = String::from("There is no sandbox, so nothing was run.");
            return self.say(Happening::Called(Box::new(refused(
                &call_id,
                ToolErrorCode::SandboxFailed,
                text,
            ))));
        };
        let number = toolbox.cells.number();
        self.calls.insert(call_id.clone(), number);
        toolbox.name(number, &call_id);
        let observations = if tool.writes() {
            self.observations()
        } else {
            Vec::new()
        };
        let job = Job {
            call_id: call_id.clone(),
            number,
            tool,
            observations,
        };
        let tell = self.tell.clone();
        let started = std::thread::Builder::new()
            .name(call_id.clone())
            .spawn(move || {
                let done = toolbox.run(job);
                // A run that has ended does not wait for what it gave up.
                drop(tell.send(Happening::Called(Box::new(done))));
            });
        if let Err(error) = started {
            let code = ToolErrorCode::SandboxFailed;
            self.say(Happening::Called(Box::new(refused(
                &call_id,
                code,
                format!("No thread for the call: {error}"),
            ))));
        }
    }

    fn observations(&self) -> Vec<Observation> {
        let files = self.engine.fold().files().iter();
        files
            .map(|(path, seen)| Observation {
                path: path.clone(),
                sha256: seen.sha256.clone(),
                seen: seen.seen.clone(),
            })
            .collect()
    }

    pub(super) fn called(&mut self, done: Done) -> Input {
        let Done {
            completed,
            denials,
            mut events,
        } = done;
        self.calls.remove(&completed.call_id);
        events.splice(0..0, denials.into_iter().map(Body::SandboxDenied));
        Input::CallCompleted { completed, events }
    }

    pub(super) fn kill_call(&mut self, call_id: &str) {
        if let (Some(number), Some(toolbox)) = (self.calls.get(call_id), &self.toolbox)
            && let Err(error) = toolbox.cells.kill(*number)
        {
            // The broker is gone, and its calls with it: their threads report that themselves.
            tracing::warn!(%error, call_id, "kill");
        }
    }
}
