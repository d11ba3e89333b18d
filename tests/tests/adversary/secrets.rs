//! Reading what belongs to the person, not to the task.

use curfew_tests::world::{CANARY, SECRETS};

use super::{Act, Holds, HoldsForUsers, KEY, PPP, Scene, row};

fn canary_read(scene: &Scene) -> bool {
    scene.ran.out().contains(CANARY)
}

#[test]
fn se01_secret_files_of_the_home() {
    let acts: Vec<(String, String)> = SECRETS
        .iter()
        .map(|name| ((*name).to_owned(), format!("cat {{home}}/{name}")))
        .collect();
    for (name, script) in &acts {
        // An act's texts are static everywhere else; here they come from the list of the world.
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let act = Act::new(leak(name), leak(script), canary_read);
        // Well-known names stand there as masks and tell; of the rest nothing stands there.
        let masked = !name.starts_with(".mozilla") && !name.starts_with(".bash");
        row(&[if masked {
            act
        } else {
            act.unreported("nothing stands there in a closed home")
        }]);
    }
}

#[test]
fn se02_secret_files_by_other_paths() {
    row(&[
        Act::new(
            "a symlink",
            "ln -s {home}/.ssh/id_rsa /tmp/k-$$; cat /tmp/k-$$; rm /tmp/k-$$",
            canary_read,
        ),
        Act::new(
            "own root",
            "cat /proc/self/root{home}/.ssh/id_rsa",
            canary_read,
        ),
        Act::new(
            "a hard link",
            "ln {home}/.ssh/id_rsa {ws}/k; cat {ws}/k",
            canary_read,
        )
        .unreported(super::GAP_LINK),
        Act::new(
            "the parent renamed",
            "mv {home}/.ssh {home}/s; cat {home}/s/id_rsa",
            canary_read,
        ),
    ]);
}

/// No call sees a provider's key, whatever the mode.
#[test]
fn se03_keys_in_the_environment() {
    fn clean(scene: &Scene) -> bool {
        !scene.ran.out().contains(KEY) && scene.ran.out().contains("PATH=")
    }
    row(&[
        Act::new("env", "env", clean).expect(PPP),
        Act::new("own environ", "tr '\\0' '\\n' < /proc/self/environ", clean).expect(PPP),
    ]);
}

/// Nor in the environment of what started it.
#[test]
fn se04_keys_of_the_parent() {
    fn unread(scene: &Scene) -> bool {
        !scene.ran.out().contains(KEY)
    }
    const READ: &str = "tr '\\0' '\\n' < /proc/$PPID/environ; \
        for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done 2>/dev/null";
    row(&[Act::new("all environs", READ, unread).expect([Holds, Holds, HoldsForUsers])]);
}
