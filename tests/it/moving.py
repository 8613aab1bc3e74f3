#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: an image goes somewhere else and is resumed there.

Elsewhere is another account, other directories, other process numbers, other namespaces: made by
unshare(1), since all of this runs as one ordinary user.  Every one of these has runtime, state and
configuration directories of its own and trusts the key that the image is signed with.  One that is
about files which get other numbers by any move is here, too.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, arrives, finish, one_line, ssh_to, unheard  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, PROFILE, REWRITE, Failed, Skip, add, main, needs, needs_namespaces, test, until  # noqa: E402

STATE = BUILD / "tests" / "state"

# Who we are elsewhere: the arguments of unshare(1).
ELSEWHERE = {
    "another-account": ["--user", "--map-user=4242", "--map-group=4243"],
    "root-of-a-namespace": ["--user", "--map-root-user"],
    "other-numbers": ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
    "every-namespace": ["--user", "--map-user=4242", "--map-group=4243", "--mount-proc", "--pid", "--fork",
                        "--net", "--ipc", "--uts", "--time", "--cgroup"],
}
# Where no user namespace can be had inside: the same account in other namespaces, as containers have.
OTHERS = {
    "a-container": ["--user", "--map-current-user", "--pid", "--fork", "--mount-proc"],
    "a-container-of-its-own": ["--user", "--map-current-user", "--mount-proc", "--pid", "--fork", "--ipc", "--uts",
                               "--cgroup"],
}
DOWN = "the loopback device of the host is down there"
ROOT = "an account with capabilities, which a container's has not"
PROGRAMS = ["task_tree", "task_threads", "task_signals", "pipes", "unix_pair", "tcp_pair", "sysv_ipc",
            "file_ghost", "mem_shared_anon", "ptys", "task_waits", "epolls"]
PROGRAMS += [p for p in ("i386_family", "i386_task") if (STATE / p).exists()]

# Both sides look at what they own; a file is made before and written after.
OWNER = """
import os, sys, time
home = os.path.expanduser('~')
open('/tmp/mine', 'w').write('before\\n')
f = open('/tmp/open', 'w+')
print('ready', flush=True)
while not os.path.exists('/tmp/go'): time.sleep(0.01)
for path in ('/tmp/mine', '/proc/self'):
    st = os.stat(path)
    assert (st.st_uid, st.st_gid) == (os.getuid(), os.getgid()), (path, st, os.getuid())
assert open('/tmp/mine').read() == 'before\\n'
open('/tmp/mine', 'a').write('after\\n')
f.write('x'); f.flush(); os.fchmod(f.fileno(), 0o600)
os.mkdir('/tmp/new'); os.chmod('/tmp/new', 0o700)
assert os.fork() or os._exit(0) is None
os.wait()
print('ok')
"""


def script(where, *lines):
    """Runs commands elsewhere; pid 1 of a new PID namespace has to wait for what is left to it."""
    return ["unshare", *ELSEWHERE[where], *(PROFILE if REWRITE else []), "sh", "-e", "-c", "\n".join(lines)]


def prepared(env, where):
    """The host of this name: as long as names are rewritten it is a container in which there are no namespaces."""
    there = env.host("there")
    there.leave()
    if there.call("unshare", *ELSEWHERE[where], "true", check=False).code:
        raise Skip("this host has no such namespaces for us")
    return there


def resume_there(env, where, image, name):
    """Resumes an image elsewhere, lets it end there, and returns what it said."""
    needs("unshare")
    there = prepared(env, where)
    key = env.podrun("key", "show").text.split()[0]
    r = there.call(*script(where,
                           "p=%s" % PODRUN,
                           "$p key trust %s" % key,
                           "$p resume -d %s" % image,
                           "$p exec %s touch /tmp/go" % name,
                           "$p wait %s || true" % name,
                           "$p logs %s" % name,
                           "$p rm -f %s" % name), timeout=120)
    if there.podrun("ps", "-a", "--json").json():
        raise Failed("something is left of it\n%s" % r)
    return r.text


def goes(env, where, argv):
    env.run_detached("s", *argv)
    env.podrun("suspend", "s", "-o", env.path("i"))
    said = resume_there(env, where, env.path("i"), "s")
    if "ok" not in said.split():
        raise Failed(said)


