//! Protected names: PE01 to PE03 and their relatives.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Done, Folder, exists};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("protected_names_stay_and_their_siblings_do_not", contents);
    tests.for_each_uid("protected_names_cannot_be_moved_away", moved_away);
    tests.for_each_uid("protected_names_are_found_at_any_depth", nested);
    tests.for_each_uid("a_scan_that_is_cut_says_so", cut);
    tests.for_each_uid("a_protected_name_that_is_a_link_stays_one", links);
    tests.for_each_uid("names_compare_folded", folded);
    tests.for_each_uid(
        "a_call_ends_when_the_host_replaces_a_protected_name",
        replaced,
    );
}

const CONFIG: &str = "[core]\n\tbare = false\n";

fn repository(folder: &Folder, who: Who, at: &str) {
    for (name, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", CONFIG),
        ("hooks/pre-commit.sample", "#!/bin/sh\n"),
        ("objects/keep", ""),
        ("refs/heads/keep", ""),
        ("index", "index"),
    ] {
        folder.write(who, &format!("{at}/.git/{name}"), text);
    }
}

fn unchanged(folder: &Folder, at: &str, done: &Done) {
    let git = folder.join(at).join(".git");
    assert_eq!(
        fs::read_to_string(git.join("config")).unwrap(),
        CONFIG,
        "{done:#?}"
    );
    let hooks: Vec<_> = fs::read_dir(git.join("hooks")).unwrap().collect();
    assert_eq!(hooks.len(), 1, "{hooks:?}");
}

fn contents(who: Who) {
    let folder = Folder::new(who);
    repository(&folder, who, "ws");
    folder.write(who, "ws/AGENTS.md", "rules\n");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    assert_eq!(broker.facts.pinned.len(), 3, "{:?}", broker.facts);
    let done = broker.sh(
        "echo x > .git/hooks/pre-commit; echo x >> .git/config; rm .git/config; chmod +x .git/hooks/*; \
         echo new > c; mv c .git/config; echo x > AGENTS.md; rm -rf .git/hooks; \
         echo 2 > .git/index2 && mv .git/index2 .git/index; echo o > .git/objects/o; echo src > main.c",
    );
    unchanged(&folder, "ws", &done);
    assert_eq!(
        fs::read_to_string(folder.join("ws/AGENTS.md")).unwrap(),
        "rules\n"
    );
    assert_eq!(
        fs::read_to_string(folder.join("ws/.git/index")).unwrap(),
        "2\n",
        "{done:#?}"
    );
    assert!(exists(&folder.join("ws/.git/objects/o")) && exists(&folder.join("ws/main.c")));
    let hook = folder.join("ws/.git/hooks/pre-commit");
    let denied = done.denied("open-write", hook.to_str().unwrap()).unwrap();
    assert_eq!(denied.rule, "protected-names");
}

fn moved_away(who: Who) {
    let folder = Folder::new(who);
    repository(&folder, who, "ws");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(
        "perl -e 'my ($g, $o) = qw(.git other); rename(q(.git), q(g)); rename(q(.git/hooks), q(.git/h)); rename(q(.git/config), q(.git/c)); \
           mkdir(q(other)); syscall(316, -100, $g, -100, $o, 2)'; \
         echo a > other/x; mv other moved; \
         mv .git g 2>/dev/null && mkdir -p .git/hooks && cp -r g/HEAD g/objects g/refs .git && \
         echo evil > .git/config; true",
    );
    unchanged(&folder, "ws", &done);
    assert!(exists(&folder.join("ws/moved/x")));
    let git = folder.join("ws/.git");
    let denied = done.denied("rename", git.to_str().unwrap()).unwrap();
    assert_eq!(
        (denied.errno, denied.rule.as_str()),
        (libc::EBUSY, "protected-names")
    );
}

