//! The conversation: a line, a turn, a line. One thread owns the terminal; it reads a prompt or
//! asks one question at a time.

use std::io::IsTerminal as _;
use std::sync::mpsc::{Receiver, Sender, channel};

use curfew_engine::event::ApprovalOutcome;
use curfew_engine::outcome::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::cli::RunArgs;
use crate::drive::{Approver, Happening, Question, Tell};
use crate::fault::{Fault, code};
use crate::run;
use crate::session::Target;

const PROMPT: &str = "> ";

/// `curfew` alone.
pub fn talk(args: RunArgs, target: Target) -> i32 {
    if !std::io::stdin().is_terminal() {
        let fault = Fault::usage("there is no prompt and no terminal")
            .remedy("say what to do: curfew run -p TEXT");
        crate::output::Printer::plain().fault(&fault);
        return fault.code;
    }
    run::conversation(args, target)
}

/// What the terminal's thread is asked for.
enum Wish {
    Line,
    Question(Question),
}

/// The run's end of the terminal.
pub struct Terminal {
    wishes: Sender<Wish>,
    lines: tokio::sync::mpsc::UnboundedReceiver<Option<String>>,
    found: Option<Termios>,
}

/// A run that ends while its thread waits for a key leaves the terminal as it was found: the editor
/// had it in raw mode, in which the shell would be left.
impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(found) = &self.found
            && let Err(error) = tcsetattr(std::io::stdin(), OptionalActions::Now, found)
        {
            // A terminal that is gone (SIGHUP) needs nothing.
            tracing::debug!(%error, "tcsetattr");
        }
    }
}

impl Terminal {
    /// Starts the thread that owns the terminal.
    pub fn start(tell: Tell) -> Result<(Self, Approver), Fault> {
        let failed = |error: String| {
            Fault::new(
                code::FAILED,
                format!("the terminal cannot be used: {error}"),
            )
        };
        let found = tcgetattr(std::io::stdin()).ok();
        let (wishes, wished) = channel();
        let (said, lines) = tokio::sync::mpsc::unbounded_channel();
        let editor = DefaultEditor::new().map_err(|error| failed(error.to_string()))?;
        let thread = std::thread::Builder::new().name(String::from("terminal"));
        thread
            .spawn(move || own(editor, &wished, &said, &tell))
            .map_err(|error| failed(error.to_string()))?;
        let asks = wishes.clone();
        let approver = Approver::Person(Box::new(move |question| {
            asks.send(Wish::Question(question)).is_ok()
        }));
        let terminal = Terminal {
            wishes,
            lines,
            found,
        };
        Ok((terminal, approver))
    }

    /// The next line, or `None` at the end.
    pub async fn line(&mut self) -> Option<String> {
        self.wishes.send(Wish::Line).ok()?;
        self.lines.recv().await.flatten()
    }
}

fn own(
    mut editor: DefaultEditor,
    wished: &Receiver<Wish>,
    said: &tokio::sync::mpsc::UnboundedSender<Option<String>>,
    tell: &Tell,
) {
    while let Ok(wish) = wished.recv() {
        let alive = match wish {
            Wish::Line => said.send(read_line(&mut editor)).is_ok(),
            Wish::Question(question) => answer(&mut editor, question, tell),
        };
        if !alive {
            return;
        }
    }
}

/// Ctrl-C drops the line; Ctrl-D ends.
fn read_line(editor: &mut DefaultEditor) -> Option<String> {
    loop {
        match editor.readline(PROMPT) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                // A history that is full or off is no reason to stop.
                drop(editor.add_history_entry(&line));
                return Some(line);
            }
            Err(ReadlineError::Interrupted) => {}
            Err(_) => return None,
        }
    }
}

/// Only `y` or `yes` allows. Ctrl-C is no, and stops the turn.
fn answer(editor: &mut DefaultEditor, question: Question, tell: &Tell) -> bool {
    let read = editor.readline(&question.text());
    let stop = matches!(read, Err(ReadlineError::Interrupted));
    let outcome = match read {
        Ok(line) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => {
            ApprovalOutcome::AllowedOnce
        }
        Ok(_) | Err(ReadlineError::Interrupted) => ApprovalOutcome::Denied,
        Err(_) => ApprovalOutcome::Unavailable,
    };
    let Question {
        call_id, digest, ..
    } = question;
    let mut alive = tell
        .send(Happening::Decided {
            call_id,
            digest,
            outcome,
        })
        .is_ok();
    if stop {
        alive &= tell.send(Happening::Signal(Signal::Interrupt)).is_ok();
    }
    alive
}
