#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what the options do that no other test needs on its way."""
import contextlib
import fcntl
import os
import pathlib
import pwd
import resource
import shutil
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "state"))
from cli import COUNT, finish, one_line, read_until, ssh_to, terminal  # noqa: E402
from faults import descendants  # noqa: E402
from harness import PATIENCE, PODRUN, REWRITE, main, needs, needs_namespaces, test, until  # noqa: E402

SLEEP = ("sh", "-c", "echo ready; exec sleep 1000")


def asleep(env, name):
    """Starts a session that is nothing but `sleep`; the shell that becomes it has said "ready" before."""
    env.run_detached(name, *SLEEP)
    until("it is sleep", lambda: [p["comm"] for p in env.podrun("top", "--json", name).json()] == ["sleep"])


# ---- what is said, and to whom ----------------------------------------------------------------

@test
def the_only_session_is_meant(env):
    """Of those that can be asked about when they have ended, also one that has."""
    env.podrun("run", "--name", "s", "--", "echo", "hello")
    assert env.podrun("logs").text == "hello\n" and env.podrun("inspect").json()["name"] == "s"
    assert env.podrun("wait").text.strip() == "0"
    one_line(env.podrun("stop", code=5), "no session is running")
    env.podrun("run", "--name", "t", "--", "echo", "others")
    one_line(env.podrun("logs", code=5), "no session is running")
    asleep(env, "u")
    assert env.podrun("logs").text == "ready\n"
    env.podrun("kill", "u")


@test
@needs_namespaces("the harness says --net host there")
def hints_lead_somewhere(env):
    r = env.podrun("run", "--names", "rewrite", "-p", "8088:80", "--", "true", code=4)
    assert "hint: there is no --net vnat" in r.errors, r
    r = env.podrun("run", "--names", "rewrite", "--net", "none", "--", "true", code=4)
    assert "hint: say so with --net host" in r.errors, r
    one_line(env.podrun("run", "--root", "/", "--", "true", code=2), "--root /")
    config = pathlib.Path(env.environ["XDG_CONFIG_HOME"]) / "podrun" / "config"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("nosuch\n")
    one_line(env.podrun("run", "--", "true", code=2), "%s:1: nosuch" % config)


@test
@needs_namespaces("there a session has the host's network from the beginning")
def whose_network_it_has_is_said(env):
    asleep(env, "s")
    env.podrun("suspend", "s", "-o", env.path("i"))
    r = env.podrun("resume", "-d", "--names", "rewrite", env.path("i"))
    one_line(r, "its network is the host's here")
    assert "host (none elsewhere)" in env.podrun("ps").text
    env.podrun("kill", "s")


# ---- run ------------------------------------------------------------------------------------

@test
def a_directory_is_no_image(env):
    for where in env.path("here"), env.path("here/s"):
        where.mkdir()
    env.run_detached("s", *SLEEP)
    env.podrun("snapshot", "s")
    there = {"cwd": env.path("here")}
    one_line(env.podrun("resume", "-d", "s", code=6, **there), "'s' is running")
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s", **there)
    env.podrun("kill", "s")
    one_line(env.podrun("resume", "-d", "s", code=6, **there), "'s' is not suspended")
    env.path("here/s@1").mkdir()
    env.podrun("resume", "-d", "s@1", "--replace", **there)
    env.podrun("kill", "s")


@test
def rm_leaves_no_record(env):
    env.podrun("run", "--rm", "--name", "s", "--", "true")
    assert env.podrun("ps", "-a", "--json").json() == []
    env.podrun("run", "--name", "s", "--", "true")
    assert [s["name"] for s in env.podrun("ps", "-a", "--json").json()] == ["s"]


@test
def hostname_is_its_own(env):
    assert env.podrun("run", "--hostname", "here", "--name", "s", "--", "hostname").text == "here\n"
    one_line(env.podrun("run", "--hostname", "x" * 70, "--", "true", code=2), "--hostname", "at most 64 bytes")


@test
@needs_namespaces("names that the kernel has")
def names_by_the_kernel(env):
    for how in ("auto", "kernel"):
        assert env.podrun("run", "--names", how, "--", "sh", "-c", "echo $$").text.strip() == "2"
    one_line(env.podrun("run", "--names", "wrong", "--", "true", code=2), "names")


