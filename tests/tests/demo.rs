//! `curfew demo` as a newcomer runs it: as root, as an ordinary user without a home, offline, and
//! on a host that cannot confine.

use std::path::Path;

use curfew_tests::run::{Curfew, Ran};
use curfew_tests::world::{NOBODY, World, own_uid};

/// What every good demo says.
fn assert_good(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    let out = ran.out();
    let denied: Vec<&str> = out
        .lines()
        .filter(|line| line.trim_start().starts_with("denied by "))
        .collect();
    for (layer, rule) in [
        ("mounts", "write-fence"),
        ("mounts", "mask"),
        ("mounts", "protected-names"),
        ("namespaces", "net-fence"),
    ] {
        let start = format!("denied by {layer} ");
        assert!(
            denied
                .iter()
                .any(|line| line.trim_start().starts_with(&start) && line.ends_with(rule)),
            "{layer} {rule}\n{}",
            ran.told()
        );
    }
    for wanted in [
        "FAILED: 2 and 3 make -1, not 5",
        "+echo $(($1 + $2))",
        "check    sh test.sh  exit 0",
        "5 of 5 hostile steps",
        "consistent",
        "--base-url",
    ] {
        assert!(out.contains(wanted), "no {wanted:?}\n{}", ran.told());
    }
    assert!(!out.contains('\x1b'), "colour in a pipe\n{}", ran.told());
}

/// The line under `name` in the last part.
fn told<'a>(out: &'a str, name: &str) -> &'a str {
    let start = format!("   {name:<9}");
    out.lines()
        .find_map(|line| line.strip_prefix(&start))
        .unwrap_or_else(|| panic!("no {name} in {out}"))
}

fn session_of(log: &Path) -> String {
    let folder = log.parent().unwrap().file_name().unwrap();
    folder.to_string_lossy().into_owned()
}

#[test]
fn the_demo_is_good_and_leaves_only_its_session() {
    for uid in [own_uid(), NOBODY] {
        let world = World::new(uid);
        let before = [&world.ws, &world.out].map(|tree| world.state(tree));
        let ran = Curfew::new(&world).args(["demo"]).run();
        assert_good(&ran);
        assert_eq!(
            before,
            [&world.ws, &world.out].map(|tree| world.state(tree))
        );
        let out = ran.out();
        let log = Path::new(told(&out, "log"));
        assert!(log.starts_with(world.home.join(".curfew/sessions")));
        let verified = Curfew::new(&world)
            .args(["session", "verify", &session_of(log)])
            .run();
        assert_eq!(verified.code, Some(0), "{}", verified.told());
        assert!(!Path::new("/etc/curfew-demo-was-here").exists());
    }
}

#[test]
fn without_a_home_the_log_goes_below_the_temporary_directory_and_that_is_said() {
    for home in [None, Some("/nonexistent")] {
        let world = World::new(NOBODY);
        let mut demo = Curfew::new(&world)
            .args(["demo"])
            .without_env("HOME")
            .without_env("CURFEW_HOME")
            .env("TMPDIR", &world.out);
        if let Some(home) = home {
            demo = demo.env("HOME", home);
        }
        let ran = demo.run();
        assert_good(&ran);
        let out = ran.out();
        let line = told(&out, "log");
        assert!(line.contains("no state directory"), "{}", ran.told());
        let log = Path::new(line.split("  ").next().unwrap());
        assert!(log.starts_with(&world.out), "{}", ran.told());
        // What it says to type works.
        let state = log.ancestors().nth(3).unwrap();
        let typed = format!(
            "CURFEW_HOME={} curfew session verify {}",
            state.display(),
            session_of(log)
        );
        assert!(out.contains(&typed), "{typed}\n{}", ran.told());
        let verified = Curfew::new(&world)
            .args(["session", "verify", &session_of(log)])
            .env("CURFEW_HOME", state)
            .run();
        assert_eq!(verified.code, Some(0), "{}", verified.told());
    }
}

#[test]
fn a_posix_shell_is_enough() {
    let world = World::new(own_uid());
    let path = world.out.join("bin");
    std::fs::create_dir(&path).unwrap();
    for name in ["sh", "cat"] {
        std::os::unix::fs::symlink(format!("/bin/{name}"), path.join(name)).unwrap();
    }
    let ran = Curfew::new(&world).args(["demo"]).env("PATH", &path).run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(ran.out().contains("of 5 hostile steps"), "{}", ran.told());
}

#[test]
fn the_demo_needs_no_network() {
    let world = World::new(own_uid());
    let wrapper: &[&str] = match own_uid() {
        0 => &["unshare", "--net", "--"],
        _ => &["unshare", "--map-root-user", "--net", "--"],
    };
    assert_good(&Curfew::new(&world).args(["demo"]).under(wrapper).run());
}

#[test]
fn a_host_that_cannot_confine_is_7_with_the_reason() {
    let world = World::new(own_uid());
    let spoil = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
    let ran = Curfew::new(&world)
        .args(["demo"])
        .under(&[
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            spoil,
            "sh",
        ])
        .run();
    assert_eq!(ran.code, Some(7), "{}", ran.told());
    assert!(
        ran.err().starts_with("curfew: ") && ran.err().lines().count() == 1,
        "{}",
        ran.told()
    );
    assert!(!ran.out().contains("denied by"), "{}", ran.told());
}

#[test]
fn colour_is_for_those_who_want_it() {
    let world = World::new(own_uid());
    let ran = Curfew::new(&world)
        .args(["demo", "--color", "always"])
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.told());
    assert!(ran.out().contains("\x1b["));
}
