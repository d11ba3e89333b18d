//! A small host to attack: a home with secrets, a workspace that is a repository, and things
//! outside both. Made afresh for each run, owned by the uid that runs, judged from outside.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Stands in every secret of a world. Seeing it where it must not be is a breach.
pub const CANARY: &str = "canary-7f3a9c51";

/// Ordinary uid of the suite when it runs as root.
pub const NOBODY: u32 = 65534;

pub struct World {
    dir: TempDir,
    pub uid: u32,
    pub home: PathBuf,
    pub ws: PathBuf,
    pub out: PathBuf,
}

/// Where worlds stand: not below a folder that calls see as private, if there is a choice.
pub fn base() -> PathBuf {
    let given = std::env::var_os("CURFEW_TEST_DIR").map(PathBuf::from);
    let places = given
        .into_iter()
        .chain([PathBuf::from("/srv"), PathBuf::from("/var/tmp")]);
    let writable = |place: &PathBuf| tempfile::tempfile_in(place).is_ok();
    places
        .into_iter()
        .find(writable)
        .expect("/srv or /var/tmp can be written")
}

/// The uid the suite runs as.
pub fn own_uid() -> u32 {
    std::fs::metadata("/proc/self")
        .expect("/proc is mounted")
        .uid()
}

impl World {
    pub fn new(uid: u32) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("world-")
            .tempdir_in(base())
            .unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let at = |name: &str| dir.path().join(name);
        let world = World {
            uid,
            home: at("home"),
            ws: at("ws"),
            out: at("out"),
            dir,
        };
        world.furnish();
        world
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn furnish(&self) {
        for folder in [
            ".ssh",
            ".aws",
            ".kube",
            ".docker",
            ".config/gh",
            ".mozilla/firefox/p",
        ] {
            std::fs::create_dir_all(self.home.join(folder)).unwrap();
        }
        for name in SECRETS {
            std::fs::write(self.home.join(name), format!("{CANARY}\n")).unwrap();
        }
        for name in [".bashrc", ".profile"] {
            std::fs::write(self.home.join(name), "# empty\n").unwrap();
        }
        std::fs::create_dir_all(self.out.join("folder")).unwrap();
        std::fs::write(self.out.join("victim"), "untouched\n").unwrap();
        std::fs::write(self.out.join("folder/inner"), "untouched\n").unwrap();
        std::fs::create_dir(&self.ws).unwrap();
        std::fs::write(self.ws.join("x"), "of the workspace\n").unwrap();
        self.repository();
        self.give();
    }

    fn repository(&self) {
        self.git(&["init", "-q", "-b", "main"]);
        // A hook that exists already, beside those that do not.
        let hooks = self.ws.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        std::fs::write(hooks.join("pre-push"), "#!/bin/sh\n").unwrap();
        self.git(&["add", "x"]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    /// git on the host, with nothing of the host's or the world's configuration.
    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c"])
            .arg(format!("safe.directory={}", self.ws.display()))
            .args(args)
            .current_dir(&self.ws)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .expect("git runs");
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Hands everything to the world's uid.
    pub fn give(&self) {
        if self.uid == own_uid() {
            return;
        }
        for path in walk(self.path()) {
            std::os::unix::fs::lchown(&path, Some(self.uid), Some(self.uid)).unwrap();
        }
    }

    /// The state of a tree: what a guarantee calls bytes, names and metadata.
    pub fn state(&self, root: &Path) -> BTreeMap<PathBuf, String> {
        walk(root)
            .into_iter()
            .map(|path| (path.clone(), describe(&path)))
            .collect()
    }
}

/// Files of the home that hold the canary.
pub const SECRETS: &[&str] = &[
    ".ssh/id_rsa",
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".kube/config",
    ".docker/config.json",
    ".config/gh/hosts.yml",
    ".mozilla/firefox/p/logins.json",
    ".bash_history",
];

/// Every path below `root` and itself, without following symbolic links.
pub fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    let mut at = 0;
    while at < found.len() {
        let folder = std::fs::symlink_metadata(&found[at]).is_ok_and(|meta| meta.is_dir());
        if folder {
            let entries = std::fs::read_dir(&found[at]).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    found.sort();
    found
}

fn describe(path: &Path) -> String {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let content = if meta.is_file() {
        let bytes = std::fs::read(path).unwrap_or_default();
        Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    } else if meta.is_symlink() {
        let target = std::fs::read_link(path).unwrap();
        String::from_utf8_lossy(OsStr::as_bytes(target.as_os_str())).into_owned()
    } else {
        String::new()
    };
    let (mode, uid, gid, links) = (meta.mode(), meta.uid(), meta.gid(), meta.nlink());
    let (size, seconds, nanos) = (meta.size(), meta.mtime(), meta.mtime_nsec());
    format!("{mode:o} {uid}:{gid} {links} {size} {seconds}.{nanos} {content}")
}