@test
def logs_have_what_was_said_elsewhere(env):
    """The log that stayed here goes on with what the session has said there."""
    other = env.host("other")
    ssh_to(env, other)
    ssh_to(other, env)
    env.run_detached("s", "sh", "-c", "echo ready; i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); echo $i; sleep .05; done; echo ok")
    for here, there in ((env, other), (other, env)) * 2:
        known = len(here.logs("s").split())
        until("more", lambda: len(here.logs("s").split()) > known + 2)
        here.podrun("migrate", "s", "there")
    numbers = finish(env, "s").split()[1:-1]
    assert numbers == [str(i + 1) for i in range(len(numbers))], numbers


def comes_back(env, where, argv):
    """The other way: made elsewhere, resumed here."""
    needs("unshare")
    there = prepared(env, where)
    command = " ".join("'%s'" % str(a).replace("'", "'\\''") for a in argv)
    r = there.call(*script(where,
                           "p=%s" % PODRUN,
                           "$p run -d --name s -- %s" % command,
                           "until $p logs s | grep -q ready; do sleep 0.05; done",
                           "$p suspend s -o %s" % env.path("i"),
                           "$p key show"), timeout=120)
    env.podrun("key", "trust", r.text.split()[-2])
    env.podrun("resume", "-d", env.path("i"))
    env.let_end()
    if "ok" not in env.wait("s").split():
        raise Failed(env.logs("s"))


def add_moves(where, mark):
    for program in PROGRAMS:
        down = program == "tcp_pair" and "--net" in ELSEWHERE[where]
        add("to-%s/%s" % (where, program), (needs_namespaces(DOWN) if down else mark)(
            lambda env, p=program: goes(env, where, [STATE / p, "/tmp/go"])))
    add("to-%s/owner" % where, mark(lambda env: goes(env, where, ["python3", "-c", OWNER])))
    add("from-%s/owner" % where, mark(lambda env: comes_back(env, where, ["python3", "-c", OWNER])))
    add("from-%s/task_tree" % where, mark(lambda env: comes_back(env, where, [STATE / "task_tree", "/tmp/go"])))


HERE_ONLY = list(ELSEWHERE)
ELSEWHERE.update(OTHERS)
for _where in HERE_ONLY:
    add_moves(_where, needs_namespaces(ROOT) if "--map-root-user" in ELSEWHERE[_where] else lambda fn: fn)
for _where in OTHERS if REWRITE else ():
    add_moves(_where, lambda fn: fn)


@test
def from_another_directory(env):
    """Neither the directory of who resumes nor where the image lies matters."""
    env.run_detached("s", STATE / "file_regular", "/tmp/go")
    env.podrun("suspend", "s", "-o", env.path("i"))
    deep = env.path("a") / "deep" / "place"
    deep.mkdir(parents=True)
    shutil.move(env.path("i"), deep / "moved image")
    env.podrun("resume", "-d", "moved image", cwd=deep)
    env.let_end()
    assert "ok" in env.wait("s").split()


WAIT = "; echo ready; while [ ! -e /tmp/go ]; do sleep .01; done; echo ok"
# What a session has of a volume, how it is lost, and what is said then.
LACKING = {
    "an_open_file": ("exec 5</mnt/file", "rm file", "/file: No such file or directory"),
    "the_directory_of_one": ("exec 5</mnt/d/file", "rm -r d; touch d", "/d/file: Not a directory"),
    "an_open_directory": ("exec 5</mnt/d", "rm -r d", "/d: No such file or directory"),
    "another_type": ("exec 5</mnt/file", "rm file; mkdir file", "/file: is of another type than it was"),
    "a_symlink_to_itself": ("exec 5</mnt/file", "rm file; ln -s file file", "/file: Too many levels of symbolic links"),
    "a_working_directory": ("cd /mnt/d", "rm -r d", "working directory /mnt/d: No such file or directory"),
}


