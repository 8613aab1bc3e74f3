#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: users where no user namespace maps them.

A session is root inside, or it belongs to another account: that is this very user seen from a user namespace
that gives him another number, with the profile of a container engine around podrun as everywhere.
"""
import difflib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PROFILE, Skip, main, needs, needs_built, test  # noqa: E402

REWRITE = ("--names", "rewrite", "--net", "host")
KERNEL = ("--names", "kernel", "--net", "host")
ELSEWHERE = ["unshare", "--user", "--map-user=4242", "--map-group=4243"]
ROOT = ("--user", "root")


def run(env, *command, way=REWRITE, options=ROOT, **more):
    env.prefix = PROFILE if way is REWRITE else []
    if "root" in options:
        env.share_cache()
    return env.podrun("run", *way, "-w", "/", *options, "--rm", "--", *command, **more).text


def same(env, *command, options=ROOT):
    """Says the same whoever holds the names; returns what."""
    kernel = run(env, *command, way=KERNEL, options=options)
    rewritten = run(env, *command, options=options)
    diff = difflib.unified_diff(kernel.splitlines(), rewritten.splitlines(), "kernel names",
                                "rewritten names", lineterm="", n=12)
    assert kernel == rewritten, "\n".join(diff)
    return rewritten


# What a process is, becomes, and hands on.
IDS = r"""
import ctypes, errno, itertools, os, resource, signal, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def who():
    return os.getresuid(), os.getresgid(), os.getgroups()
def say(what, f, *a):
    try:
        r = f(*a)
    except OSError as e:
        r = errno.errorcode[e.errno]
    except OverflowError:
        r = "overflow"
    print(what, a, r, who())
def apart(f):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            f()
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(pid, 0)
print(who())
for args in itertools.product((-1, 0, 33, 65535), repeat=3):
    def one():
        say("setresuid", os.setresuid, *args)
        say("setresgid", os.setresgid, *args)
        say("setuid", os.setuid, args[0]) if args[0] >= 0 else None
        say("setreuid", os.setreuid, args[1], args[2])
        say("setregid", os.setregid, args[1], args[2])
        say("seteuid", os.seteuid, args[2]) if args[2] >= 0 else None
        print(libc.setfsuid(7), libc.setfsuid(-1), libc.setfsgid(7), libc.setfsgid(-1))
    apart(one)
def groups():
    say("setgroups", os.setgroups, [])
    say("setgroups", os.setgroups, [5, 4, 33])
    say("setgroups", os.setgroups, list(range(40)))
    say("setgid", os.setgid, 33)
    say("setuid", os.setuid, 33)
    say("setgroups", os.setgroups, [5])
    print(libc.getgroups(1, (ctypes.c_uint * 1)()), libc.getgroups(0, None))
    print(subprocess.run(["id"], capture_output=True, text=True).stdout)
    apart(lambda: print("child", who()))
apart(groups)
def limits():
    for which in (10, 5):  # RLIMIT_LOCKS, RLIMIT_RSS
        print(resource.getrlimit(which), resource.prlimit(0, which), resource.prlimit(os.getpid(), which))
        resource.setrlimit(which, (resource.RLIM_INFINITY,) * 2)
    print(who())
apart(limits)
def execs():
    program = "import os; print(os.getresuid(), os.getresgid()); os.setresuid(0, 0, 0)"
    os.setresuid(33, 34, 35)
    print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr[-30:])
apart(execs)
def keeps():
    PR_SET_KEEPCAPS, PR_GET_KEEPCAPS = 8, 7
    libc.prctl(PR_SET_KEEPCAPS, 1)
    say("setuid", os.setuid, 33)
    print(libc.prctl(PR_GET_KEEPCAPS))
