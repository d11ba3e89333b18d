#!/usr/bin/env python3
"""Acts that a shell cannot do. usage: probe.py ACT ARGUMENTS...

Each act tries one thing and prints what succeeded, one line each, as `DID what`. A refusal prints
`NO what: reason`. Nothing is judged here: the test looks at the host.
"""
import ctypes
import os
import signal
import socket
import stat
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)

# Numbers that are the same on x86-64 and aarch64 (allocated since Linux 5.2).
SYS = {"open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
       "clone3": 435, "mount_setattr": 442, "fchmodat2": 452}
AT_FDCWD = -100
CLONE_NEWUSER = 0x10000000


def did(what):
    print("DID " + what, flush=True)


def attempt(what, action):
    """Runs one action; says whether it went through."""
    try:
        action()
        did(what)
        return True
    except OSError as error:
        print("NO %s: %s" % (what, error.strerror), flush=True)
        return False


def check(result):
    """The result of a C call, or its errno raised."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def syscall(name, *arguments):
    return check(libc.syscall(SYS[name], *arguments))


def write_file(path, flags=os.O_WRONLY | os.O_CREAT):
    fd = os.open(path, flags, 0o644)
    os.write(fd, b"x\n")
    os.close(fd)


def act_exchange(one, other):
    attempt("exchange", lambda: check(libc.renameat2(
        AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), 2)))


def act_tmpfile_out(folder, name):
    """O_TMPFILE in a folder, linked to a name there."""
    attempt("tmpfile", lambda: tmpfile_link(folder, os.path.join(folder, name)))


def act_tmpfile_link(folder, target):
    """O_TMPFILE in one folder, linked into another through /proc/self/fd."""
    attempt("tmpfile-link", lambda: tmpfile_link(folder, target))


def tmpfile_link(folder, target):
    fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(fd, b"x\n")
    link_descriptor(fd, target)


def link_descriptor(fd, target):
    # os.link does not follow the link in /proc: linkat(2) with AT_SYMLINK_FOLLOW does.
    check(libc.linkat(AT_FDCWD, b"/proc/self/fd/%d" % fd, AT_FDCWD, target.encode(), 0x400))


def act_truncate(path):
    attempt("truncate", lambda: os.truncate(path, 0))


def act_open_trunc(path):
    attempt("open-trunc", lambda: os.open(path, os.O_RDONLY | os.O_TRUNC))


def act_fchmod(path):
    attempt("fchmod", lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o777))


def act_fchmodat2(path, mode):
    attempt("fchmodat2", lambda: syscall("fchmodat2", AT_FDCWD, path.encode(), int(mode, 8), 0))


def act_linkat(path, name):
    """A hard link made through a descriptor, then written through."""
    def act():
        fd = os.open(path, os.O_RDONLY)
        link_descriptor(fd, name)
        write_file(name, os.O_WRONLY | os.O_APPEND)
    attempt("linkat", act)


def act_new_mount(target):
    """A file system made and attached with the new mount calls."""
    def act():
        context = syscall("fsopen", b"tmpfs", 0)
        syscall("fsconfig", context, 6, None, None, 0)
        mounted = syscall("fsmount", context, 0, 0)
        syscall("move_mount", mounted, b"", AT_FDCWD, target.encode(), 4)
    attempt("new-mount", act)


def act_tree_mount(source, target):
    """A clone of a tree attached elsewhere."""
    def act():
        tree = syscall("open_tree", AT_FDCWD, source.encode(), 1)
        syscall("move_mount", tree, b"", AT_FDCWD, target.encode(), 4)
        write_file(os.path.join(target, "by-tree"))
    attempt("tree-mount", act)


def act_mount_setattr(path):
    """Takes the read-only flag off a mount."""
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    attempt("mount-setattr", lambda: syscall(
        "mount_setattr", AT_FDCWD, path.encode(), 0, attributes, 32))


def act_process(pid, victim):
    """What /proc shows of another process: its root, its folder, descriptors, memory, maps."""
    base = "/proc/" + pid
    attempt("root", lambda: os.stat(base + "/root" + victim))
    attempt("root-write", lambda: write_file(base + "/root" + victim, os.O_WRONLY | os.O_APPEND))
    attempt("cwd", lambda: os.listdir(base + "/cwd"))
    attempt("fd", lambda: [os.stat(base + "/fd/" + name) for name in os.listdir(base + "/fd")][0])
    attempt("mem", lambda: os.open(base + "/mem", os.O_RDWR))
    attempt("map_files", lambda: os.listdir(base + "/map_files"))
    attempt("environ", lambda: os.read(os.open(base + "/environ", os.O_RDONLY), 1))
    # PTRACE_SEIZE takes hold without stopping; detaching needs a stop, so the end of this
    # process is what lets go.
    attempt("ptrace", lambda: check(libc.ptrace(0x4206, int(pid), 0, 0)))


def act_signal(pid, *names):
    for name in names:
        attempt(name, lambda: os.kill(int(pid), getattr(signal, name)))


def act_descriptors():
    """Descriptors this process was born with, and what they are."""
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        try:
            print("FD %s %s" % (name, os.readlink("/proc/self/fd/" + name)))
        except OSError:
            pass  # the listing's own


def act_open_write(*paths):
    for path in paths:
        attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))


def act_connect(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    def act():
        with socket.socket(family, socket.SOCK_STREAM) as peer:
            peer.settimeout(5)
            peer.connect((host, int(port)))
            peer.sendall(b"x")
    attempt("connect", act)


def act_datagram(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    def act():
        with socket.socket(family, socket.SOCK_DGRAM) as peer:
            peer.sendto(b"x", (host, int(port)))
    attempt("sendto", act)


def act_sendmmsg(host, port):
    """Two datagrams in one call, addressed per message, without connect."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    address = ctypes.create_string_buffer(
        int(socket.AF_INET).to_bytes(2, sys.byteorder) + int(port).to_bytes(2, "big")
        + socket.inet_aton(host) + bytes(8), 16)
    text = ctypes.create_string_buffer(b"x", 1)
    piece = (ctypes.c_uint64 * 2)(ctypes.addressof(text), 1)
    header = [ctypes.addressof(address), 16, ctypes.addressof(piece), 1, 0, 0, 0, 0]
    messages = (ctypes.c_uint64 * 16)(*(header + header))
    attempt("sendmmsg", lambda: check(libc.sendmmsg(peer.fileno(), messages, 2, 0)))