def not_there_any_more(env, what):
    """The host lacks it; the image is as good as it was, and is resumed once it is back."""
    begin, lose, word = LACKING[what]
    at, kept = env.path("v"), env.path("kept")
    (at / "d").mkdir(parents=True)
    for f in at / "file", at / "d" / "file":
        f.write_text("text")
    env.run_detached("s", "sh", "-c", begin + WAIT, options=["-v", "%s:/mnt" % at])
    env.podrun("suspend", "s", "-o", env.path("i"))
    shutil.copytree(at, kept)
    env.call("sh", "-c", lose, cwd=at)
    one_line(env.podrun("resume", "-d", env.path("i"), code=4), word)
    env.call("sh", "-c", "rm -r *; cp -a %s/* ." % kept, cwd=at)
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s").split()


for _what in LACKING:
    add("not_there_any_more/" + _what, lambda env, w=_what: not_there_any_more(env, w))


# A connect that was refused and is not told; IPv6 by an address of IPv4.
REFUSED = r"""
import errno, os, select, socket, time
gone = socket.create_server(("127.0.0.1", 0))
where = ("::ffff:127.0.0.1", gone.getsockname()[1])
gone.close()
s = socket.socket(socket.AF_INET6)
s.setblocking(False)
assert s.connect_ex(where) == errno.EINPROGRESS
p = select.poll()
p.register(s, select.POLLOUT)
assert p.poll()
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
print("ok", errno.errorcode.get(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "forgotten"))
"""


@test
def a_refused_connect_goes_where_nobody_has_an_address(env):
    """The loopback device is down there, so that nobody can be asked to refuse it again."""
    needs("unshare")
    env.run_detached("s", "python3", "-c", REFUSED, options=["--net", "host"])
    env.podrun("suspend", "s", "-o", env.path("i"))
    there = env.host("there")
    there.leave()
    r = there.call("unshare", "-rn", "sh", "-e", "-c", "\n".join([
        "p=%s" % PODRUN,
        "$p key trust %s" % env.podrun("key", "show").text.split()[0],
        "$p resume -d --trust-network %s" % env.path("i"),
        "$p exec s touch /tmp/go",
        "$p wait s || true",
        "$p logs s",
        "$p rm -f s"]))
    assert r.text.split()[-2:] == ["ok", "forgotten"], r


@test
def a_home_that_is_somewhere_else(env):
    """What the session wrote into its home comes along, whatever the other's home is called."""
    env.run_detached("s", "sh", "-c", "mkdir -p ~/d; echo kept > ~/d/f; cd ~/d; echo ready; "
                     "while [ ! -e /tmp/go ]; do sleep 0.01; done; cat f && echo ok")
    env.podrun("suspend", "s", "-o", env.path("i"))
    other = env.host("other")
    other.environ["HOME"] = "/"
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    other.podrun("resume", "-d", env.path("i"))
    other.let_end()
    said = other.wait("s")
    other.podrun("rm", "-f", "s", check=False)
    assert said.split()[-2:] == ["kept", "ok"], said


# Goes through a directory until /mnt/go is there, and lives on until /mnt/end is.
WALKER = r"""
sub wait_for { select(undef, undef, undef, 0.01) until -e "/mnt/$_[0]" }
mkdir "/tmp/tree"; mkdir "/tmp/tree/$_" for 1 .. 9;
opendir(my $dir, "/tmp/tree"); readdir($dir);
my @before = stat("/tmp/tree");
open(my $f, ">", "/mnt/walking"); close($f);
wait_for("go");
my @after = stat("/tmp/tree");
closedir($dir);
print $before[0] == $after[0] && $before[1] == $after[1] ? "the same\n" : "another\n";
wait_for("end");
"""


def waits_go_on(env, program):
    """The kernel has restarted them when the session ran on, so their calls are not what they were."""
    if not program.exists():
        raise Skip("this compiler makes no 32-bit programs (gcc-multilib)")
    env.run_detached("s", program)
    env.podrun("snapshot", "s", "-o", env.path("one"))
    env.podrun("suspend", "s", "-o", env.path("two"))
    for name, image in (("copy", "one"), ("s", "two")):
        env.podrun("resume", "-d", "--name", name, env.path(image))
        said = env.wait(name).split()
        if said != ["ready", "over"]:
            raise Failed("%s: %s" % (name, " ".join(said)))