apart(keeps)
"""


@test
def ids_are_set_and_told_as_under_kernel_names(env):
    text = same(env, "python3", "-c", IDS)
    assert "((33, 33, 33), (0, 0, 0)" in text and "EPERM" in text and "EINVAL" in text, text


OWNERS = r"""
exec 2>&1
cd /tmp; mkdir d; echo a >d/a; ln -s a d/l; mkfifo d/p
show() { stat -c '%n %u:%g %a' d d/a d/l d/p; find d -printf '%p %U:%G\n' | sort; }
show
chown 33:34 d/a; chown -h 35 d/l; chown 36 d; chgrp 37 d; chown :38 d/p; chmod 4755 d/a; show
cp -a d e; stat -c '%n %u:%g %a' e e/a; mv e/a e/b; stat -c '%u:%g' e/b; chown 0:0 d/a; show
chown 33 d/none
python3 - <<'P'
import os, errno
def say(what, f, *a, **k):
    try:
        r = f(*a, **k)
        if isinstance(r, os.stat_result):
            r = r.st_uid, r.st_gid
    except OSError as e:
        r = errno.errorcode[e.errno]
    print(what, r)
fd = os.open("/tmp/d/a", os.O_RDWR); d = os.open("/tmp/d", os.O_RDONLY); p = os.open("/tmp/d/a", os.O_PATH)
say("fstat", os.fstat, fd)
say("fchown", os.fchown, fd, 40, 41); say("fstat", os.fstat, fd); say("stat", os.stat, "a", dir_fd=d)
say("chown at", os.chown, "a", 42, -1, dir_fd=d); say("path", os.fstat, p)
say("lstat", os.stat, "l", dir_fd=d, follow_symlinks=False)
say("keeps", os.chown, "/tmp/d/a", -1, -1)
say("pipe", os.fstat, os.pipe()[0])
import socket, tempfile
say("socket", os.fstat, socket.socket().fileno())
say("memfd", os.fstat, os.memfd_create("x"))
say("closed", os.fstat, 99)
os.setgid(50); os.setuid(50)
say("as 50", os.stat, "/tmp/d/a"); say("chown", os.chown, "/tmp/d/a", 50, 50)
os.chmod("/tmp", 0o777)
open("/tmp/mine", "w"); say("mine", os.stat, "/tmp/mine"); say("give", os.chown, "/tmp/mine", 51, -1)
say("keep", os.chown, "/tmp/mine", 50, 50); say("mine", os.stat, "/tmp/mine")
P
rm -r d e
"""


@test
def owners_are_given_and_told_as_under_kernel_names(env):
    text = same(env, "sh", "-c", OWNERS)
    assert "d/a 33:34 4755" in text and "as 50 (42, 41)" in text, text


PROGRAMS = r"""
exec 2>&1; set -e
id; whoami; id -un; groups; cd /tmp; touch f; ls -ln f | cut -c1-20; ls -l f | cut -c1-25
apt-get --version | head -1; dpkg -l dpkg 2>/dev/null | tail -1 | cut -c1-10; setpriv --reuid=33 --regid=33 --clear-groups id
setpriv --reuid=33 --regid=33 --init-groups -- id -G; setpriv --dump | grep -v -e '^Cap' -e '[[]none' | head -8
install -o 33 -g 33 -m 600 f g; stat -c '%u:%g %a' g; tar cf t g; rm g; tar xpf t; stat -c '%u:%g %a' g
python3 -c 'import os; print(os.getuid(), os.geteuid())'
perl -e 'print "$< $> $( $)\n"; $> = 33; print "$< $>\n"; $> = 0; print "$< $>\n"'
"""


@test
def programs_that_want_root_work(env):
    needs("setpriv", "apt-get", "perl")
    text = same(env, "bash", "-c", PROGRAMS)
    assert "uid=33(www-data) gid=33(www-data) groups=33(www-data)" in text, text


# Says who it is and what it owns, waits, says it again and what it becomes.
MOVED = r"""
import os, signal, socket, sys, time
open("/tmp/given", "w"); os.chown("/tmp/given", 33, 34)
kid = os.fork()
if kid == 0:
    os.setgroups([5, 33]); os.setgid(33); os.setuid(33)
    open("/tmp/by33", "w")
    while not os.path.exists("/tmp/asked"): time.sleep(0.01)
    ok = os.getresuid() == (33, 33, 33) and os.getresgid() == (33, 33, 33) and os.getgroups() == [5, 33]
    try:
        os.setuid(0)
        ok = False
    except PermissionError:
        pass
    os._exit(7 if ok else 1)
