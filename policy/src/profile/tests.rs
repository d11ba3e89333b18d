use super::*;

fn layer(text: &str) -> Result<Profile, PolicyError> {
    parse("mine", text, Origin::Operator)
}

fn fault(text: &str) -> String {
    layer(text).unwrap_err().to_string()
}

#[test]
fn the_built_in_tables_are_what_the_parser_makes_of_the_files() {
    let text = include_str!("../../../profiles/default.toml");
    assert_eq!(built_in::default(), parse(DEFAULT, text, Origin::BuiltIn));
    let text = include_str!("../../../profiles/protected.toml");
    assert_eq!(
        Ok(built_in::PROTECTED.to_vec()),
        raw::protected(text),
        "protected.toml"
    );
}

#[test]
fn every_built_in_row_has_a_reason() {
    let profile = Profile::load(DEFAULT, &|_| None).unwrap();
    let rows = profile
        .read
        .iter()
        .chain(&profile.write)
        .chain(&profile.mask);
    for row in rows {
        assert!(
            row.why.as_ref().is_some_and(|why| why.ends_with('.')),
            "{row:?}"
        );
        assert_eq!(row.origin, Origin::BuiltIn);
    }
    assert!(profile.protect.iter().all(|row| row.why.is_some()));
    assert!(
        profile.limits.wall_ms == Some(600_000) && profile.limits.memory_bytes == Some(4 << 30)
    );
}

