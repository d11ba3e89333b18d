//! The syscall layer: the profile's list as the cell knows it.

use curfew_cell::plan::SyscallRule;
use curfew_policy::Confinement;

use super::CompileError;

pub(super) fn rules(_confinement: &Confinement) -> Result<Vec<SyscallRule>, CompileError> {
    Ok(Vec::new())
}
