//! What a mode and a profile grant on a workspace, and what is promised about it.
//!
//! Pure: no I/O, clock, environment, threads or randomness. Facts about the host (which folders
//! exist, where the home is) come in as arguments; what goes out is a [`Confinement`]: absolute,
//! host-independent, hashed, and logged first in every run. Nothing the model or the repository
//! says reaches this crate.
//!
//! Start with [`profile`] (what is written), then [`resolve()`] (what it comes to), [`Confinement`]
//! (what is enforced and logged), [`guarantee`] (what is promised about it) and
//! [`narrower_or_equal`] (what a resumed run may have).

pub mod confinement;
pub mod environment;
pub mod error;
pub mod gitconfig;
pub mod guarantee;
pub mod mode;
mod narrower;
pub mod nearest;
pub mod profile;
pub mod resolve;
pub mod seccomp;
pub mod units;

pub use confinement::Confinement;
pub use error::PolicyError;
pub use guarantee::{Guarantee, GuaranteeReport, State};
pub use mode::Mode;
pub use narrower::{Widening, intersect, narrower_or_equal};
pub use profile::Profile;
pub use resolve::{Asked, Host, Resolved, resolve};
