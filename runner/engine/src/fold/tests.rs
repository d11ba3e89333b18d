use super::*;
use crate::event::*;
use crate::hash::sha256_hex;
use crate::projection::{Message, messages};

/// Builds a log and keeps its fold.
struct Log {
    fold: Fold,
    events: Vec<Event>,
}

impl Log {
    fn new() -> Self {
        let header = Header {
            version: 1,
            id: "s".to_owned(),
            created_at: 0,
            cwd: "/w".to_owned(),
            parent_session: None,
            seed_length: None,
            origin: None,
            delegation_depth: 0,
            agent_preset: AgentPreset {
                name: "p".to_owned(),
                digest: String::new(),
            },
            profile: "default".to_owned(),
            curfew: "0".to_owned(),
            host: "h".to_owned(),
        };
        Self {
            fold: Fold::new(header),
            events: Vec::new(),
        }
    }

    /// A run with a request header and an open turn with its prompt.
    fn in_turn() -> Self {
        let mut log = Self::new();
        log.put(confinement());
        log.put(request_header(HeaderReason::Initial));
        log.put(Body::TurnStart(TurnStart { turn: 1 }));
        log.node(user("hi"), None);
        log
    }

    /// As above, with step 1 answered by calls of these tools.
    fn with_calls(names: &[&str]) -> Self {
        let mut log = Self::in_turn();
        log.put(Body::StepStart(MARK));
        log.put(sent());
        let mut sources = vec![log.put(chunk(Block::Text, "I will"))];
        for (index, name) in (0..).zip(names) {
            let block = Block::Call {
                index,
                id: None,
                name: Some((*name).to_owned()),
            };
            sources.push(log.put(chunk(block, "{}")));
        }
        let calls = (0..names.len())
            .map(|at| (format!("call_{}", at + 1), at as u32))
            .collect();
        log.node(answer(Finish::ToolCalls, calls), Some(sources));
        log
    }

    fn event(&self, body: Body) -> Event {
        let seq = self.fold.next_seq();
        Event {
            seq,
            time: seq,
            body,
            surface_op: None,
            source_event_seqs: None,
            ignorable: false,
        }
    }

    fn put(&mut self, body: Body) -> u64 {
        self.push(self.event(body))
    }

    fn node(&mut self, body: Body, sources: Option<Vec<u64>>) -> u64 {
        self.push(Event {
            surface_op: Some(SurfaceOp::Append),
            source_event_seqs: sources,
            ..self.event(body)
        })
    }

    fn push(&mut self, event: Event) -> u64 {
        self.fold.apply(&event).unwrap();
        self.events.push(event);
        self.fold.next_seq() - 1
    }

    fn done(&mut self, call_id: &str, content: &str) -> u64 {
        self.put(completed(call_id, content, None))
    }

    fn result(&mut self, call_id: &str, completion: u64) -> u64 {
        self.node(result(call_id, None), Some(vec![completion]))
    }

    /// The rule that refuses it. A refused event leaves no trace.
    #[track_caller]
    fn refuses(&self, event: Event) -> Rule {
        let mut fold = self.fold.clone();
        let error = fold.apply(&event).unwrap_err();
        assert_eq!(fold, self.fold, "a refused event left a trace");
        assert_eq!(error.seq, event.seq);
        error.rule
    }

    #[track_caller]
    fn refuses_body(&self, body: Body) -> Rule {
        self.refuses(self.event(body))
    }

    #[track_caller]
    fn refuses_node(&self, body: Body, op: SurfaceOp, sources: Option<Vec<u64>>) -> Rule {
        self.refuses(Event {
            surface_op: Some(op),
            source_event_seqs: sources,
            ..self.event(body)
        })
    }
}

const MARK: StepMark = StepMark { turn: 1, step: 1 };

