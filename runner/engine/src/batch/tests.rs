use super::*;

const CALLS_MAX: usize = 5;

/// Plays one batch with every order in which running calls can end.
fn play_all(
    batch: &Batch,
    running: &[usize],
    classes: &[Class],
    committed: usize,
    plays: &mut u64,
) {
    let mut batch = batch.clone();
    let mut running = running.to_vec();
    running.extend(batch.admit());
    judge(&running, classes);
    let range = batch.commit();
    assert_eq!(
        range.start, committed,
        "results are committed in model order, none twice, none left out"
    );
    let committed = range.end;
    if running.is_empty() {
        assert!(batch.is_over(), "nothing runs, yet the batch is not over");
        assert_eq!(committed, classes.len());
        *plays += 1;
        return;
    }
    assert!(!batch.is_over());
    for ends in 0..running.len() {
        let mut next = batch.clone();
        let mut rest = running.clone();
        let ended = rest.remove(ends);
        assert!(ended >= committed, "it was committed while it ran");
        next.finish(ended);
        play_all(&next, &rest, classes, committed, plays);
    }
}

fn judge(running: &[usize], classes: &[Class]) {
    assert!(running.len() <= SAFE_RUNNING_MAX);
    let exclusive = running
        .iter()
        .filter(|at| classes[**at] == Class::Exclusive)
        .count();
    assert!(
        exclusive == 0 || running.len() == 1,
        "an exclusive call runs beside others: {running:?} of {classes:?}"
    );
    if let (Some(first), Some(last)) = (running.iter().min(), running.iter().max()) {
        let between = classes[*first..=*last]
            .iter()
            .filter(|class| **class == Class::Exclusive)
            .count();
        assert!(
            between == 0 || first == last,
            "an exclusive call was overtaken: {running:?} of {classes:?}"
        );
    }
}

#[test]
fn every_batch_of_up_to_five_calls_in_every_order() {
    let mut plays = 0;
    for calls in 0..=CALLS_MAX {
        for mask in 0..1u32 << calls {
            let class = |at| {
                if mask >> at & 1 == 1 {
                    Class::Exclusive
                } else {
                    Class::Safe
                }
            };
            let classes: Vec<Class> = (0..calls).map(class).collect();
            play_all(&Batch::new(classes.clone()), &[], &classes, 0, &mut plays);
        }
    }
    // For n calls: the sum over the length k of the first run of safe ones of (orders of that run)
    // times (plays of what stands after the exclusive one behind it); orders are 1, 1, 2, 6, 24 and,
    // as the fifth waits for a slot, 96. That makes 1 + 2 + 5 + 15 + 54 + 211.
    assert_eq!(plays, 288);
}

#[test]
fn safe_calls_run_four_at_once() {
    let mut batch = Batch::new([Class::Safe; 6]);
    assert_eq!(batch.admit(), [0, 1, 2, 3]);
    assert!(batch.admit().is_empty());
    batch.finish(2);
    assert_eq!(batch.admit(), [4]);
    assert_eq!(batch.commit(), 0..0);
    batch.finish(0);
    assert_eq!(batch.commit(), 0..1);
    batch.finish(1);
    assert_eq!(batch.commit(), 1..3);
}

#[test]
fn calls_that_never_start_can_be_finished() {
    let mut batch = Batch::new([Class::Exclusive, Class::Exclusive, Class::Safe]);
    assert_eq!(batch.admit(), [0]);
    assert_eq!(batch.waiting(), [1, 2]);
    for at in batch.waiting() {
        batch.finish(at);
    }
    assert_eq!(batch.commit(), 0..0);
    batch.finish(0);
    assert_eq!(batch.commit(), 0..3);
    assert!(batch.is_over());
}
