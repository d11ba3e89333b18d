//! A set-up step that failed, as a [`SetupFault`] with a sentence a person can act on.

use std::io;
use std::path::Path;

use crate::protocol::SetupFault;

/// The steps of set-up that can fail, as they are named in a fault.
pub type Step = &'static str;

/// A fault of `step` from the kernel's answer.
pub fn fault(step: Step, path: Option<&Path>, error: &io::Error) -> SetupFault {
    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
    SetupFault {
        step: step.to_owned(),
        path: path.map(Path::to_owned),
        errno,
        text: explain(step, path, errno, error),
    }
}

/// A fault that no system call returned: something was not as the plan says.
pub fn broken(step: Step, path: Option<&Path>, errno: i32, text: impl Into<String>) -> SetupFault {
    SetupFault {
        step: step.to_owned(),
        path: path.map(Path::to_owned),
        errno,
        text: text.into(),
    }
}

/// Adds a step to the error of a system call.
pub trait At<T> {
    fn at(self, step: Step) -> Result<T, SetupFault>;
    fn at_path(self, step: Step, path: &Path) -> Result<T, SetupFault>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, SetupFault> {
        self.map_err(|e| fault(step, None, &e.into()))
    }

    fn at_path(self, step: Step, path: &Path) -> Result<T, SetupFault> {
        self.map_err(|e| fault(step, Some(path), &e.into()))
    }
}

/// What failed, and for the failures that have a known reason, which.
fn explain(step: Step, path: Option<&Path>, errno: i32, error: &io::Error) -> String {
    let place = path.map_or_else(String::new, |p| format!(" of {}", p.display()));
    let known = reason(step, errno);
    let dash = if known.is_empty() { "" } else { ": " };
    format!("{step}{place} failed ({error}){dash}{known}")
}

fn reason(step: Step, errno: i32) -> &'static str {
    match (step, errno) {
        ("user-namespace", libc::EPERM) => {
            "this system does not let its users make user namespaces \
             (kernel.unprivileged_userns_clone, or a container's seccomp profile)"
        }
        ("user-namespace", libc::ENOSPC) => {
            "the number of user namespaces is used up or set to 0 (user.max_user_namespaces)"
        }
        ("user-namespace", libc::EUSERS) => "user namespaces are nested too deeply",
        ("user-namespace", libc::EINVAL) => {
            "the kernel has no user namespaces, or the process has more than one thread"
        }
        ("setgroups" | "uid-map" | "gid-map", libc::EPERM | libc::EACCES) => {
            "user namespaces can be made but not used, as with Ubuntu's \
             kernel.apparmor_restrict_unprivileged_userns=1 (an AppArmor profile for curfew helps)"
        }
        ("loopback", libc::EPERM) => {
            "the new network namespace cannot be configured (an AppArmor restriction of user namespaces)"
        }
        ("proc", libc::EPERM) => {
            "a fresh /proc is refused where the outer one is partly masked, as in most containers"
        }
        ("landlock", libc::ENOSYS) => "the kernel is older than 5.13 or was built without Landlock",
        ("landlock", libc::EOPNOTSUPP) => {
            "Landlock is not among the kernel's active security modules (boot parameter lsm=)"
        }
        ("grab", libc::ELOOP) => "a symbolic link stands where a directory was found before",
        ("mask" | "synthetic" | "place" | "private", libc::ENOENT) => {
            "it was there when the plan was made"
        }
        ("exec", libc::ENOENT) => "no such program, or its interpreter is missing inside",
        ("exec", libc::EACCES) => "not executable, or not within what the profile grants",
        ("exec", libc::ENOEXEC) => "not a format the kernel can execute",
        _ => "",
    }
}