fn confinement() -> Body {
    let json = r#"{"confinement":{"mode":"read-only","profile":"p","workspace":"/w","write":[],"read":[],"private":[],
        "closed":[],"mask":[],"protect":[],"net":"off","env":[],"limits":{"wallMs":1,"memoryBytes":1,"processes":1,
        "outputBytes":1,"privateBytes":1},"evidence":true},"digest":"","enforcement":{"tier":"full","abi":7,"guarantees":[]}}"#;
    Body::SandboxConfinement(serde_json::from_str(json).unwrap())
}

fn request_header(reason: HeaderReason) -> Body {
    Body::RequestHeader(Box::new(RequestHeader {
        reason,
        endpoint: String::new(),
        model: "m".to_owned(),
        wire: "w/1".to_owned(),
        sampling: Sampling::default(),
        context_window: None,
        system: String::new(),
        tools: Vec::new(),
    }))
}

fn user(text: &str) -> Body {
    Body::UserMessage(UserMessage {
        source: MessageSource::User,
        text: text.to_owned(),
    })
}

fn sent() -> Body {
    let (turn, step) = (1, 1);
    Body::RequestSent(RequestSent {
        turn,
        step,
        sha256: String::new(),
        bytes: 0,
        prefix_sha256: String::new(),
    })
}

fn chunk(block: Block, text: &str) -> Body {
    Body::AssistantChunk(AssistantChunk {
        turn: 1,
        step: 1,
        attempt: 0,
        block,
        text: text.to_owned(),
    })
}

fn answer(finish: Finish, calls: Vec<(String, u32)>) -> Body {
    Body::AssistantMessage(AssistantMessage {
        turn: 1,
        step: 1,
        finish,
        calls: calls
            .into_iter()
            .map(|(call_id, index)| CallRef { call_id, index })
            .collect(),
        usage: None,
        interrupted: false,
        dropped_calls: 0,
    })
}

