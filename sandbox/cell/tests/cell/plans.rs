//! Plans as `sandbox::compile` would make them, in small.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use curfew_cell::plan::*;

/// Who a broker under test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Root,
    Nobody,
}

pub const NOBODY: u32 = 65534;

impl Who {
    pub fn uid(self) -> u32 {
        match self {
            Who::Root => 0,
            Who::Nobody => NOBODY,
        }
    }
}

pub fn limits() -> CallLimits {
    CallLimits {
        wall_ms: 20_000,
        memory_bytes: 4 << 30,
        processes: 400,
        shm_bytes: 16 << 20,
        drain_ms: 100,
    }
}

/// A plan that a test can change before it is used.
pub struct Made(pub Plan);

impl std::ops::Deref for Made {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl Made {
    pub fn fence_mut(&mut self) -> &mut Fence {
        self.0.fence.as_mut().unwrap()
    }

    pub fn mask(&mut self, path: &Path, directory: bool) {
        let mask = MountOp::Mask {
            path: path.to_owned(),
            directory,
        };
        self.fence_mut().mounts.push(mask);
    }

    pub fn scan(&mut self, entries: u64, depth: u32) {
        for op in &mut self.fence_mut().mounts {
            if let MountOp::Protect {
                entries_max,
                depth_max,
                ..
            } = op
            {
                (*entries_max, *depth_max) = (entries, depth);
            }
        }
    }

