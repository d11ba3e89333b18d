//! The parent half of the sandbox: probe the host, compile a confinement into a plan, talk to a
//! broker, say which guarantees hold.
//!
//! May ask the kernel about the host (`probe`) and start a broker (`client`); everything that
//! decides is pure: `compile`, `report`, `explain`, `denial`, `manifest`. Start with `compile`.

#[cfg(target_os = "linux")]
pub mod broker;
#[cfg(target_os = "linux")]
pub mod canary;
#[cfg(target_os = "linux")]
pub mod client;
pub mod compile;
pub mod denial;
pub mod explain;
pub mod facts;
pub mod host;
pub mod manifest;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod program;
pub mod report;
pub mod sweep;

#[cfg(target_os = "linux")]
pub use client::{BrokerEvent, Client};
pub use compile::{CompileError, compile};
pub use denial::render_denial;
pub use explain::{Explanation, explain, explain_compile};
pub use facts::HostFacts;
pub use host::Operator;
#[cfg(target_os = "linux")]
pub use probe::{ProbeError, probe};
pub use report::{Tier, report};