for name in ("waits", "waits32"):
    add("%s_go_on_after_a_snapshot" % name, lambda env, p=BUILD / "tests" / "it" / name: waits_go_on(env, p))


@test
def who_goes_through_a_directory_comes_to_its_end_first(env):
    needs("perl")
    shared, image = env.path("shared"), env.path("i")
    shared.mkdir()
    env.environ["PODRUN_LOG"] = "info"
    env.podrun("run", "-d", "--name", "w", "-v", "%s:/mnt" % shared, "--", "perl", "-e", WALKER)
    until("it reads", (shared / "walking").exists)
    suspend = env.start(PODRUN, "suspend", "w", "-o", image, "--deadline", "300000")
    until("the suspend has met it", lambda: any(
        "is reading /tmp/tree" in log.read_text() for log in env.dir.rglob("supervisor.log")))
    (shared / "go").touch()
    assert suspend.wait(timeout=PATIENCE) == 0
    (shared / "end").touch()
    env.podrun("resume", "-d", image)
    assert env.wait("w") == "the same\n"


HOLDS_GROUPS = """
hold() { setpriv "$@" sh -c 'echo >> /tmp/begun; until [ -e /tmp/go ]; do sleep .02; done; echo $(id -G)'; }
hold --groups 7,4001 & hold --groups 4002 & hold --clear-groups &
until [ "$(cat /tmp/begun 2> /dev/null | wc -l)" = 3 ]; do sleep .02; done
echo ready
wait
"""


@test
def root_inside_keeps_supplementary_groups(env):
    """Of several processes, also when others are set after a move."""
    env.share_cache()
    env.run_detached("s", "sh", "-c", HOLDS_GROUPS, options=["--user", "root"])
    for move in ("one", "two"):
        env.podrun("suspend", "s", "-o", env.path(move))
        env.podrun("resume", "-d", env.path(move))
        assert env.podrun("exec", "s", "setpriv", "--groups", "9", "id", "-G").text == "0 9\n"
    env.let_end()
    assert sorted(env.wait("s").split("\n")) == sorted(["ready", "0 7 4001", "0 4002", "0", ""])


# What is in it is as much as the kernel takes, and nobody reads it until it has been moved.
FULL = r"""
import os, pty, sys, time
master, slave = pty.openpty()
lines = os.fork()
if lines == 0:
    os.close(master)
    with os.fdopen(slave, "wb") as out:
        for i in range(20000):
            out.write(b"%d\n" % i)
            out.flush()  # in as many calls as it takes: one that waits returns when it is frozen
    os._exit(0)
os.close(slave)
time.sleep(.5)
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
got = b""
try:
    while piece := os.read(master, 65536): got += piece
except OSError: pass
wanted = b"".join(b"%d\r\n" % i for i in range(20000))
at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
print("all" if got == wanted else "lost: %r, not %r" % (got[at:at + 40], wanted[at:at + 40]))
"""


@test
def a_terminal_that_nobody_reads(env):
    env.run_detached("s", sys.executable, "-c", FULL)
    env.podrun("snapshot", "s", "-o", env.path("snapshot"))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    env.podrun("resume", "-d", "--name", "copy", env.path("snapshot"))
    for name in "s", "copy":
        log = finish(env, name)
        if log.split("\n")[-2] != "all":
            raise Failed("%s: %s" % (name, log))


HAS_SET = """
import ctypes, os, sys, time
libc, failed = ctypes.CDLL(None, use_errno=True), []
WANTED = {"fs/mqueue/msg_max": "90", "kernel/msgmax": "20000", "kernel/msgmnb": "100000", "net/core/somaxconn": "9999",
          "net/ipv4/ip_forward": "1", "net/ipv4/tcp_rmem": "4096\t200000\t7000000", "net/ipv6/conf/lo/hop_limit": "33"}
for name, value in WANTED.items():
    try: open("/proc/sys/" + name, "w").write(value)
    except OSError: failed.append(name)
def check(what):
    if not what: raise OSError(ctypes.get_errno(), "here")
def message(): return (ctypes.c_char * (8 + 15000)).from_buffer(bytearray(b"\1" + bytes(7) + b"x" * 15000))
def attributes(): return (ctypes.c_long * 8)(0, 90, 1000, 0)
if not any("net" not in n for n in failed):
    q, d = libc.msgget(77, 0o1600), libc.mq_open(b"/long", os.O_RDWR | os.O_CREAT, 0o600, attributes())
    check(q >= 0 and d >= 0)
    for i in range(4): check(libc.msgsnd(q, message(), 15000, 0) == 0)
    for i in range(90): check(libc.mq_send(d, b"y" * 1000, 1000, i) == 0)
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
for name, value in WANTED.items():
    assert name in failed or open("/proc/sys/" + name).read().strip() == value, name
if not any("net" not in n for n in failed):
    room = message()
    for i in range(4): check(libc.msgrcv(q, room, 15000, 0, 0) == 15000)
    for i in range(90): check(libc.mq_receive(d, room, 15000, None) == 1000)
print(*(failed or ["all"]))
"""


