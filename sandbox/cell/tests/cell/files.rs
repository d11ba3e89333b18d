//! Files: what a call can change, judged on the host afterwards.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use curfew_cell::plan::{FileGrant, MountOp};
use curfew_cell::protocol::Trust;

use crate::plans::{self, Who, Workspace};
use crate::runner::Tests;
use crate::support::{Broker, Folder, exists};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("writes_outside_fail_and_are_reported", writes_outside);
    tests.for_each_uid("links_lead_nowhere_outside", links);
    tests.for_each_uid("metadata_outside_stays", metadata);
    tests.for_each_uid("names_do_not_move_in_or_out", moves);
    tests.for_each_uid("no_set_id_file_is_left_on_the_host", set_id);
    tests.for_each_uid("read_only_means_the_workspace_too", read_only);
    tests.for_each_uid("private_areas_stay_private", private_areas);
    tests.for_each_uid("proc_and_sys_cannot_be_written", kernel_files);
    tests.for_each_uid("mounts_hold_without_landlock", mounts_alone);
    tests.for_each_uid("landlock_holds_without_mounts", landlock_alone);
    tests.for_each_uid("devices_are_the_harmless_ones", devices);
    tests.for_each_uid("masks_are_empty_and_watched", masks);
    tests.for_each_uid("a_workspace_below_a_private_area_is_shown", below_tmp);
    tests.for_each_uid("the_workspace_itself_stays_where_it_is", root_moves);
    tests.for_each_uid("submounts_of_the_workspace_stay_read_only", submounts);
}

fn writes_outside(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib/file", "host\n");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "echo in > own && echo more >> own; echo x > {0}; echo x >> {0}; true > {0}; touch {1}/new; \
         rm -f {0}; mkdir {1}/d; mkfifo {1}/fifo; truncate -s 0 {0}; echo x > /etc/curfew-x; true",
        outside.display(),
        folder.path.display(),
    ));
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(
        fs::read_to_string(folder.join("ws/own")).unwrap(),
        "in\nmore\n"
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\n");
    for name in ["new", "d", "fifo"] {
        assert!(!exists(&folder.join(name)), "{name} was made");
    }
    assert!(!exists("/etc/curfew-x".as_ref()));
    let denied = done.denied("open-write", "/etc/curfew-x").unwrap();
    assert_eq!(
        (denied.errno, denied.trust),
        (libc::EROFS, Trust::Predicted)
    );
    assert_eq!((denied.layer.as_str(), denied.count), ("mounts", 1));
    let own = folder.join("ws/own");
    assert!(done.denied("open-write", own.to_str().unwrap()).is_none());
    // By a relative path, from elsewhere and through a directory's descriptor.
    let done = broker.sh(
        "(cd ../sib && echo x > file); perl -e 'opendir(D, q(../sib)); my ($f, $m) = qw(file made); \
           syscall(257, fileno(D), $f, 1, 0); syscall(257, fileno(D), $m, 0x41, 0600)'; echo y >> own",
    );
    let path = |name: &str| folder.join(name).display().to_string();
    let denied = done.denied("open-write", &path("sib/file")).unwrap();
    assert_eq!(denied.count, 2, "{done:#?}");
    assert!(
        done.denied("open-write", &path("sib/made")).is_some(),
        "{done:#?}"
    );
    assert!(done.denied("open-write", &path("ws/own")).is_none());
}

fn links(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib/file", "host\n");
    symlink("../sib/file", folder.join("ws/to-file")).unwrap();
    symlink("../sib", folder.join("ws/to-dir")).unwrap();
    symlink("to-dir", folder.join("ws/chain")).unwrap();
    symlink("../sib/new", folder.join("ws/dangling")).unwrap();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "echo x > to-file; echo x > to-dir/file; echo x > chain/new; echo x > dangling; \
         ln -s {0} own; echo x > own; ln {0} hard && echo x >> hard; echo in > real; ln real twin",
        outside.display()
    ));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\n");
    assert!(!exists(&folder.join("sib/new")));
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
    assert_eq!(
        fs::metadata(folder.join("ws/twin")).unwrap().nlink(),
        2,
        "{done:?}"
    );
    let seen = folder.join("ws/to-file");
    assert!(
        done.denied("open-write", seen.to_str().unwrap()).is_some(),
        "{done:#?}"
    );
}

