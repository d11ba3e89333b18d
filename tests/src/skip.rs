//! What could not run here, said aloud and counted by CI against a committed list.

use std::io::Write;

/// Says `not run: NAME, reason`, and tells `.ci/run` through the file it named.
pub fn note(name: &str, reason: &str) {
    let line = format!("not run: {name}, {reason}");
    println!("{line}");
    if let Some(path) = std::env::var_os("CURFEW_CI_NOT_RUN") {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        writeln!(file.expect("CI's list can be opened"), "{line}")
            .expect("CI's list can be written");
    }
}