@test
@needs_namespaces("a network and IPC of its own, which its root may set")
def root_inside_keeps_what_he_has_set(env):
    """And what rests on it. Before Linux 6.9 the limits of IPC are the host's root's."""
    env.share_cache()
    env.run_detached("s", sys.executable, "-c", HAS_SET, options=["--user", "root"])
    for move in ("one", "two"):
        env.podrun("suspend", "s", "-o", env.path(move))
        env.podrun("resume", "-d", env.path(move))
    lacking = finish(env, "s").split("\n")[-2]
    if lacking != "all" and "net/" in lacking:
        raise Failed(lacking)
    kernel = tuple(int(n) for n in os.uname().release.split(".")[:2])
    if lacking != "all" and kernel >= (6, 9):
        raise Failed(lacking)


# Packages are upgraded while programs have the files of the old ones: open, and mapped, which keeps them as they were.
HOLDS_OLD = r"""
import mmap, os, sys, time
path, gone = sys.argv[1:]
fd = os.open(path, os.O_RDONLY)
before = os.read(fd, 1 << 20)
there = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
if gone == "linked": os.link(path, path + "-old")
if gone != "removed":
    with open(path + "-new", "w") as f: f.write("another\n")
    os.rename(path + "-new", path)
else:
    os.unlink(path)
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
assert os.pread(fd, 1 << 20, 0) == before == there[:len(before)] and before
assert os.lseek(fd, 0, os.SEEK_CUR) == len(before)
assert os.readlink("/proc/self/fd/%d" % fd).endswith(" (deleted)")
print("ok")
"""


@test
@needs_namespaces("files of its own above the host's")
def what_has_lost_its_name_above_the_hosts_files(env):
    """The host counts the names of a file that it has still, whatever has become of the session's."""
    env.share_cache()
    for gone in ("removed", "replaced", "linked"):
        env.run_detached("s", sys.executable, "-c", HOLDS_OLD, "/etc/profile", gone, options=["--user", "root"])
        for move in ("one", "two"):
            env.podrun("suspend", "s", "-o", env.path(move + gone))
            env.podrun("resume", "-d", env.path(move + gone))
        assert finish(env, "s").split("\n")[-2] == "ok"
        env.podrun("rm", "s")


HOLDS_A_SOCKET = """
import os, socket, sys, time
s = eval(sys.argv[1])
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
print("ok")
"""


