//! Network, IPC and kernel interfaces.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use curfew_cell::plan::SyscallAction;
use curfew_cell::protocol::Trust;

use crate::plans::{self, Who};
use crate::runner::Tests;
use crate::support::{Broker, Folder, mark};

pub fn register(tests: &mut Tests) {
    tests.for_each_uid("the_network_is_not_there", network);
    tests.for_each_uid("loopback_is_the_sessions_own", loopback);
    tests.for_each_uid("host_unix_sockets_are_out_of_reach", unix_sockets);
    tests.for_each_uid("every_refused_call_is_refused_and_reported", refused_calls);
    tests.for_each_uid("namespaces_cannot_be_made", namespaces);
    tests.for_each_uid("arguments_count_by_their_low_half", argument_halves);
    tests.for_each_uid("shared_memory_ends_with_its_call", sysv);
    tests.for_each_uid("denials_are_counted_and_bounded", bounded);
}

fn network(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(
        "perl -e 'use Socket; \
           socket(S, PF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in(80, inet_aton(q(192.0.2.1)))) or print $!+0, qq(\\n); \
           socket(U, PF_INET, SOCK_DGRAM, 0); send(U, q(x), 0, sockaddr_in(53, inet_aton(q(192.0.2.2)))) or print $!+0, qq(\\n); \
           socket(R, PF_INET, SOCK_RAW, 1) and print q(raw); socket(P, 17, SOCK_RAW, 0) and print q(packet); \
           socket(V, 40, SOCK_STREAM, 0) and print q(vsock); socket(A, 38, 5, 0) and print q(alg)'",
    );
    let unreachable = libc::ENETUNREACH;
    assert_eq!(
        done.out,
        format!("{unreachable}\n{unreachable}\n"),
        "{done:?}"
    );
    let denied = done.denied_address("connect", "192.0.2.1:80").unwrap();
    assert_eq!(
        (denied.errno, denied.layer.as_str()),
        (unreachable, "namespaces")
    );
    assert!(done.denied_address("send", "192.0.2.2:53").is_some());
    assert!(
        done.denials
            .iter()
            .any(|d| d.rule == "socket-family" && d.trust == Trust::Kernel)
    );
}

fn loopback(who: Who) {
    let folder = Folder::new(who);
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let port = host.local_addr().unwrap().port();
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 0); \
           connect(S, sockaddr_in({port}, inet_aton(q(127.0.0.1)))) or print $!+0, qq(\\n); \
           socket(L, PF_INET, SOCK_STREAM, 0); bind(L, sockaddr_in({port}, inet_aton(q(127.0.0.1)))) or die; \
           listen(L, 1); socket(C, PF_INET, SOCK_STREAM, 0); \
           connect(C, sockaddr_in({port}, inet_aton(q(127.0.0.1)))) and print qq(own\\n)'"
    ));
    assert_eq!(
        done.out,
        format!("{}\nown\n", libc::ECONNREFUSED),
        "{done:?}"
    );
    let error = host.accept().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

fn unix_sockets(who: Who) {
    let folder = Folder::new(who);
    let name = mark();
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let by_path = UnixListener::bind(folder.join("ws/sock")).unwrap();
    for l in [&listener, &by_path] {
        l.set_nonblocking(true).unwrap();
    }
    folder.give(who, "ws/sock");
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(&format!(
        "perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) or print $!+0; \
           connect(S, pack(q(S a*), 1, qq(\\0{name}))); connect(S, sockaddr_un(q(sock))); \
           socketpair(A, B, PF_UNIX, SOCK_STREAM, 0) and print q( pair)'"
    ));
    assert_eq!(done.out, format!("{} pair", libc::EPERM), "{done:?}");
    for l in [listener, by_path] {
        assert_eq!(
            l.accept().unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock
        );
    }
}