fn metadata(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib/file", "host\n");
    let own = folder.write(who, "ws/own", "in\n");
    let before = fs::metadata(&outside).unwrap();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let script = |path: &str| {
        format!(
            "chmod 0600 {path}; touch -d 2001-01-01 {path}; \
             perl -e 'open(F, q(<), q({path})); chmod 0640, *F; utime 1, 1, *F'; chown $(id -u) {path}"
        )
    };
    let done = broker.sh(&script(outside.to_str().unwrap()));
    let after = fs::metadata(&outside).unwrap();
    assert_eq!(after.mode(), before.mode());
    assert_eq!(after.mtime(), before.mtime());
    assert_eq!(after.ctime_nsec(), before.ctime_nsec());
    assert!(
        done.denied("chmod", outside.to_str().unwrap())
            .unwrap()
            .count
            >= 1
    );
    broker.sh(&script("own"));
    let own = fs::metadata(own).unwrap();
    assert_eq!((own.mode() & 0o7777, own.mtime()), (0o640, 1));
}

fn moves(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib/file", "host\n");
    folder.write(who, "ws/own", "in\n");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    // renameat2 EXCHANGE, by number: coreutils' mv would copy over.
    let done = broker.sh(&format!(
        "perl -e 'my ($o, $i) = qw({0} own); rename($o, q(in)); rename($i, q({1}/out)); \
         syscall(316, -100, $o, -100, $i, 2)'; mv own moved",
        outside.display(),
        folder.path.display()
    ));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\n");
    assert!(!exists(&folder.join("ws/in")) && !exists(&folder.join("out")));
    assert_eq!(
        fs::read_to_string(folder.join("ws/moved")).unwrap(),
        "in\n",
        "{done:?}"
    );
}

fn set_id(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    // By numbers where the shell cannot: fchmodat2 (452), mknod (133), openat2 (437, refused whole).
    let done = broker.sh(
        "touch a b c; chmod 4755 a; chmod g+s b; chmod 0755 c; mkdir -m 2755 d; \
         perl -e 'my ($a, $f, $g) = qw(a f g); open(F, q(<), q(a)); chmod 06755, *F; \
           sysopen(G, q(e), 0x41, 04755); syscall(452, -100, $a, 04755, 0); \
           syscall(133, $f, 0104755, 0); \
           my $how = pack(q(QQQ), 0x41, 04755, 0); \
           print syscall(437, -100, $g, $how, 24) == -1 ? $!+0 : q(made)'",
    );
    assert_eq!(done.out, libc::ENOSYS.to_string(), "{done:?}");
    for entry in fs::read_dir(folder.ws()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode();
        assert_eq!(mode & 0o6000, 0, "{entry:?} has mode {mode:o}");
    }
    assert_eq!(
        fs::metadata(folder.join("ws/c")).unwrap().mode() & 0o777,
        0o755
    );
    assert!(
        done.denials
            .iter()
            .any(|d| d.rule == "no-set-id" && d.trust == Trust::Kernel)
    );
}

fn read_only(who: Who) {
    let folder = Folder::new(who);
    let own = folder.write(who, "ws/own", "in\n");
    let plan = plans::fenced(who, &folder.ws(), Workspace::ReadOnly);
    let mut broker = Broker::start(who, &plan);
    let done =
        broker.sh("cat own; echo x > own; touch new; rm -f own; echo t > /tmp/t && cat /tmp/t");
    assert_eq!(done.out, "in\nt\n");
    assert_eq!(fs::read_to_string(own).unwrap(), "in\n");
    assert!(!exists(&folder.join("ws/new")));
}

