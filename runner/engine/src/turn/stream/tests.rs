use super::*;

fn text(text: &str) -> Delta {
    Delta {
        block: Block::Text,
        text: text.to_owned(),
    }
}

fn call(id: Option<&str>, name: Option<&str>, text: &str) -> Delta {
    let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
    Delta {
        block: Block::Call { index: 0, id, name },
        text: text.to_owned(),
    }
}

#[test]
fn pieces_of_one_block_become_one_chunk() {
    let mut stream = Coalescer::default();
    for piece in ["a", "b", "c"] {
        assert_eq!(stream.push(0, text(piece)), []);
    }
    let thought = Delta {
        block: Block::Reasoning,
        text: "hm".to_owned(),
    };
    assert_eq!(stream.push(0, thought.clone()), [text("abc")]);
    assert_eq!(stream.take(), Some(thought));
    assert_eq!(stream.take(), None);
}

#[test]
fn an_old_chunk_is_not_held_back() {
    let mut stream = Coalescer::default();
    assert_eq!(stream.push(0, text("a")), []);
    assert_eq!(stream.push(CHUNK_AGE_MS_MAX, text("b")), [text("ab")]);
}

#[test]
fn a_long_piece_is_split_between_characters() {
    let mut stream = Coalescer::default();
    let long = "é".repeat(CHUNK_BYTES_MAX);
    let mut ready = stream.push(0, call(Some("i"), Some("n"), &format!("x{long}")));
    ready.extend(stream.take());
    assert!(
        ready
            .iter()
            .all(|chunk| chunk.text.len() <= CHUNK_BYTES_MAX)
    );
    let whole: String = ready.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(whole, format!("x{long}"));
    assert_eq!(ready[0].block, call(Some("i"), Some("n"), "").block);
    assert!(
        ready[1..]
            .iter()
            .all(|chunk| chunk.block == call(None, None, "").block)
    );
}

#[test]
fn a_name_that_comes_late_is_not_lost() {
    let mut stream = Coalescer::default();
    assert_eq!(stream.push(0, call(Some("i"), None, "{")), []);
    assert_eq!(
        stream.push(0, call(None, Some("read"), "}")),
        [call(Some("i"), None, "{")]
    );
    assert_eq!(stream.take(), Some(call(None, Some("read"), "}")));
    // Repeated in each piece, as some servers do, it costs nothing.
    assert_eq!(stream.push(0, call(Some("i"), Some("read"), "{")), []);
    assert_eq!(stream.push(0, call(Some("i"), Some("read"), "}")), []);
    assert_eq!(stream.take(), Some(call(Some("i"), Some("read"), "{}")));
}
