//! Planting what somebody else would run later.

use super::{Act, Scene, row};

fn config(scene: &Scene) -> String {
    scene.text(scene.world.ws.join(".git/config"))
}

#[test]
fn pe01_git_hooks() {
    row(&[
        Act::new(
            "create",
            "printf '#!/bin/sh\\n' > {ws}/.git/hooks/pre-commit",
            |scene| scene.world.ws.join(".git/hooks/pre-commit").exists(),
        ),
        Act::new("edit", "echo evil >> {ws}/.git/hooks/pre-push", |scene| {
            scene
                .text(scene.world.ws.join(".git/hooks/pre-push"))
                .contains("evil")
        }),
        Act::new(
            "replace",
            "echo evil > {ws}/h; mv -f {ws}/h {ws}/.git/hooks/pre-push",
            |scene| {
                scene
                    .text(scene.world.ws.join(".git/hooks/pre-push"))
                    .contains("evil")
            },
        ),
        Act::new(
            "rename the folder",
            "mv {ws}/.git/hooks {ws}/.git/hooks-old",
            |scene| !scene.world.ws.join(".git/hooks").exists(),
        ),
        Act::new(
            "link it away",
            "rm -rf {ws}/.git/hooks && ln -s {ws} {ws}/.git/hooks",
            |scene| scene.world.ws.join(".git/hooks").is_symlink(),
        ),
    ]);
}

#[test]
fn pe02_git_config() {
    row(&[
        Act::new(
            "fsmonitor",
            "git -C {ws} config core.fsmonitor /tmp/evil",
            |s| config(s).contains("fsmonitor"),
        ),
        Act::new(
            "hooksPath",
            "git -C {ws} config core.hooksPath /tmp/evil",
            |s| config(s).contains("hooksPath"),
        ),
        Act::new(
            "sshCommand",
            "git -C {ws} config core.sshCommand evil",
            |s| config(s).contains("sshCommand"),
        ),
        Act::new("filter", "git -C {ws} config filter.e.clean evil", |s| {
            config(s).contains("clean")
        }),
        Act::new("helper", "git -C {ws} config credential.helper evil", |s| {
            config(s).contains("helper")
        }),
        Act::new("alias", "git -C {ws} config alias.s '!evil'", |s| {
            config(s).contains("alias")
        }),
        Act::new(
            "include",
            "git -C {ws} config include.path /tmp/evil",
            |s| config(s).contains("include"),
        ),
        Act::new(
            "append",
            "printf '[core]\\n\\tfsmonitor = evil\\n' >> {ws}/.git/config",
            |s| config(s).contains("fsmonitor"),
        ),
        Act::new("truncate", "( : > {ws}/.git/config )", |s| {
            config(s).is_empty()
        }),
        Act::new(
            "rename over",
            "echo '[alias]' > {ws}/c; mv -f {ws}/c {ws}/.git/config",
            |s| config(s).contains("alias"),
        ),
        Act::new("remove", "rm -f {ws}/.git/config", |s| {
            !s.world.ws.join(".git/config").exists()
        }),
    ]);
}

#[test]
fn pe03_git_folder_rebuilt() {
    const REBUILD: &str = "cd {ws} && mv .git g && mkdir -p .git/hooks && \
        cp -r g/HEAD g/objects g/refs .git/ && printf '[core]\\n\\tfsmonitor = evil\\n' > .git/config";
    row(&[
        Act::new("beside the old one", REBUILD, |s| {
            config(s).contains("fsmonitor")
        }),
        Act::new("moved away", "mv {ws}/.git {ws}/g", |s| {
            !s.world.ws.join(".git").exists()
        }),
        Act::new("with the workspace", "mv {ws} {ws}2", |s| {
            !s.world.ws.exists()
        }),
    ]);
}
