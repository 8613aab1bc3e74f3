#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: System V objects and message queues of sessions without an ipc namespace."""
import ctypes
import ctypes.util
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import main, test, until  # noqa: E402

# What names are rewritten for (tests/lib/profile.c).
os.environ.setdefault("PODRUN_TEST_PROFILE", "1")

HERE = ("--names", "rewrite", "--view", "host", "--net", "host")

# The calls, for here and for inside.
CALLS = """
import ctypes, errno, os, sys, time
c = ctypes.CDLL(None, use_errno=True)
CREAT, EXCL, RMID = 0o1000, 0o2000, 0
shmat = c.shmat
shmat.restype = ctypes.c_void_p
def ok(r):
    if r in (-1, 2 ** 64 - 1):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
def no(r):
    return errno.errorcode[ctypes.get_errno()] if r in (-1, 2 ** 64 - 1) else "%d" % r
def text(id):
    return ctypes.string_at(ok(shmat(id, None, 0)))
def write(id, what):
    ctypes.memmove(ok(shmat(id, None, 0)), what, len(what))
def queue(name, flags, mode=0o600):
    # Small ones: of the usual size a user may have ten, all tests together (RLIMIT_MSGQUEUE).
    return c.mq_open(name.encode(), flags, mode, (ctypes.c_long * 8)(0, 4, 64))
ds = ctypes.create_string_buffer(256)
def wait(path):
    while not os.path.exists(path):
        time.sleep(0.01)
"""
here = {}
exec(CALLS, here)
KEY = 0x5AA50000 + os.getpid() % 65536
QUEUE = "/podrun-it-%d" % os.getpid()


def python(script):
    return sys.executable, "-c", CALLS + "KEY, QUEUE = %d, %r\n" % (KEY, QUEUE) + script


def run(env, script, **more):
    return env.podrun("run", *HERE, "--rm", "--", *python(script), **more).text


_hosts = threading.Lock()


class Hosts:
    """A segment, a set and two queues of the host's under the names that the sessions use: of one test at a time."""

    def __enter__(self):
        _hosts.acquire()
        here["c"].umask(0o022)
        self.ids = [here["ok"](here["c"].shmget(KEY, 4096, 0o1600)),
                    here["ok"](here["c"].semget(KEY, 1, 0o1600)),
                    here["ok"](here["c"].msgget(KEY, 0o1600))]
        here["write"](self.ids[0], b"host")
        os.close(here["ok"](here["queue"](QUEUE, os.O_CREAT | os.O_RDWR)))
        return self

    def __exit__(self, *why):
        try:
            here["ok"](here["c"].shmctl(self.ids[0], 0, None))
            here["ok"](here["c"].semctl(self.ids[1], 0, 0, 0))
            here["ok"](here["c"].msgctl(self.ids[2], 0, None))
            here["ok"](here["c"].mq_unlink(QUEUE.encode()))
        finally:
            _hosts.release()


def objects():
    """What the host has: {(sort, key, id)}."""
    return {tuple([sort] + line.split()[:2]) for sort in ("shm", "sem", "msg")
            for line in open("/proc/sysvipc/" + sort).readlines()[1:]}


def host_key(tag, slot):
    """ipc_names_host_key() of supervisor/rewrite/ipc/names.c, as /proc says it."""
    x = (slot ^ tag) & 0xffffffff
    x = (x ^ x >> 16) * 0x7feb352d & 0xffffffff ^ tag >> 32
    x = (x ^ x >> 15) * 0x846ca68b & 0xffffffff
    x ^= x >> 16
    return str(x - (x >> 31 << 32))


def own_objects(tag):
    """What the host has of the session's."""
    keys = {host_key(int(tag, 16), i) for i in range(200)}
    return [o for o in objects() if o[1] in keys]


def queues_left(tag):
    """Queues can't be listed without a mount: by their names."""
    names = ["/podrun-%s-%d" % (tag, i) for i in range(4)]
    return [n for n in names if here["queue"](n, os.O_RDONLY) >= 0]


def tags(env):
    where = pathlib.Path(env.environ["XDG_STATE_HOME"]) / "podrun" / "ipc"
    return [p.name for p in where.iterdir()] if where.exists() else []


BOTH = """
shm, sem, msg = c.shmget(KEY, 4096, CREAT | EXCL | 0o600), c.semget(KEY, 2, CREAT | EXCL | 0o600), \
    c.msgget(KEY, CREAT | EXCL | 0o600)
print(shm, sem, msg, os.O_CREAT and queue(QUEUE, os.O_CREAT | os.O_EXCL | os.O_RDWR) >= 0)
assert text(shm) == b""
write(shm, sys.argv[1].encode())
ok(c.semctl(sem, 1, 16, int(sys.argv[2])))
print("ready", flush=True)
wait(sys.argv[3])
print(text(shm).decode(), ok(c.semctl(sem, 1, 12)), c.shmget(KEY, 0, 0))
print("over", flush=True)
wait(sys.argv[4])
"""


