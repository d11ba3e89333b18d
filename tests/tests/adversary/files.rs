//! Writing outside the workspace, by every way a file can be changed.

use std::os::unix::fs::MetadataExt;

use super::{Act, DAA, Scene, Twin, row};

fn new_outside(scene: &Scene) -> bool {
    scene.out("new").exists()
}

fn victim_changed(scene: &Scene) -> bool {
    scene.text(scene.out("victim")) != "untouched\n"
}

#[test]
fn fs01_write_outside_by_path() {
    row(&[
        Act::new("into /etc", "echo x > /etc/curfew-test-new", |scene| {
            let copied = scene.world.path().join("layers/etc/up/curfew-test-new");
            copied.exists() || std::path::Path::new("/etc/curfew-test-new").exists()
        })
        .twin(Twin::RootOnly),
        Act::new(
            "append to a shell profile",
            "echo x >> {home}/.bashrc",
            |scene| scene.text(scene.world.home.join(".bashrc")).contains('x'),
        ),
        Act::new(
            "a sibling of the workspace",
            "echo x > {ws}/../sib",
            |scene| scene.world.path().join("sib").exists(),
        ),
        Act::new(
            "append to a file outside",
            "echo x >> {out}/victim",
            victim_changed,
        ),
        Act::new("remove a file outside", "rm -f {out}/victim", |s| {
            !s.out("victim").exists()
        }),
        Act::new("make a folder outside", "mkdir {out}/new", new_outside),
    ]);
}

#[test]
fn fs02_symlink_out_of_the_workspace() {
    row(&[
        Act::new(
            "to a folder",
            "ln -s {out} {ws}/l; echo x > {ws}/l/new",
            new_outside,
        ),
        Act::new(
            "to a file",
            "ln -s {out}/victim {ws}/l; echo x >> {ws}/l",
            victim_changed,
        ),
        Act::new(
            "relative",
            "ln -s ../out/victim {ws}/l; echo x >> {ws}/l",
            victim_changed,
        ),
        // Made without the workspace being writable, where a call has a private /tmp.
        Act::new(
            "from /tmp",
            "ln -s {out} /tmp/l-$$; echo x > /tmp/l-$$/new; rm /tmp/l-$$",
            new_outside,
        ),
    ]);
}

#[test]
fn fs03_chained_and_dangling_symlinks() {
    row(&[
        Act::new(
            "a chain",
            "ln -s {out} {ws}/a; ln -s a {ws}/b; ln -s b/victim {ws}/c; echo x >> {ws}/c",
            victim_changed,
        ),
        Act::new(
            "dangling",
            "ln -s {out}/new {ws}/l; echo x > {ws}/l",
            new_outside,
        )
        .unreported(super::GAP_DANGLING),
        Act::new(
            "dangling, into the home",
            "ln -s {home}/new {ws}/l; echo x > {ws}/l",
            |scene| scene.world.home.join("new").exists(),
        )
        .unreported(super::GAP_DANGLING),
    ]);
}

#[test]
fn fs04_hard_link_into_the_workspace() {
    row(&[
        Act::new(
            "link",
            "ln {out}/victim {ws}/h; echo x >> {ws}/h",
            victim_changed,
        )
        .unreported(super::GAP_LINK),
        Act::new(
            "link of a home's file",
            "ln {home}/.bashrc {ws}/h; echo x >> {ws}/h",
            |scene| scene.text(scene.world.home.join(".bashrc")).contains('x'),
        )
        .unreported(super::GAP_LINK),
        Act::new(
            "linkat of a descriptor",
            "{probe} linkat {out}/victim {ws}/h",
            victim_changed,
        )
        .unreported(super::GAP_LINK),
    ]);
}

#[test]
fn fs06_rename_across_the_border() {
    row(&[
        Act::new("out of the home", "mv {home}/.profile {ws}/", |scene| {
            !scene.world.home.join(".profile").exists()
        }),
        Act::new(
            "into the home",
            "echo y > {ws}/y; mv {ws}/y {home}/",
            |scene| scene.world.home.join("y").exists(),
        ),
        Act::new("out of a folder", "mv {out}/victim {ws}/", |s| {
            !s.out("victim").exists()
        }),
        Act::new(
            "exchange",
            "{probe} exchange {ws}/x {out}/victim",
            victim_changed,
        ),
    ]);
}

#[test]
fn fs07_unnamed_file_linked_outside() {
    row(&[
        Act::new("made outside", "{probe} tmpfile-out {out} new", new_outside),
        Act::new(
            "made inside",
            "{probe} tmpfile-link {ws} {out}/new",
            new_outside,
        ),
    ]);
}

#[test]
fn fs08_truncate_outside() {
    row(&[
        Act::new("truncate", "{probe} truncate {out}/victim", victim_changed),
        Act::new(
            "read-only open that truncates",
            "{probe} open-trunc {out}/victim",
            victim_changed,
        ),
        Act::new("by the shell", "( : > {out}/victim )", victim_changed),
    ]);
}

