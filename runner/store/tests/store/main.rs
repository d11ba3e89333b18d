//! The store through real files, real processes and, for what a real disk does not do on demand,
//! a disk that counts and fails.

// clippy's allowance for tests does not reach their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod blobs;
mod child;
mod damage;
mod faults;
mod full;
mod kill;
mod lock;
mod place;
mod roundtrip;
mod support;
mod tail;
