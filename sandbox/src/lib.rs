//! The parent half of the sandbox: probe the host, compile a confinement into a plan, talk to a
//! broker, say which guarantees hold.
