//! What a run shows while it happens, in the format that was asked for.

use curfew_engine::event::{Block, Body, Event, RunResult, Usage};
use curfew_engine::outcome::outcome;
use curfew_engine::turn::io::Delta;

use crate::cli::Format;
use crate::fault::{Fault, code};
use crate::output::{Printer, Tone};
use crate::ui::{self, Shown, Ui};

/// The face of one run.
#[derive(Debug)]
pub struct View {
    pub printer: Printer,
    format: Format,
    ui: Ui,
    /// Seq of this run's first event: earlier lines are another run's.
    first_seq: u64,
    result: ResultLine,
}

/// Whether this run's `result` stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultLine {
    Missing,
    Written,
}

impl View {
    pub fn new(printer: Printer, format: Format) -> Self {
        View {
            printer,
            format,
            ui: Ui::default(),
            first_seq: 0,
            result: ResultLine::Missing,
        }
    }

    /// The session's header, first of all.
    pub fn header(&mut self, line: &[u8], first_seq: u64) {
        self.first_seq = first_seq;
        if self.format == Format::StreamJson {
            self.printer.record(line);
        }
    }

    /// The line of an event, after it has been written.
    pub fn written(&mut self, seq: u64, line: &[u8]) {
        if seq < self.first_seq {
            return;
        }
        if is_result(line) {
            self.result = ResultLine::Written;
        }
        if self.format == Format::StreamJson {
            self.printer.record(line);
        }
    }

    pub fn result_line(&self) -> ResultLine {
        self.result
    }

    pub fn delta(&mut self, delta: &Delta) {
        if self.format == Format::Text && delta.block == Block::Text {
            self.printer.stream(&delta.text);
        }
    }

    pub fn events(&mut self, events: &[Event]) {
        for event in events {
            if matches!(event.body, Body::AssistantMessage(_) | Body::ModelRetry(_))
                && self.format == Format::Text
            {
                self.printer.end_stream();
            }
            for shown in self.ui.event(event) {
                self.show(shown);
            }
        }
    }

    fn show(&mut self, shown: Shown) {
        match shown {
            // A person typed the prompt, and the answer has been streamed.
            Shown::Prompt { .. } | Shown::Answer(_) => {}
            Shown::Detail(text) => self.printer.detail(&text),
            Shown::Line {
                tone: Tone::Plain | Tone::Good,
                text,
            } if self.format != Format::Text => {
                self.printer.detail(&text);
            }
            Shown::Line { tone, text } => self.printer.note(tone, &text),
        }
    }

    /// Prompts that no turn took.
    pub fn unclaimed(&mut self, prompts: &[String]) {
        for prompt in prompts {
            self.printer
                .note(Tone::Warning, &format!("not sent: {prompt}"));
        }
    }

    /// Something stands on the line where a question belongs.
    pub fn before_question(&mut self) {
        self.printer.end_stream();
    }

    /// The end of a run that has no log. What was not understood (usage) leaves stdout empty.
    pub fn refused(&mut self, fault: &Fault, session: Option<String>) {
        self.printer.fault(fault);
        if fault.code == code::USAGE || self.format == Format::Text {
            return;
        }
        let outcome = outcome(None, &[], None, fault.class());
        let result = RunResult {
            status: outcome.status.to_owned(),
            exit_code: fault.code,
            reason: outcome.reason,
            session_id: session.unwrap_or_default(),
            run: 0,
            steps: 0,
            usage: Usage::default(),
            cost_usd: None,
            duration_ms: 0,
            final_message: None,
            checks: Vec::new(),
            denials: 0,
            changed: Vec::new(),
            logged: false,
        };
        if let Err(fault) = self.result(&result) {
            self.printer.fault(&fault);
        }
    }

    /// The end of a run. `line` is what stands for a result that could not be logged.
    pub fn result(&mut self, result: &RunResult) -> Result<(), Fault> {
        let document = serde_json::to_string(result).map_err(|error| {
            Fault::new(
                crate::fault::code::FAILED,
                format!("internal: the result: {error}"),
            )
        })?;
        match (self.format, result.logged) {
            (Format::Text, _) => {
                self.printer.end_stream();
                if let Shown::Line { tone, text } = ui::result_line(result) {
                    self.printer.note(tone, &text);
                }
            }
            (Format::Json, _) => self.printer.record(document.as_bytes()),
            (Format::StreamJson, true) => {}
            (Format::StreamJson, false) => {
                self.printer
                    .record(format!("{{\"type\":\"result\",\"data\":{document}}}").as_bytes());
            }
        }
        Ok(())
    }
}

/// `type` follows `seq` and `time`, which are numbers.
fn is_result(line: &[u8]) -> bool {
    const KEY: &[u8] = b",\"type\":\"result\",";
    let head = &line[..line.len().min(80)];
    head.windows(KEY.len()).any(|window| window == KEY)
}