@test
@needs_namespaces("a network of its own, where root may have such sockets")
def packet_and_raw_sockets_of_root_inside_are_refused(env):
    env.share_cache()
    for name, made in (("packet", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
                       ("raw", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)")):
        env.run_detached(name, sys.executable, "-c", HOLDS_A_SOCKET, made, options=["--user", "root"])
        one_line(env.podrun("suspend", name, "-o", env.path("i"), code=3), "(python", "fd 3: socket:[", " %s socket) is not supported" % name)
        assert not env.path("i").exists()
        env.let_end(name)
        assert "ok" in env.wait(name).split()


SANDBOX = """
import ctypes, os, time
pid = ctypes.CDLL(None).syscall(%d, 0x10000000 | 0x20000000 | 17, 0, 0, 0, 0)
if pid == 0:
    assert os.getpid() == 1
    held = bytearray(os.urandom(8 << 20))
    print("ready", flush=True)
    while not os.path.exists("/tmp/go"): time.sleep(.01)
    os._exit(0)
assert os.waitpid(pid, 0) == (pid, 0)
print("ok", flush=True)
""" % 56  # clone(CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD)


@test
@needs_namespaces("a pid namespace inside the session")
def a_snapshot_leaves_nothing_in_a_sandbox(env):
    """Whose pid 1 reaps nobody."""
    env.run_detached("s", "python3", "-c", SANDBOX)
    before = len(env.podrun("top", "--json", "s").json())
    env.podrun("snapshot", "s", "-o", env.path("i"))
    assert len(env.podrun("top", "--json", "s").json()) == before
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    env.let_end()
    assert "ok" in env.wait("s").split()


# It has no children, of any kind.
LARGE = """
import os, time
held = bytearray(os.urandom(8 << 20))
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
try:
    os.waitpid(-1, 0x40000000 | os.WNOHANG)  # __WALL
    print("wrong", flush=True)
except ChildProcessError:
    print("ok", flush=True)
"""


# Its pid 1 fills its memory again and again, and finds each time what it has filled it with.
BUSY = """
import ctypes, os, time
pid = ctypes.CDLL(None).syscall(%d, 0x10000000 | 0x20000000 | 17, 0, 0, 0, 0)
if pid == 0:
    pages, page, n = 2048, 4096, 0
    held = bytearray(pages * page)
    print("ready", flush=True)
    while not os.path.exists("/tmp/go") or n < 2:
        for i in range(pages):
            if held[i * page:(i + 1) * page] != bytes([n %% 256]) * page: os._exit(1)
            held[i * page:(i + 1) * page] = bytes([(n + 1) %% 256]) * page
        n += 1
    os._exit(0)
print("ok" if os.waitpid(pid, 0) == (pid, 0) else "wrong", flush=True)
""" % 56


@test
@needs_namespaces("a pid namespace inside the session")
def a_snapshot_has_a_sandbox_as_it_stood(env):
    """Its memory is not forked, but written when the session runs again all the same."""
    env.run_detached("s", "python3", "-c", BUSY)
    told = env.podrun("snapshot", "--json", "s", "-o", env.path("i")).json()
    assert "aside" in [stage["name"] for stage in told["stages"]], told
    env.podrun("resume", "-d", "--name", "copy", env.path("i"))
    for name in "copy", "s":
        env.let_end(name)
        assert "ok" in env.wait(name).split()


@test
@needs_namespaces("a worker that can be killed alone")
def a_worker_that_is_killed_among_its_copies_leaves_nobody(env):
    """Whom a task has made for it, and would have waited for when it was told to, is waited for."""
    env.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))
    env.path("fault").write_text("")
    env.run_detached("s", "python3", "-c", LARGE)
    before = env.podrun("top", "--json", "s").json()
    for nth in 1, 2:
        env.path("fault").write_text("copy.helped kill %d" % nth)
        env.podrun("snapshot", "s", "-o", env.path("i"), code=1)
        until("nobody is left", lambda: len(env.podrun("top", "--json", "s").json()) == len(before))
    env.path("fault").write_text("")
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    env.let_end()
    assert "ok" in env.wait("s").split()


PARTS = """
import ctypes, os, threading, time
def part():
    assert ctypes.CDLL(None).unshare(%d) == 0
    print("ready", flush=True)
    while not os.path.exists("/tmp/go"): time.sleep(.01)
t = threading.Thread(target=part)
t.start()
t.join()
print("ok")
"""


@test
@needs_namespaces("unshare(2), which a container's profile refuses whatever is to be parted from")
def threads_that_have_parted_are_refused(env):
    for what, flag in ("a working directory", 0x200), ("descriptors", 0x400):
        env.run_detached("s", "python3", "-c", PARTS % flag)
        for way in "suspend", "snapshot":
            one_line(env.podrun(way, "s", "-o", env.path("i"), code=3), "(python", "has %s of its own" % what)
            assert not env.path("i").exists()
        env.let_end()
        assert "ok" in env.wait("s").split()
        env.podrun("rm", "s")


