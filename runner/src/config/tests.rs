use super::*;

#[test]
fn known_keys_are_taken() {
    let config =
        parse("model = \"m\"\nbaseUrl = \"http://x/v1\"\ncontextWindow = 8192\n").expect("parses");
    assert_eq!(config.model.as_deref(), Some("m"));
    assert_eq!(config.context_window, Some(8192));
}

#[test]
fn an_unknown_key_gets_the_nearest_match() {
    let fault = parse("baseurl = \"x\"").expect_err("refused");
    assert_eq!(
        fault.to_string(),
        "unknown key 'baseurl'; did you mean 'baseUrl'?"
    );
    assert_eq!(fault.code, 2);
}

#[test]
fn a_mistake_is_placed() {
    let fault = parse("model = \"m\"\ncontextWindow = \"big\"\n").expect_err("refused");
    assert!(fault.what.starts_with("line 2: "), "{fault}");
}

#[test]
fn curfew_home_holds_everything() {
    let environment = Environment {
        curfew_home: Some("/x/c".into()),
        state_home: Some("/y".into()),
        ..Default::default()
    };
    assert_eq!(
        environment.state_dir().expect("known"),
        PathBuf::from("/x/c")
    );
    assert_eq!(environment.config_file(), Some("/x/c/config.toml".into()));
    let relative = Environment {
        curfew_home: Some("c".into()),
        ..Default::default()
    };
    assert_eq!(relative.state_dir().expect_err("refused").code, 2);
}
