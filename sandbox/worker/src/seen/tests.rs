use proptest::prelude::*;

use super::*;

fn ranges() -> impl Strategy<Value = Vec<Seen>> {
    prop::collection::vec((0..30_u64, 0..30_u64), 0..8)
}

fn holds(ranges: &[Seen], line: u64) -> bool {
    ranges
        .iter()
        .any(|(first, last)| *first <= line && line <= *last)
}

proptest! {
    #[test]
    fn normal_form_holds_the_same_lines_and_never_touches(raw in ranges()) {
        let normal = normalize(raw.clone());
        for line in 1..40 {
            prop_assert_eq!(holds(&normal, line), holds(&raw, line));
        }
        for pair in normal.windows(2) {
            prop_assert!(pair[0].1 + 1 < pair[1].0);
        }
        prop_assert_eq!(normalize(normal.clone()), normal);
    }

    #[test]
    fn the_first_gap_is_the_first_line_nobody_saw(raw in ranges(), first in 1..30_u64, length in 0..30_u64) {
        let last = first + length;
        let normal = normalize(raw);
        let expected = (first..=last).find(|line| !holds(&normal, *line));
        prop_assert_eq!(first_gap(&normal, first, last), expected);
    }
}

#[test]
fn only_the_present_content_counts_and_all_observations_of_it_do() {
    let of = |sha256: &str, seen: Vec<Seen>| Observation {
        path: "/w/a".into(),
        sha256: sha256.into(),
        seen,
    };
    let real = Path::new("/w/a");
    let both = [
        of("new", vec![(1, 3)]),
        of("old", vec![(1, 9)]),
        of("new", vec![(4, 6)]),
    ];
    assert_eq!(known("edit", real, "new", &both).unwrap(), [(1, 6)]);
    assert_eq!(
        known("edit", real, "newer", &both).unwrap_err().0.code,
        ErrorCode::Stale
    );
    assert_eq!(
        known("edit", Path::new("/w/b"), "new", &both)
            .unwrap_err()
            .0
            .code,
        ErrorCode::NotRead
    );
    assert_eq!(
        known("edit", real, "new", &[]).unwrap_err().0.code,
        ErrorCode::NotRead
    );
}
