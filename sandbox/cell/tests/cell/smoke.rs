use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Folder};

pub fn register(tests: &mut Tests) {
    for who in [Who::Root, Who::Nobody] {
        tests.add(format!("smoke_{who:?}"), move || smoke(who));
    }
}

fn smoke(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done =
        broker.sh("id; pwd; echo hi > f; cat f; ls -la /proc/self/fd; mount | wc -l; ps aux");
    println!("{done:#?}");
    assert_eq!(done.code(), 0);
}
