//! Attacks as real processes through `curfew sandbox`, judged from the host's state.
//!
//! A row is a list of acts. Each act is run in the three modes, as root and as an ordinary uid,
//! and must come to what its row says; under danger-full-access the same act has to succeed, or
//! the row proves nothing. What could touch the host there runs in mount and PID namespaces that
//! the test made. Start with [`row`].

mod files;
mod kernel;
mod network;
mod persistence;
mod processes;
mod secrets;

use std::path::PathBuf;

use curfew_tests::net::Listeners;
use curfew_tests::run::{Curfew, Ran};
use curfew_tests::skip;
use curfew_tests::world::{NOBODY, World, own_uid};

pub const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];

/// Written by the script after the act: without it nothing was tried.
const END: &str = "reached-the-end";

/// What curfew has in its environment and no call may see.
pub const KEY: &str = "sk-never-in-a-call";

/// A connection that finds nothing on the session's own loopback is no refusal.
pub const OWN_LOOPBACK: &str = "the session's own loopback has no such service";
// Refusals that the write-intent observation does not foresee yet.
pub const GAP_DANGLING: &str = "a dangling link is taken for a new name in the workspace";
pub const GAP_LINK: &str = "EXDEV is not foreseen";
pub const GAP_MAGIC: &str = "a link in /proc is not followed";
pub const GAP_DEVICE: &str = "mknod of a device is refused by Landlock, which does not tell";

/// What an act must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Refused: nothing happened, and nothing outside the grants changed.
    Denied,
    /// It happened.
    Allowed,
    /// What is looked at holds, whatever the act did.
    Holds,
    /// It holds for an ordinary uid; of root nothing is said.
    HoldsForUsers,
}

pub use Outcome::{Allowed, Denied, Holds, HoldsForUsers};

pub const DDA: [Outcome; 3] = [Denied, Denied, Allowed];
pub const DAA: [Outcome; 3] = [Denied, Allowed, Allowed];
pub const PPP: [Outcome; 3] = [Holds, Holds, Holds];

/// Who can do it when nothing confines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    AnyUid,
    /// The kernel refuses an ordinary uid even unconfined: its twin runs as root only.
    RootOnly,
    /// Must be on the host itself; the act harms nothing there.
    OnHost,
}

/// One attempt. In `script`, `{ws}`, `{out}`, `{home}`, `{probe}` and the names of listeners stand
/// for this world's.
#[derive(Clone, Copy)]
pub struct Act {
    pub name: &'static str,
    pub script: &'static str,
    pub expect: [Outcome; 3],
    /// The look at the host: did it happen (or, for `Holds`, does the property hold)?
    pub look: fn(&Scene) -> bool,
    pub twin: Twin,
    /// Why no refusal is reported: nothing that sees this kind of act is named as a source.
    pub unreported: Option<&'static str>,
}

impl Act {
    pub const fn new(name: &'static str, script: &'static str, look: fn(&Scene) -> bool) -> Self {
        Act {
            name,
            script,
            expect: DDA,
            look,
            twin: Twin::AnyUid,
            unreported: None,
        }
    }

    pub const fn expect(mut self, expect: [Outcome; 3]) -> Self {
        self.expect = expect;
        self
    }

    pub const fn unreported(mut self, why: &'static str) -> Self {
        self.unreported = Some(why);
        self
    }

    pub const fn twin(mut self, twin: Twin) -> Self {
        self.twin = twin;
        self
    }
}

/// A world with listeners, and what the run in it came to.
pub struct Scene {
    pub world: World,
    pub listeners: Listeners,
    pub ran: Ran,
}

impl Scene {
    pub fn out(&self, name: &str) -> PathBuf {
        self.world.out.join(name)
    }

    pub fn text(&self, path: PathBuf) -> String {
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }

    /// The probe said that this went through.
    pub fn did(&self, what: &str) -> bool {
        self.ran
            .out()
            .lines()
            .any(|line| line == format!("DID {what}"))
    }

    pub fn did_any(&self) -> bool {
        self.ran.out().lines().any(|line| line.starts_with("DID "))
    }
}

/// Runs every act of a row in every mode and as every uid that this suite can be.
pub fn row(acts: &[Act]) {
    let uids = if own_uid() == 0 {
        vec![0, NOBODY]
    } else {
        vec![own_uid()]
    };
    if own_uid() != 0 {
        skip::note("adversary-root", "the suite does not run as root");
    }
    for act in acts {
        for uid in &uids {
            for (mode, expected) in MODES.iter().zip(act.expect) {
                let hopeless = *uid != 0 && act.twin == Twin::RootOnly && expected == Allowed;
                let unsaid = *uid == 0 && expected == HoldsForUsers;
                if !hopeless && !unsaid {
                    one(act, *uid, mode, expected);
                }
            }
        }
    }
}