@test
def pids_are_limited(env):
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo all"
    r = env.podrun("run", "--pids", "5", "--end-with-command", "--", "sh", "-c", script, check=False)
    assert "all" not in r.text and "fork" in r.errors, r
    r = env.podrun("run", "--pids", "99999999999", "--", "echo", "ran")
    assert r.text == "ran\n"


# Processes with a megabyte of their own, below a limit that leaves room for ROOM more.
FULL = """
import os, resource, time
def limit(n): resource.setrlimit(resource.RLIMIT_NPROC, (n, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
def fork():
    try: return os.fork()
    except BlockingIOError: return -1
def fits(n):
    limit(n)
    pid = fork()
    if pid == 0: os._exit(0)
    return pid > 0 and os.waitpid(pid, 0)[0] == pid
memory = bytearray(os.urandom(1 << 20))
before, pids = bytes(memory), []
limit(next(n for n in range(1, 100000) if fits(n)) + 3 + ROOM)
while len(pids) < 4:
    pid = fork()
    if pid == 0:
        while not os.path.exists("/tmp/go"): time.sleep(.02)
        os._exit(memory != before)
    pids.append(pid)
if ROOM == 0 and fork() >= 0: pids.append(-1)
print("ready", flush=True)
bad = [pid for pid in pids if pid < 0 or os.waitpid(pid, 0)[1]]
print("FAIL %r" % bad if bad else "ok")
"""


@test
@needs_namespaces("a limit of the session's own")
def a_snapshot_where_there_is_room_for_few_processes_more(env):
    for room in (0, 1, 2):
        env.run_detached("s", "python3", "-c", FULL.replace("ROOM", str(room)))
        env.podrun("snapshot", "s", "-o", env.path("image"))
        assert finish(env, "s").split() == ["ready", "ok"]
        env.podrun("rm", "s", check=False)
        env.podrun("resume", "-d", env.path("image"), "--name", "s")
        assert finish(env, "s").split() == ["ready", "ok"]
        env.podrun("rm", "s", check=False)


# Processes to be copied, and what only children of podrun's tell: a System V segment, who was at the other end of a socket,
# groups of a socket that may have joined some.
MANY = """
import ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
words = b"in a segment"
at = libc.shmat(libc.shmget(0, 1 << 20, 0o1600), None, 0)
ctypes.memmove(at, words, len(words))
groups = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0here")
listener.listen()
if os.fork() == 0:
    client = socket.socket(socket.AF_UNIX)
    client.connect("\\0here")
    os._exit(0)
end, _ = listener.accept()
os.wait()
def peer(): return end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
before, memory, pids = peer(), bytearray(os.urandom(1 << 20)), []
for _ in range(8):
    pids.append(os.fork())
    if pids[-1] == 0:
        while not os.path.exists("/tmp/go"): time.sleep(.02)
        os._exit(0)
print("ready", flush=True)
for pid in pids: os.waitpid(pid, 0)
print("ok" if peer() == before and ctypes.string_at(at, len(words)) == words else "FAIL", flush=True)
"""


@test
@needs_namespaces("a limit of the session's own")
def a_snapshot_takes_no_more_processes_with_two_threads(env):
    """With a fault to be tried one thread makes all records, one after the other."""
    needs("unshare")
    fault, image = env.path("fault"), env.path("image")
    env.environ["PODRUN_TEST_FAULT"] = str(fault)
    # Who starts there counts there; the commands that follow, out here, don't.
    env.prefix = ["unshare", "--user", "--map-current-user"]
    env.run_detached("s", "python3", "-c", MANY)
    env.leave()
    supervisor = env.podrun("inspect", "s").json()["supervisor"]

    def tasks():
        n = 0
        for pid in [supervisor, *descendants(supervisor)]:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                n += len(os.listdir("/proc/%d/task" % pid))
        return n

    def settled():
        n = tasks()
        time.sleep(.3)
        return n == tasks() and n

    def works(room, words):
        fault.write_text(words)
        resource.prlimit(supervisor, resource.RLIMIT_NPROC, (at_rest + room, most))
        r = env.podrun("snapshot", "s", "-o", image, check=False)
        until("no process is left", lambda: tasks() == at_rest)
        image.unlink(missing_ok=True)
        return r.code == 0 or r.errors

    at_rest, most = until("nobody comes or goes", settled), resource.prlimit(supervisor, resource.RLIMIT_NPROC)[1]
    ones = []
    for room in (0, *range(2, 8)):  # one is less than a check needs, and that is waited for
        for _ in range(5):  # the place of a thread is free a moment after its end
            one, two = works(room, "write.sync fail 1000"), works(room, "")
            if (one is True) == (two is True):
                break
        assert (one is True) == (two is True), "room for %d: %s, with two threads: %s" % (room, one, two)
        ones.append(one)
    assert ones[0] is not True and ones[-1] is True, ones
    env.podrun("snapshot", "s", "-o", image)
    assert finish(env, "s").split() == ["ready", "ok"]
    env.podrun("rm", "s", check=False)
    env.podrun("resume", "-d", image, "--name", "s")
    assert finish(env, "s").split() == ["ready", "ok"]