#[test]
fn what_runs_later_is_protected_and_what_git_needs_is_not() {
    let profile = Profile::load(DEFAULT, &|_| None).unwrap();
    let names: Vec<&str> = profile
        .protect
        .iter()
        .map(|row| row.name.as_ref())
        .collect();
    for name in [
        ".git/hooks",
        ".git/config",
        ".vscode",
        ".idea",
        ".zed",
        ".cursor",
        ".devcontainer",
        ".mcp.json",
        ".claude",
        ".codex",
        ".gemini",
        ".agents",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        ".curfew",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for name in [
        ".git",
        ".git/HEAD",
        ".git/index",
        ".git/objects",
        ".git/refs",
        ".git/logs",
        "Makefile",
        "package.json",
        ".github",
    ] {
        assert!(!names.contains(&name), "{name}");
    }
}

#[test]
fn no_row_shows_a_credential() {
    let profile = Profile::load(DEFAULT, &|_| None).unwrap();
    let secrets: Vec<&str> = profile
        .mask
        .iter()
        .filter(|row| row.kind == RowKind::Plain)
        .map(|row| row.path.as_ref())
        .collect();
    for row in &profile.read {
        for secret in &secrets {
            assert!(
                !std::path::Path::new(secret).starts_with(row.path.as_ref()),
                "{} shows {secret}",
                row.path
            );
        }
    }
}

#[test]
fn unknown_keys_are_refused_by_line_with_the_nearest() {
    assert_eq!(
        fault("mode = 'read-only'\nwrit = []"),
        "profile mine: line 2: unknown key `writ`; did you mean `write`?"
    );
    assert_eq!(
        fault("[limits]\nwal = '1m'"),
        "profile mine: line 2: unknown key `wal`; did you mean `wall`?"
    );
    assert_eq!(
        fault("read = [\n{ path = '/a', optonal = true }]"),
        "profile mine: line 2: unknown key `optonal`; did you mean `optional`?"
    );
    assert_eq!(
        fault("[[protect]]\nnam = 'x'"),
        "profile mine: line 2: unknown key `nam`; did you mean `name`?"
    );
    assert!(fault("zzzzzz = 1").contains("known: extends, mode"));
    assert!(
        fault("read = [{ path = '/a', private = true }]").contains("`private`"),
        "not in read"
    );
}

#[test]
fn values_are_checked() {
    assert!(fault("mode = 'danger-full-access'").contains("never configured"));
    assert!(fault("mode = 'read-onyl'").contains("did you mean `read-only`"));
    assert!(fault("net = 'on'").contains("neither"));
    assert!(fault("net = ['@npm']").contains("not built yet"));
    assert!(fault("read = ['src']").contains("not absolute"));
    assert!(fault("read = ['~bob/x']").contains("not absolute"));
    assert!(fault("read = ['/a/../b']").contains(".."));
    assert!(fault("protect = ['/abs']").contains("no name"));
    assert!(fault("protect = ['a/../b']").contains("no name"));
    assert!(fault("env = ['A B']").contains("no variable name"));
    assert!(fault("[limits]\nwall = '10'").contains("write 500ms"));
    assert!(fault("[limits]\nmemory = '0GiB'").contains("no size"));
    assert!(fault("[limits]\nprocesses = 0").contains("at least 1"));
    assert!(fault("evidence = 'yes'").starts_with("profile mine: evidence:"));
    assert!(fault("mode = ").contains("line 1"));
    assert!(fault(&"#".repeat(PROFILE_BYTES_MAX + 1)).contains("larger"));
    assert!(fault(&format!("read = [{}]", "'/a',".repeat(ROWS_MAX + 1))).contains("rows"));
}

#[test]
fn layers_add_rows_and_the_last_word_counts() {
    let texts = |name: &str| match name {
        "base" => Some("net = 'full'\nread = ['/b']\n[limits]\nwall = '1m'".to_owned()),
        "top" => Some("extends = 'base'\nmode = 'read-only'\nread = ['/t']".to_owned()),
        _ => None,
    };
    let profile = Profile::load("top", &texts).unwrap();
    assert_eq!(
        (profile.name.as_str(), profile.mode, profile.net),
        ("top", Some(Mode::ReadOnly), Some(Net::Full))
    );
    assert_eq!(profile.limits.wall_ms, Some(60_000));
    let read: Vec<&str> = profile
        .read
        .iter()
        .rev()
        .take(2)
        .map(|row| row.path.as_ref())
        .collect();
    assert_eq!(read, ["/t", "/b"]);
    assert!(
        profile.mask.iter().any(|row| row.kind == RowKind::Closed),
        "default lies below all"
    );
}

#[test]
fn a_profile_that_is_not_there_or_extends_itself() {
    let error = Profile::load("defualt", &|_| None).unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown profile `defualt`; did you mean `default`?; a file given as a path works too"
    );
    let ring = |name: &str| {
        Some(format!(
            "extends = '{}'",
            if name == "a" { "b" } else { "a" }
        ))
    };
    assert!(matches!(
        Profile::load("a", &ring),
        Err(PolicyError::ExtendsCycle { .. })
    ));
    let endless = |name: &str| Some(format!("extends = '{name}x'"));
    assert!(matches!(
        Profile::load("a", &endless),
        Err(PolicyError::ExtendsCycle { .. })
    ));
}

#[test]
fn the_example_of_the_documentation_is_a_profile() {
    let text = include_str!("../../../profiles/README.md");
    let example = text
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let profile = Profile::load("site", &|_| Some(example.to_owned())).unwrap();
    assert_eq!(profile.limits.wall_ms, Some(1_200_000));
    assert!(
        profile
            .read
            .iter()
            .any(|row| row.path == "$WORKSPACE/vendor")
    );
}

#[test]
fn what_the_default_profile_passes_on_is_known_to_be_incidental() {
    let profile = Profile::load(DEFAULT, &|_| None).unwrap();
    for row in &profile.env {
        assert_eq!(row.value, None);
        let known = crate::environment::INCIDENTAL.contains(&row.name.as_ref());
        assert!(known, "{}", row.name);
    }
}

#[test]
fn built_in_files_have_no_unknown_key() {
    let files = [
        (DEFAULT, include_str!("../../../profiles/default.toml")),
        (
            "protected",
            include_str!("../../../profiles/protected.toml"),
        ),
    ];
    for (name, text) in files {
        assert_eq!(raw::check_keys(name, text), Ok(()), "{name}");
    }
}
