use super::*;

fn rows_of(name: &str) -> Vec<SyscallRow> {
    rows()
        .iter()
        .filter(|row| row.names.iter().any(|n| n == name))
        .cloned()
        .collect()
}

/// What the rows say about a call with these arguments, as the filter will compile them.
fn verdict(name: &str, args: [u64; 6]) -> Option<Action> {
    let holds = |condition: &ArgCondition| {
        let mut value = args[usize::from(condition.index)];
        if condition.low32 {
            value &= u64::from(u32::MAX);
        }
        match condition.test {
            ArgTest::Equals { value: wanted } => value == wanted,
            ArgTest::Differs { value: other } => value != other,
            ArgTest::AnyBit { mask } => value & mask != 0,
            ArgTest::Masked {
                mask,
                value: wanted,
            } => value & mask == wanted,
        }
    };
    let mut hits: Vec<Action> = rows_of(name)
        .into_iter()
        .filter(|row| row.args.iter().all(holds))
        .map(|row| row.action)
        .collect();
    hits.sort_by_key(|action| match action {
        Action::Quiet { .. } => 0,
        Action::Refuse { .. } => 1,
        Action::Observe => 2,
    });
    hits.first().copied()
}

fn refused(name: &str, args: &[u64]) -> bool {
    let mut full = [0; 6];
    full[..args.len()].copy_from_slice(args);
    matches!(
        verdict(name, full),
        Some(Action::Refuse { .. } | Action::Quiet { .. })
    )
}

#[test]
fn the_built_in_table_is_what_the_parser_makes_of_the_file() {
    let text = include_str!("../../../profiles/seccomp.toml");
    assert_eq!(Ok(rows().to_vec()), parse(text));
}

#[test]
fn every_row_has_a_reason() {
    let rows = rows();
    assert!(rows.len() > 60);
    for row in rows {
        assert!(
            row.why.len() > 8 && row.why.ends_with(['.', ')']),
            "{row:?}"
        );
        assert!(row.names.iter().all(|name| {
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        }));
    }
}

#[test]
fn calls_that_have_no_place_in_a_call_are_refused_whatever_their_arguments() {
    for name in [
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "fsopen",
        "fsmount",
        "open_tree",
        "move_mount",
        "mount_setattr",
        "setns",
        "clone3",
        "openat2",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "kcmp",
        "add_key",
        "request_key",
        "keyctl",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "fanotify_init",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "name_to_handle_at",
        "open_by_handle_at",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "reboot",
        "swapon",
        "swapoff",
        "acct",
        "quotactl",
        "quotactl_fd",
        "clock_settime",
        "settimeofday",
        "sethostname",
        "syslog",
        "vhangup",
        "iopl",
        "ioperm",
        "modify_ldt",
        "mlockall",
    ] {
        assert!(refused(name, &[]), "{name}");
        assert!(refused(name, &[u64::MAX; 6]), "{name}");
    }
}

#[test]
fn high_halves_of_int_arguments_change_nothing() {
    for request in [0x5412, 0x541c, 0x5423, 0x541d] {
        assert!(refused("ioctl", &[0, request]));
        assert!(refused("ioctl", &[0, 0x1_0000_0000 | request]));
    }
    assert!(!refused("ioctl", &[0, 0x5401]));
    assert!(refused("prlimit64", &[0x1_0000_0000 | 77]));
    assert!(!refused("prlimit64", &[0x1_0000_0000]));
    assert!(refused("socket", &[0x1_0000_0000 | 40, 1, 0]));
}

#[test]
fn only_ip_and_route_sockets_are_made() {
    for domain in [2, 10] {
        for (kind, protocol) in [(1, 0), (2, 0), (1, 6), (2, 17), (0x80801, 6)] {
            assert!(
                !refused("socket", &[domain, kind, protocol]),
                "{domain} {kind} {protocol}"
            );
        }
        for (kind, protocol) in [
            (3, 0),
            (3, 6),
            (2, 1),
            (1, 262),
            (1, 132),
            (2, 136),
            (0x80003, 255),
        ] {
            assert!(
                refused("socket", &[domain, kind, protocol]),
                "{domain} {kind} {protocol}"
            );
        }
    }
    assert!(!refused("socket", &[16, 3, 0]));
    assert!(refused("socket", &[16, 3, 9]));
    for domain in (0..64).filter(|domain| ![2, 10, 16].contains(domain)) {
        assert!(refused("socket", &[domain, 1, 0]), "{domain}");
    }
    assert!(!refused("socketpair", &[1, 1, 0]) && !refused("socketpair", &[1, 0x80005, 0]));
    for (domain, kind) in [(1, 2), (1, 3), (1, 0x80802), (30, 1), (2, 1)] {
        assert!(refused("socketpair", &[domain, kind, 0]), "{domain} {kind}");
    }
    assert!(refused("sendto", &[3, 0, 0, 0x2000_0000]) && refused("sendmsg", &[3, 0, 0x2000_4000]));
    assert!(!refused("sendto", &[3, 0, 0, 0x4000]));
}