fn nested(who: Who) {
    let folder = Folder::new(who);
    repository(&folder, who, "ws/a/b/vendored");
    folder.write(who, "ws/a/.vscode/tasks.json", "{}");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    assert_eq!(broker.facts.pinned.len(), 3, "{:?}", broker.facts);
    let done = broker.sh(
        "echo x >> a/b/vendored/.git/config; echo x > a/.vscode/tasks.json; touch a/.vscode/new; \
         for d in a a/b a/b/vendored a/.vscode; do perl -e 'rename($ARGV[0], q(gone))' $d; done; \
         echo in > a/b/vendored/src.c",
    );
    unchanged(&folder, "ws/a/b/vendored", &done);
    assert_eq!(
        fs::read_to_string(folder.join("ws/a/.vscode/tasks.json")).unwrap(),
        "{}"
    );
    assert!(!exists(&folder.join("ws/a/.vscode/new")));
    assert!(exists(&folder.join("ws/a/b/vendored/src.c")));
}

fn cut(who: Who) {
    let folder = Folder::new(who);
    for n in 0..40 {
        folder.write(who, &format!("ws/d/f{n}"), "");
    }
    let mut plan = plans::write_mode(who, &folder.ws());
    assert!(!Broker::start(who, &plan.0).facts.scan_cut);
    plan.scan(20, 32);
    assert!(Broker::start(who, &plan.0).facts.scan_cut);
    plan.scan(1000, 0);
    assert!(Broker::start(who, &plan.0).facts.scan_cut);
}

fn links(who: Who) {
    let folder = Folder::new(who);
    repository(&folder, who, "ws");
    fs::rename(folder.join("ws/.git/hooks"), folder.join("ws/husky")).unwrap();
    symlink("../husky", folder.join("ws/.git/hooks")).unwrap();
    symlink("husky/pre-commit.sample", folder.join("ws/AGENTS.md")).unwrap();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    broker.sh(
        "rm .git/hooks; rm AGENTS.md; echo x > husky/pre-commit; perl -e 'rename(q(husky), q(h))'; \
         ln -sfn /tmp .git/hooks; mv AGENTS.md other",
    );
    let target = |name: &str| fs::read_link(folder.join(name)).unwrap();
    assert_eq!(target("ws/.git/hooks").to_str(), Some("../husky"));
    assert_eq!(
        target("ws/AGENTS.md").to_str(),
        Some("husky/pre-commit.sample")
    );
    assert_eq!(fs::read_dir(folder.join("ws/husky")).unwrap().count(), 1);
}

fn folded(who: Who) {
    let folder = Folder::new(who);
    folder.write(who, "ws/.VSCode/tasks.json", "{}");
    folder.write(who, "ws/.vs\u{200b}code/tasks.json", "{}");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    broker.sh("for d in .VSC* .vs*; do echo x > $d/tasks.json; done");
    for name in [".VSCode", ".vs\u{200b}code"] {
        let path = folder.ws().join(name).join("tasks.json");
        assert_eq!(fs::read_to_string(path).unwrap(), "{}", "{name:?}");
    }
}

fn replaced(who: Who) {
    let folder = Folder::new(who);
    repository(&folder, who, "ws");
    let config = folder.join("ws/.git/config");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    // A change that keeps the inode ends nothing.
    let (id, _out, _err) = broker.launch_sh("until [ -e go ]; do sleep 0.01; done; exit 5");
    broker.wait_started(id);
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    folder.write(who, "ws/go", "");
    assert_eq!(broker.wait_end(id).unwrap().0.exit_code, Some(5));
    let (id, _out, _err) = broker.launch_sh("while :; do sleep 0.01; done");
    broker.wait_started(id);
    let new = folder.write(who, "config.new", "[host]\n");
    fs::rename(&new, &config).unwrap();
    let (end, denials) = broker.wait_end(id).unwrap();
    assert!(end.killed && end.signal == Some(libc::SIGKILL), "{end:?}");
    assert!(
        denials.iter().any(|d| d.op == "replaced-outside"),
        "{denials:?}"
    );
    // The next call finds the new file protected.
    let done =
        broker.sh("echo x > .git/config; perl -e 'rename(q(.git/config), q(c))'; cat .git/config");
    assert_eq!(done.out, "[host]\n");
    assert_eq!(fs::read_to_string(&config).unwrap(), "[host]\n");
}