def say():
    s = lambda p: (os.stat(p).st_uid, os.stat(p).st_gid)
    status = {l.split(":")[0]: l.split() for l in open("/proc/self/status")}
    a, b = socket.socketpair()
    print(os.getresuid(), os.getresgid(), s("/tmp/given"), s("/tmp"), s("/proc/self"), status["Uid"][1:],
          status["CapEff"][1], a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:].hex(), flush=True)
say()
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(0.01)
say()
open("/tmp/asked", "w")
info = os.waitid(os.P_PID, kid, os.WEXITED)
print("child", info.si_status, info.si_uid, flush=True)
os.setuid(44)
print(os.getresuid(), os.stat("/tmp/given").st_uid)
"""


def travels(env, options, ways, prefixes, program=MOVED):
    """Begins in one way, is suspended and resumed in the others; returns what it said."""
    if "root" in options:
        env.share_cache()
    way, prefix = ways[0], prefixes[0]
    env.prefix = prefix + (PROFILE if way == "rewrite" else [])
    # -B: what it would write beside its modules would be in a layer.
    env.run_detached("s", "python3", "-B", "-c", program,
                     options=("--names", way, "--net", "host", "-w", "/", *options))
    for way, prefix in zip(ways[1:], prefixes[1:]):
        env.podrun("suspend", "s", "-o", env.path("i"))
        env.prefix = prefix + (PROFILE if way == "rewrite" else [])
        env.podrun("resume", "-d", "--names", way, env.path("i"))
        env.path("i").unlink()
    said = "other" if prefixes[-1] != prefixes[0] else ""
    env.exec_last("s", "sh", "-c", "printf '%s' %s >/tmp/to && mv /tmp/to /tmp/go" % ("%s", said or "''"))
    return env.wait("s")


@test
def a_root_inside_goes_to_kernel_names_and_back(env):
    here = [[]] * 3
    for i, ways in enumerate((("rewrite", "rewrite"), ("rewrite", "kernel", "rewrite"),
                              ("kernel", "rewrite", "kernel"))):
        text = travels(env, ROOT, ways, here)
        lines = text.splitlines()
        env.podrun("rm", "s")
        assert lines[0] == lines[2], text
        assert lines[0].startswith("(0, 0, 0) (0, 0, 0) (33, 34) (0, 0)"), text
        assert "child 7 %d" % (33 if ways[-1] == "rewrite" else 0) in text, text
        assert lines[-1] == "(44, 44, 44) 33", text


@test
def a_layer_is_made_where_it_can_be(env):
    """Programs are found by the links in / as in any session that began with a layer."""
    env.share_cache()
    env.prefix = PROFILE
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=(*REWRITE, *ROOT))
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.prefix = []
    env.podrun("resume", "-d", "--names", "kernel", env.path("i"))
    assert env.podrun("exec", "s", "/bin/sh", "-c", "touch /etc/mine && id -u").text == "0\n"
    env.podrun("kill", "s")


ACCOUNT = r"""
import errno, os, resource, signal, socket, struct, subprocess, sys, time
uid, gid = int(sys.argv[1]), int(sys.argv[2])
no = "EINVAL", "EPERM"  # an id that is not mapped; one that is the host's, too
other = False
def fails(f, *a):
    try:
        return f(*a)
    except OSError as e:
        return errno.errorcode[e.errno]
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def owners(*paths):
    return {(os.lstat(p).st_uid, os.lstat(p).st_gid) for p in paths}
