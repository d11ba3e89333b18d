use super::*;

#[test]
fn tables_are_sorted_and_disjoint() {
    for table in [EVERYWHERE, RECENT, OWN] {
        assert!(table.is_sorted_by_key(|(name, _)| *name));
    }
    assert!(LEGACY.is_sorted());
    let mut numbers: Vec<i64> = [EVERYWHERE, RECENT, OWN]
        .iter()
        .flat_map(|t| t.iter().map(|(_, n)| *n))
        .collect();
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all);
}

#[test]
fn names_are_found_and_unknown_ones_are_not() {
    assert_eq!(by_name("openat2"), Some(Known::Number(437)));
    assert_eq!(by_name("fchmodat2"), Some(Known::Number(452)));
    assert!(by_name("open").is_some());
    assert_eq!(by_name("opneat"), None);
    assert_eq!(name_of(437), "openat2");
}
