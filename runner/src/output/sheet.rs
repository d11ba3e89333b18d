//! Lines of the product in several inks: for verbs whose product is read by people.

use std::io::{self, IsTerminal as _};

use anstyle::{AnsiColor, Style};

use super::{Printer, inert, is_dumb};
use crate::cli::Color;

/// What a piece of a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Faint,
    Strong,
    Good,
    Bad,
    Name,
}

/// Stdout, painted if it is a terminal.
#[derive(Debug)]
pub struct Sheet {
    printer: Printer,
    color: bool,
}

impl Sheet {
    pub fn new(wanted: Color, no_color: bool) -> Self {
        let color = match wanted {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stdout().is_terminal() && !no_color && !is_dumb(),
        };
        Sheet {
            printer: Printer::plain(),
            color,
        }
    }

    /// One line. Whatever the pieces hold, it stays one and commands no terminal.
    pub fn line(&mut self, pieces: &[(Ink, &str)]) {
        let painted = pieces.iter().map(|(ink, text)| {
            let style = self.style(*ink);
            format!("{style}{}{style:#}", inert::line(text))
        });
        let line: String = painted.collect();
        self.printer.record(line.as_bytes());
    }

    pub fn gap(&mut self) {
        self.printer.record(b"");
    }

    pub fn printer(&mut self) -> &mut Printer {
        &mut self.printer
    }

    fn style(&self, ink: Ink) -> Style {
        let colored = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match (self.color, ink) {
            (false, _) | (true, Ink::Plain) => Style::new(),
            (true, Ink::Faint) => Style::new().dimmed(),
            (true, Ink::Strong) => Style::new().bold(),
            (true, Ink::Good) => colored(AnsiColor::Green),
            (true, Ink::Bad) => colored(AnsiColor::Red).bold(),
            (true, Ink::Name) => colored(AnsiColor::Cyan),
        }
    }
}
