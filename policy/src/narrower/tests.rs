use proptest::prelude::*;

use super::*;
use crate::Mode;
use crate::confinement::{Limits, Net};

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..4)
        .prop_map(|parts| PathBuf::from(format!("/{}", parts.join("/"))))
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["A", "B", "C"]).prop_map(str::to_owned)
}

prop_compose! {
    fn confinement()(
        mode in prop::sample::select(vec![Mode::ReadOnly, Mode::WorkspaceWrite]),
        rows in prop::collection::btree_map(path(), 0..5_u8, 0..6),
        protect in prop::collection::btree_set(name(), 0..3),
        env in prop::collection::btree_set(name(), 0..3),
        net in prop::sample::select(vec![Net::Off, Net::Full]),
        limits in prop::array::uniform5(1..3_u64),
        evidence in any::<bool>(),
    ) -> Confinement {
        let of = |kind| rows.iter().filter(|(_, k)| **k == kind).map(|(path, _)| path.clone()).collect::<Vec<_>>();
        let [wall_ms, memory_bytes, processes, output_bytes, private_bytes] = limits;
        Confinement {
            mode,
            profile: "p".into(),
            workspace: "/a".into(),
            write: of(0),
            read: of(1),
            private: of(2),
            closed: of(3),
            mask: of(4),
            protect: protect.into_iter().collect(),
            net,
            env: env.into_iter().map(|name| (name, String::new())).collect(),
            limits: Limits { wall_ms, memory_bytes, processes, output_bytes, private_bytes },
            evidence,
        }
    }
}

fn holds(now: &Confinement, logged: &Confinement) -> bool {
    narrower_or_equal(now, logged).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn is_reflexive(a in confinement()) {
        prop_assert!(holds(&a, &a));
    }

    #[test]
    fn is_transitive(a in confinement(), b in confinement(), c in confinement()) {
        if holds(&a, &b) && holds(&b, &c) {
            prop_assert!(holds(&a, &c));
        }
    }

    /// The judge is the access at every path of the small world, not the lists.
    #[test]
    fn rejects_any_path_that_opens(a in confinement(), b in confinement(), probe in path(), leaf in name()) {
        for at in [probe.clone(), probe.join(&leaf)] {
            if a.access(&at) > b.access(&at) {
                prop_assert!(!holds(&a, &b));
            }
        }
    }

    #[test]
    fn rejects_anything_else_that_widens(a in confinement(), b in confinement()) {
        let wider = a.mode > b.mode
            || a.net > b.net
            || (b.evidence && !a.evidence)
            || a.limits.wall_ms > b.limits.wall_ms
            || a.limits.memory_bytes > b.limits.memory_bytes
            || a.limits.processes > b.limits.processes
            || a.limits.output_bytes > b.limits.output_bytes
            || a.limits.private_bytes > b.limits.private_bytes
            || b.protect.iter().any(|name| !a.protect.contains(name))
            || a.env.iter().any(|(name, _)| !b.env.iter().any(|(known, _)| known == name));
        if wider {
            prop_assert!(!holds(&a, &b));
        }
    }

    #[test]
    fn full_access_is_wider_than_all_else(a in confinement()) {
        let full = Confinement { mode: Mode::DangerFullAccess, ..a.clone() };
        prop_assert!(!holds(&full, &a));
    }

    #[test]
    fn intersection_never_widens_and_keeps_what_was_typed(a in confinement(), b in confinement()) {
        let met = intersect(&a, &b);
        for at in listed(&a, &b) {
            let helped = a.access(&at) == Access::Read || a.access(&at) == Access::Private;
            prop_assert!(met.access(&at) <= a.access(&at) || helped, "{at:?}");
        }
        prop_assert_eq!(&met.write, &a.write);
        prop_assert!(holds(&intersect(&a, &a), &a));
    }
}

#[test]
fn a_secret_removed_and_a_toolchain_installed_since_do_not_stop_a_resume() {
    let logged: Confinement = serde_json::from_str(
        r#"{"mode":"workspace-write","profile":"default","workspace":"/h/w","write":["/h/w"],"read":["/h/bin"],
        "closed":["/h"],"mask":["/h/.netrc"],"protect":[".git/hooks"],"net":"off","env":[],
        "limits":{"wallMs":1,"memoryBytes":1,"processes":1,"outputBytes":1,"privateBytes":1},"evidence":true}"#,
    )
    .unwrap();
    let now = Confinement {
        read: vec!["/h/bin".into(), "/h/.new/bin".into()],
        mask: vec![],
        ..logged.clone()
    };
    assert!(!holds(&now, &logged));
    let met = intersect(&now, &logged);
    assert_eq!(narrower_or_equal(&met, &logged), []);
    assert_eq!((met.read.len(), met.mask.len()), (1, 1));

    let mut shell = logged.clone();
    shell.env = vec![("JAVA_HOME".into(), "/opt/j".into())];
    assert_eq!(narrower_or_equal(&intersect(&shell, &logged), &logged), []);
    shell.env = vec![("TOKEN".into(), "x".into())];
    assert!(
        !holds(&intersect(&shell, &logged), &logged),
        "somebody typed it"
    );

    let typed = Confinement {
        write: vec!["/h/w".into(), "/srv".into()],
        ..logged.clone()
    };
    let found = narrower_or_equal(&intersect(&typed, &logged), &logged);
    assert_eq!(
        found[0].to_string(),
        "/srv would be writable, the session had it read-only"
    );
}

#[test]
fn the_digest_is_of_the_canonical_text() {
    let text = r#"{"mode":"read-only","profile":"p","workspace":"/w","write":[],"read":["/w"],"closed":[],"mask":[],"protect":[],"net":"off","env":[["A","b"]],"limits":{"wallMs":1,"memoryBytes":2,"processes":3,"outputBytes":4,"privateBytes":5},"evidence":true}"#;
    let confinement: Confinement = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&confinement).unwrap(), text);
    // printf '%s' '…' | sha256sum
    assert_eq!(
        confinement.digest().unwrap(),
        "03c59f190c976a754cd5d69ccfcda4a3e707273ac1d2f0960dd3257807150fab"
    );
}
