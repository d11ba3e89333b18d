//! Why there is no sandbox on this host, and what would help: the text of exit code 7.

use std::path::Path;

use curfew_cell::protocol::SetupFault;

use crate::compile::{CompileError, LANDLOCK_ABI_MIN};
use crate::denial::inert;

#[cfg(test)]
mod tests;

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

/// A reason in one sentence and what a person can do, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub reason: String,
    pub remedies: Vec<String>,
}

/// Settings of the host that decide about user namespaces. Read only once something failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostHints {
    pub apparmor_restricts: bool,
    pub userns_clone_off: bool,
    pub no_namespaces_left: bool,
    /// A container runtime left its mark.
    pub container: bool,
    /// The active security modules, if securityfs says.
    pub modules: Option<String>,
}

impl HostHints {
    pub fn read() -> Self {
        let value = |path: &str| {
            std::fs::read_to_string(path)
                .ok()
                .map(|text| text.trim().to_owned())
        };
        Self {
            apparmor_restricts: value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                .as_deref()
                == Some("1"),
            userns_clone_off: value("/proc/sys/kernel/unprivileged_userns_clone").as_deref()
                == Some("0"),
            no_namespaces_left: value("/proc/sys/user/max_user_namespaces").as_deref() == Some("0"),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| Path::new(path).exists())
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            modules: value("/sys/kernel/security/lsm"),
        }
    }
}

/// What a failed step means on this host.
pub fn explain(fault: &SetupFault) -> Explanation {
    explain_with(fault, &HostHints::read())
}

/// Pure part of [`explain`].
pub fn explain_with(fault: &SetupFault, hints: &HostHints) -> Explanation {
    let step = fault.step.as_str();
    let has = |words: &[&str]| words.iter().any(|word| step.contains(word));
    let place = fault
        .path
        .as_ref()
        .map(|path| format!(" at {}", inert(&path.to_string_lossy())))
        .unwrap_or_default();
    let what = format!("{}{place}: {}", inert(step), inert(&fault.text));
    let remedies = if has(&["landlock"]) {
        landlock(fault.errno, hints)
    } else if has(&["seccomp"]) {
        vec!["use a kernel built with CONFIG_SECCOMP_FILTER".to_owned()]
    } else if has(&[
        "user",
        "uid",
        "gid",
        "unshare",
        "clone",
        "setgroups",
        "groups",
        "owner",
        "nesting",
        "namespace",
        "loopback",
    ]) {
        namespaces(fault.errno, hints)
    } else if has(&["grab", "root"]) {
        vec!["the granted root changed while the sandbox was set up: start again".to_owned()]
    } else if has(&[
        "mount", "seal", "private", "place", "proc", "dev", "mask", "pin", "bind",
    ]) {
        mounts(hints)
    } else {
        vec!["`curfew doctor` shows what this host offers".to_owned()]
    };
    Explanation {
        reason: format!("the sandbox could not be set up: {what}"),
        remedies,
    }
}

/// What an uncompilable confinement means.
pub fn explain_compile(error: &CompileError) -> Explanation {
    let remedies = match error {
        CompileError::Landlock { .. } => landlock(0, &HostHints::read()),
        CompileError::RootMissing { .. } => {
            vec!["create the directory, or leave it out".to_owned()]
        }
        CompileError::RootNotCanonical { real, .. } => {
            vec![format!("name it as {}", real.display())]
        }
        CompileError::RootIsSlash | CompileError::RootClosed { .. } => {
            vec!["choose a project directory as the workspace".to_owned()]
        }
        CompileError::OwnAbsent { path } => vec![
            format!("mkdir -p -m 700 {}", path.display()),
            "or keep CURFEW_HOME outside the workspace".to_owned(),
        ],
    };
    Explanation {
        reason: error.to_string(),
        remedies,
    }
}

fn landlock(errno: i32, hints: &HostHints) -> Vec<String> {
    let lists_it = hints
        .modules
        .as_ref()
        .is_some_and(|modules| modules.split(',').any(|module| module == "landlock"));
    let mut remedies = Vec::new();
    if errno == EOPNOTSUPP || (hints.modules.is_some() && !lists_it) {
        remedies.push("boot with landlock in the kernel's lsm= list".to_owned());
    }
    if errno == ENOSYS && hints.container {
        remedies.push(
            "the container runtime hides Landlock: update it, or use another seccomp profile"
                .to_owned(),
        );
    }
    remedies.push(format!(
        "use Linux 6.12 or later with Landlock (ABI {LANDLOCK_ABI_MIN} is the least)"
    ));
    remedies
}

fn namespaces(errno: i32, hints: &HostHints) -> Vec<String> {
    let mut remedies = Vec::new();
    if hints.apparmor_restricts && matches!(errno, EACCES | EPERM) {
        remedies.push(
            "add an AppArmor profile that lets curfew create user namespaces (`userns,`)"
                .to_owned(),
        );
        remedies.push(
            "or for the whole host: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
                .to_owned(),
        );
    }
    if hints.userns_clone_off {
        remedies.push("sysctl kernel.unprivileged_userns_clone=1".to_owned());
    }
    if hints.no_namespaces_left || errno == ENOSPC {
        remedies
            .push("sysctl user.max_user_namespaces=15000 (it is 0, or all are in use)".to_owned());
    }
    if hints.container {
        remedies.push(container_flags());
    }
    if errno == EINVAL {
        remedies.push("use a kernel built with CONFIG_USER_NS and the other namespaces".to_owned());
    }
    if remedies.is_empty() {
        remedies.push("allow user namespaces for this user (a container, a security module or a sysctl forbids them)".to_owned());
    }
    remedies
}

fn mounts(hints: &HostHints) -> Vec<String> {
    let mut remedies = Vec::new();
    if hints.container {
        remedies.push(container_flags());
    }
    if hints.apparmor_restricts {
        remedies.push(
            "add an AppArmor profile that lets curfew mount in its own user namespace".to_owned(),
        );
    }
    remedies.push("a container that masks parts of /proc cannot give a fresh one: run curfew on the host or in a VM".to_owned());
    remedies
}

fn container_flags() -> String {
    "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined".to_owned()
}
