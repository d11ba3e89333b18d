//! Capabilities: locked for good in the broker, dropped by each init, asserted in each command.

use std::io;

use caps::CapSet;
use caps::errors::CapsError;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities_secure_bits,
};

use crate::fault::{At, broken};
use crate::protocol::SetupFault;

/// Once, in the broker, after it entered its user namespace: nothing it starts can ever gain a
/// capability by exec. Bounding set and securebits are inherited by fork and never grow back, so
/// calls need not repeat this; the broker's own effective set stays, it makes namespaces with it.
pub fn lock() -> Result<(), SetupFault> {
    let step = "lock-capabilities";
    clear_ambient_capability_set().at(step)?;
    caps::clear(None, CapSet::Inheritable)
        .map_err(io_error)
        .at(step)?;
    // While CAP_SETPCAP is still held (capabilities(7)).
    for capability in caps::all() {
        let bit = CapabilitySet::from_bits_retain(capability.bitmask());
        match remove_capability_from_bounding_set(bit) {
            // The crate may know more than the kernel has.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(e) => return Err(e).at(step),
        }
    }
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).at(step)?;
    nix::sys::prctl::set_no_new_privs().at("no-new-privs")?;
    empty(CapSet::Bounding)?;
    // The ambient set is always within the inheritable one (capabilities(7)).
    empty(CapSet::Inheritable)
}

/// In init, once its mounts stand: nothing left for it or what it starts.
pub fn drop_all() -> Result<(), SetupFault> {
    let step = "drop-capabilities";
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        caps::clear(None, set).map_err(io_error).at(step)?;
    }
    Ok(())
}

/// In the command, right before the domain and the filter: what [`drop_all`] did, seen from there.
pub fn assert_none() -> Result<(), SetupFault> {
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        empty(set)?;
    }
    Ok(())
}

fn empty(set: CapSet) -> Result<(), SetupFault> {
    let step = "assert-capabilities";
    let left = caps::read(None, set).map_err(io_error).at(step)?;
    if left.is_empty() {
        return Ok(());
    }
    let text = format!("capabilities are left in the {set:?} set: {left:?}");
    Err(broken(step, None, libc::EPERM, text))
}

/// The crate reports text; errno is still that of its last system call.
fn io_error(_: CapsError) -> io::Error {
    io::Error::last_os_error()
}
