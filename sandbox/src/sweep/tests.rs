use curfew_worker::protocol::Moved;

use super::*;

#[test]
fn a_line_says_how_to_put_it_back() {
    let moved = Moved {
        from: "/w/.vscode".to_owned(),
        to: "/w/.vscode.quarantined".to_owned(),
    };
    let odd = Moved {
        from: "/w/a b'/.mcp.json".to_owned(),
        to: "/w/x\u{1b}[2J".to_owned(),
    };
    let swept = Swept {
        moved: vec![moved, odd],
        failed: vec!["/w/f".to_owned()],
        kept: vec!["/w/.git/config".to_owned()],
        cut: true,
    };
    let lines = lines(&swept);
    assert!(
        lines[0].ends_with("mv /w/.vscode.quarantined /w/.vscode"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].contains(r"'/w/a b'\''/.mcp.json'") && !lines[1].contains('\u{1b}'),
        "{}",
        lines[1]
    );
    assert_eq!(lines.len(), 5);
    assert!(super::lines(&Swept::default()).is_empty());
}

#[test]
fn nothing_is_swept_where_nothing_is_writable() {
    let limits = curfew_cell::plan::CallLimits {
        wall_ms: 1,
        memory_bytes: 1,
        processes: 1,
        shm_bytes: 1,
        drain_ms: 1,
    };
    let plan = Plan {
        workspace: "/w".into(),
        limits,
        fence: None,
    };
    assert_eq!(request(&plan, &ReadyFacts::default()), None);
}