def act_unix(name):
    """Connects to a unix socket; a leading @ is an abstract name."""
    def act():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.connect("\0" + name[1:] if name.startswith("@") else name)
            peer.sendall(b"x")
    attempt("unix", act)


def act_unix_datagram(name):
    """One message to a unix socket, by sendmsg and without connect."""
    def act():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.sendmsg([b"x"], [], 0, "\0" + name[1:] if name.startswith("@") else name)
    attempt("unix-datagram", act)


def act_userns(how):
    def unshare():
        check(libc.unshare(CLONE_NEWUSER))

    def clone():
        number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
        child(check(libc.syscall(number, CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)))

    def clone3():
        arguments = (ctypes.c_uint64 * 11)(CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD)
        child(syscall("clone3", arguments, 88))

    def child(pid):
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    attempt("userns", {"unshare": unshare, "clone": clone, "clone3": clone3}[how])


def act_setid(folder):
    """Every way to a set-id file in a folder."""
    def at(name):
        return os.path.join(folder, name)

    def fresh(name):
        write_file(at(name))
        return at(name)
    attempt("chmod", lambda: os.chmod(fresh("by-chmod"), 0o4755))
    attempt("fchmod", lambda: os.fchmod(os.open(fresh("by-fchmod"), os.O_RDONLY), 0o6755))
    attempt("fchmodat2", lambda: syscall(
        "fchmodat2", AT_FDCWD, fresh("by-fchmodat2").encode(), 0o4755, 0))
    attempt("open", lambda: os.open(at("by-open"), os.O_CREAT | os.O_WRONLY, 0o4755))
    attempt("mknod", lambda: os.mknod(at("by-mknod"), stat.S_IFREG | 0o4644))
    attempt("mkdir", lambda: os.mkdir(at("by-mkdir"), 0o2755))
    # openat2(2) keeps its mode behind a pointer that no filter can read.
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    attempt("openat2", lambda: check(libc.syscall(
        437, AT_FDCWD, at("by-openat2").encode(), how, 24)))


def act_metadata(path):
    """Every way to change what a file is labelled with."""
    attempt("chown", lambda: os.chown(path, -1, os.getgid()))
    attempt("utime", lambda: os.utime(path, (1, 1)))
    attempt("setxattr", lambda: os.setxattr(path, "user.x", b"1"))


def act_nodes(folder):
    """Special files, made by name."""
    def at(name):
        return os.path.join(folder, name)

    def bound():
        with socket.socket(socket.AF_UNIX) as peer:
            peer.bind(at("socket"))
    attempt("fifo", lambda: os.mkfifo(at("fifo")))
    attempt("regular", lambda: os.mknod(at("regular"), stat.S_IFREG | 0o644))
    attempt("socket", bound)


