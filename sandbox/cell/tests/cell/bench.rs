use crate::runner::Tests;

pub fn register(_tests: &mut Tests) {}
