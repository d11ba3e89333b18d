use super::*;

fn of(nodes: &[u64]) -> Surface {
    let mut surface = Surface::default();
    for seq in nodes {
        let plan = surface.plan(*seq, SurfaceOp::Append, &[]).unwrap();
        surface.apply(&plan);
    }
    surface
}

fn replace(start: u64, end: u64) -> SurfaceOp {
    SurfaceOp::Replace { start, end }
}

#[test]
fn a_summary_takes_the_place_of_what_it_covers() {
    let mut surface = of(&[10, 15, 21, 30, 35]);
    let plan = surface
        .plan(42, replace(10, 30), &[10, 15, 21, 30])
        .unwrap();
    assert_eq!(surface.covered(&plan), [10, 15, 21, 30]);
    surface.apply(&plan);
    assert_eq!(surface.nodes(), [42, 35]);
    assert_eq!(surface.generation(), 1);
}

/// Start and end mean positions, so a start may be numerically greater than the end.
#[test]
fn positions_count_not_numbers() {
    let mut surface = of(&[10, 15, 21]);
    let plan = surface.plan(40, replace(10, 10), &[10]).unwrap();
    surface.apply(&plan);
    assert_eq!(surface.nodes(), [40, 15, 21]);
    let plan = surface.plan(50, replace(40, 15), &[15, 40, 10]).unwrap();
    surface.apply(&plan);
    assert_eq!(surface.nodes(), [50, 21]);
}

#[test]
fn what_may_not_be_replaced_is_refused() {
    let surface = of(&[10, 15, 21]);
    let plan = |seq, op, sources: &[u64]| surface.plan(seq, op, sources).unwrap_err();
    assert_eq!(
        plan(40, replace(10, 21), &[10, 21]),
        SurfaceError::SourceMissing { seq: 15 }
    );
    assert_eq!(
        plan(40, replace(21, 10), &[10, 15, 21]),
        SurfaceError::Reversed { start: 21, end: 10 }
    );
    assert_eq!(
        plan(40, replace(11, 21), &[10, 15, 21]),
        SurfaceError::NotOnSurface { seq: 11 }
    );
    assert_eq!(
        plan(20, replace(10, 21), &[10, 15, 21]),
        SurfaceError::SourceNotBefore { seq: 21 }
    );
    assert_eq!(
        plan(40, replace(10, 10), &[10, 10]),
        SurfaceError::SourceTwice { seq: 10 }
    );
    assert_eq!(surface, of(&[10, 15, 21]));
}
