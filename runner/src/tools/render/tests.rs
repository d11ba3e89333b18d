use super::*;

fn fact(bytes: u64, lines: u64) -> FileFact {
    FileFact {
        path: String::from("/w/a"),
        sha256: String::from("S"),
        bytes,
        lines,
        seen: vec![(1, lines)],
    }
}

#[test]
fn a_window_is_numbered_and_says_how_to_go_on() {
    let answer = Response::Read {
        file: fact(9, 30),
        first: 7,
        last: 8,
        more: true,
        cut_lines: 1,
        lossy: false,
        bytes: 6,
    };
    let rendered = response(answer, b"ab\ncd\n".to_vec());
    assert_eq!(rendered.body, b"7\tab\n8\tcd\n");
    assert_eq!(
        rendered.notes,
        [
            "[lines 7 to 8 of 30; go on with offset 9]",
            "[1 long lines were cut]"
        ]
    );
    assert_eq!(rendered.files[0].access, FileAccess::Read);
}

#[test]
fn nothing_found_is_said() {
    let rendered = response(
        Response::Glob {
            count: 0,
            cut: false,
            bytes: 0,
        },
        Vec::new(),
    );
    assert_eq!(
        (rendered.body.len(), rendered.notes),
        (0, vec![String::from("[no files match]")])
    );
}

#[test]
fn an_error_keeps_its_code_and_text() {
    let error = ToolError {
        code: ErrorCode::Stale,
        op: String::from("write"),
        path: None,
        errno: None,
        text: String::from("read it again"),
    };
    let rendered = response(Response::Error { error }, Vec::new());
    assert_eq!(
        rendered.error,
        Some(ToolErrorCode::Tool(String::from("stale")))
    );
    assert_eq!(rendered.body, b"read it again");
}
