//! The store through real files, real processes and, for what a real disk does not do on demand,
//! a disk that counts and fails.

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