def received():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    cred = lambda *c: [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", *c))]
    a.sendmsg([b"x"], cred(os.getpid(), uid, gid))
    got = b.recvmsg(9, 64)[1][0][2]
    assert struct.unpack("3i", got) == (os.getpid(), uid, gid), got
    for one in ((os.getpid(), uid + 1, gid), (os.getpid(), uid, gid + 1), (os.getpid(), 0, 0)):
        assert fails(a.sendmsg, [b"x"], cred(*one)) in no, one
    a, b = socket.socketpair()
    peer = struct.unpack("3i", a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    assert peer == (os.getpid(), uid, gid), peer
def told():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.sigwaitinfo({signal.SIGUSR1}).si_uid == uid
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    info = signal.sigwaitinfo({signal.SIGCHLD})
    assert (info.si_pid, info.si_uid) == (pid, uid), info
    assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_uid == uid
    assert os.waitid(os.P_PID, pid, os.WEXITED).si_uid == uid
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1, signal.SIGCHLD})
def objects():
    class Perm(ctypes.Structure):
        _fields_ = [("key", ctypes.c_int), *((n, ctypes.c_uint) for n in ("uid", "gid", "cuid", "cgid"))]
    shm = libc.shmget(0, 4096, 0o1600)
    room = ctypes.create_string_buffer(256)
    for call, id in ((libc.shmctl, shm), (libc.msgctl, libc.msgget(0, 0o1600))):
        assert call(id, 2, room) == 0
        p = Perm.from_buffer(room)
        assert (p.uid, p.gid, p.cuid, p.cgid) == (uid, gid, uid, gid), [getattr(p, f[0]) for f in p._fields_]
        assert call(id, 1, room) == 0
        p.uid += 1
        assert not other or call(id, 1, room) == -1 and ctypes.get_errno() == errno.EINVAL
    line = [l.split() for l in open("/proc/sysvipc/shm")][1]
    assert line[7:11] == [str(uid), str(gid)] * 2, line
    libc.mq_open.restype = ctypes.c_int
    q = libc.mq_open(b"/q%d" % time.monotonic_ns(), os.O_CREAT | os.O_RDWR, 0o600, None)
    assert (os.fstat(q).st_uid, os.fstat(q).st_gid) == (uid, gid)
def check():
    assert os.getresuid() == (uid,) * 3 and os.getresgid() == (gid,) * 3
    assert set(os.getgroups()) <= {gid, 65534}, os.getgroups()
    open("/tmp/f", "w").write("x")
    assert owners("/tmp", "/tmp/f", "/proc/self/", "/dev/shm", "/run", os.path.expanduser("~")) == {(uid, gid)}
    assert owners("/etc/passwd", "/usr/bin/env") <= ({(65534, 65534)} if other else {(0, 0), (65534, 65534)})
    assert os.fstat(os.memfd_create("x")).st_uid == uid
    status = {l.split(":")[0]: l.split()[1:] for l in open("/proc/self/status")}
    assert status["Uid"] == [str(uid)] * 4 and status["Gid"] == [str(gid)] * 4, status
    out = subprocess.run([sys.executable, "-c", "import ctypes; f = ctypes.CDLL(None).getauxval; "
                          "print(*(f(n) for n in (11, 12, 13, 14, 23)))"], capture_output=True, text=True).stdout
    assert out.split() == [str(n) for n in (uid, uid, gid, gid, 0)], out
    for f in (os.setuid, os.seteuid):
        assert f(uid) is None and fails(f, uid + 1) in no and fails(f, 0) in no
    assert os.setgid(gid) is None and fails(os.setgid, gid + 1) in no
    assert os.setresuid(-1, uid, -1) is None and os.setregid(gid, -1) is None
    assert fails(os.setgroups, [gid]) == "EPERM"
    assert os.chown("/tmp/f", uid, gid) is None and os.chown("/tmp/f", -1, -1) is None
    assert fails(os.chown, "/tmp/f", uid + 1, -1) in no and fails(os.chown, "/etc/passwd", uid, gid)
    assert owners("/tmp/f") == {(uid, gid)} and not os.listxattr("/tmp/f")
    for which in (resource.RLIMIT_RSS, 10):
        resource.setrlimit(which, (1 << 20, resource.RLIM_INFINITY))
        assert resource.prlimit(os.getpid(), which) == (1 << 20, resource.RLIM_INFINITY) == resource.getrlimit(which)
    received(); told(); objects()