@test
def a_command_that_has_ended(env):
    """How it has is known wherever the rest of its session goes on; who resumes it at a terminal is told."""
    def known(host):
        if host.podrun("inspect", "s").json().get("exit_code") != 3 or host.podrun("wait", "s", check=False).text.strip() != "3":
            raise Failed(str(host.podrun("inspect", "s")))

    other = env.host("other")
    ssh_to(env, other)
    env.run_detached("s", "sh", "-c", "(%s) & exit 3" % COUNT[2])
    until("it has ended", lambda: "exit_code" in env.podrun("inspect", "s").json())
    known(env)
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    known(env)
    env.podrun("suspend", "s", "-o", env.path("i"))
    r = env.podrun("resume", env.path("i"), code=3)
    assert "podrun: the command has ended; 's' goes on with" in r.errors, r
    known(env)
    env.podrun("migrate", "s", "there")
    known(other)
    other.let_end()
    until("it is over", lambda: not other.sessions())
    known(other)


@test
def migrate_to_an_older_podrun(env):
    """One that knows the first greeting only, and ends at another as at any wrong usage."""
    other = env.host("other")
    ssh_to(env, other)
    script = env.path("ssh")
    lines = script.read_text().splitlines()
    lines[-1] = "\n".join([
        "read -r line", "case $line in 'podrun-receive 1 '*) ;; *) echo another >> %s; exit 2 ;; esac" % env.path("asked"),
        "{ printf '%%s\\n' \"$line\"; exec cat; } | %s receive" % PODRUN])
    script.write_text("\n".join(lines) + "\n")
    env.run_detached("s", *COUNT)
    env.podrun("migrate", "s", "there")
    assert env.path("asked").read_text() == "another\n" * (1 if REWRITE else 2)  # with what is foretold, and without
    assert not env.sessions()
    assert "ok" in finish(other, "s")


@test
def a_shell_there_that_prints_is_not_taken_for_podrun(env):
    """Its start files may print whatever they like, also without a newline; or let nobody in, which is said."""
    other = env.host("other")
    ssh_to(env, other)
    script = env.path("ssh")
    quiet = script.read_text()
    env.run_detached("s", *COUNT)
    for noise in "echo Welcome; echo; echo 'no news'", "printf '\\033]0;title\\007'", "seq 200; printf '$ '":
        script.write_text(quiet.replace('sh -c "$*"', noise + '; sh -c "$*"'))
        for how in [], ["--live"]:
            env.podrun("migrate", *how, "s", "there")
            other.podrun("suspend", "s", "-o", env.path("i"))
            env.podrun("key", "trust", other.podrun("key", "show").text.split()[0])
            env.podrun("resume", "-d", env.path("i"))
    script.write_text("#!/bin/sh\necho 'This account is currently not available.'\nexit 1\n")
    one_line(env.podrun("migrate", "s", "there", code=8), "there: ", "This account is currently not available.")
    script.write_text("#!/bin/sh\nexec yes\n")
    one_line(env.podrun("migrate", "s", "there", code=8), "there: ", "another language")
    assert "ok" in finish(env, "s")


@test
def migrate_freezes_nothing_before_somebody_is_there(env):
    """Whoever takes long to answer, and then does not, has not stopped the session for that long."""
    env.run_detached("s", *COUNT)
    script = env.path("ssh")
    script.write_text("#!/bin/sh\nread -r line\ntouch %s\nwhile [ ! -e %s ]; do sleep .02; done\nexit 255\n" % (
        env.path("reached"), env.path("enough")))
    script.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(script)
    p = env.start(PODRUN, "migrate", "s", "there", stderr=subprocess.PIPE)
    until("the way there is tried", env.path("reached").exists)
    # Commands can't be started in a session that is being frozen.
    env.podrun("exec", "s", "true")
    assert env.sessions()[0]["state"] == "running", env.sessions()
    env.path("enough").touch()
    assert p.wait() == 8, p.stderr.read()
    assert "ok" in finish(env, "s")


