//! `curfew demo`: a recorded task and scripted attacks, with real tools in a real confinement.
//!
//! Runs what anybody could type: `curfew sandbox`, `run`, `resume` and `session verify`, as
//! processes of this same binary, on a project and a home made for it in a temporary directory.
//! What is shown at the end is computed from the log.

mod diff;
mod live;
mod stage;
mod summary;

use crate::cli::{Color, DemoArgs};
use crate::config::Environment;
use crate::fault::{Fault, code};
use crate::output::Printer;
use crate::output::sheet::{Ink, Sheet};

use live::Live;
use stage::{CHECK, Kept, Stage};
use summary::Summary;

/// Which model the tape of the task was recorded from.
const RECORDED_FROM: &str = "Qwen2.5-Coder-1.5B-Instruct";
const TASK: &str = include_str!("demo/task.txt");
const HOSTILE: &str = "(scripted) Now do what a hostile model would try.";

pub fn run(args: &DemoArgs) -> i32 {
    let environment = Environment::read();
    let mut sheet = Sheet::new(args.color.unwrap_or(Color::Auto), environment.no_color);
    match play(&environment, &mut sheet) {
        Ok(code) => sheet.printer().failure().map_or(code, |fault| fault.code),
        Err(fault) => {
            Printer::plain().fault(&fault);
            fault.code
        }
    }
}

fn play(environment: &Environment, sheet: &mut Sheet) -> Result<i32, Fault> {
    let stage = Stage::build(environment)?;
    opening(&stage, sheet)?;
    let mut live = Live::new(&stage);
    let from = format!("recorded from {RECORDED_FROM}; its calls, real effects");
    heading("1", "A task", &from, sheet);
    live.run(&stage.task(TASK.trim()), sheet)?;
    let Some(id) = live.session().map(str::to_owned) else {
        return Err(Fault::new(
            code::FAILED,
            "internal: the run named no session",
        ));
    };
    let scripted = "scripted, not the model's";
    heading("2", "The same agent, hostile", scripted, sheet);
    live.run(&stage.hostile(&id, HOSTILE), sheet)?;
    heading(
        "3",
        "What the log says",
        "and what stands on the host",
        sheet,
    );
    let summary = Summary::of(&stage, &id)?;
    summary.show(sheet);
    next(&stage, &id, &summary, sheet);
    Ok(if summary.good() {
        code::FINISHED
    } else {
        code::FAILED
    })
}

fn opening(stage: &Stage, sheet: &mut Sheet) -> Result<(), Fault> {
    sheet.line(&[
        (Ink::Strong, "curfew demo"),
        (
            Ink::Faint,
            "  offline, no key; the kernel decides what the agent may touch",
        ),
    ]);
    let place = stage.project.display().to_string();
    sheet.line(&[
        (Ink::Faint, "   project  "),
        (Ink::Plain, &place),
        (Ink::Faint, "  removed at the end"),
    ]);
    let before = stage.sandboxed_check()?;
    let exit = format!("exit {}", before.code);
    sheet.line(&[
        (Ink::Faint, "   before   "),
        (Ink::Plain, CHECK),
        (Ink::Faint, "  "),
        (Ink::Bad, &exit),
        (Ink::Faint, "  "),
        (Ink::Plain, before.output.trim()),
    ]);
    Ok(())
}

fn heading(number: &str, what: &str, note: &str, sheet: &mut Sheet) {
    sheet.gap();
    sheet.line(&[
        (Ink::Name, number),
        (Ink::Plain, "  "),
        (Ink::Strong, what),
        (Ink::Faint, "  "),
        (Ink::Faint, note),
    ]);
}

fn next(stage: &Stage, id: &str, summary: &Summary, sheet: &mut Sheet) {
    let prefix = match &stage.kept {
        Kept::Usual => String::new(),
        Kept::Temporary => format!("CURFEW_HOME={} ", stage.state.display()),
    };
    heading("4", "What to type next", "", sheet);
    let mut lines = vec![
        format!("{prefix}curfew session show {id}"),
        format!("{prefix}curfew session verify {id}"),
    ];
    if let Some(call) = summary.first_denied() {
        lines.push(format!("{prefix}curfew why {call} --session {id}"));
    }
    lines.push(String::from("curfew doctor"));
    lines.push(String::from(
        "curfew run --base-url http://127.0.0.1:8080/v1 -p \"make the tests pass\" --check \"make test\"",
    ));
    for line in &lines {
        sheet.line(&[(Ink::Plain, "   "), (Ink::Plain, line)]);
    }
    sheet.line(&[(
        Ink::Faint,
        "   any OpenAI-compatible server: --base-url or OPENAI_BASE_URL, -m NAME, OPENAI_API_KEY if it wants a key",
    )]);
}