@test
def what_a_command_leaves_ends_with_it(env):
    env.podrun("run", "--end-with-command", "--name", "s", "--", "sh", "-c",
               "setsid sleep 1000 > /dev/null 2>&1 < /dev/null & exit 3", code=3)
    until("it is gone", lambda: not env.sessions())


@test
@needs_namespaces("a network of its own")
def the_hosts_network_or_none(env):
    script = "import socket; print(sorted(n for _, n in socket.if_nameindex()))"
    here = env.call("python3", "-c", script).text
    assert env.podrun("run", "--net=host", "--", "python3", "-c", script).text == here
    assert env.podrun("run", "--net=none", "--", "python3", "-c", script).text == "['lo']\n"
    assert env.podrun("run", "--net=vnat", "--", "python3", "-c", script).text == "['lo', 'net0']\n"


@test
def a_root_of_its_own(env):
    needs("busybox")
    root = env.path("root")
    (root / "bin").mkdir(parents=True)
    (root / "mine").write_text("here\n")
    (root / "bin" / "busybox").write_bytes(pathlib.Path("/bin/busybox").read_bytes())
    (root / "bin" / "busybox").chmod(0o755)
    r = env.podrun("run", "--root", root, "-w", "/", "--", "/bin/busybox", "cat", "/mine", check=False)
    assert r.text == "here\n", r
    r = env.podrun("run", "--root", root, "-w", "/", "--", "/bin/busybox", "test", "-e", "/etc/passwd",
                   check=False)
    assert r.code == 1, r
    env.podrun("run", "--root", root, "-w", "/", "--", "/bin/busybox", "touch", "/made")
    assert (root / "made").exists() == REWRITE, "only a layer keeps it from there"
    r = env.podrun("run", "--root", root / "mine", "true", code=125)
    assert r.errors == "podrun: --root: %s: Not a directory\n" % (root / "mine"), r


@test
def a_session_in_a_file(env):
    f = env.path("work.session")
    f.write_text("# what we work with\nname = work\nenv = A=1\nenv = B=2\nworkdir = /usr\n"
                 "end-with-command\ncommand = sh -c 'echo $A/$B/$PWD; exit 3'\n")
    assert env.podrun("run", "--file", f, code=3).text == "1/2//usr\n"
    assert env.podrun("run", "--file", f, "--name", "other", "--", "echo", "else").text == "else\n"
    assert sorted(s["name"] for s in env.podrun("ps", "-a", "--json").json()) == ["other", "work"]
    f.write_text("no-such-option = 1\n")
    one_line(env.podrun("run", "--file", f, "--", "true", code=2), f.name, "no-such-option")
    one_line(env.podrun("run", "--file", env.path("none"), "--", "true", check=False), "none")
    env.configure("env = FROM=config\n")
    assert env.podrun("run", "--", "sh", "-c", "echo $FROM").text == "config\n"


@test
def who_may_use_the_socket(env):
    env.run_detached("s", *SLEEP, options=["--allow", "root"])
    assert "@podrun/%d/s" % os.getuid() in pathlib.Path("/proc/net/unix").read_text()
    for words in ["logs"], ["logs", "-f"], ["rm"], ["rm", "-f"], ["view", "--no-open"], ["rename"]:
        r = env.podrun(*words, "root/s", *(["t"] if words == ["rename"] else []), code=2)
        one_line(r, "'root/s' is another user's: only the owner can do that")
    env.podrun("kill", "s")
    one_line(env.podrun("run", "--allow", "no-such-user", "--", "true", check=False), "no-such-user")


