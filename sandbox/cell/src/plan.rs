//! The plan a broker carries out: absolute facts, in order, nothing left to decide.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which credentials the calls run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The uid of the broker in its parent's user namespace after it gave up root, if it was root
    /// and the workspace belongs to somebody else.
    pub host_uid: u32,
    pub host_gid: u32,
    /// What that uid is called inside. Never 0.
    pub inner_uid: u32,
    pub inner_gid: u32,
}

/// One mount step. Executed in order in the broker's mount namespace; calls get a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum MountOp {
    /// Clone a tree, with what is mounted below it, before anything is made read-only; later steps
    /// place it by `id`. Opened without following a symlink; another device or inode is a failure.
    Grab {
        id: u32,
        path: PathBuf,
        dev: u64,
        ino: u64,
    },
    /// The whole tree below `/`: read-only, nosuid.
    Seal,
    /// Put a grabbed tree on `path`: read-write or read-only, always nosuid and nodev. `writable`
    /// speaks of the tree's own mount; what is mounted below it becomes read-only. In a private
    /// area a missing last component of `path` is made: a directory or an empty file, as the tree.
    Place {
        id: u32,
        path: PathBuf,
        writable: bool,
    },
    /// A private, empty tmpfs, alive as long as the broker. `writable: false` takes effect when all
    /// steps are done: until then directories and mount points are made in it.
    Private {
        path: PathBuf,
        bytes: u64,
        inodes: u64,
        mode: u32,
        writable: bool,
    },
    /// A minimal /dev: null, zero, full, random, urandom, tty, pts, ptmx, shm, fd links.
    Dev,
    /// An empty readable inode over a file or directory, watched for opens. In a private area a
    /// missing `path` is made, with its parents.
    Mask { path: PathBuf, directory: bool },
    /// A synthetic file (passwd, group) with these bytes over `path`, read-only. In a private area
    /// the file is made if it is missing.
    Synthetic { path: PathBuf, text: String },
    /// Make a directory inside a private area (mode 0755), with its parents.
    Dir { path: PathBuf },
    /// Bind a directory onto itself as it is, so that renaming it gives EBUSY: the way to a placed
    /// tree cannot be moved and imitated.
    Pin { path: PathBuf },
    /// Look for protected names below this root and pin each: every ancestor up to the root bound
    /// onto itself, the name itself read-only.
    Protect {
        root: PathBuf,
        names: Vec<ProtectedName>,
        entries_max: u64,
        depth_max: u32,
    },
}

/// A protected name: a path relative to any directory below the root, e.g. `.git/hooks`. `*` stands
/// for one component; letters match in either case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtectedName {
    pub name: String,
    /// Only directly below the root, or at any depth.
    pub any_depth: bool,
}

/// What Landlock grants below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileGrant {
    /// Read a directory's names, nothing else.
    List,
    /// Read and execute.
    Read,
    /// Everything a file or directory right can give, devices aside.
    Write,
    /// Write and ioctl on device nodes.
    Device,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LandlockPlan {
    /// The ABI whose rights are demanded; fewer is a failure, not a downgrade.
    pub abi: u32,
    pub rules: Vec<(PathBuf, FileGrant)>,
}

/// A condition on one syscall argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgRule {
    pub index: u8,
    /// Compare the low 32 bits only (the kernel ignores the rest of an `int` argument).
    pub low32: bool,
    pub op: ArgOp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ArgOp {
    Equals {
        value: u64,
    },
    Differs {
        value: u64,
    },
    /// Any of these bits set.
    AnyBit {
        mask: u64,
    },
    /// `arg & mask == value`.
    Masked {
        mask: u64,
        value: u64,
    },
}

/// What happens to a syscall that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum SyscallAction {
    /// Refused with this errno, and reported.
    Refuse { errno: i32 },
    /// Refused with this errno without a report (libc falls back: clone3, openat2).
    Quiet { errno: i32 },
    /// Runs; its path is looked at first, so that a refusal by another layer can be reported.
    Observe,
}

/// Whose filter a row is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    #[default]
    All,
    Command,
    Worker,
}

/// One row of the syscall list. Several rows may name one syscall; all `args` of a row must hold;
/// `Refuse` and `Quiet` win over `Observe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyscallRule {
    pub name: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ArgRule>,
    #[serde(flatten)]
    pub action: SyscallAction,
    /// The rule's name in a denial.
    pub rule: Cow<'static, str>,
    #[serde(default)]
    pub audience: Audience,
}

/// What one call is bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallLimits {
    pub wall_ms: u64,
    pub memory_bytes: u64,
    pub processes: u64,
    pub shm_bytes: u64,
    /// How long children of the main process may still write after it ended.
    pub drain_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetPlan {
    /// A network namespace of the session's own with loopback up.
    Empty,
    /// The host's.
    Host,
}

/// Everything a broker needs. `None` for `fence` is danger-full-access: no fences, but the
/// environment, the process-tree kill and the limits still hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub workspace: PathBuf,
    pub limits: CallLimits,
    pub fence: Option<Fence>,
}

/// The fences of tier full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    pub identity: Identity,
    pub net: NetPlan,
    pub hostname: String,
    pub mounts: Vec<MountOp>,
    pub landlock: LandlockPlan,
    pub syscalls: Vec<SyscallRule>,
    /// Observe write intent and refused syscalls through a listener.
    pub evidence: bool,
}
