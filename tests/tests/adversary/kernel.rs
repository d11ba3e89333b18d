//! Interfaces of the kernel that a task has no use for.

use std::os::unix::fs::MetadataExt;

use curfew_tests::world::walk;

use super::{Act, DAA, Scene, Twin, row};

#[test]
fn pr02_new_user_namespaces() {
    row(&[
        Act::new("unshare", "{probe} userns unshare", Scene::did_any),
        Act::new("clone", "{probe} userns clone", Scene::did_any),
        Act::new("clone3", "{probe} userns clone3", Scene::did_any)
            .unreported("answered with ENOSYS, so that libc falls back to clone"),
        Act::new(
            "the tool",
            "unshare -Ur true && echo 'DID unshare'",
            Scene::did_any,
        ),
    ]);
}

/// Opening is harmless; nothing is written. As root without capabilities it would go through.
#[test]
fn ex09_kernel_settings_opened_for_writing() {
    row(&[Act::new(
        "settings",
        "{probe} open-write /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe \
         /proc/sysrq-trigger /proc/irq/default_smp_affinity /proc/sys/net/ipv4/ip_forward",
        Scene::did_any,
    )
    .twin(Twin::RootOnly)]);
}

#[test]
fn ex10_set_id_files_in_the_workspace() {
    fn setid(scene: &Scene) -> bool {
        let bits = |path: &std::path::PathBuf| std::fs::symlink_metadata(path).unwrap().mode();
        walk(&scene.world.ws)
            .iter()
            .any(|path| bits(path) & 0o6000 != 0)
    }
    row(&[Act::new("every way", "{probe} setid {ws}", setid)]);
    // The same calls without the bits are ordinary work.
    row(&[
        Act::new("chmod without the bit", "chmod 755 {ws}/x", |scene| {
            std::fs::metadata(scene.world.ws.join("x")).unwrap().mode() & 0o7777 == 0o755
        })
        .expect(DAA),
    ]);
}

#[test]
fn pr05_pr06_pr10_calls_no_task_needs() {
    row(&[
        Act::new(
            "observe and program",
            "{probe} calls io_uring_setup userfaultfd",
            Scene::did_any,
        ),
        Act::new(
            "of root",
            "{probe} calls bpf perf_event_open fanotify_init sethostname",
            Scene::did_any,
        )
        .twin(Twin::RootOnly),
        Act::new("keyrings", "{probe} calls add_key", Scene::did_any),
        Act::new(
            "others' priority",
            "{probe} calls nice fifo",
            Scene::did_any,
        )
        .twin(Twin::RootOnly),
        Act::new("other namespaces", "{probe} calls setns", Scene::did_any)
            .unreported("the file in /proc is refused, which nothing watches")
            .twin(Twin::RootOnly),
    ]);
    // What programs do need.
    row(&[Act::new("memfd", "{probe} calls memfd", Scene::did_any).expect([super::Holds; 3])]);
}