def connect(env, name, n):
    """That many clients which ask for nothing."""
    where = os.open(pathlib.Path(env.environ["XDG_RUNTIME_DIR"]) / "podrun" / name, os.O_PATH)
    held = [socket.socket(socket.AF_UNIX) for _ in range(n)]
    for one in held:
        one.connect("/proc/self/fd/%d/control" % where)
    os.close(where)
    return held


@test
def a_runtime_directory_of_others(env):
    """In the temporary directory anybody may have taken its name."""
    env.path("podrun-%d" % os.getuid()).touch()
    env.environ.update(XDG_RUNTIME_DIR="/nonexistent", TMPDIR=str(env.dir))
    one_line(env.podrun("ps", code=1), "is not a directory of yours", "hint: set XDG_RUNTIME_DIR")


@test
def a_runtime_directory_that_goes_and_comes(env):
    """As /run/user/UID does, when its user logs out and in."""
    env.run_detached("s", *SLEEP)
    runtime = pathlib.Path(env.environ["XDG_RUNTIME_DIR"])
    shutil.rmtree(runtime / "podrun")
    assert [(s["name"], s["state"]) for s in env.podrun("ps", "--json").json()] == [("s", "running")]
    shutil.rmtree(runtime / "podrun")
    (runtime / "podrun").touch()
    one_line(env.podrun("rm", "s", check=False), "is not a directory")
    (runtime / "podrun").unlink()
    one_line(env.podrun("rm", "s", code=6), "cannot remove 's': it is running")
    until("it can be reached", lambda: env.podrun("exec", "s", "true", check=False).code == 0)
    env.podrun("rename", "s", "t")
    shutil.rmtree(runtime / "podrun" / "t")
    until("it can be reached", lambda: env.podrun("exec", "t", "true", check=False).code == 0)
    env.podrun("suspend", "t")
    env.podrun("resume", "-d", "t")
    env.podrun("rm", "-f", "t")
    assert env.podrun("ps", "-aq").text == ""


PAUSES = r"""
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0podrun/%s/%s" % tuple(sys.argv[1:]))
    s.send(bytes([2, 0, 0, 0, 7 << 3 | 2, 0]))  # asks for a pause
    print("refused" if b"not allowed" in s.recv(1000) else "served")
except OSError:
    print("can't reach it")
"""


@test
def a_session_does_not_pass_for_its_owner(env):
    """On the host's network it reaches the address for those of --allow."""
    name = "own%d" % os.getpid()
    env.run_detached(name, *SLEEP, options=["--allow", "root", "--net", "host"])
    for view in "private", "host":
        how = ["--names", "rewrite", "--view", "host"] if view == "host" else []
        r = env.podrun("run", "--rm", "--net", "host", *how, "--", sys.executable, "-c", PAUSES, str(os.getuid()), name)
        assert r.text in ("refused\n", "can't reach it\n"), r
    assert env.podrun("inspect", name).json()["state"] == "running"
    me = pwd.getpwuid(os.getuid()).pw_name
    assert env.podrun("exec", "%s/%s" % (me, name), "echo", "hello").text == "hello\n"
    env.podrun("kill", "%s/%s" % (me, name))
    env.podrun("rm", "%s/%s" % (me, name))


@test
def the_address_for_others_is_taken(env):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind("\0podrun/%d/taken" % os.getuid())
        r = env.podrun("run", "-d", "--name", "taken", "--allow", "root", "--", *SLEEP, code=125)
        one_line(r, "somebody else has the address", "@podrun/%d/taken" % os.getuid(), "hint: --name")
        env.podrun("run", "--name", "taken", "--rm", "--", "true")


@test
def there_is_room_for_the_owner(env):
    """Who is let in has 64 connections."""
    env.run_detached("s", *SLEEP)
    held = connect(env, "s", 64)
    assert [s["name"] for s in env.podrun("ps", "--json").json()] == ["s"]
    assert env.podrun("exec", "s", "echo", "hello").text == "hello\n"
    env.podrun("kill", "s")
    del held


