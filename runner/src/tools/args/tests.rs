use super::*;

fn why(name: &str, arguments: &str) -> String {
    match parse(name, arguments) {
        Err(fault) => fault.to_string(),
        Ok(tool) => panic!("accepted: {tool:?}"),
    }
}

#[test]
fn good_arguments_are_understood_with_absent_and_null_options() {
    let wanted = Tool::Bash(BashArgs {
        command: String::from("ls"),
        timeout: None,
    });
    assert_eq!(parse("bash", r#"{"command":"ls"}"#), Ok(wanted.clone()));
    assert_eq!(
        parse("bash", r#"{"command":"ls","timeout":null}"#),
        Ok(wanted)
    );
}

#[test]
fn bad_arguments_name_the_field_and_what_the_tool_takes() {
    assert!(why("bash", "not json").contains("bash takes command (string)"));
    assert!(why("bash", r#"{"command":"ls","cwd":"/"}"#).contains("unknown field `cwd`"));
    assert!(why("bash", r#"{"command":["ls"]}"#).contains("command: invalid type"));
    assert!(why("bash", r#"{"command":"ls"} {}"#).contains("trailing"));
    assert!(why("read", "").contains("missing field `path`"));
    assert!(why("write", r#"{"path":"a\u0000b","content":""}"#).contains("NUL"));
    assert!(why("bash", "{\"command\":\"a\\u0000b\"}").contains("NUL"));
    assert!(why("raed", "{}").contains("Did you mean read?"));
}

#[test]
fn nul_may_stand_in_content() {
    assert!(parse("write", r#"{"path":"a","content":"x\u0000y"}"#).is_ok());
}