check()
f = open("/tmp/gone", "w+"); os.unlink("/tmp/gone")
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(0.01)
assert (os.fstat(f.fileno()).st_uid, os.fstat(f.fileno()).st_gid) == (uid, gid)
other = open("/tmp/go").read() == "other"
check()
print("ok", flush=True)
"""


def unshared(env):
    needs("unshare")
    if env.call(*ELSEWHERE, "true", check=False).code:
        raise Skip("this host lets nobody be another account")


def account(env, ways, prefixes, uid, gid):
    program = "import sys; sys.argv[1:] = ['%d', '%d']\n%s" % (uid, gid, ACCOUNT)
    text = travels(env, (), ways, prefixes, program)
    env.podrun("rm", "s")
    assert text.splitlines()[-1] == "ok", text


@test
def an_image_of_another_account_keeps_its_ids(env):
    unshared(env)
    me = os.getuid(), os.getgid()
    account(env, ("kernel", "rewrite"), ([], ELSEWHERE), *me)
    account(env, ("rewrite", "rewrite", "kernel", "rewrite"), ([], ELSEWHERE, ELSEWHERE, []), *me)
    account(env, ("rewrite", "rewrite", "rewrite"), (ELSEWHERE, [], ELSEWHERE), 4242, 4243)


@test
def who_begins_it_may_have_capabilities(env):
    """Then pid 1's memory is not closed, and what it says must not be taken for the session's."""
    unshared(env)
    env.prefix = ["unshare", "--user", "--map-root-user", *PROFILE]
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo $$ $(id -u)",
                     options=("--names", "rewrite", "--net", "host"))
    for _ in range(2):
        env.podrun("suspend", "s", "-o", env.path("i"))
        env.podrun("resume", "-d", "--names", "rewrite", env.path("i"))
        env.path("i").unlink()
    env.let_end()
    assert env.wait("s").split()[-2:] == ["2", "0"]


# What only real power over the host gives; each must fail.
POWERS = r"""
import ctypes, errno, os, socket, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
victim, precious = int(sys.argv[1]), sys.argv[2]
def syscall(*args):
    r = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if r == -1:
        raise OSError(ctypes.get_errno(), "")
    return r
def write(path, mode="a"):
    with open(path, mode) as f:
        f.write("x")