/// Each unconditional row of the list, called with arguments that would do nothing.
fn refused_calls(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let rows = plans::syscalls();
    let refused: Vec<_> = rows
        .iter()
        .filter(|r| r.args.is_empty() && matches!(r.action, SyscallAction::Refuse { .. }))
        .collect();
    assert!(refused.len() > 40);
    let mut script = String::new();
    for row in &refused {
        let number = plans::number_of(&row.name);
        script += &format!(
            "syscall({number},-1,-1,-1,-1,-1,-1)==-1 or die; print $!+0,qq( {}\\n);",
            row.name
        );
    }
    let done = broker.sh(&format!("perl -e '{script}'"));
    let expected: Vec<String> = refused
        .iter()
        .map(|r| format!("{} {}", libc::EPERM, r.name))
        .collect();
    assert_eq!(
        done.out.lines().collect::<Vec<_>>(),
        expected,
        "{}",
        done.err
    );
    for row in refused {
        let denied = done.denials.iter().find(|d| d.op == row.name).unwrap();
        assert_eq!(
            (denied.trust, denied.layer.as_str()),
            (Trust::Kernel, "seccomp")
        );
    }
}

fn namespaces(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(
        "unshare -Ur true && echo made; unshare -m true && echo made; \
         perl -e 'print syscall(56, 0x10000000|17, 0, 0, 0, 0) == -1 ? $!+0 : q(made), qq(\\n); \
           my $c = pack(q(Q11), 0x10000000); print syscall(435, $c, 88) == -1 ? $!+0 : q(made), qq(\\n); \
           my $p = syscall(56, 17, 0, 0, 0, 0); syscall(60, 0) if $p == 0; print $p > 0 ? qq(plain\\n) : q()'",
    );
    assert_eq!(
        done.out,
        format!("{}\n{}\nplain\n", libc::EPERM, libc::ENOSYS),
        "{done:?}"
    );
    // The second lock: without the filter's rows the limits of the namespace still hold.
    let mut plan = plans::write_mode(who, &folder.ws());
    plan.without_rows(&["unshare", "clone", "clone3"]);
    let mut broker = Broker::start(who, &plan.0);
    let done = broker.sh("unshare -Ur true 2>&1");
    assert!(done.out.contains("No space left"), "{done:?}");
}

/// The kernel reads an `int` argument by its low half; so must the filter.
fn argument_halves(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh("perl -e 'my $high = 1 << 33; my $x = join(q(), 1); \
           print syscall(16, 0, $high | 0x5412, $x) == -1 ? $!+0 : q(done), qq(\\n); \
           print syscall(56, $high | 0x10000000 | 17, 0, 0, 0, 0) == -1 ? $!+0 : q(made), qq(\\n); \
           print syscall(41, $high | 40, 1, 0) == -1 ? $!+0 : q(vsock), qq(\\n); \
           print syscall(0x40000000 | 39) == -1 ? $!+0 : q(x32), qq(\\n)'");
    let expected = format!("{0}\n{0}\n{0}\n{1}\n", libc::EPERM, libc::ENOSYS);
    assert_eq!(done.out, expected, "{done:?}");
}

fn sysv(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let get =
        |flags: &str| format!("perl -e 'print shmget(77, 4096, {flags}) // q(none), qq(\\n)'");
    let done = broker.sh(&format!("{}; {}", get("0600 | 01000"), get("0")));
    assert_ne!(done.out.lines().last(), Some("none"), "{done:?}");
    assert_eq!(broker.sh(&get("0")).out, "none\n");
}

fn bounded(who: Who) {
    let folder = Folder::new(who);
    let mut broker = Broker::start(who, &plans::write_mode(who, &folder.ws()));
    let done = broker.sh(
        "perl -e 'for (1..400) { open(F, q(>), qq(/etc/curfew-$_)) } for (1..50) { open(F, q(>), q(/etc/same)) }'",
    );
    assert_eq!(done.denials.len(), 257, "{}", done.denials.len());
    let total: u64 = done.denials.iter().map(|d| d.count).sum();
    assert_eq!(total, 450);
    let done = broker.sh("perl -e 'for (1..50) { open(F, q(>), q(/etc/same)) }'");
    assert_eq!((done.denials.len(), done.denials[0].count), (1, 50));
}
