use proptest::prelude::*;

use super::*;

fn denial(path: &str) -> Denial {
    Denial {
        op: "open-write".to_owned(),
        path: Some(path.to_owned()),
        address: None,
        errno: 30,
        layer: "mounts".to_owned(),
        rule: "sealed".to_owned(),
        remedy: String::new(),
        trust: Trust::Kernel,
        count: 3,
    }
}

#[test]
fn says_what_which_rule_and_how_to_allow_it() {
    let line = render_denial(&denial("/etc/x"));
    assert_eq!(
        line,
        "denied: open-write /etc/x: EROFS by mounts, rule sealed, 3 times; a person can grant the \
         directory with --add-dir, or use a file in the workspace or /tmp"
    );
}

#[test]
fn a_prediction_says_so() {
    let line = render_denial(&Denial {
        trust: Trust::Predicted,
        ..denial("/etc/x")
    });
    assert!(line.starts_with("denied (foreseen): "), "{line}");
}

proptest! {
    #[test]
    fn a_path_cannot_leave_its_line_or_move_the_cursor(path in any::<String>()) {
        let line = render_denial(&denial(&path));
        prop_assert!(line.chars().all(is_plain));
        prop_assert!(line.chars().count() < 12 * SHOWN_CHARS_MAX);
    }
}