@test
def sessions_and_host_do_not_meet(env):
    go, end = env.path("go"), env.path("end")
    with Hosts() as hosts:
        for name, text, number in (("one", "first", 5), ("two", "second", 6)):
            env.run_detached(name, *python(BOTH), text, str(number), go, end, options=HERE)
        go.touch()
        for name, text, number in (("one", "first", 5), ("two", "second", 6)):
            until("it has looked", lambda: "over" in env.logs(name))
            assert env.logs(name).split() == ["0", "0", "0", "True", "ready", text, str(number), "0",
                                              "over"], env.logs(name)
        assert here["text"](hosts.ids[0]) == b"host"
        end.touch()
        for name in "one", "two":
            env.wait(name)
        assert here["text"](hosts.ids[0]) == b"host"


GUESS = """
a, b, d = map(int, sys.argv[1:4])
print(no(c.shmget(KEY, 0, 0)), no(c.semget(KEY, 0, 0)), no(c.msgget(KEY, 0)))
print(no(queue(QUEUE, os.O_RDWR)), no(c.mq_unlink(QUEUE.encode())))
print(*(no(c.shmctl(a, k, ds)) for k in (0, 1, 2, 11)), no(shmat(a, None, 0)))
print(*(no(c.semctl(b, 0, k, 0)) for k in (0, 1, 2, 11, 12, 16)), no(c.semop(b, b"\\0\\0\\1\\0\\0\\0", 1)))
print(*(no(c.msgctl(d, k, ds)) for k in (0, 1, 2)), no(c.msgsnd(d, b"\\1" * 9, 1, 0)),
      no(c.msgrcv(d, ds, 9, 0, 0o4000)))
print(c.shmctl(0, 14, ds), c.semctl(0, 0, 19, ds), c.msgctl(0, 12, ds))
seen = [c.shmctl(i, k, ds) for i in range(32768) for k in (13, 15)]
seen += [c.semctl(i, 0, 20, ds) for i in range(32768)] + [c.msgctl(i, 13, ds) for i in range(32768)]
print({x for x in seen if x != -1})
"""


@test
def no_guess_leads_to_the_hosts(env):
    with Hosts() as hosts:
        said = env.podrun("run", *HERE, "--rm", "--", *python(GUESS), *hosts.ids).text.splitlines()
        assert said == ["ENOENT ENOENT ENOENT", "ENOENT ENOENT",
                        "EINVAL " * 4 + "EINVAL", "EINVAL " * 6 + "EINVAL", "EINVAL " * 4 + "EINVAL",
                        "0 0 0", "set()"], said
        assert {str(i) for i in hosts.ids} <= {o[2] for o in objects()}


MANY = """
for i in range(20):
    ok(c.shmget(i, 4096, CREAT | 0o600)); ok(c.semget(i, 3, CREAT | 0)); ok(c.msgget(0, 0o600))
at = ok(shmat(0, None, 0))
removed = ok(c.shmget(0, 4096, 0o600)); ok(shmat(removed, None, 0)); ok(c.shmctl(removed, RMID, None))
ok(queue("/a", os.O_CREAT | os.O_RDWR)), ok(queue("/b", os.O_CREAT | os.O_RDWR)), ok(c.mq_unlink(b"/a"))
print("ready", flush=True)
"""
AND_WAIT = MANY + "wait(sys.argv[1])\n"
AND_MAKE = MANY + """
while True:
    ok(c.shmctl(ok(c.shmget(0, 4096, 0o600)), RMID, None)); ok(c.semctl(ok(c.semget(0, 3, 0o600)), 0, RMID))
"""


def ended_by(env, script, end, moves=0):
    """Nothing is left on the host of a session that `end` has ended."""
    env.run_detached("s", *python(script), env.path("go"), options=HERE)
    image = env.path("image")
    for _ in range(moves):
        was = tags(env)
        env.podrun("suspend", "s", "-o", image)
        until("it has left", lambda: not tags(env))
        assert queues_left(was[0]) == [] == own_objects(was[0]), was
        env.podrun("resume", "-d", "--names", "rewrite", image)
        image.unlink()
    tag, = tags(env)
    assert len(queues_left(tag)) == 1
    assert len(own_objects(tag)) >= 60
    processes = [p["host_pid"] for p in env.podrun("inspect", "s").json()["processes"]]
    end(env.podrun("inspect", "s").json())
    until("all have ended", lambda: not any(os.path.exists("/proc/%d" % p) for p in processes))
    until("it is known", lambda: not env.sessions() and not tags(env))
    until("all is gone", lambda: not own_objects(tag))
    assert queues_left(tag) == []


@test
def all_goes_with_the_session(env):
    ended_by(env, AND_WAIT, lambda s: env.path("go").touch())


@test
def all_goes_when_it_is_killed(env):
    ended_by(env, AND_MAKE, lambda s: env.podrun("kill", "s"))


@test
def all_goes_when_the_rewriter_is_killed(env):
    def kill(s):
        def parent(pid):
            return int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[1])
        os.kill(parent(parent(s["processes"][0]["host_pid"])), signal.SIGKILL)
    ended_by(env, AND_MAKE, kill)


