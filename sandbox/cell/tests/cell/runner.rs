//! A small test runner: names, a filter, two threads, a line for each test.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use crate::plans::Who;

type Body = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub struct Tests {
    list: Vec<(String, Body)>,
    /// Only when named exactly: measurements.
    on_demand: Vec<(String, Body)>,
}

impl Tests {
    pub fn add(&mut self, name: impl Into<String>, body: impl Fn() + Send + Sync + 'static) {
        self.list.push((name.into(), Box::new(body)));
    }

    /// The test as root and as an ordinary user.
    pub fn for_each_uid(&mut self, name: &str, body: fn(Who)) {
        for who in [Who::Root, Who::Nobody] {
            self.add(format!("{name}/{who:?}"), move || body(who));
        }
    }

    pub fn on_demand(&mut self, name: impl Into<String>, body: impl Fn() + Send + Sync + 'static) {
        self.on_demand.push((name.into(), Box::new(body)));
    }

    pub fn run(self) -> ExitCode {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let filters: Vec<&String> = args.iter().filter(|a| !a.starts_with('-')).collect();
        if args.iter().any(|a| a == "--list") {
            for (name, _) in &self.list {
                println!("{name}: test");
            }
            return ExitCode::SUCCESS;
        }
        let wanted: Vec<&(String, Body)> = if let Some(exact) = self
            .on_demand
            .iter()
            .find(|(name, _)| filters.contains(&name))
        {
            vec![exact]
        } else {
            let matches = |name: &str| {
                filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()))
            };
            self.list.iter().filter(|(name, _)| matches(name)).collect()
        };
        println!("\nrunning {} tests", wanted.len());
        let next = Mutex::new(wanted.iter());
        let failed = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let Some((name, body)) = next.lock().unwrap().next() else {
                            return;
                        };
                        let began = Instant::now();
                        let ok = catch_unwind(AssertUnwindSafe(body)).is_ok();
                        let verdict = if ok { "ok" } else { "FAILED" };
                        println!("test {name} ... {verdict} ({:?})", began.elapsed());
                        if !ok {
                            failed.lock().unwrap().push(name.clone());
                        }
                    }
                });
            }
        });
        crate::support::remove_own_binary();
        let failed = failed.into_inner().unwrap();
        println!(
            "\n{} passed; {} failed {failed:?}",
            wanted.len() - failed.len(),
            failed.len()
        );
        if failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