    pub fn without_rows(&mut self, names: &[&str]) {
        self.fence_mut()
            .syscalls
            .retain(|row| !names.contains(&row.name.as_ref()));
    }
}

pub fn number_of(name: &str) -> i64 {
    match curfew_cell::syscalls::by_name(name) {
        Some(curfew_cell::syscalls::Known::Number(number)) => number,
        other => panic!("{name}: {other:?}"),
    }
}

pub fn unfenced(workspace: &Path) -> Plan {
    Plan {
        workspace: workspace.to_owned(),
        limits: limits(),
        fence: None,
    }
}

pub fn write_mode(who: Who, workspace: &Path) -> Made {
    fenced(who, workspace, Workspace::Writable)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspace {
    Writable,
    ReadOnly,
}

pub fn fenced(who: Who, workspace: &Path, access: Workspace) -> Made {
    let inner = if who == Who::Root { 1000 } else { who.uid() };
    let writable = access == Workspace::Writable;
    let private = |path: &str| MountOp::Private {
        path: path.into(),
        bytes: 64 << 20,
        inodes: 10_000,
        mode: 0o1777,
        writable: true,
    };
    let meta = std::fs::metadata(workspace).unwrap();
    let mut mounts = vec![
        MountOp::Grab {
            id: 0,
            path: workspace.to_owned(),
            dev: meta.dev(),
            ino: meta.ino(),
        },
        MountOp::Seal,
        private("/tmp"),
        private("/var/tmp"),
        MountOp::Dev,
        MountOp::Place {
            id: 0,
            path: workspace.to_owned(),
            writable,
        },
        MountOp::Synthetic {
            path: "/etc/passwd".into(),
            text: format!("user:x:{inner}:{inner}::/nowhere:/bin/sh\n"),
        },
    ];
    if workspace.starts_with("/tmp") {
        let path = workspace.parent().unwrap().to_owned();
        mounts.insert(5, MountOp::Dir { path });
    }
    if writable {
        mounts.push(MountOp::Protect {
            root: workspace.to_owned(),
            names: protected(),
            entries_max: 100_000,
            depth_max: 32,
        });
    }
    let mut rules: Vec<(PathBuf, FileGrant)> = vec![
        ("/".into(), FileGrant::Read),
        ("/tmp".into(), FileGrant::Write),
        ("/var/tmp".into(), FileGrant::Write),
        ("/dev".into(), FileGrant::Device),
    ];
    if writable {
        rules.push((workspace.to_owned(), FileGrant::Write));
    }
    Made(Plan {
        workspace: workspace.to_owned(),
        limits: limits(),
        fence: Some(Fence {
            identity: Identity {
                host_uid: who.uid(),
                host_gid: who.uid(),
                inner_uid: inner,
                inner_gid: inner,
            },
            net: NetPlan::Empty,
            hostname: "curfew".into(),
            mounts,
            landlock: LandlockPlan { abi: 7, rules },
            syscalls: syscalls(),
            evidence: true,
        }),
    })
}

fn protected() -> Vec<ProtectedName> {
    let name = |name: &str, any_depth| ProtectedName {
        name: name.into(),
        any_depth,
    };
    vec![
        name(".git/hooks", true),
        name(".git/config", true),
        name(".vscode", true),
        name("AGENTS.md", false),
    ]
}

fn row(name: &str, args: Vec<ArgRule>, action: SyscallAction, rule: &str) -> SyscallRule {
    SyscallRule {
        name: name.to_owned().into(),
        args,
        action,
        rule: rule.to_owned().into(),
        audience: Audience::All,
    }
}

fn any_bit(index: u8, mask: u64) -> ArgRule {
    ArgRule {
        index,
        low32: true,
        op: ArgOp::AnyBit { mask },
    }
}

/// A list of the same kind as the shipped one, with each shape of row.
pub fn syscalls() -> Vec<SyscallRule> {
    let refuse = SyscallAction::Refuse { errno: libc::EPERM };
    let mut rows = Vec::new();
    for name in [
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "open_tree",
        "move_mount",
        "fsopen",
        "fsmount",
        "fsconfig",
        "fspick",
        "mount_setattr",
        "open_tree_attr",
        "swapon",
        "swapoff",
        "reboot",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "acct",
        "quotactl",
        "quotactl_fd",
        "setns",
        "unshare",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "fanotify_init",
        "open_by_handle_at",
        "name_to_handle_at",
        "keyctl",
        "add_key",
        "request_key",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "process_madvise",
        "pidfd_getfd",
        "kcmp",
        "migrate_pages",
        "move_pages",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "iopl",
        "ioperm",
        "modify_ldt",
        "clock_settime",
        "clock_adjtime",
        "settimeofday",
        "adjtimex",
        "sethostname",
        "setdomainname",
        "vhangup",
        "syslog",
    ] {
        rows.push(row(name, vec![], refuse, "kernel-interface"));
    }
    let differs = |index, value| ArgRule {
        index,
        low32: true,
        op: ArgOp::Differs { value },
    };
    let quiet = SyscallAction::Quiet {
        errno: libc::ENOSYS,
    };
    rows.push(row("clone3", vec![], quiet, "no-clone3"));
    let mut openat2 = row("openat2", vec![], quiet, "no-openat2");
    openat2.audience = Audience::Command;
    rows.push(openat2);
    rows.push(row(
        "clone",
        vec![any_bit(0, 0x7e02_0000)],
        refuse,
        "no-namespaces",
    ));
    let set_id = 0o6000;
    let creating = libc::O_CREAT as u64 | 0x40_0000;
    for (name, mode) in [
        ("chmod", 1),
        ("fchmod", 1),
        ("fchmodat", 2),
        ("fchmodat2", 2),
        ("creat", 1),
    ] {
        rows.push(row(name, vec![any_bit(mode, set_id)], refuse, "no-set-id"));
    }
    for (name, mode) in [("mkdir", 1), ("mkdirat", 2), ("mknod", 1), ("mknodat", 2)] {
        rows.push(row(name, vec![any_bit(mode, set_id)], refuse, "no-set-id"));
    }
    let other_process = |index| vec![differs(index, 0)];
    for (name, pid) in [
        ("prlimit64", 0),
        ("sched_setaffinity", 0),
        ("setpriority", 1),
    ] {
        rows.push(row(name, other_process(pid), refuse, "other-process"));
    }
    for (name, flags) in [("open", 1), ("openat", 2)] {
        let args = vec![any_bit(flags, creating), any_bit(flags + 1, set_id)];
        rows.push(row(name, args, refuse, "no-set-id"));
    }
    let differs = |index, value| ArgRule {
        index,
        low32: true,
        op: ArgOp::Differs { value },
    };
    let domains = vec![differs(0, 2), differs(0, 10), differs(0, 16)];
    rows.push(row("socket", domains, refuse, "socket-family"));
    let tty = |value| ArgRule {
        index: 1,
        low32: true,
        op: ArgOp::Equals { value },
    };
    rows.push(row("ioctl", vec![tty(0x5412)], refuse, "no-terminal-input"));
    let observe = SyscallAction::Observe;
    let writing =
        (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u64 | 0x40_0000;
    rows.push(row("open", vec![any_bit(1, writing)], observe, "write"));
    rows.push(row("openat", vec![any_bit(2, writing)], observe, "write"));
    for name in [
        "creat",
        "truncate",
        "unlink",
        "unlinkat",
        "rename",
        "renameat",
        "renameat2",
        "mkdir",
        "mkdirat",
        "rmdir",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "mknod",
        "mknodat",
        "chmod",
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "chown",
        "lchown",
        "fchown",
        "fchownat",
        "utimensat",
        "utime",
        "utimes",
        "setxattr",
        "lsetxattr",
        "fsetxattr",
        "removexattr",
        "connect",
        "sendto",
    ] {
        rows.push(row(name, vec![], observe, "write"));
    }
    let addressed = ArgRule {
        index: 4,
        low32: false,
        op: ArgOp::Differs { value: 0 },
    };
    rows.push(row("sendto", vec![addressed], observe, "send"));
    rows
}