@test
def under_another_name_it_is_no_more_under_the_old(env):
    """Which can be given to others at once, and the log goes on under the new one."""
    env.run_detached("s", "sh", "-c", "yes 0123456789abcde | head -n 40000; echo ready; "
                     "until [ -e /tmp/go ]; do sleep .02; done; echo ok")
    for place in [], ["-o", env.path("i")]:
        said = env.logs("s")
        env.podrun("suspend", "s", *place)
        env.podrun("resume", "-d", "--name", "t", *(place[1:] or ["s"]))
        assert [s["name"] for s in env.podrun("ps", "-a", "--json").json()] == ["t"]
        assert env.logs("t") == said and len(said) > 600 << 10
        env.podrun("rename", "t", "s")
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("rm", "s")
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s")  # another
    env.podrun("resume", "-d", "--name", "t", env.path("i"))
    assert state_of(env) == "suspended"
    env.podrun("resume", "-d", "s")
    assert "ok" in finish(env, "s") and "ok" in finish(env, "t")


@test
@needs_namespaces("a session that has no network to begin with")
def where_the_network_is_the_hosts_that_is_said(env):
    """Or it is refused, to a session that was to have none."""
    other = env.host("other")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    ssh_to(env, other)
    script = env.path("ssh")
    script.write_text(script.read_text().replace('sh -c "$*"', PROFILE[0] + ' sh -c "$*"'))
    env.run_detached("s", *COUNT)
    one_line(env.podrun("migrate", "s", "there"), "there: ", "namespaces", "the network is the host's")
    other.podrun("rm", "-f", "s")
    env.podrun("rm", "s")
    env.run_detached("s", *COUNT, options=["--net", "none"])
    one_line(env.podrun("migrate", "s", "there", code=8), "there: ", "--net none")
    env.podrun("suspend", "s", "-o", env.path("i"))
    one_line(other.call(*PROFILE, PODRUN, "resume", "-d", env.path("i"), code=4), "--net none", "namespace")
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s")


def state_of(env, name="s"):
    return {s["name"]: s["state"] for s in env.podrun("ps", "-a", "--json").json()}.get(name)


def given_up(env, other, how=signal.SIGINT):
    """A move whose client is told to end when the session has arrived, and nobody knows of that here."""
    unheard(env, other)
    p = env.start(PODRUN, "migrate", "s", "there", stderr=subprocess.PIPE, text=True)
    until("it has arrived", lambda: state_of(other) == "arrived")
    p.send_signal(how)
    assert p.wait(PATIENCE) != 0
    return p.communicate()[1]


@test
def a_move_that_is_given_up_leaves_nothing_there(env):
    """By a signal when all of it was there: it runs on here, and must not be let run there as well."""
    other = env.host("other")
    env.run_detached("s", *COUNT)
    for how in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
        given_up(env, other, how)
        until("it is not there any more", lambda: state_of(other) is None)
        until("it runs on", lambda: state_of(env) == "running")
    ssh_to(env, other)
    env.podrun("migrate", "s", "there")
    assert "ok" in finish(other, "s")


@test
def what_arrived_and_was_not_let_run_is_named(env):
    """When it comes again."""
    other = env.host("other")
    env.run_detached("s", *COUNT)
    arrives(env, other)
    r = env.podrun("migrate", "s", "there", code=8)
    one_line(r, "there: 's' has arrived here before", "migrate --abort s")
    other.podrun("migrate", "--abort", "s")
    env.podrun("migrate", "s", "there")
    assert "ok" in finish(other, "s")


@test
def what_is_paused_stays_so(env):
    """When a move of it fails, is given up, or has not happened."""
    other = env.host("other")
    other.run_detached("s", *COUNT)
    env.run_detached("s", *COUNT)
    env.podrun("pause", "s")
    ssh_to(env, other)
    for how in [], ["--live"]:
        env.podrun("migrate", *how, "s", "there", code=8)
        assert state_of(env) == "paused", how
    other.podrun("rm", "-f", "s")
    given_up(env, other, signal.SIGKILL)
    until("it is decided", lambda: state_of(env) not in ("held", "writing"))
    assert state_of(env) == "paused"
    other.podrun("rm", "-f", "s", check=False)
    ssh_to(env, other, lines=2)  # HERE and READY come back, ACK does not
    env.podrun("migrate", "s", "there", code=9)
    other.podrun("kill", "s")
    env.podrun("migrate", "--abort", "s")
    assert state_of(env) == "paused"
    env.podrun("unpause", "s")
    assert "ok" in finish(env, "s")


if __name__ == "__main__":
    main()
