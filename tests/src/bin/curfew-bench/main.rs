//! Measures what confinement costs and prints a page of it; `ci/bench/run` calls it.
//!
//! Everything compared is interleaved within one loop, on a tmpfs, and told as percentiles with n
//! and the command. Start with [`main`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(target_os = "linux")]
mod call;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod work;

#[cfg(target_os = "linux")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["open-write", count, path] => work::open_write(count.parse().unwrap(), path),
        ["--curfew", binary] => everything(std::path::Path::new(binary)),
        _ => {
            eprintln!("usage: curfew-bench --curfew BINARY");
            std::process::exit(2);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("not run: bench, it needs Linux");
}

#[cfg(target_os = "linux")]
fn everything(binary: &std::path::Path) {
    let place = place::Place::new(binary);
    print!("{}", place.heading());
    println!("\n| what | bound | met | measured | n | command |\n|---|---|---|---|---|---|");
    for row in call::rows(&place) {
        println!("{row}");
    }
    for row in process::rows(&place) {
        println!("{row}");
    }
    for row in start::rows(&place) {
        println!("{row}");
    }
    for row in work::rows(&place) {
        println!("{row}");
    }
}
