//! Everything a person or a program sees of curfew goes through here: the only printer.
//!
//! stdout carries the product, stderr is for people. A closed stdout ends quietly: it is
//! remembered, never an error and never a panic (`println!` panics on EPIPE).

pub mod inert;
pub mod sheet;

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};

use crate::cli::{Color, OutputArgs};
use crate::fault::Fault;

/// How much goes to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    Quiet,
    Normal,
    Verbose,
}

/// What a line on stderr is about; decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A folded call, a step.
    Plain,
    /// Something a person should not miss.
    Warning,
    /// Said even to those who asked for quiet.
    Alarm,
    /// A refused operation.
    Denied,
    Good,
}

/// Whether stdout still has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Present,
    Gone,
}

/// The printer of one process.
#[derive(Debug)]
pub struct Printer {
    volume: Volume,
    color: bool,
    /// Both streams are the same person's terminal.
    shared_terminal: bool,
    /// The last thing on stdout was no line break.
    mid_line: bool,
    reader: Reader,
    failure: Option<io::Error>,
}

impl Printer {
    pub fn new(args: &OutputArgs, no_color: bool) -> Self {
        let volume = match (args.quiet, args.verbose) {
            (true, _) => Volume::Quiet,
            (false, 0) => Volume::Normal,
            (false, _) => Volume::Verbose,
        };
        let color = match args.color.unwrap_or_default() {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stderr().is_terminal() && !no_color && !is_dumb(),
        };
        Printer {
            volume,
            color,
            ..Printer::plain()
        }
    }

    /// Without colour, at normal volume.
    pub fn plain() -> Self {
        Printer {
            volume: Volume::Normal,
            color: false,
            shared_terminal: io::stdout().is_terminal() && io::stderr().is_terminal(),
            mid_line: false,
            reader: Reader::Present,
            failure: None,
        }
    }

    /// Text of the product as it streams, made inert.
    pub fn stream(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.bytes(inert::text(text).as_bytes());
        self.mid_line = !text.ends_with('\n');
    }

    /// Ends a line of streamed text, if one is open.
    pub fn end_stream(&mut self) {
        if self.mid_line {
            self.bytes(b"\n");
            self.mid_line = false;
        }
    }

    /// One line of the product, made inert.
    pub fn line(&mut self, text: &str) {
        self.record(inert::line(text).as_bytes());
    }

    /// One line of the product, byte for byte, and a line break.
    pub fn record(&mut self, line: &[u8]) {
        let mut whole = Vec::with_capacity(line.len() + 1);
        whole.extend_from_slice(line);
        whole.push(b'\n');
        self.bytes(&whole);
    }

    /// Product bytes as they are; flushed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.reader == Reader::Gone {
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            self.reader = Reader::Gone;
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.failure = Some(error);
            }
        }
    }

    /// A line for people, unless they asked for quiet.
    pub fn note(&mut self, tone: Tone, text: &str) {
        if self.volume >= Volume::Normal || tone == Tone::Alarm {
            self.person(tone, text);
        }
    }

    /// A line for people who asked for more.
    pub fn detail(&mut self, text: &str) {
        if self.volume >= Volume::Verbose {
            self.person(Tone::Plain, text);
        }
    }

    /// An error; always shown.
    pub fn fault(&mut self, fault: &Fault) {
        self.person(Tone::Warning, &format!("curfew: {fault}"));
    }

    /// Whether somebody still reads stdout.
    pub fn reader(&self) -> Reader {
        self.reader
    }

    /// Why stdout failed, when it was not just closed (a full disk, say).
    pub fn failure(&self) -> Option<Fault> {
        self.failure
            .as_ref()
            .map(|error| Fault::storage(format!("cannot write to stdout: {error}")))
    }

    fn person(&mut self, tone: Tone, text: &str) {
        if self.shared_terminal {
            self.end_stream();
        }
        let text = inert::line(text);
        let style = self.style(tone);
        let line = format!("{style}{text}{style:#}\n");
        // A closed stderr has nobody to tell, not even of this.
        drop(io::stderr().lock().write_all(line.as_bytes()));
    }

    fn style(&self, tone: Tone) -> Style {
        let colored = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match (self.color, tone) {
            (false, _) => Style::new(),
            (true, Tone::Plain) => Style::new().dimmed(),
            (true, Tone::Warning) => colored(AnsiColor::Yellow),
            (true, Tone::Denied | Tone::Alarm) => colored(AnsiColor::Red),
            (true, Tone::Good) => colored(AnsiColor::Green),
        }
    }
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
