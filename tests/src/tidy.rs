//! The rules of the tree. Each takes text and gives back what breaks it; `tests/tidy.rs` runs them
//! on the repository, and the unit tests here show each going red.

pub mod crates;
pub mod docs;
pub mod source;

#[cfg(test)]
mod tests;
