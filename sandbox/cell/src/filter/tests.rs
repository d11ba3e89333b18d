use proptest::prelude::*;

use super::*;

/// What the kernel's machine does with a program, for the instructions that are emitted here.
fn run(program: &[sock_filter], arch: u32, number: u32, args: &[u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(number.to_ne_bytes());
    data.extend(arch.to_ne_bytes());
    data.extend(0u64.to_ne_bytes());
    args.iter().for_each(|a| data.extend(a.to_ne_bytes()));
    let (mut at, mut accumulator, mut steps) = (0, 0u32, 0);
    loop {
        let op = &program[at];
        at += 1;
        steps += 1;
        assert!(steps < 4096, "no way out");
        let branch = |taken: bool| usize::from(if taken { op.jt } else { op.jf });
        match op.code {
            0x20 => {
                let from = op.k as usize;
                accumulator = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
            }
            0x54 => accumulator &= op.k,
            0x05 => at += op.k as usize,
            0x15 => at += branch(accumulator == op.k),
            0x25 => at += branch(accumulator > op.k),
            0x35 => at += branch(accumulator >= op.k),
            0x45 => at += branch(accumulator & op.k != 0),
            0x06 => return op.k,
            code => panic!("instruction {code:#x}"),
        }
    }
}

const ARCH: u32 = 0xc000_003e;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

fn row(name: &str, args: Vec<ArgRule>, action: SyscallAction) -> SyscallRule {
    SyscallRule {
        name: name.to_owned().into(),
        args,
        action,
        rule: "rule".into(),
        audience: Audience::All,
    }
}

/// What the list says, without any program.
fn expected(rows: &[SyscallRule], number: i64, args: &[u64; 6], listener: Listener) -> u32 {
    in_order(rows, Audience::Command)
        .filter(|row| by_name(&row.name) == Some(Known::Number(number)))
        .filter(|row| matches(row, args))
        .find_map(|row| verdict(row.action, listener))
        .unwrap_or(ALLOW)
}

fn arg_rules() -> impl Strategy<Value = ArgRule> {
    let value = prop_oneof![
        0u64..8,
        any::<u64>(),
        (0u32..64).prop_map(|bit| 1u64 << bit),
        Just(u64::from(u32::MAX))
    ];
    let op = (value.clone(), value, 0..4).prop_map(|(mask, value, kind)| match kind {
        0 => ArgOp::Equals { value },
        1 => ArgOp::Differs { value },
        2 => ArgOp::AnyBit { mask: mask | 1 },
        _ => ArgOp::Masked { mask, value },
    });
    (0u8..6, any::<bool>(), op).prop_map(|(index, low32, op)| ArgRule { index, low32, op })
}

fn rows() -> impl Strategy<Value = Vec<SyscallRule>> {
    let names = [
        "read", "openat", "clone", "mount", "chmod", "fchmod", "openat2", "socket", "keyctl",
    ];
    let action = prop_oneof![
        (1..40i32).prop_map(|errno| SyscallAction::Refuse { errno }),
        (1..40i32).prop_map(|errno| SyscallAction::Quiet { errno }),
        Just(SyscallAction::Observe),
    ];
    let one = (
        prop::sample::select(names.to_vec()),
        prop::collection::vec(arg_rules(), 0..4),
        action,
    );
    prop::collection::vec(
        one.prop_map(|(n, args, action)| row(n, args, action)),
        0..40,
    )
}

proptest! {
    /// The program and the list say the same for every call, with and without a listener.
    #[test]
    fn the_program_does_what_the_rows_say(
        rows in rows(),
        small in prop::array::uniform6(0u64..16),
        wide in prop::array::uniform6(any::<u64>()),
    ) {
        for listener in [Listener::Present, Listener::Absent] {
            let filter = compile(&rows, Audience::Command, listener).unwrap();
            for name in ["read", "write", "openat", "clone", "mount", "chmod", "fchmod", "openat2",
                         "socket", "keyctl", "fchmodat2"] {
                let Some(Known::Number(number)) = by_name(name) else { continue };
                for args in [&small, &wide, &[0; 6], &[u64::MAX; 6]] {
                    prop_assert_eq!(
                        run(&filter.program, ARCH, number as u32, args),
                        expected(&rows, number, args, listener),
                        "{} {:x?}", name, args
                    );
                }
            }
        }
    }
}

#[test]
fn other_architectures_and_x32_get_nowhere() {
    let filter = compile(&[], Audience::Command, Listener::Absent).unwrap();
    let none = [0; 6];
    assert_eq!(run(&filter.program, ARCH, 0, &none), ALLOW);
    assert_eq!(
        run(&filter.program, 0x4000_0003, 0, &none),
        libc::SECCOMP_RET_KILL_PROCESS
    );
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    for number in [0x4000_0000, 0x4000_0027, u32::MAX] {
        assert_eq!(run(&filter.program, ARCH, number, &none), refused);
    }
}

#[test]
fn a_row_is_for_its_audience() {
    let mut only = row("mount", vec![], SyscallAction::Quiet { errno: 1 });
    only.audience = Audience::Worker;
    let number = libc::SYS_mount as u32;
    for (who, verdict) in [
        (Audience::Worker, libc::SECCOMP_RET_ERRNO | 1),
        (Audience::Command, ALLOW),
    ] {
        let filter = compile(std::slice::from_ref(&only), who, Listener::Absent).unwrap();
        assert_eq!(run(&filter.program, ARCH, number, &[0; 6]), verdict);
    }
}

#[test]
fn refusals_win_over_observation_in_any_order() {
    let observe = row("chmod", vec![], SyscallAction::Observe);
    let set_id = ArgRule {
        index: 1,
        low32: true,
        op: ArgOp::AnyBit { mask: 0o6000 },
    };
    let refuse = row("chmod", vec![set_id], SyscallAction::Quiet { errno: 1 });
    for rows in [[observe.clone(), refuse.clone()], [refuse, observe]] {
        let filter = compile(&rows, Audience::Command, Listener::Present).unwrap();
        let judge = |mode| {
            run(
                &filter.program,
                ARCH,
                libc::SYS_chmod as u32,
                &[0, mode, 0, 0, 0, 0],
            )
        };
        assert_eq!(judge(0o4755), libc::SECCOMP_RET_ERRNO | 1);
        assert_eq!(judge(0o755), libc::SECCOMP_RET_USER_NOTIF);
    }
}

#[test]
fn equal_bodies_exist_once_and_the_tree_is_shallow() {
    let set_id = ArgRule {
        index: 1,
        low32: true,
        op: ArgOp::AnyBit { mask: 0o6000 },
    };
    let one = [row(
        "chmod",
        vec![set_id],
        SyscallAction::Quiet { errno: 1 },
    )];
    let length = |rows: &[SyscallRule]| {
        let filter = compile(rows, Audience::Command, Listener::Absent);
        filter.unwrap().program.len()
    };
    let mut many = one.to_vec();
    for name in ["fchmod", "creat", "mkdir", "mknod"] {
        many.push(row(name, vec![set_id], SyscallAction::Quiet { errno: 1 }));
    }
    // Neighbours share a range, others add two tests and two leaves to the tree, no body.
    assert!(length(&many) <= length(&one) + 4 * 4);
    let all: Vec<SyscallRule> = (0..334)
        .step_by(2)
        .map(|n| crate::syscalls::name_of(n))
        .filter(|n| *n != "unknown")
        .map(|n| row(n, vec![], SyscallAction::Quiet { errno: 1 }))
        .collect();
    assert!(all.len() > 100);
    assert!(length(&all) < 1000);
}

#[test]
fn a_row_that_cannot_be_compiled_names_itself() {
    let arg = |index, op| ArgRule {
        index,
        low32: true,
        op,
    };
    for bad in [
        row("nonesuch", vec![], SyscallAction::Observe),
        row(
            "read",
            vec![arg(0, ArgOp::AnyBit { mask: 0 })],
            SyscallAction::Observe,
        ),
        row(
            "read",
            vec![arg(0, ArgOp::AnyBit { mask: 1 << 40 })],
            SyscallAction::Observe,
        ),
        row(
            "read",
            vec![arg(6, ArgOp::AnyBit { mask: 1 })],
            SyscallAction::Observe,
        ),
        row(
            "read",
            vec![arg(6, ArgOp::Equals { value: 1 })],
            SyscallAction::Observe,
        ),
    ] {
        let fault = compile(&[bad], Audience::Command, Listener::Present).unwrap_err();
        assert_eq!(
            (fault.step.as_str(), fault.errno),
            ("seccomp", libc::EINVAL)
        );
    }
}

/// On demand, with the shipped rows in a file: what one install costs.
#[test]
#[ignore = "a measurement; ROWS names a file of rows as JSON"]
fn install_cost() {
    let text = std::fs::read_to_string(std::env::var("ROWS").unwrap()).unwrap();
    let rows: Vec<SyscallRule> = serde_json::from_str(&text).unwrap();
    for listener in [Listener::Present, Listener::Absent] {
        let began = std::time::Instant::now();
        let filter = compile(&rows, Audience::Command, listener).unwrap();
        let compiled = began.elapsed();
        let mut us: Vec<u128> = (0..31)
            .map(|_| {
                let program = filter.program.clone();
                let once = move || {
                    let began = std::time::Instant::now();
                    nix::sys::prctl::set_no_new_privs().unwrap();
                    crate::sys::seccomp::install(&program).unwrap();
                    began.elapsed().as_micros()
                };
                std::thread::spawn(once).join().unwrap()
            })
            .collect();
        us.sort_unstable();
        let length = filter.program.len();
        println!(
            "{listener:?}: {length} instructions, compiled in {compiled:?}, installed in {} us",
            us[15]
        );
    }
}
