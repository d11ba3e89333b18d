//! Plans that cannot be carried out: which step, which path, which errno, and nothing ran.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use curfew_cell::plan::{ArgOp, ArgRule, Audience, MountOp, SyscallAction, SyscallRule};

use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Folder, as_who, mark, own_binary, processes_with};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("a_root_that_was_replaced_is_refused", replaced_root);
    tests.for_each_uid("a_link_in_the_way_is_refused", link_in_the_way);
    tests.for_each_uid("nothing_is_made_outside_private_areas", missing_places);
    tests.for_each_uid("a_bad_syscall_row_is_refused", bad_rows);
    tests.for_each_uid("a_host_without_user_namespaces_says_so", no_namespaces);
    tests.for_each_uid("an_old_landlock_is_not_enough", old_landlock);
    tests.for_each_uid("run_one_passes_output_code_and_signals", run_one);
}

fn replaced_root(who: Who) {
    let folder = Folder::new(who);
    let plan = plans::write_mode(who, &folder.ws());
    fs::rename(folder.ws(), folder.join("old")).unwrap();
    fs::create_dir(folder.ws()).unwrap();
    let fault = Broker::try_start(who, &plan).err().unwrap();
    assert_eq!((fault.step.as_str(), fault.errno), ("grab", libc::ESTALE));
    assert_eq!(fault.path, Some(folder.ws()));
}

fn link_in_the_way(who: Who) {
    let folder = Folder::new(who);
    let plan = plans::write_mode(who, &folder.ws());
    fs::rename(folder.ws(), folder.join("old")).unwrap();
    symlink("old", folder.ws()).unwrap();
    let fault = Broker::try_start(who, &plan).err().unwrap();
    assert_eq!((fault.step.as_str(), fault.errno), ("grab", libc::ELOOP));
    assert!(fault.text.contains("symbolic link"), "{}", fault.text);
}

fn missing_places(who: Who) {
    let folder = Folder::new(who);
    let mut plan = plans::write_mode(who, &folder.ws());
    let missing = folder.join("ws/missing");
    plan.fence_mut().mounts.push(MountOp::Dir {
        path: missing.join("below"),
    });
    let fault = Broker::try_start(who, &plan).err().unwrap();
    assert_eq!(
        (fault.step.as_str(), fault.errno),
        ("dir", libc::ENOENT),
        "{fault:?}"
    );
    assert!(!missing.exists());
    plan.fence_mut().mounts.pop();
    plan.mask(&missing, false);
    let fault = Broker::try_start(who, &plan).err().unwrap();
    assert_eq!((fault.step.as_str(), fault.errno), ("mask", libc::ENOENT));
}

fn bad_rows(who: Who) {
    let folder = Folder::new(who);
    let row = |name: &str, args| SyscallRule {
        name: name.to_owned().into(),
        args,
        action: SyscallAction::Refuse { errno: libc::EPERM },
        rule: "mine".into(),
        audience: Audience::All,
    };
    let nothing = ArgRule {
        index: 0,
        low32: true,
        op: ArgOp::AnyBit { mask: 0 },
    };
    let beyond = ArgRule {
        index: 6,
        low32: true,
        op: ArgOp::Equals { value: 0 },
    };
    for bad in [
        row("no_such_call", vec![]),
        row("open", vec![nothing]),
        row("open", vec![beyond]),
    ] {
        let mut plan = plans::write_mode(who, &folder.ws());
        plan.fence_mut().syscalls.push(bad);
        let fault = Broker::try_start(who, &plan).err().unwrap();
        assert_eq!(
            (fault.step.as_str(), fault.errno),
            ("seccomp", libc::EINVAL)
        );
        assert!(fault.text.contains("mine"), "{}", fault.text);
    }
}

fn old_landlock(who: Who) {
    let folder = Folder::new(who);
    for abi in [0, 5, 99] {
        let mut plan = plans::write_mode(who, &folder.ws());
        plan.fence_mut().landlock.abi = abi;
        let fault = Broker::try_start(who, &plan).err().unwrap();
        assert_eq!(fault.step, "landlock", "{fault:?}");
    }
}

/// In a user namespace where no further one may be made.
fn no_namespaces(who: Who) {
    let folder = Folder::new(who);
    let mut plan = plans::write_mode(Who::Nobody, &folder.ws());
    let identity = &mut plan.fence_mut().identity;
    (identity.host_uid, identity.host_gid) = (who.uid(), who.uid());
    let file = folder.join("plan.json");
    fs::write(&file, serde_json::to_vec(&plan.0).unwrap()).unwrap();
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all {} __one {} /bin/true",
        own_binary().display(),
        file.display()
    );
    let output = as_who(&mut Command::new("unshare"), who)
        .args(["-Ur", "sh", "-c", &script])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("user-namespace") || text.contains("drop-groups"),
        "{text}"
    );
}

fn run_one(who: Who) {
    let folder = Folder::new(who);
    let plan = plans::write_mode(who, &folder.ws());
    let file = folder.join("plan.json");
    fs::write(&file, serde_json::to_vec(&plan.0).unwrap()).unwrap();
    let one = |script: &str| {
        let mut command = Command::new(own_binary());
        as_who(&mut command, who)
            .arg("__one")
            .arg(&file)
            .args(["/bin/sh", "-c", script]);
        command
    };
    let output = one("cat; echo err >&2; exit 9")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(9), b"err\n".as_slice())
    );
    let mut child = one("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through");
    for (signal, name) in [(2, "INT"), (15, "TERM"), (9, "KILL")] {
        let mark = mark();
        let script = format!("trap '' TERM INT; echo up; while :; do sleep 1; done; : {mark}");
        let mut child = one(&script).stdout(Stdio::piped()).spawn().unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
        let kill = format!("kill -{name} {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        let status = child.wait().unwrap();
        if signal != 9 {
            assert_eq!(status.code(), Some(128 + signal));
        }
        crate::support::eventually("all gone", || processes_with(&mark).is_empty());
    }
}