fn one(act: &Act, uid: u32, mode: &str, expected: Outcome) {
    let world = World::new(uid);
    std::fs::write(
        world.ws.join("probe.py"),
        include_str!("adversary/probe.py"),
    )
    .unwrap();
    world.give();
    let listeners = Listeners::open(world.path());
    let script = listeners.fill(&fill(act.script, &world));
    let before = outside(&world, mode);
    let argv = ["sh", "-c", &format!("{script}\necho {END}")];
    let command = Curfew::sandbox(&world, mode, &argv).env("OPENAI_API_KEY", KEY);
    let confined = mode != "danger-full-access";
    let command = if confined || act.twin == Twin::OnHost {
        command
    } else {
        apart(command, uid)
    };
    let ran = command.run();
    let what = format!("{} as uid {uid}, {mode}", act.name);
    assert!(
        ran.out().contains(END),
        "{what}: the script did not reach its end\n{}",
        ran.told()
    );
    let after = outside(&world, mode);
    let scene = Scene {
        world,
        listeners,
        ran,
    };
    let seen = (act.look)(&scene);
    let wanted = expected != Denied;
    assert_eq!(
        seen,
        wanted,
        "{what}: expected {expected:?}\n{script}\n{}",
        scene.ran.told()
    );
    if confined && expected == Denied && act.unreported.is_none() {
        let reported = scene
            .ran
            .err()
            .lines()
            .any(|line| line.starts_with("curfew: denied"));
        assert!(
            reported,
            "{what}: refused without a report\n{script}\n{}",
            scene.ran.told()
        );
    }
    if confined {
        assert_eq!(
            before, after,
            "{what}: something outside the grants changed"
        );
    }
}

pub fn fill(script: &str, world: &World) -> String {
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    script
        .replace("{probe}", &format!("python3 {}/probe.py", text(&world.ws)))
        .replace("{ws}", &text(&world.ws))
        .replace("{out}", &text(&world.out))
        .replace("{home}", &text(&world.home))
}

/// Everything of the world that a mode does not grant, curfew's own state aside.
fn outside(world: &World, mode: &str) -> Vec<(PathBuf, String)> {
    let granted = |path: &PathBuf| {
        let state = path.starts_with(world.home.join(".curfew"));
        state || (mode != "read-only" && path.starts_with(&world.ws))
    };
    let state = world.state(world.path());
    // The home's own entry changes when curfew makes its state folder in it.
    state
        .into_iter()
        .filter(|(path, _)| !granted(path) && *path != world.home)
        .collect()
}

/// Runs it in mount and PID namespaces of its own, with a shell of the same uid as PID 1, a copy
/// on write over /etc, and everything gone when it ends.
fn apart(command: Curfew, uid: u32) -> Curfew {
    const ROOT: &str = "mkdir -p \"$0/etc/up\" \"$0/etc/work\" && \
        mount -t overlay none -o lowerdir=/etc,upperdir=\"$0/etc/up\",workdir=\"$0/etc/work\" /etc && \
        exec \"$@\"";
    let namespaces = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ];
    let mut wrapper: Vec<String> = namespaces.map(str::to_owned).to_vec();
    let layers = command.world_folder().join("layers");
    std::fs::create_dir_all(&layers).unwrap();
    let key = layers.join("key");
    std::fs::write(&key, KEY).unwrap();
    if own_uid() == 0 {
        wrapper.extend(["sh", "-c", ROOT].map(str::to_owned));
        wrapper.push(layers.to_str().unwrap().to_owned());
        let id = uid.to_string();
        let become_uid = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
        wrapper.extend(become_uid.map(str::to_owned));
    } else {
        wrapper.extend(["--user", "--map-current-user"].map(str::to_owned));
    }
    // PID 1 stays this shell: it waits instead of becoming what it runs. It gives curfew the key
    // without having it in an environment of its own.
    const PID_1: &str = "OPENAI_API_KEY=$(cat \"$0\") \"$@\"; exit $?";
    wrapper.extend(["sh", "-c", PID_1].map(str::to_owned));
    wrapper.push(key.to_str().unwrap().to_owned());
    command
        .without_env("OPENAI_API_KEY")
        .as_own_uid()
        .under(&wrapper)
}