fn private_areas(who: Who) {
    let folder = Folder::new(who);
    let name = format!("curfew-mark-{}", std::process::id());
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "for d in /tmp /var/tmp /dev/shm; do echo mine > $d/{name} || exit 1; done"
    ));
    assert_eq!(done.code(), 0, "{done:?}");
    for dir in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(
            !exists(format!("{dir}/{name}").as_ref()),
            "{dir} is the host's"
        );
    }
    // /tmp lives as long as the session, shared memory as long as the call.
    let done = broker.sh(&format!("cat /tmp/{name} /var/tmp/{name} /dev/shm/{name}"));
    assert_eq!(done.out, "mine\nmine\n");
    let mut other = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    assert_eq!(other.sh(&format!("cat /tmp/{name}")).out, "");
}

fn kernel_files(who: Who) {
    let folder = Folder::new(who);
    let pattern = fs::read("/proc/sys/kernel/core_pattern").unwrap();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger \
         /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/hostname /proc/self/oom_score_adj \
         /proc/irq/default_smp_affinity /sys/kernel/mm/ksm/run /sys/power/state \
         /sys/fs/cgroup/cgroup.procs; do \
         perl -e 'print sysopen(F, $ARGV[0], 1) ? qq(opened $ARGV[0]\\n) : q()' $f; done; \
         cat /proc/self/comm; head -c 3 /proc/sys/kernel/ostype",
    );
    assert_eq!(done.out, "cat\nLin", "{done:?}");
    assert_eq!(fs::read("/proc/sys/kernel/core_pattern").unwrap(), pattern);
}

/// Everything granted by Landlock: what is left is the mount view, /proc included.
fn mounts_alone(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib/file", "host\n");
    let mut plan = plans::write_mode(who, &folder.ws());
    for path in ["/", "/proc"] {
        let rule = (path.into(), FileGrant::Device);
        plan.fence_mut().landlock.rules.push(rule);
    }
    let mut broker = Broker::start(who, &plan);
    let done = broker.sh(&format!(
        "echo in > own; for f in {} /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname \
         /proc/sysrq-trigger /proc/self/oom_score_adj; do \
         perl -e 'print sysopen(F, $ARGV[0], 1) ? qq(opened $ARGV[0]\\n) : q()' $f; done",
        outside.display()
    ));
    assert_eq!(done.out, "", "{done:?}");
    assert!(exists(&folder.join("ws/own")));
}

/// A folder that the mount view shows writable, but no Landlock rule grants.
fn landlock_alone(who: Who) {
    let folder = Folder::new(who);
    let outside = folder.write(who, "sib/file", "host\n");
    let sib = folder.join("sib");
    let meta = fs::metadata(&sib).unwrap();
    let mut plan = plans::write_mode(who, &folder.ws());
    let (path, dev, ino) = (sib.clone(), meta.dev(), meta.ino());
    let grab = MountOp::Grab {
        id: 7,
        path,
        dev,
        ino,
    };
    plan.fence_mut().mounts.insert(0, grab);
    let (path, writable) = (sib.clone(), true);
    plan.fence_mut().mounts.push(MountOp::Place {
        id: 7,
        path,
        writable,
    });
    let script = format!(
        "echo in > own; cat {0}; echo x > {0}; rm {0}; touch {1}/new",
        outside.display(),
        sib.display()
    );
    let done = Broker::start(who, &plan).sh(&script);
    assert_eq!(done.out, "host\n", "{done:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host\n");
    assert!(!exists(&sib.join("new")));
    plan.fence_mut()
        .landlock
        .rules
        .push((sib.clone(), FileGrant::Write));
    Broker::start(who, &plan).sh(&script);
    assert!(!exists(&outside) && exists(&sib.join("new")));
}