attempts = {
    "read shadow": lambda: open("/etc/shadow").read(), "write passwd": lambda: write("/etc/passwd"),
    "make in /etc": lambda: write("/etc/podrun-was-here", "w"), "rename": lambda: os.rename("/etc/passwd", "/etc/passwd2"),
    "unlink": lambda: os.unlink("/etc/passwd"), "chmod": lambda: os.chmod("/etc/passwd", 0o666),
    "chown": lambda: os.chown("/etc/passwd", 0, 0), "chown closed": lambda: os.chown("/etc/shadow", 0, 0),
    "utime": lambda: os.utime("/etc/passwd", (1, 1)), "xattr": lambda: os.setxattr("/etc/passwd", "user.x", b"1"),
    "file capabilities": lambda: os.setxattr(precious, "security.capability", struct.pack("<5I", 0x2000001, 1, 0, 0, 0)),
    "mode 0": lambda: open(precious), "device": lambda: os.mknod("/tmp/null", 0o20666, os.makedev(1, 3)),
    "mount": lambda: syscall(165, b"/tmp", b"/mnt", None, 4096, None), "umount": lambda: syscall(166, b"/tmp", 0),
    "chroot": lambda: os.chroot("/tmp"), "pivot_root": lambda: syscall(155, b"/", b"/tmp"),
    "unshare": lambda: syscall(272, 0x10000000), "unshare mounts": lambda: syscall(272, 0x20000),
    "setns": lambda: syscall(308, os.open("/proc/self/ns/mnt", os.O_RDONLY), 0),
    "time": lambda: syscall(227, 0, struct.pack("qq", 1, 1)),
    "reboot": lambda: syscall(169, 0xfee1dead, 672274793, 0, 0), "swapon": lambda: syscall(167, b"/tmp/x", 0),
    "module": lambda: syscall(175, b"", 0, b""), "bpf": lambda: syscall(321, 5, b"\0" * 64, 64), "iopl": lambda: syscall(172, 3),
    "ptrace": lambda: syscall(101, 16, victim, 0, 0), "kill": lambda: os.kill(victim, 9),
    "memory": lambda: open("/proc/%d/mem" % victim), "pidfd": lambda: os.pidfd_open(victim),
    "raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3),
    "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -10),
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "oom": lambda: write("/proc/self/oom_score_adj") or open("/proc/self/oom_score_adj", "w").write("-999"),
    "sysctl": lambda: write("/proc/sys/kernel/hostname", "w"), "keyring of the system": lambda: syscall(250, 5, -1, 0, 0),
    "quota": lambda: syscall(179, 0x800002 << 8, b"/dev/x", 0, 0), "accounting": lambda: syscall(163, b"/tmp/x"),
}
for way in ("root", "www-data", "root again"):
    if way == "www-data":
        os.setresuid(33, 33, 0)
    elif way == "root again":
        os.seteuid(0)
    for name, f in attempts.items():
        try:
            f()
            print("HAS POWER:", way, name)
        except OSError:
            pass
try:
    socket.sethostname("mine")  # perhaps it is the session's own
except OSError:
    pass
import shutil
shutil.copy("/bin/id", "/tmp/id"); os.chown("/tmp/id", 0, 0); os.chmod("/tmp/id", 0o6755)
os.setresuid(33, 33, 33)
print(subprocess.run(["/tmp/id", "-u"], capture_output=True, text=True).stdout)
print("done", flush=True)
import time
while True: time.sleep(1)
"""


@test
def root_inside_has_no_power_over_the_host(env):
    was = os.uname().nodename
    victim = env.start("sleep", "1000")
    precious = env.path("precious")
    precious.touch(mode=0)
    env.prefix = PROFILE
    env.run_detached("s", "python3", "-c", "import sys; sys.argv[1:] = ['%d', '%s']\n%s" % (
        victim.pid, precious, POWERS), options=(*REWRITE, *ROOT, "-w", "/"), ready="done")
    log = env.logs("s")
    init = env.podrun("inspect", "s").json()["init_pid"]
    seen = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(ln.split(":\t", 1) for ln in status.read_text().splitlines() if ":\t" in ln)
        except OSError:
            continue
        if lines.get("PPid") == str(init):
            seen += 1
            assert set(lines["Uid"].split()) == {str(os.getuid())}, lines["Uid"]
            assert int(lines["CapEff"], 16) == int(lines["CapPrm"], 16) == 0, lines
    assert seen and victim.poll() is None and os.uname().nodename == was
    env.podrun("kill", "s")
    victim.kill()
    victim.wait()
    assert "HAS POWER" not in log and log.split() == ["33", "done"], log
    assert not os.listxattr(precious) and not os.path.exists("/etc/podrun-was-here")


def rows(env, program):
    """Each row of the tables that is about users; under kernel names it would say the same but for limits."""
    for view in ((), ("--view", "host")):
        env.prefix = PROFILE
        r = env.podrun("run", *REWRITE, *ROOT, *view, "--rm", "--", program, "--users")
        assert r.text.endswith(" rows ok\n") and int(r.text.split()[-3]) >= 40, r


@test
def each_row_of_the_tables(env):
    rows(env, needs_built("rows", "rows"))


@test
def each_row_of_32_bit_programs(env):
    rows(env, needs_built("rows", "rows32"))


if __name__ == "__main__":
    main()