@test
def all_goes_when_it_has_moved(env):
    ended_by(env, AND_WAIT, lambda s: env.path("go").touch(), 2)


@test
def all_goes_when_it_has_moved_and_the_supervisor_was_killed(env):
    ended_by(env, AND_MAKE, lambda s: os.kill(s["supervisor"], signal.SIGKILL), 1)


@test
def all_goes_when_the_supervisor_was_killed(env):
    ended_by(env, AND_MAKE, lambda s: os.kill(s["supervisor"], signal.SIGKILL))


CALLER = """
while True:
    a, b = ok(c.shmget(0, 4096, 0o600)), ok(c.semget(0, 1, 0o600))
    ok(c.shmctl(a, RMID, None)); ok(c.semctl(b, 0, RMID))
    mine = c.shmget(KEY, 4096, CREAT | 0o600)
    c.shmctl(mine, RMID, None)
    q = queue("/raced", os.O_CREAT | os.O_RDWR)
    if q >= 0: os.close(q)
    c.mq_unlink(b"/raced")
"""
RACE = "import threading\nsys.setswitchinterval(1e-5)\ndef loop():\n" + "\n".join(
    "    " + line for line in CALLER.strip().splitlines()) + """
for i in range(4): threading.Thread(target=loop, daemon=True).start()
print("ready", flush=True)
wait(sys.argv[1])
end = time.monotonic() + 1
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), 9) if c.shmget(0, 4096, 0o600) >= 0 else os._exit(1)
    os.waitpid(pid, 0)
print("over", flush=True)
os._exit(0)
"""


@test
def a_race_for_names_leaves_nothing(env):
    env.run_detached("s", *python(RACE), env.path("go"), options=HERE)
    tag, = tags(env)
    env.path("go").touch()
    assert "over" in env.wait("s")
    until("all is gone", lambda: not own_objects(tag))


LARGE = """
for i in range(2):
    id = ok(c.shmget(KEY, 200 << 20, CREAT | EXCL | 0o600))
    at = ok(shmat(id, None, 0))
    ctypes.memset(at, 1, 200 << 20)
    detach = c.shmdt(ctypes.c_void_p(at)) if i == 0 else 0
    print(detach, c.shmctl(id, RMID, None), no(c.shmctl(id, 2, ds)), no(c.shmget(KEY, 0, 0)))
print(c.shmdt(ctypes.c_void_p(at)), no(c.shmctl(id, 2, ds)))
"""


@test
def a_large_segment_is_removed(env):
    assert run(env, LARGE).splitlines() == ["0 0 EINVAL ENOENT", "0 0 0 ENOENT", "0 EINVAL"]


# CLONE_SYSVSEM without CLONE_THREAD: a promise of the child's is the parent's.
SHARED = """
sem = ok(c.semget(KEY, 1, CREAT | 0o600))
ok(c.semctl(sem, 0, 16, 5))
if c.syscall(56, 0x00040000 | 17, None, None, None, None) == 0:
    ok(c.semop(sem, b"\\0\\0\\377\\377\\0\\x10", 1))
    print("ready", flush=True)
wait(sys.argv[1])
"""


@test
def shared_promises_are_refused(env):
    env.run_detached("s", *python(SHARED), env.path("go"), options=HERE)
    one_line(env.podrun("suspend", "s", "-o", env.path("image"), code=3), "SEM_UNDO")
    env.podrun("rm", "-f", "s")


@test
def the_hosts_queues_are_not_listed(env):
    """Where the host has /dev/mqueue."""
    script = "ls -A /dev/mqueue 2>/dev/null; cat /dev/mqueue%s 2>/dev/null; echo over" % QUEUE
    with Hosts():
        r = env.podrun("run", "--names", "rewrite", "--net", "host", "--rm", "--", "sh", "-c", script)
        assert r.text == "over\n", r


@test
def tools_list(env):
    script = "ipcmk -M 4096; ipcmk -S 3; ipcmk -Q; ipcs -m -p; ipcs -u; cat /proc/sysvipc/sem"
    r = env.podrun("run", "--names", "rewrite", "--net", "host", "--rm", "--", "sh", "-c", script)
    lines = [line.split() for line in r.text.splitlines()]
    assert any(line[:1] == ["0"] and line[2:] == ["3", "0"] for line in lines), r
    for words in ("allocated queues = 1", "segments allocated 1", "used arrays = 1",
                  "allocated semaphores = 3"):
        assert words in r.text, r
    assert len(lines[-1]) == 10 and lines[-1][1:4] == ["0", "644", "3"], r


@test
def tools_make_and_remove(env):
    script = "ipcmk -M 4096; ipcmk -S 3; ipcmk -Q; ipcmk -M 4096; ipcrm -m 0 -s 0; ipcrm -m 0; ipcrm -a"
    said = env.podrun("run", *HERE, "--rm", "--", "sh", "-c", script + "; ipcmk -Q").text.splitlines()
    assert said == ["Shared memory id: 0", "Semaphore id: 0", "Message queue id: 0",
                    "Shared memory id: 1", "Message queue id: 1"], said


if __name__ == "__main__":
    main()
