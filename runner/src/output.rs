//! Everything a person or a program sees of curfew goes through here: the only printer.

pub mod inert;