fn call(call_id: &str, name: &str, arguments: &str) -> Body {
    Body::ToolCall(ToolCall {
        turn: 1,
        step: 1,
        call_id: call_id.to_owned(),
        model_id: None,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn completed(call_id: &str, content: &str, error: Option<ToolErrorCode>) -> Body {
    Body::ToolCompleted(ToolCompleted {
        call_id: call_id.to_owned(),
        content: content.to_owned(),
        is_error: error.is_some(),
        error,
        facts: CallFacts::default(),
        files: Vec::new(),
        blob: None,
    })
}

fn result(call_id: &str, content: Option<&str>) -> Body {
    Body::ToolResult(ToolResult {
        turn: 1,
        step: 1,
        call_id: call_id.to_owned(),
        content: content.map(str::to_owned),
    })
}

fn asked(call_id: &str, digest: &str) -> Body {
    let (call_id, name) = (call_id.to_owned(), "deploy".to_owned());
    Body::ApprovalAsked(ApprovalAsked {
        call_id,
        name,
        digest: digest.to_owned(),
        why: String::new(),
    })
}

fn decided(call_id: &str, digest: &str, outcome: ApprovalOutcome) -> Body {
    Body::ApprovalDecided(ApprovalDecided {
        call_id: call_id.to_owned(),
        digest: digest.to_owned(),
        outcome,
    })
}

fn end(reason: TurnEndReason) -> Body {
    Body::TurnEnd(TurnEnd {
        turn: 1,
        reason,
        failure: None,
    })
}

#[test]
fn a_run_comes_first() {
    let log = Log::new();
    assert_eq!(
        log.refuses_body(Body::TurnStart(TurnStart { turn: 1 })),
        Rule::NoRun
    );
    assert_eq!(
        log.refuses_body(request_header(HeaderReason::Initial)),
        Rule::NoRun
    );
    let mut log = Log::new();
    log.put(confinement());
    assert_eq!(log.refuses_body(confinement()), Rule::RunOpen { run: 1 });
    assert_eq!(
        log.refuses_body(request_header(HeaderReason::Resume)),
        Rule::HeaderReason {
            expected: "initial"
        }
    );
}

#[test]
fn turns_and_steps_nest_and_count() {
    let mut log = Log::in_turn();
    assert_eq!(
        log.refuses_body(Body::TurnStart(TurnStart { turn: 2 })),
        Rule::TurnOpen { turn: 1 }
    );
    assert_eq!(log.refuses_body(confinement()), Rule::TurnOpen { turn: 1 });
    assert_eq!(log.refuses_body(Body::StepEnd(MARK)), Rule::NoStep);
    let second = StepMark { turn: 1, step: 2 };
    assert_eq!(
        log.refuses_body(Body::StepStart(second)),
        Rule::StepNumber {
            found: 2,
            expected: 1
        }
    );
    let other = StepMark { turn: 2, step: 1 };
    assert_eq!(
        log.refuses_body(Body::StepStart(other)),
        Rule::TurnNumber {
            found: 2,
            expected: 1
        }
    );
    log.put(Body::StepStart(MARK));
    assert_eq!(
        log.refuses_body(Body::StepStart(second)),
        Rule::StepOpen { step: 1 }
    );
    assert_eq!(
        log.refuses_body(end(TurnEndReason::Completed)),
        Rule::StepOpen { step: 1 }
    );
    log.put(request_header(HeaderReason::Change));
    log.put(sent());
    assert_eq!(
        log.refuses_body(request_header(HeaderReason::Change)),
        Rule::AlreadySent
    );
    log.put(Body::StepEnd(MARK));
    log.put(end(TurnEndReason::Completed));
    assert_eq!(
        log.refuses_body(Body::TurnStart(TurnStart { turn: 1 })),
        Rule::TurnNumber {
            found: 1,
            expected: 2
        }
    );
    assert_eq!(
        log.refuses_node(user("late"), SurfaceOp::Append, None),
        Rule::NoTurn
    );
}

#[test]
fn a_step_has_one_request_and_one_answer() {
    let mut log = Log::in_turn();
    log.put(Body::StepStart(MARK));
    assert_eq!(log.refuses_body(chunk(Block::Text, "early")), Rule::NotSent);
    log.put(sent());
    assert_eq!(log.refuses_body(sent()), Rule::AlreadySent);
    assert_eq!(
        log.refuses_node(user("between"), SurfaceOp::Append, None),
        Rule::Awaiting
    );
    let text = log.put(chunk(Block::Text, "one"));
    assert_eq!(
        log.refuses_body(Body::StepEnd(MARK)),
        Rule::StreamWithoutAnswer
    );
    let finished = || answer(Finish::Stop, Vec::new());
    for sources in [vec![], vec![text - 1], vec![text - 1, text]] {
        assert_eq!(
            log.refuses_node(finished(), SurfaceOp::Append, Some(sources)),
            Rule::NotItsChunks
        );
    }
    assert!(matches!(
        log.refuses_node(finished(), SurfaceOp::Append, None),
        Rule::NodeNeeds { .. }
    ));
    log.node(finished(), Some(vec![text]));
    assert_eq!(
        log.refuses_body(chunk(Block::Text, "late")),
        Rule::AlreadyAnswered
    );
    assert_eq!(
        log.refuses_node(finished(), SurfaceOp::Append, Some(vec![text])),
        Rule::AlreadyAnswered
    );
}

#[test]
fn a_retry_starts_its_own_stream() {
    let mut log = Log::in_turn();
    log.put(Body::StepStart(MARK));
    log.put(sent());
    let lost = log.put(chunk(Block::Text, "lost"));
    let failure = ModelFailure {
        kind: FailureKind::Server,
        status: None,
        retry_after_ms: None,
        text: String::new(),
    };
    let retry = |attempt| {
        let failure = failure.clone();
        Body::ModelRetry(ModelRetry {
            turn: 1,
            step: 1,
            failure,
            attempt,
            attempts_max: 3,
            delay_ms: 0,
        })
    };
    assert_eq!(
        log.refuses_body(retry(2)),
        Rule::Attempt {
            found: 2,
            expected: 1
        }
    );
    log.put(retry(1));
    assert_eq!(
        log.refuses_body(chunk(Block::Text, "old")),
        Rule::Attempt {
            found: 0,
            expected: 1
        }
    );
    let again = Body::AssistantChunk(AssistantChunk {
        turn: 1,
        step: 1,
        attempt: 1,
        block: Block::Text,
        text: "kept".to_owned(),
    });
    let kept = log.put(again);
    let finished = answer(Finish::Stop, Vec::new());
    assert_eq!(
        log.refuses_node(finished.clone(), SurfaceOp::Append, Some(vec![lost, kept])),
        Rule::NotItsChunks
    );
    log.node(finished, Some(vec![kept]));
    assert_eq!(
        messages(&log.fold).last(),
        Some(&Message::Assistant {
            text: "kept".to_owned(),
            calls: Vec::new()
        })
    );
}

#[test]
fn an_answer_declares_exactly_the_calls_it_streamed() {
    let mut log = Log::in_turn();
    log.put(Body::StepStart(MARK));
    log.put(sent());
    let name = |index| Block::Call {
        index,
        id: None,
        name: Some("read".to_owned()),
    };
    let sources = vec![log.put(chunk(name(4), "{}")), log.put(chunk(name(2), "{}"))];
    let refuses = |finish, calls| {
        log.refuses_node(
            answer(finish, calls),
            SurfaceOp::Append,
            Some(sources.clone()),
        )
    };
    let id = |number: u32, index| (format!("call_{number}"), index);
    assert_eq!(
        refuses(Finish::ToolCalls, vec![id(1, 2)]),
        Rule::NotItsCalls {
            what: "their number"
        }
    );
    assert_eq!(
        refuses(Finish::ToolCalls, vec![id(1, 4), id(2, 2)]),
        Rule::NotItsCalls {
            what: "their order"
        }
    );
    assert_eq!(
        refuses(Finish::ToolCalls, vec![id(1, 2), id(1, 4)]),
        Rule::CallIdUsed {
            call_id: "call_1".to_owned()
        }
    );
    for cut in [Finish::Length, Finish::ContentFilter, Finish::Cut] {
        assert_eq!(refuses(cut, vec![id(1, 2), id(2, 4)]), Rule::CutCalls);
    }
    log.node(
        answer(Finish::ToolCalls, vec![id(1, 2), id(7, 4)]),
        Some(sources),
    );
    assert_eq!(log.fold.next_call(), 8);
}

#[test]
fn a_call_that_may_have_run_says_so_and_one_that_did_not_says_that() {
    use ToolErrorCode as Code;
    let mut log = Log::with_calls(&["read"]);
    let refuses = |log: &Log, error| {
        matches!(
            log.refuses_body(completed("call_1", "", error)),
            Rule::CompletionCode { .. }
        )
    };
    // Not called: it cannot have succeeded, or failed by itself.
    assert!(refuses(&log, None));
    assert!(refuses(&log, Some(Code::OutcomeUnknown)));
    assert!(refuses(&log, Some(Code::Tool("not-found".to_owned()))));
    assert!(refuses(&log, Some(Code::ApprovalDenied)));
    assert!(matches!(
        log.refuses_body(call("call_1", "read", "{\"other\":1}")),
        Rule::NotWhatWasAsked {
            what: "its arguments",
            ..
        }
    ));
    assert!(matches!(
        log.refuses_body(call("call_1", "bash", "{}")),
        Rule::NotWhatWasAsked {
            what: "its name",
            ..
        }
    ));
    assert!(matches!(
        log.refuses_body(call("call_2", "read", "{}")),
        Rule::NoSuchCall { .. }
    ));
    log.put(call("call_1", "read", "{}"));
    assert!(matches!(
        log.refuses_body(call("call_1", "read", "{}")),
        Rule::CallState { .. }
    ));
    // Called: it may have run.
    for code in [
        Code::NotStarted,
        Code::UnknownTool,
        Code::InvalidArguments,
        Code::ApprovalDenied,
    ] {
        assert!(refuses(&log, Some(code)));
    }
    log.done("call_1", "ok");
    assert!(matches!(
        log.refuses_body(completed("call_1", "again", None)),
        Rule::CallState { .. }
    ));
}

#[test]
fn an_error_code_is_an_error() {
    let mut log = Log::with_calls(&["read"]);
    log.put(call("call_1", "read", "{}"));
    let Body::ToolCompleted(mut data) = completed("call_1", "", Some(ToolErrorCode::Cancelled))
    else {
        panic!()
    };
    data.is_error = false;
    assert!(matches!(
        log.refuses_body(Body::ToolCompleted(data)),
        Rule::CompletionCode { .. }
    ));
}

#[test]
fn results_follow_the_model_and_name_their_completion() {
    let mut log = Log::with_calls(&["read", "read"]);
    log.put(call("call_1", "read", "{}"));
    log.put(call("call_2", "read", "{}"));
    let second = log.done("call_2", "two");
    let refuses = |log: &Log, call_id, source| {
        log.refuses_node(result(call_id, None), SurfaceOp::Append, Some(vec![source]))
    };
    assert_eq!(
        refuses(&log, "call_2", second),
        Rule::ResultOrder {
            expected: "call_1".to_owned()
        }
    );
    assert!(matches!(
        refuses(&log, "call_1", second),
        Rule::CallState { .. }
    ));
    let first = log.done("call_1", "one");
    assert_eq!(refuses(&log, "call_1", second), Rule::NotItsCompletion);
    let own_text = result("call_1", Some("else"));
    let own_text = log.refuses_node(own_text, SurfaceOp::Append, Some(vec![first]));
    assert_eq!(own_text, Rule::NotItsCompletion);
    assert_eq!(
        log.refuses_body(Body::StepEnd(MARK)),
        Rule::CallWithoutResult {
            call_id: "call_1".to_owned()
        }
    );
    log.result("call_1", first);
    assert_eq!(
        log.refuses_body(Body::StepEnd(MARK)),
        Rule::CallWithoutResult {
            call_id: "call_2".to_owned()
        }
    );
    assert_eq!(
        log.refuses_node(user("now?"), SurfaceOp::Append, None),
        Rule::Awaiting
    );
    log.result("call_2", second);
    log.put(Body::StepEnd(MARK));
}

#[test]
fn a_grant_is_for_the_digest_that_was_asked() {
    let digest = sha256_hex(&[b"{}"]);
    let mut log = Log::with_calls(&["deploy"]);
    assert!(matches!(
        log.refuses_body(asked("call_1", "other")),
        Rule::NotWhatWasAsked {
            what: "the digest",
            ..
        }
    ));
    log.put(asked("call_1", &digest));
    assert!(matches!(
        log.refuses_body(call("call_1", "deploy", "{}")),
        Rule::CallState { .. }
    ));
    assert!(matches!(
        log.refuses_body(completed("call_1", "", Some(ToolErrorCode::NotStarted))),
        Rule::CallState { .. }
    ));
    let wrong = decided("call_1", "other", ApprovalOutcome::AllowedOnce);
    assert!(matches!(
        log.refuses_body(wrong),
        Rule::NotWhatWasAsked { .. }
    ));
    for outcome in [
        ApprovalOutcome::Denied,
        ApprovalOutcome::Unavailable,
        ApprovalOutcome::Cancelled,
    ] {
        let mut log = Log {
            fold: log.fold.clone(),
            events: log.events.clone(),
        };
        log.put(decided("call_1", &digest, outcome));
        assert!(matches!(
            log.refuses_body(call("call_1", "deploy", "{}")),
            Rule::CallState { .. }
        ));
        assert!(matches!(
            log.refuses_body(asked("call_1", &digest)),
            Rule::CallState { .. }
        ));
        log.put(completed(
            "call_1",
            "no",
            Some(ToolErrorCode::ApprovalDenied),
        ));
    }
    log.put(decided("call_1", &digest, ApprovalOutcome::AllowedOnce));
    log.put(call("call_1", "deploy", "{}"));
}

#[test]
fn facts_name_calls_that_exist() {
    let log = Log::in_turn();
    let denied = SandboxDenied {
        call_id: "call_1".to_owned(),
        op: "open".to_owned(),
        path: None,
        address: None,
        errno: 1,
        layer: String::new(),
        rule: String::new(),
        remedy: String::new(),
        trust: String::new(),
        count: 2,
    };
    assert!(matches!(
        log.refuses_body(Body::SandboxDenied(denied.clone())),
        Rule::UnknownCall { .. }
    ));
    let mut log = Log::with_calls(&["read"]);
    log.put(Body::SandboxDenied(denied));
    assert_eq!(log.fold.denials(), 2);
}

#[test]
fn only_nodes_carry_surface_fields() {
    let log = Log::in_turn();
    assert_eq!(
        log.refuses_node(Body::StepStart(MARK), SurfaceOp::Append, None),
        Rule::NotANode
    );
    let sources = Event {
        source_event_seqs: Some(vec![0]),
        ..log.event(Body::StepStart(MARK))
    };
    assert_eq!(log.refuses(sources), Rule::NotANode);
    assert_eq!(
        log.refuses_body(user("no op")),
        Rule::NodeNeeds { what: "surfaceOp" }
    );
    let sourced = log.refuses_node(user("x"), SurfaceOp::Append, Some(vec![0]));
    assert!(matches!(sourced, Rule::NodeNeeds { .. }));
    let foreign = Body::Unknown {
        kind: "x/y".to_owned(),
        data: serde_json::value::to_raw_value(&1).unwrap(),
    };
    assert_eq!(log.refuses_body(foreign.clone()), Rule::UnknownRequired);
    let mut log = log;
    log.push(Event {
        ignorable: true,
        ..log.event(foreign)
    });
}

#[test]
fn seqs_are_contiguous() {
    let log = Log::in_turn();
    for seq in [log.fold.next_seq() - 1, log.fold.next_seq() + 1] {
        let event = Event {
            seq,
            ..log.event(Body::StepStart(MARK))
        };
        assert_eq!(
            log.refuses(event),
            Rule::Seq {
                expected: log.fold.next_seq()
            }
        );
    }
}

/// One call made and shown: `[user, answer, result]` are on the surface.
fn shown() -> (Log, [u64; 3]) {
    let mut log = Log::with_calls(&["read"]);
    log.put(call("call_1", "read", "{}"));
    let done = log.done("call_1", "a very long text");
    log.result("call_1", done);
    let nodes = log.fold.surface().nodes().to_vec();
    (log, nodes.try_into().unwrap())
}

#[test]
fn a_replaced_result_changes_nothing_but_its_content() {
    let (mut log, [user_node, answer_node, node]) = shown();
    let replace = |start, end| SurfaceOp::Replace { start, end };
    let pruned = || result("call_1", Some("short"));
    let refuses = |body, op, sources| log.refuses_node(body, op, Some(sources));
    assert_eq!(
        refuses(result("call_1", None), replace(node, node), vec![node]),
        Rule::ResultReplacement
    );
    assert_eq!(
        refuses(
            pruned(),
            replace(answer_node, node),
            vec![answer_node, node]
        ),
        Rule::ResultReplacement
    );
    assert_eq!(
        refuses(pruned(), replace(user_node, user_node), vec![user_node]),
        Rule::ResultReplacement
    );
    let other_step = Body::ToolResult(ToolResult {
        turn: 1,
        step: 2,
        call_id: "call_1".to_owned(),
        content: Some("short".to_owned()),
    });
    assert_eq!(
        refuses(other_step, replace(node, node), vec![node]),
        Rule::ResultReplacement
    );
    assert!(matches!(
        refuses(pruned(), replace(node, node), vec![answer_node]),
        Rule::Surface(_)
    ));
    let event = log.event(pruned());
    log.push(Event {
        surface_op: Some(replace(node, node)),
        source_event_seqs: Some(vec![node]),
        ..event
    });
    let last = messages(&log.fold).pop();
    assert_eq!(
        last,
        Some(Message::Tool {
            call_id: "call_1".to_owned(),
            content: "short".to_owned()
        })
    );
}

#[test]
fn a_summary_takes_whole_pairs_or_none() {
    let (mut log, [user_node, answer_node, node]) = shown();
    let refuses = |start, end, sources| {
        log.refuses_node(
            user("summary"),
            SurfaceOp::Replace { start, end },
            Some(sources),
        )
    };
    let torn = Rule::TearsPair {
        call_id: "call_1".to_owned(),
    };
    assert_eq!(
        refuses(user_node, answer_node, vec![user_node, answer_node]),
        torn
    );
    assert_eq!(refuses(node, node, vec![node]), torn);
    let again = answer(Finish::Stop, Vec::new());
    let replaced = log.refuses_node(
        again,
        SurfaceOp::Replace {
            start: node,
            end: node,
        },
        Some(vec![node]),
    );
    assert_eq!(replaced, Rule::CannotReplace);
    let event = log.event(user("summary"));
    log.push(Event {
        surface_op: Some(SurfaceOp::Replace {
            start: user_node,
            end: node,
        }),
        source_event_seqs: Some(vec![user_node, answer_node, node]),
        ..event
    });
    assert_eq!(
        messages(&log.fold),
        [Message::User {
            text: "summary".to_owned()
        }]
    );
    assert_eq!(log.fold.surface().generation(), 1);
    let whole = Fold::of(log.fold.header().clone(), &log.events).unwrap();
    assert_eq!(whole, log.fold);
}

#[test]
fn what_the_model_read_counts_after_the_step_and_what_it_wrote_at_once() {
    let seen = |path: &str, sha: &str, range, access| FileSeen {
        path: path.to_owned(),
        sha256: sha.to_owned(),
        bytes: 1,
        lines: 9,
        seen: vec![range],
        before_sha256: None,
        access,
    };
    let with = |call_id: &str, files: Vec<FileSeen>| {
        let Body::ToolCompleted(data) = completed(call_id, "", None) else {
            panic!()
        };
        Body::ToolCompleted(ToolCompleted { files, ..data })
    };
    let mut log = Log::with_calls(&["read", "write", "read", "read"]);
    for (call_id, name) in [
        ("call_1", "read"),
        ("call_2", "write"),
        ("call_3", "read"),
        ("call_4", "read"),
    ] {
        log.put(call(call_id, name, "{}"));
    }
    log.put(with(
        "call_1",
        vec![
            seen("a", "old", (1, 9), FileAccess::Read),
            seen("b", "b1", (1, 2), FileAccess::Read),
        ],
    ));
    assert!(
        log.fold.files().is_empty(),
        "the model has not seen it when it wrote the calls of this step"
    );
    log.put(with(
        "call_2",
        vec![seen("a", "new", (1, 9), FileAccess::Changed)],
    ));
    assert_eq!(log.fold.files()["a"].sha256, "new");
    log.put(with(
        "call_3",
        vec![seen("b", "b1", (3, 4), FileAccess::Read)],
    ));
    log.put(with(
        "call_4",
        vec![seen("b", "b1", (7, 9), FileAccess::Read)],
    ));
    let completions: Vec<u64> = log
        .fold
        .open_step()
        .unwrap()
        .calls
        .iter()
        .map(|call| match &call.stage {
            Stage::Completed(done) => done.seq,
            other => panic!("{other:?}"),
        })
        .collect();
    for (call_id, seq) in ["call_1", "call_2", "call_3", "call_4"]
        .iter()
        .zip(completions)
    {
        log.result(call_id, seq);
    }
    log.put(Body::StepEnd(MARK));
    assert_eq!(
        log.fold.files()["a"],
        Observed {
            sha256: "new".to_owned(),
            seen: vec![(1, 9)]
        }
    );
    assert_eq!(
        log.fold.files()["b"],
        Observed {
            sha256: "b1".to_owned(),
            seen: vec![(1, 4), (7, 9)]
        }
    );
    assert!(log.fold.changed().contains("a") && !log.fold.changed().contains("b"));
}