def act_device(folder):
    """A device of the kernel's memory, made and opened."""
    def act():
        path = os.path.join(folder, "kmsg")
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 11))
        os.open(path, os.O_RDONLY)
    attempt("device", act)


def act_roots(folder):
    """Another root, and the way back through a held descriptor."""
    def chroot():
        os.chroot(folder)
    attempt("chroot", chroot)
    attempt("pivot_root", lambda: check(libc.syscall(
        {"x86_64": 155, "aarch64": 41}[os.uname().machine], folder.encode(), folder.encode())))


def act_held_descriptors(name):
    """Climbs from any descriptor that was left open."""
    for fd in range(3, 1024):
        try:
            made = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd)
            os.close(made)
            did("openat from %d" % fd)
        except OSError:
            pass


def act_calls(*names):
    """System calls with no use for a task, with arguments that would do no harm."""
    page = ctypes.create_string_buffer(256)
    calls = {
        "io_uring_setup": lambda: check(libc.syscall(425, 4, page)),
        "bpf": lambda: check(libc.syscall({"x86_64": 321, "aarch64": 280}[MACHINE], 0, page, 72)),
        "perf_event_open": lambda: check(libc.syscall(
            {"x86_64": 298, "aarch64": 241}[MACHINE], perf(), 0, -1, -1, 0)),
        "userfaultfd": lambda: check(libc.syscall(
            {"x86_64": 323, "aarch64": 282}[MACHINE], 0)),
        "fanotify_init": lambda: check(libc.fanotify_init(0, 0)),
        "keyctl": lambda: check(libc.syscall(
            {"x86_64": 250, "aarch64": 219}[MACHINE], 0, -3, 0, 0, 0)),
        "add_key": lambda: check(libc.syscall({"x86_64": 248, "aarch64": 217}[MACHINE],
                                              b"user", b"curfew-test", b"x", 1, -2)),
        "sethostname": lambda: socket.sethostname(socket.gethostname()),
        "settimeofday": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
        "swapoff": lambda: check(libc.swapoff(b"/curfew-test-absent")),
        "acct": lambda: check(libc.acct(b"/curfew-test-absent")),
        "kexec_load": lambda: check(libc.syscall(
            {"x86_64": 246, "aarch64": 104}[MACHINE], 0, 0, 0, 0)),
        "delete_module": lambda: check(libc.syscall(
            {"x86_64": 176, "aarch64": 106}[MACHINE], b"curfew-test-absent", 0)),
        "setpriority_user": lambda: check(libc.setpriority(2, 0, 0)),
        "nice": lambda: os.nice(-5),
        "fifo": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "setns": lambda: check(libc.setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0)),
        "memfd": lambda: os.close(os.memfd_create("x")),
    }
    for name in names:
        attempt(name, calls[name])


MACHINE = os.uname().machine


def perf():
    """A software clock of this process."""
    attributes = ctypes.create_string_buffer(128)
    ctypes.memmove(attributes, bytes([1, 0, 0, 0, 128, 0, 0, 0]), 8)
    return attributes


def act_sockets(*names):
    """Socket families and types."""
    kinds = {
        "raw": (socket.AF_INET, socket.SOCK_RAW, 1), "ping": (socket.AF_INET, socket.SOCK_DGRAM, 1),
        "packet": (17, socket.SOCK_RAW, 0), "alg": (38, 5, 0), "vsock": (40, 1, 0),
        "xdp": (44, 3, 0), "key": (15, 3, 2), "tipc": (30, 1, 0), "rds": (21, 5, 0),
        "bluetooth": (31, 3, 0), "can": (29, 3, 1), "nflog": (16, 3, 12), "uevent": (16, 3, 15),
        "audit": (16, 3, 9), "inet": (socket.AF_INET, socket.SOCK_STREAM, 0),
    }
    for name in names:
        attempt(name, lambda: socket.socket(*kinds[name]).close())


def act_daemon(port, mark):
    """Leaves a daemon behind: twice forked, a session of its own, listening; says when it is up."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        libc.prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG: nothing is to follow its parent's end
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", int(port)))
        listener.listen(1)
        os.write(tell, b"x")
        for fd in (0, 1, 2, tell):
            os.close(fd)
        while True:
            time.sleep(1000)
    os.close(tell)
    os.read(ready, 1)
    did("listening " + mark)


if __name__ == "__main__":
    globals()["act_" + sys.argv[1].replace("-", "_")](*sys.argv[2:])
