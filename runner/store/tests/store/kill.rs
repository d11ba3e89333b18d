//! SIGKILL while a child appends: what it was told is durable is there, and the log goes on.

use crate::child::{Role, command};
use crate::support::*;

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_point() {
    let place = Place::new();
    drop(place.store.create(&header("killed"), silent()).unwrap());
    let (mut torn, mut repaired) = (0, 0);
    for round in 0..20 {
        let mut role = Role::spawn(command("append", place.store.root()));
        let mut durable = None;
        // Let it say more each round, so that kills fall at many places; then kill it mid-write.
        for _ in 0..=round * 2 {
            let line = role.line().expect("the child ended by itself");
            durable = Some(
                line.strip_prefix("durable ")
                    .unwrap()
                    .parse::<u64>()
                    .unwrap(),
            );
        }
        role.kill();
        // What it said before it died counts too.
        while let Some(line) = role.line() {
            durable = line
                .strip_prefix("durable ")
                .and_then(|seq| seq.parse().ok())
                .or(durable);
        }
        drop(role);

        let found = place.store.inspect("killed").unwrap();
        let durable = durable.unwrap();
        assert!(
            found.events.len() as u64 > durable,
            "acknowledged {durable}, found {}",
            found.events.len()
        );
        torn += u32::from(!matches!(found.tail, curfew_store::Tail::Clean));
        let (writer, loaded) = place.store.open("killed", NOW_MS, silent()).unwrap();
        repaired += u32::from(loaded.events.len() > found.events.len());
        assert_eq!(
            lines_of(&loaded.events[..found.events.len()]),
            lines_of(&found.events)
        );
        let mut script = Script::after(&loaded.events);
        submit(&writer, script.run("goes on"));
        assert!(writer.close().unwrap().fault.is_none());
    }
    println!("20 kills: {torn} torn tails, {repaired} repairs");
}