@test
def who_is_refused_has_asked_for_nothing(env):
    """Of those that are not let in, one that comes when there are too many is who can be had here."""
    env.run_detached("s", *SLEEP)
    held = connect(env, "s", 128)
    one_line(env.podrun("kill", "s", code=6), "too many commands")
    one_line(env.podrun("exec", "s", "touch", "/tmp/touched", code=125), "too many commands")
    assert [(s["name"], s["state"]) for s in env.podrun("ps", "--json").json()] == [("s", "running")]
    assert "running" in env.podrun("ps").text.split("\n")[1]
    one_line(env.podrun("pause", code=6), "too many commands")
    one_line(env.podrun("rm", "s", code=6), "cannot remove 's': it is running")
    one_line(env.podrun("top", "s", code=6), "'s' is busy")
    for one in held:
        one.close()

    def look():
        return env.podrun("exec", "s", "ls", "/tmp", check=False)
    until("there is room", lambda: "too many" not in look().errors)
    assert look().text == "", look()
    env.podrun("kill", "s")


@test
def the_hosts_network_is_not_for_every_image(env):
    """One that was made elsewhere has it when that is said, or where there is no other."""
    other = env.host("other")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    env.run_detached("s", *SLEEP, options=["--net", "host"])
    env.podrun("suspend", "s", "-o", env.path("i"))
    r = other.podrun("resume", "-d", env.path("i"), code=0 if REWRITE else 7)
    if REWRITE:
        assert "network" in r.errors, r
    else:
        one_line(r, "made elsewhere", "network of its host", "--trust-network")
        assert not other.podrun("ps", "-a", "--json").json()
        other.podrun("resume", "-d", "--trust-network", env.path("i"))
    ssh_to(other, env)
    other.podrun("migrate", "s", "there")  # by who may do anything there
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    env.podrun("kill", "s")


def visible():
    return "@podrun/%d/letin" % os.getuid() in pathlib.Path("/proc/net/unix").read_text()


@test
@needs_namespaces("a network of its own")
def a_file_of_a_tunnel_that_is_not_here(env):
    """Nothing is wrong with the image, and it is there until the file is."""
    file = env.path("wg.conf")
    file.write_text("[Interface]\nPrivateKey = %s=\nAddress = 10.9.0.2/32\n[Peer]\nPublicKey = %s=\n"
                    "AllowedIPs = 0.0.0.0/0\nEndpoint = 127.0.0.1:9\n" % ("E" * 42 + "A", "I" * 42 + "A"))
    file.chmod(0o600)
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=["--gateway", "wg:%s" % file])
    env.podrun("suspend", "s")
    file.rename(env.path("elsewhere"))
    assert "wg.conf" in env.podrun("resume", "-d", "s", code=5).errors
    env.path("elsewhere").rename(file)
    env.podrun("resume", "-d", "s")
    env.podrun("kill", "s")


@test
def who_may_use_the_socket_is_a_matter_of_the_host(env):
    """The number of a user is somebody else's on another."""
    other = env.host("other")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    ssh_to(env, other)
    env.run_detached("letin", *SLEEP, options=["--allow", "root"])
    env.podrun("suspend", "letin")
    assert "--allow" not in env.podrun("resume", "-d", "letin").errors
    assert visible()
    env.podrun("snapshot", "letin", "-o", env.path("i"))
    assert "--allow" in env.podrun("migrate", "letin", "there").errors
    until("nobody else gets in", lambda: not visible())
    other.podrun("rm", "-f", "letin")
    assert "--allow" in other.podrun("resume", "-d", env.path("i")).errors
    until("nobody else gets in", lambda: not visible())
    other.podrun("kill", "letin")


@test
def what_is_not_built_yet_says_so(env):
    env.run_detached("s", *SLEEP)
    one_line(env.podrun("migrate", "--lazy", "s", "there", check=False), "not built")
    env.podrun("kill", "s")


# ---- looking --------------------------------------------------------------------------------

@test
def top_lists_processes(env):
    asleep(env, "s")
    assert "sleep 1000" in env.podrun("top", "s").text
    (p,) = env.podrun("top", "--json", "s").json()
    assert p["pid"] == 2 and p["comm"] == "sleep", p
    assert env.podrun("ps", "-q").text == "s\n"
    env.podrun("kill", "s")
    assert env.podrun("ps", "-q").text == ""
    one_line(env.podrun("top", "s", code=6), "s")


