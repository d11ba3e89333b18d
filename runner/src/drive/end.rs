//! What comes after the last turn: checks, the result, and a log that may take nothing more.

use std::sync::Arc;

use curfew_engine::event::{ErrorClass, RunResult};
use curfew_engine::outcome::outcome;
use curfew_engine::turn::{RunEnd, run_result};

use super::{Drive, Happening, bug, now_ms};
use crate::check::{Check, Checked};
use crate::fault::Fault;
use crate::view::ResultLine;

impl Drive {
    /// Runs a check and waits for its end, or ends it when the run is to end.
    pub async fn check(&mut self, check: Check) -> Result<Checked, Fault> {
        let cells = Arc::clone(&check.cells);
        let number = check.number;
        let tell = self.tell.clone();
        std::thread::Builder::new()
            .name(String::from("check"))
            .spawn(move || drop(tell.send(Happening::Checked(Box::new(check.run())))))
            .map_err(|error| bug(&format!("no thread for a check: {error}")))?;
        loop {
            match self.heard.recv().await {
                None => return Err(bug("nothing can happen any more")),
                Some(Happening::Checked(checked)) => return *checked,
                Some(happening) => self.take(happening)?,
            }
            self.perform_all();
            if (self.stop.signal.is_some() || self.stop.time_up)
                && let Err(error) = cells.kill(number)
            {
                return Err(Fault::sandbox(format!(
                    "the check could not be ended: {error}"
                )));
            }
        }
    }

    /// Logs the run's `result`, its last record. Where the log takes nothing more, the store closes
    /// what is open as far as it can, and the result is told to the operator alone.
    pub async fn end_run(&mut self, end: RunEnd) -> Result<RunResult, Fault> {
        let mut claimed = None;
        if self.stop.log_failed.is_none() && !self.engine.is_stopped() {
            let result = self
                .engine
                .end_run(now_ms(), end)
                .map_err(|error| bug(&error.to_string()))?;
            self.settle().await?;
            if self.stop.log_failed.is_none() {
                return Ok(result);
            }
            claimed = Some(result);
        }
        self.unlogged(end, claimed)
    }

    /// `claimed` is what the log was to say and could not take.
    fn unlogged(&mut self, end: RunEnd, claimed: Option<RunResult>) -> Result<RunResult, Fault> {
        let why = self
            .stop
            .log_failed
            .clone()
            .unwrap_or_else(|| String::from("the log takes nothing more"));
        let id = &self.engine.fold().header().id;
        let fault = Fault::storage(format!("cannot write the log of session {id}: {why}"));
        self.view.printer.fault(&fault);
        let closed = self
            .writer
            .as_ref()
            .map(|writer| writer.submit_storage_end(now_ms()));
        if let Some(Err(error)) = closed {
            self.view.printer.detail(&format!(
                "the log could not be closed, the next resume will do it: {error}"
            ));
        }
        self.close();
        let end = RunEnd {
            failure: Some(ErrorClass::Storage),
            ..end
        };
        let mut result = match claimed {
            Some(mut result) => {
                let outcome = outcome(None, &[], end.signal, end.failure);
                result.status = outcome.status.to_owned();
                result.exit_code = outcome.exit.code();
                result.reason = outcome.reason;
                result
            }
            None => run_result(self.engine.fold(), now_ms(), end)
                .ok_or_else(|| Fault::storage("the log takes nothing more, and no run is open"))?,
        };
        // The store may have found room for a result of its own.
        result.logged = self.view.result_line() == ResultLine::Written;
        Ok(result)
    }

    /// Gives the session back and shows what was still written.
    pub fn close(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        if let Err(error) = writer.close() {
            self.view.printer.fault(&Fault::storage(error.to_string()));
        }
        while let Ok(happening) = self.heard.try_recv() {
            if let Happening::Written { seq, line } = happening {
                self.view.written(seq, &line);
            }
        }
    }
}
