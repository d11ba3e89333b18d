use super::usage::Parsed;
use super::*;
use crate::fault::Fault;

fn args(words: &[&str]) -> Vec<OsString> {
    std::iter::once("curfew")
        .chain(words.iter().copied())
        .map(OsString::from)
        .collect()
}

fn parsed(words: &[&str]) -> Cli {
    match parse(args(words)) {
        Ok(Parsed::Run(cli)) => cli,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn refused(words: &[&str]) -> Fault {
    match parse(args(words)) {
        Err(fault) => fault,
        other => panic!("{words:?} was accepted: {other:?}"),
    }
}

#[test]
fn the_command_is_well_formed() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn a_bare_curfew_is_the_repl_with_the_flags_of_run() {
    let cli = parsed(&["-m", "x", "-s", "read-only"]);
    assert!(cli.verb.is_none());
    assert_eq!(cli.run.model.model.as_deref(), Some("x"));
    assert_eq!(cli.run.confine.mode, Some(Mode::ReadOnly));
}

#[test]
fn flags_people_already_type() {
    let cli = parsed(&[
        "run",
        "-p",
        "-1 is odd",
        "--sandbox",
        "danger-full-access",
        "--json",
        "--timeout",
        "10m",
    ]);
    let Some(Verb::Run(run)) = cli.verb else {
        panic!("not run")
    };
    assert_eq!(run.prompt.as_deref(), Some("-1 is odd"));
    assert_eq!(run.confine.mode, Some(Mode::DangerFullAccess));
    assert_eq!(run.output.format(), Format::StreamJson);
    assert_eq!(run.bounds.timeout, Some(Duration::from_secs(600)));
}

#[test]
fn stdin_is_asked_for_with_a_dash_alone() {
    let Some(Verb::Run(run)) = parsed(&["run", "-"]).verb else {
        panic!("not run")
    };
    assert_eq!(run.stdin, Some(Dash));
    assert_eq!(refused(&["run", "fix it"]).code, 2);
}

#[test]
fn what_is_mistyped_gets_the_nearest_match_on_one_line() {
    for (words, wanted) in [
        (&["run", "--prompy", "x"][..], "--prompt"),
        (&["runn"][..], "run"),
        (&["run", "--mode", "read-onyl"][..], "read-only"),
        (&["doctor", "--max-step"][..], "--max-steps"),
        (&["run", "--require", "write-fense"][..], "write-fence"),
        (&["session", "lst"][..], "list"),
    ] {
        let fault = refused(words);
        let line = fault.to_string();
        assert_eq!(fault.code, 2);
        assert!(line.contains(&format!("'{wanted}'")), "{words:?}: {line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn what_is_not_built_is_refused() {
    for words in [
        &["web"][..],
        &["run", "--json-schema", "x"][..],
        &["run", "--fork"][..],
        &["queue", "add"][..],
    ] {
        assert_eq!(refused(words).code, 2);
    }
}

#[test]
fn times_have_units() {
    assert!(names::duration("30").is_err());
    assert!(names::duration("0s").is_err());
    assert!(names::duration("99999999999999999h").is_err());
    assert_eq!(names::duration("1500ms"), Ok(Duration::from_millis(1500)));
}

#[test]
fn sandbox_takes_the_command_after_two_dashes() {
    let Ok(Parsed::Run(sandbox)) =
        parse_sandbox(args(&["sandbox", "--net", "off", "--", "ls", "-l"]))
    else {
        panic!("refused")
    };
    assert_eq!(sandbox.command, ["ls", "-l"]);
    assert_eq!(
        parse_sandbox(args(&["sandbox", "ls"]))
            .err()
            .map(|fault| fault.code),
        Some(2)
    );
    assert_eq!(
        parse_sandbox(args(&["sandbox"]))
            .err()
            .map(|fault| fault.code),
        Some(2)
    );
}
