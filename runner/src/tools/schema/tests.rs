use super::*;

#[test]
fn schemas_are_flat_and_their_bytes_are_pinned() {
    let text: Vec<String> = all()
        .iter()
        .map(|tool| format!("{} {}", tool.name, tool.parameters.get()))
        .collect();
    let text = text.join("\n");
    for banned in [
        "$schema", "$ref", "$defs", "format", "title", "null", "default",
    ] {
        assert!(
            !text.contains(&format!("\"{banned}\"")),
            "{banned} in {text}"
        );
    }
    // A change here changes what every new session sends and its agentPreset digest.
    insta::assert_snapshot!(text);
}

#[test]
fn fields_are_told_to_a_model_that_missed_them() {
    assert_eq!(
        fields_of("bash"),
        "command (string), timeout (integer, optional)"
    );
    assert_eq!(
        fields_of("read"),
        "limit (integer, optional), offset (integer, optional), path (string)"
    );
}