@test
def a_long_log(env):
    """It begins anew after 64 MiB; what is shown goes on."""
    much = "while ! [ -e /tmp/go ]; do sleep 0.1; done; yes much | head -c 67200000; echo last; exec sleep 1000"
    env.run_detached("s", "sh", "-c", "echo ready; " + much)
    with open(env.path("shown"), "wb") as shown:
        p = env.start(PODRUN, "logs", "-f", "s", stdout=shown)
    until("it is shown", lambda: env.path("shown").read_bytes() == b"ready\n")
    env.let_end()
    until("all is shown", lambda: env.path("shown").read_bytes()[-5:] == b"last\n")
    env.podrun("kill", "s")
    assert p.wait(PATIENCE) == 0
    said = env.path("shown").read_bytes()
    assert len(said) == 67200011 and said[:11] == b"ready\nmuch\n", (len(said), said[:20])
    assert env.podrun("logs", "s").out == said


@test
def logs_follow_to_the_end(env):
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo end")
    p = env.start(PODRUN, "logs", "-f", "s", stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    env.let_end()
    assert p.stdout.read() == b"end\n"
    assert p.wait(timeout=PATIENCE) == 0


@test
def stacks_as_json(env):
    asleep(env, "s")
    threads = env.podrun("stacks", "--json", "s").json()
    assert [t["comm"] for t in threads] == ["sleep"] and threads[0]["frames"], threads
    env.podrun("kill", "s")


@test
def images_are_listed(env):
    env.run_detached("s", *COUNT)
    env.podrun("snapshot", "s")
    env.podrun("suspend", "s")
    text = env.podrun("image", "ls").text
    rows = env.podrun("image", "ls", "--json").json()
    assert len(rows) == 2 and text.count("\n") >= 2, (rows, text)
    env.podrun("resume", "-d", "s")
    assert "ok" in finish(env, "s")


def redirected(env, words, code):
    """podrun by a shell, with its redirections: the last line that it said."""
    r = env.call("sh", "-c", '"$0" ' + words, PODRUN, code=code)
    return (r.errors.splitlines() or [""])[-1]


@test
def output_that_does_not_arrive(env):
    for words in ("--version", "--help", "help run", "run --help", "ps", "ps --json"):
        said = redirected(env, words + " >/dev/full", 1)
        assert said == "podrun: cannot write the output: No space left on device", (words, said)
    lost = "podrun: cannot write the command's output: No space left on device"
    said = redirected(env, "run echo lost >/dev/full", 125)
    assert said == lost, said
    assert redirected(env, "run sh -c 'echo lost; exit 3' >/dev/full", 3) == lost
    assert redirected(env, "run sh -c 'echo lost >&2' 2>/dev/full", 125) == ""
    assert redirected(env, "ps --json | true", 0) == ""


@test
def output_into_a_full_pipe_waits(env):
    """Also where somebody has made the pipe non-blocking."""
    size = 300000
    r, w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        p = env.start(PODRUN, "run", "sh", "-c", "head -c %d /dev/zero" % size, stdout=w)
        full = fcntl.fcntl(w, fcntl.F_GETPIPE_SZ)
        until("the pipe is full", lambda: struct.unpack("i", fcntl.ioctl(r, termios.FIONREAD, b"\0" * 4))[0] == full)
    finally:
        os.close(w)
    os.set_blocking(r, True)
    with open(r, "rb") as f:
        assert len(f.read()) == size
    assert p.wait(PATIENCE) == 0


@test
def started_without_stdio(env):
    asleep(env, "s")
    why = "cannot write the command's output: Bad file descriptor"
    redirected(env, "run cat <&-", 0)
    assert redirected(env, "run echo lost >&-", 125) == "podrun: " + why
    assert redirected(env, "exec s echo lost <&- >&-", 125) == "podrun: cannot exec in 's': " + why
    redirected(env, "run true <&- >&- 2>&-", 0)
    assert redirected(env, "ps >&-", 1) == "podrun: cannot write the output: Bad file descriptor"
    # The session is not gone for an image that nobody has.
    redirected(env, "suspend s -o - >&-", 1)
    assert [s["name"] for s in env.sessions()] == ["s"]
    redirected(env, "snapshot s -o '%s' <&- >&- 2>&-" % env.path("image"), 1)
    env.podrun("image", "verify", env.path("image"))
    env.podrun("kill", "s")


@test
def keys_are_trusted_and_forgotten(env):
    other = env.host("other")
    other.run_detached("s", *COUNT)
    other.podrun("suspend", "s", "-o", env.path("i"))
    key = other.podrun("key", "show").text.split()[0]
    env.podrun("image", "verify", env.path("i"), code=7)
    env.podrun("key", "trust", key, "a friend")
    assert "%s a friend" % key in env.podrun("key", "show").text
    env.podrun("image", "verify", env.path("i"))
    env.podrun("key", "rm", key)
    env.podrun("image", "verify", env.path("i"), code=7)
    one_line(env.podrun("key", "rm", "nonsense", code=2))
    one_line(env.podrun("key", "what", code=2))


@test
def completions_and_pages(env):
    for shell in ("bash", "zsh", "fish"):
        text = env.podrun("help", "--completion", shell).text
        assert "suspend" in text and "with-files" in text, text
    assert "suspend" in env.podrun("help", "--list").text.split()
    assert "*--with-files*" in env.podrun("help", "--scdoc", "suspend").text
    one_line(env.podrun("help", "--completion", "tcsh", code=2), "tcsh")
    assert env.podrun("--version").text.startswith("podrun ")


# ---- commands in a session ------------------------------------------------------------------

@test
def exec_with_options(env):
    env.run_detached("s", *SLEEP, options=["-e", "A=old"])
    r = env.podrun("exec", "-e", "A=new", "-e", "B=2", "-w", "/usr", "s", "sh", "-c", "echo $A $B $PWD")
    assert r.text == "new 2 /usr\n", r
    vars = env.path("vars")
    vars.write_text("C=3\n")
    assert env.podrun("exec", "--env-file", vars, "s", "sh", "-c", "echo $C").text == "3\n"
    assert env.podrun("exec", "-i", "s", "cat", stdin="through\n").text == "through\n"
    env.podrun("exec", "-d", "s", "touch", "/tmp/made")
    until("it was made", lambda: env.podrun("exec", "s", "test", "-e", "/tmp/made", check=False).code == 0)
    one_line(env.podrun("exec", "s", "/no/such", code=127), "/no/such")
    env.podrun("kill", "s")


@test
def exec_with_a_terminal(env):
    env.run_detached("s", *SLEEP)
    pid, m = terminal(env, "exec", "-it", "s", "sh", "-c", "tty; read x; echo [$x]; exit 7")
    read_until(m, b"/dev/pts/")
    os.write(m, b"typed\n")
    read_until(m, b"[typed]")
    _, status = os.waitpid(pid, 0)
    os.close(m)
    assert os.waitstatus_to_exitcode(status) == 7
    env.podrun("kill", "s")


@test
def signals_by_name_number_and_process(env):
    env.run_detached("s", "sh", "-c", "trap 'echo usr1' USR1; trap 'echo usr2' USR2; sleep 1000 & "
                     "echo ready; while :; do wait; done")
    env.podrun("kill", "-s", "USR1", "s", "2")
    until("the signal", lambda: "usr1" in env.logs("s"))
    env.podrun("kill", "-s", "12", "s")
    until("the signal", lambda: "usr2" in env.logs("s"))
    env.podrun("kill", "-s", "KILL", "s", "3")
    until("it is gone", lambda: len(env.podrun("top", "--json", "s").json()) == 1)
    one_line(env.podrun("kill", "-s", "NONSENSE", "s", code=2), "NONSENSE")
    one_line(env.podrun("kill", "s", "77", code=5), "77")
    env.podrun("kill", "s")


@test
def stop_asks_as_it_is_told(env):
    env.run_detached("s", "sh", "-c", "trap 'echo asked; exit 0' USR1; echo ready; "
                     "while :; do sleep 0.02; done")
    env.podrun("stop", "-s", "USR1", "s")
    assert "asked" in env.logs("s")
    env.run_detached("deaf", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done")
    env.podrun("stop", "-t", "0", "deaf")
    assert not env.sessions()
    one_line(env.podrun("stop", "-t", "soon", "deaf", code=2), "soon")


@test
def attach_without_input(env):
    env.run_detached("s", "sh", "-c", "echo ready; while :; do echo tick; sleep 0.02; done & "
                     "read x; kill $!; echo [$x]", options=["-i", "--end-with-command"])
    p = env.start(PODRUN, "attach", "--no-stdin", "s", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert b"tick" in p.stdout.readline()
    p.stdin.write(b"not this\n")
    p.stdin.close()
    r = env.podrun("attach", "s", stdin="this\n", check=False)
    assert "[this]" in env.wait("s"), r
    assert b"[this]" in p.stdout.read()


@test
def rm_of_all_that_have_ended(env):
    env.podrun("run", "--name", "a", "--", "true")
    env.podrun("run", "--name", "b", "--", "false", code=1)
    env.run_detached("c", *SLEEP)
    env.podrun("rm", "-a")
    assert [s["name"] for s in env.podrun("ps", "-a", "--json").json()] == ["c"]
    one_line(env.podrun("rm", "c", code=6), "c")
    env.podrun("rm", "-f", "c")
    assert env.podrun("ps", "-a", "--json").json() == []


# ---- moving ---------------------------------------------------------------------------------

@test
def compressed_images_are_smaller(env):
    env.run_detached("s", "python3", "-c", "import os, time; b = b'same ' * 4000000; print('ready', "
                     "flush=True)\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\nprint('ok')")
    env.podrun("snapshot", "s", "-o", env.path("plain"))
    env.podrun("suspend", "s", "-z", "-o", env.path("small"))
    assert env.path("small").stat().st_size * 4 < env.path("plain").stat().st_size
    env.podrun("resume", "-d", env.path("small"))
    assert "ok" in finish(env, "s")


@test
def resume_replaces_who_has_the_name(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("rm", "s")
    env.run_detached("s", *SLEEP)
    one_line(env.podrun("resume", "-d", env.path("i"), code=6), "--replace")
    env.podrun("resume", "-d", "--replace", env.path("i"))
    assert "ok" in finish(env, "s")


@test
def resume_at_our_own_terminal(env):
    pid, m = terminal(env, "run", "-it", "--name", "s", "--", "sh", "-i")
    os.write(m, b"X=kept; echo $((40+2))\n")
    read_until(m, b"42")
    env.podrun("suspend", "s", "-o", env.path("i"))
    os.waitpid(pid, 0)
    os.close(m)
    pid, m = terminal(env, "resume", "-it", str(env.path("i")))
    os.write(m, b"echo [$X]; exit 6\n")
    read_until(m, b"[kept]")
    _, status = os.waitpid(pid, 0)
    os.close(m)
    assert os.waitstatus_to_exitcode(status) == 6, status


GOT = ("sh", "-c", "trap 'echo got; exit 5' INT; trap 'exit 6' USR1; echo ready; while :; do sleep .01; done")


@test
def resume_at_a_terminal_that_the_session_has_not(env):
    """Signals go to its command as without -t."""
    env.run_detached("s", *GOT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    pid, m = terminal(env, "resume", "-it", str(env.path("i")))
    until("it runs", lambda: [x["state"] for x in env.sessions()] == ["running"] and env.podrun("inspect", "s").json()["clients"])
    os.write(m, b"\3")
    read_until(m, b"got")
    _, status = os.waitpid(pid, 0)
    os.close(m)
    assert os.waitstatus_to_exitcode(status) == 5, status


@test
def a_deadline_for_what_cannot_be_stopped(env):
    """A parent in vfork does not stop before its child has executed something."""
    env.run_detached("s", "python3", "-c", """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
print('ready', flush=True)
code = bytes.fromhex('b83a0000000f05' '4885c0' '7502' 'ebfe' 'c3')
import mmap
m = mmap.mmap(-1, 4096, prot=7); m.write(code)
a = ctypes.addressof(ctypes.c_char.from_buffer(m))
os.close(0)
ctypes.CFUNCTYPE(ctypes.c_long)(a)()
""")
    until("it is in vfork", lambda: len(env.podrun("top", "--json", "s").json()) == 2)
    r = env.podrun("suspend", "s", "--deadline", "100", "-o", env.path("i"), code=3)
    one_line(r, "s")
    assert not env.path("i").exists() and env.sessions()[0]["state"] == "running"
    one_line(env.podrun("suspend", "s", "--deadline", "soon", code=2), "soon")
    env.podrun("kill", "s")


@test
def migrate_with_options(env):
    other = env.host("other")
    ssh_to(env, other)
    env.run_detached("s", *COUNT)
    r = env.podrun("migrate", "-z", "--podrun", PODRUN, "s", "there", "--json").json()
    assert r["frozen_ms"] > 0, r
    assert "ok" in finish(other, "s")


if __name__ == "__main__":
    main()