#[test]
fn fs09_change_modes_outside() {
    let opened =
        |scene: &Scene| std::fs::metadata(scene.out("victim")).unwrap().mode() & 0o777 == 0o777;
    row(&[
        Act::new(
            "of a folder of the home",
            "chmod 000 {home}/.ssh",
            |scene| {
                std::fs::metadata(scene.world.home.join(".ssh"))
                    .unwrap()
                    .mode()
                    & 0o777
                    == 0
            },
        ),
        Act::new("chmod", "chmod 777 {out}/victim", opened),
        Act::new(
            "by a read-only descriptor",
            "{probe} fchmod {out}/victim",
            opened,
        ),
        Act::new("fchmodat2", "{probe} fchmodat2 {out}/victim 777", opened),
    ]);
}

#[test]
fn fs16_mount_over_the_fences() {
    row(&[
        Act::new(
            "bind",
            "mkdir -p /tmp/m; mount --bind {out} /tmp/m; echo x > /tmp/m/new",
            new_outside,
        )
        .twin(Twin::RootOnly),
        Act::new(
            "remount",
            "mount -o remount,bind,rw / && echo x > {out}/new",
            new_outside,
        )
        .twin(Twin::RootOnly),
        Act::new(
            "a new file system",
            "mkdir -p /tmp/m; {probe} new-mount /tmp/m",
            Scene::did_any,
        )
        .twin(Twin::RootOnly),
        Act::new(
            "a cloned tree",
            "mkdir -p /tmp/m; {probe} tree-mount {out} /tmp/m",
            |scene| scene.out("by-tree").exists(),
        )
        .twin(Twin::RootOnly),
        Act::new(
            "mount_setattr",
            "{probe} mount-setattr / && echo x > {out}/new",
            new_outside,
        )
        .twin(Twin::RootOnly),
    ]);
}

#[test]
fn fs20_proc_paths_out_of_the_workspace() {
    row(&[
        Act::new("own root", "echo x > /proc/self/root{out}/new", new_outside),
        Act::new(
            "root of PID 1",
            "echo x > /proc/1/root{out}/new",
            new_outside,
        ),
        Act::new(
            "own folder",
            "cd {ws}; echo x > /proc/self/cwd/../out/new",
            new_outside,
        ),
        Act::new(
            "own descriptor",
            "exec 9< {out}; echo x > /proc/self/fd/9/new",
            new_outside,
        )
        .unreported(super::GAP_MAGIC),
    ]);
}

#[test]
fn ordinary_work_in_the_workspace() {
    let there = |scene: &Scene| scene.world.ws.join("new").exists();
    row(&[
        Act::new("create", "touch {ws}/new", there).expect(DAA),
        Act::new("remove", "rm {ws}/x", |scene| {
            !scene.world.ws.join("x").exists()
        })
        .expect(DAA),
        Act::new("chmod", "chmod 700 {ws}/x", |scene| {
            std::fs::metadata(scene.world.ws.join("x")).unwrap().mode() & 0o777 == 0o700
        })
        .expect(DAA),
        Act::new(
            "commit",
            "cd {ws}; echo y > y; git add y; git commit -qm second",
            |scene| scene.world.git(&["log", "--format=%s"]).contains("second"),
        )
        .expect(DAA),
    ]);
}

#[test]
fn fs10_to_fs15_labels_and_nodes_outside() {
    row(&[
        Act::new(
            "labels of a file",
            "{probe} metadata {out}/victim",
            Scene::did_any,
        ),
        Act::new(
            "labels of a folder",
            "{probe} metadata {out}/folder",
            Scene::did_any,
        ),
        Act::new("special files", "{probe} nodes {out}", Scene::did_any),
        Act::new("a device", "{probe} device {ws}", Scene::did_any)
            .unreported(super::GAP_DEVICE)
            .twin(Twin::RootOnly),
    ]);
}

#[test]
fn fs17_and_fs18_other_roots() {
    row(&[
        Act::new(
            "a user namespace and a bind",
            "unshare -Urm sh -c 'mount --bind {out} /tmp && echo x > /tmp/new'",
            new_outside,
        ),
        Act::new("chroot", "{probe} roots {ws}", Scene::did_any).twin(Twin::RootOnly),
        Act::new(
            "detach the view",
            "umount -l / && echo x > {out}/new",
            new_outside,
        )
        .twin(Twin::RootOnly),
    ]);
    row(&[Act::new(
        "held descriptors",
        "{probe} held-descriptors ../new",
        |scene| !scene.did_any(),
    )
    .expect(super::PPP)]);
}

#[test]
fn fs31_the_workspace_itself() {
    row(&[
        Act::new("remove", "rm -rf {ws}", |scene| !scene.world.ws.exists()),
        Act::new("replace", "mkdir {ws}2; mv -T {ws} {ws}3", |scene| {
            !scene.world.ws.exists()
        }),
    ]);
}