#[test]
fn set_id_bits_are_refused_wherever_a_mode_is_given() {
    for bits in [0o4755, 0o2755, 0o6000, 0o4000] {
        assert!(
            refused("chmod", &[0, bits])
                && refused("fchmod", &[0, bits])
                && refused("creat", &[0, bits])
        );
        assert!(refused("fchmodat", &[0, 0, bits]) && refused("fchmodat2", &[0, 0, bits]));
        assert!(refused("mknod", &[0, bits]) && refused("mknodat", &[0, 0, bits]));
        assert!(refused("mkdir", &[0, bits]) && refused("mkdirat", &[0, 0, bits]));
        assert!(refused("open", &[0, 0x41, bits]) && refused("openat", &[0, 0, 0x41, bits]));
        assert!(refused("openat", &[0, 0, 0x41_0002, bits]), "O_TMPFILE");
        assert!(!refused("openat", &[0, 0, 0, bits]), "the mode is not read");
    }
    for bits in [0o644, 0o755, 0o1777] {
        assert!(!refused("chmod", &[0, bits]) && !refused("openat", &[0, 0, 0x41, bits]));
    }
}

#[test]
fn namespaces_by_any_flag() {
    for bit in [
        0x2_0000,
        0x200_0000,
        0x400_0000,
        0x800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ] {
        assert!(refused("clone", &[bit | 17]) && refused("unshare", &[bit]));
    }
    assert!(refused("unshare", &[0x80]), "NEWTIME");
    assert!(
        !refused("clone", &[0x0121_0011]) && !refused("clone", &[0x003d_0f00]),
        "fork and threads"
    );
    assert!(!refused("unshare", &[0x400]), "CLONE_FILES");
}

#[test]
fn write_intent_is_observed_and_reads_are_not() {
    let openat = |flags| verdict("openat", [0, 0, flags, 0o644, 0, 0]);
    for flags in [1, 2, 0x41, 0x241, 0x200, 0x41_0002, 0x8_0441] {
        assert_eq!(openat(flags), Some(Action::Observe), "{flags:#x}");
    }
    for flags in [0, 0x8_0000, 0x1_0000, 0x9_0800, 0x20_0000] {
        assert_eq!(openat(flags), None, "{flags:#x}");
    }
    assert_eq!(
        verdict("sendto", [3, 0, 0, 0, 0x7fff_0000_0000, 16]),
        Some(Action::Observe)
    );
    assert_eq!(verdict("sendto", [3, 0, 0, 0, 0, 0]), None);
    assert_eq!(
        verdict("connect", [3, 0, 0, 0, 0, 0]),
        Some(Action::Observe)
    );
}

#[test]
fn tuning_others_is_refused_and_oneself_is_not() {
    assert!(
        refused("setpriority", &[0, 77])
            && refused("setpriority", &[2, 0])
            && refused("ioprio_set", &[3, 0, 0])
    );
    assert!(refused("ioprio_set", &[1, 0, 0x2004]) && !refused("ioprio_set", &[1, 0, 0x4004]));
    assert!(!refused("setpriority", &[0, 0]));
    assert!(
        refused("sched_setscheduler", &[0, 1]) && refused("sched_setscheduler", &[0, 0x4000_0002])
    );
    assert!(refused("sched_setaffinity", &[1]) && !refused("sched_setaffinity", &[4242]));
    assert!(
        !refused("personality", &[0])
            && !refused("personality", &[0xffff_ffff])
            && refused("personality", &[0x4_0000])
    );
}

#[test]
fn a_bad_row_says_what_is_wrong() {
    let row = |text: &str| {
        parse(&format!("[[row]]\nnames=['a']\nrule='r'\nwhy='w'\n{text}"))
            .unwrap_err()
            .to_string()
    };
    assert!(row("do='refuze'").contains("refuze"));
    assert!(row("do='observe'\nerrno='EPERM'").contains("observe"));
    assert!(row("do='refuse'\nargs=[{index=6,is='equals',value=1}]").contains("argument 6"));
    assert!(row("do='refuse'\nargs=[{index=0,is='masked',mask=1,value=2}]").contains("masked"));
    assert!(
        row("do='refuse'\nargs=[{index=0,low32=true,is='equals',value='0x100000000'}]")
            .contains("higher bits")
    );
    assert!(row("do='refuse'\nargs=[{index=0,is='equals',value='0xzz'}]").contains("0xzz"));
}