fn devices(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(
        "ls /dev | tr '\\n' ' '; echo x > /dev/null && head -c 2 /dev/zero | wc -c; \
         { echo data > /dev/stdout; } | cat; perl -e 'open(F, q(+<), q(/dev/ptmx)) and print qq(pty\\n)'; \
         chmod 600 /dev/null 2>/dev/null; touch /dev/new 2>/dev/null; \
         mknod disk b 254 0 2>/dev/null || echo no-node",
    );
    let expected = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero 2\n\
                    data\npty\nno-node\n";
    assert_eq!(done.out, expected, "{done:?}");
    let mode = fs::metadata("/dev/null").unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    assert!(
        !done.denials.iter().any(|d| d.op == "open-write"),
        "{done:#?}"
    );
}

fn masks(who: Who) {
    let folder = Folder::new(who);
    let secret = folder.write(who, "ws/.netrc", "password\n");
    let keys = folder.write(who, "ws/keys/id", "key\n");
    let mut plan = plans::write_mode(who, &folder.ws());
    plan.mask(&secret, false);
    plan.mask(keys.parent().unwrap(), true);
    let mut broker = Broker::start(who, &plan.0);
    let quiet = broker.sh("ls -l .netrc > /dev/null; echo fine");
    assert_eq!(quiet.out, "fine\n");
    assert!(
        !quiet.denials.iter().any(|d| d.op == "read-masked"),
        "{quiet:#?}"
    );
    let done =
        broker.sh("cat .netrc; ls keys; cat keys/id; mv keys k; rm .netrc; echo x >> .netrc");
    assert_eq!(done.out, "");
    let denied = done
        .denied("read-masked", secret.to_str().unwrap())
        .unwrap();
    assert!(denied.trust == Trust::Kernel && denied.count >= 1);
    assert!(
        done.denied("read-masked", folder.join("ws/keys").to_str().unwrap())
            .is_some()
    );
    assert_eq!(fs::read_to_string(secret).unwrap(), "password\n");
    assert_eq!(fs::read_to_string(keys).unwrap(), "key\n");
}

fn below_tmp(who: Who) {
    let folder = Folder::below(who, std::path::Path::new("/tmp"));
    let beside = folder.write(who, "beside", "host\n");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let script = format!(
        "echo in > own; cat {0}; echo x > {0}; ls /tmp | wc -l",
        beside.display()
    );
    assert_eq!(broker.sh(&script).out, "1\n");
    assert_eq!(fs::read_to_string(beside).unwrap(), "host\n");
    assert_eq!(fs::read_to_string(folder.join("ws/own")).unwrap(), "in\n");
}

fn root_moves(who: Who) {
    let folder = Folder::new(who);
    folder.write(who, "ws/own", "in\n");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let ws = folder.ws();
    broker.sh(&format!("cd /; mv {0} {0}2; rmdir {0}; true", ws.display()));
    assert!(exists(&folder.join("ws/own")));
    // What is inside is the call's to delete.
    broker.sh("rm -rf ./*");
    assert!(!exists(&folder.join("ws/own")) && exists(&ws));
}

fn submounts(who: Who) {
    // A mount below the workspace was not named, so it is outside: seen, not changed. The test
    // mounts in a namespace of its own, through the broker's parent.
    let folder = Folder::new(who);
    folder.write(who, "other/file", "other\n");
    folder.write(who, "ws/sub/.keep", "");
    let plan = plans::write_mode(who, &folder.ws());
    let script = "cat sub/file; echo x > sub/file; echo x > sub/new; echo in > own";
    let out = Broker::once_behind_bind(
        who,
        &plan,
        &folder.join("other"),
        &folder.join("ws/sub"),
        script,
    );
    assert_eq!(out, "other\n");
    assert_eq!(
        fs::read_to_string(folder.join("other/file")).unwrap(),
        "other\n"
    );
    assert!(!exists(&folder.join("other/new")));
    assert_eq!(fs::read_to_string(folder.join("ws/own")).unwrap(), "in\n");
}
