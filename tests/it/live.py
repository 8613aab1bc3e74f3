#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: a session is moved while it runs (migrate --live), and what can go wrong meanwhile.

The program knows what each page of its memory must hold, and looks at all of it in the end
(dirty_work.c).  Nothing here is about how long something takes.
"""
import array
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, SPARSE, finish, one_line, ssh_to  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, PROFILE, Skip, add, main, needs, needs_device, needs_namespaces, test, until  # noqa: E402

WORK = BUILD / "tests" / "it" / "dirty_work"
SLOWFS = BUILD / "tests" / "it" / "slowfs"
MAPPED = BUILD / "tests" / "state" / "mem_mapped"


def live(env, *options, code=0, check=True):
    return env.podrun("migrate", "--live", *options, "s", "there", "--json", code=code, check=check,
                      timeout=2 * PATIENCE)


def moved(env, *options):
    r = live(env, *options).json()
    if "note" in r:
        raise Skip(r["note"])
    return r


def there(env, name="other", lines=None, fault=None):
    """Another "host"; `fault`: where its podrun is to fail, `lines`: how much comes back before the line breaks.  It maps
    what comes ahead of small programs, too."""
    env.environ["PODRUN_MAP_RUN"] = "4"
    other = env.host(name)
    ssh_to(env, other, lines=lines)
    if fault:
        env.path("fault").write_text(fault + "\n")
        script = env.path("ssh")
        script.write_text(script.read_text().replace(
            "shift\n", "shift\nexport PODRUN_TEST_FAULT=%s\n" % env.path("fault"), 1))
    return other


# The kernel has the pages of a read for as long as it takes, and nobody is told when they are written to.
READS = """
import mmap, os, threading, time
size, n, all = 16384, 256, 4 << 20
m = mmap.mmap(-1, size * n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m[:] = bytes([1]) * len(m)
view, fd, has = memoryview(m), os.open("/mnt/file", os.O_RDONLY), {}
def work(k):
    for i in range(1 << 30):
        if os.path.exists("/tmp/go"):
            return
        slot, at = (k + 16 * i) % n, (k * 97 + i * 31) * size % all
        assert os.preadv(fd, [view[slot * size:(slot + 1) * size]], at) == size
        has[slot] = at
threads = [threading.Thread(target=work, args=[k]) for k in range(16)]
for t in threads:
    t.start()
while len(has) < 48:
    time.sleep(.01)
print("ready", flush=True)
for t in threads:
    t.join()
for slot, at in has.items():
    if view[slot * size:(slot + 1) * size].cast("I").tolist() != [3 * i for i in range(at // 4, (at + size) // 4)]:
        print("slot", slot, "is not what was read at", at)
print("ok")
"""


@test
@needs_namespaces("a file system of its own")
@needs_device("/dev/fuse")
def what_a_server_writes_while_it_is_copied(env):
    d = env.path("slow")
    d.mkdir()
    (d / "file").write_bytes(array.array("I", range(0, 3 << 20, 3)).tobytes())
    other = there(env)
    env.call(SLOWFS, d, 200, PODRUN, "run", "-d", "--name", "s", "-v", "%s:/mnt" % d, "--", sys.executable, "-c", READS)
    until("it reads", lambda: "ready" in env.logs("s"))
    moved(env, "--force")
    assert finish(other, "s").split()[-2:] == ["ready", "ok"], other.logs("s")


@test
def a_busy_session_moves_and_has_all_of_its_memory(env):
    """Twice, the second time from where it has just come to."""
    env.run_detached("s", WORK, 64, 3000)
    other = there(env)
    r = moved(env, "--force")
    assert r["rounds"] >= 2 and r["ahead"] >= 60 << 20, r
    assert not env.sessions()
    third = there(other, "third")
    moved(other, "--force")
    assert not other.sessions()
    assert "ok" in finish(third, "s").split()


def of_session(env):
    """Its supervisor, and all that comes from that."""
    found = [env.podrun("inspect", "s").json()["supervisor"]]
    for p in found:
        with contextlib.suppress(OSError):
            for t in pathlib.Path("/proc/%d/task" % p).iterdir():
                found += [int(c) for c in (t / "children").read_text().split()]
    return found


def called(env, comm):
    """Processes of the session, by what they run."""
    for p in of_session(env):
        with contextlib.suppress(OSError):
            if pathlib.Path("/proc/%d/comm" % p).read_text() == comm + "\n":
                yield pathlib.Path("/proc/%d" % p)


def mapped_in(env, comm="dirty_work"):
    """Is memory mapped that came ahead?  It is in a file without a name."""
    for p in called(env, comm):
        with contextlib.suppress(OSError):
            if re.search(r"p [0-9a-f]+ \S+ \d+ +(\S*/#\d+|/memfd:podrun-ahead) \(deleted\)", (p / "maps").read_text()):
                return True
    return False


def held_in(env, comm):
    """Does a thread wait for the supervisor to let a call of it go on?"""
    for p in called(env, comm):
        for t in p.glob("task/*/wchan"):
            with contextlib.suppress(OSError):
                if "seccomp" in t.read_text():
                    return True
    return False


def converter(env):
    return next((int(p.name) for p in called(env, "podrun-convert")), 0)


@test
def what_came_ahead_is_mapped_and_becomes_its_own(env):
    """Whoever converts it is killed; a suspend waits until it is done."""
    env.environ["PODRUN_TEST_MAP_NAP"] = "60000"
    env.run_detached("s", WORK, 48, 1000)
    other = there(env)
    moved(env, "--force")
    assert mapped_in(other), "nothing is mapped"
    first = until("a converter", lambda: converter(other))
    os.kill(first, signal.SIGKILL)
    until("another one", lambda: converter(other) not in (0, first))
    other.podrun("suspend", "s")
    other.podrun("resume", "-d", "s")
    assert not mapped_in(other)
    assert "ok" in finish(other, "s").split()


@test
@needs_namespaces("without namespaces there is no world to be made")
def a_world_that_was_there_holds_its_calls(env):
    """It was made before anybody knew what will be mapped, and what its filter has to watch over."""
    env.environ.update({"PODRUN_LOG": "info", "PODRUN_TEST_MAP_NAP": "60000"})
    env.run_detached("s", MAPPED, "/tmp/go", "calm")
    other = there(env)
    moved(env, "--force")
    assert mapped_in(other, "mem_mapped"), "nothing is mapped"
    until("a call that is held", lambda: held_in(other, "mem_mapped"))
    log = other.path("state") / "podrun" / "sessions" / "s" / "supervisor.log"
    assert "the world was there before the image" in log.read_text(), log.read_text()
    del other.environ["PODRUN_TEST_MAP_NAP"]
    other.podrun("suspend", "s")
    other.podrun("resume", "-d", "s")
    assert "ok" in finish(other, "s").split()


@test
def what_can_not_be_mapped_is_copied(env):
    """A program whose memory is limited would find it counted twice."""
    env.environ["PODRUN_TEST_MAP_NAP"] = "60000"
    env.run_detached("s", "sh", "-c", "ulimit -d 9999999; exec %s 48 1000" % WORK)
    other = there(env)
    moved(env, "--force")
    assert not mapped_in(other)
    assert "ok" in finish(other, "s").split()


GUARDED = """
import ctypes, mmap, os, random, time
libc = ctypes.CDLL(None, use_errno=True)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
size, at = 24 << 20, 9 << 20
want = random.Random(1).randbytes(size)
m = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m[:] = want
place = ctypes.addressof(ctypes.c_char.from_buffer(m))
r, w = os.pipe()
def readable(offset): return libc.write(w, place + offset, 1) == 1
guards = libc.madvise(place + at, 4096, 102) == 0  # Linux 6.13
assert readable(at) != guards
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.02)
assert readable(at) != guards, "the guard page is gone"
assert m[:at] == want[:at] and m[at + 4096:] == want[at + 4096:]
print("ok")
"""


@test
def what_has_guard_pages_is_copied(env):
    """No page of a file is one that nobody may touch."""
    env.environ["PODRUN_TEST_MAP_NAP"] = "60000"
    env.run_detached("s", "python3", "-c", GUARDED)
    other = there(env)
    moved(env, "--force")
    log = finish(other, "s")
    assert "ok" in log.split(), log


# Some places, more than are watched one by one, are written to all the time: they come last, all else ahead.
PLACES = """
import mmap, os, random
size, places, block = 48 << 20, range(0, 48 << 20, 4 << 20), 64 << 10
m = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m[:] = random.Random(1).randbytes(size)
print("ready", flush=True)
n = 0
while not os.path.exists("/tmp/go"):
    n += 1
    for at in places: m[at:at + block] = bytes([n & 255]) * block
want = bytearray(random.Random(1).randbytes(size))
for at in places: want[at:at + block] = bytes([n & 255]) * block
bad = [at for at in range(0, size, 4096) if m[at:at + 4096] != want[at:at + 4096]]
print("FAIL", len(bad), bad[:9]) if bad else print("ok")
"""


@test
def a_stream_that_was_kept_is_resumed_from_its_file(env):
    """Where what came ahead is a file beside the image, and the image may be mapped, each is what it is."""
    env.run_detached("s", "python3", "-c", PLACES)
    third = env.host("third")
    third.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    other, image, line = there(env), env.path("image"), env.path("line")
    script = env.path("ssh")
    script.write_text(script.read_text().replace("sh -c", "tee %s | sh -c" % line))
    assert moved(env, "--force")["ahead"] >= 40 << 20
    other.podrun("kill", "s")
    with open(line, "rb") as f, open(image, "wb") as out:
        f.readline()  # the greeting; then chunks, their length in front
        while n := int.from_bytes(f.read(4), "little"):
            out.write(f.read(n))
    # what fails behind the last page has been read to its end, and found whole
    env.path("fault").write_text("resume.restored fail\n")
    third.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))
    assert third.podrun("resume", "-d", image, check=False).code
    del third.environ["PODRUN_TEST_FAULT"]
    third.environ.update({"PODRUN_MAP_RUN": "4", "PODRUN_TEST_MAP_NAP": "60000"})
    third.podrun("resume", "-d", "--map", image)
    log = finish(third, "s")
    assert "ok" in log.split(), log


@test
def processes_come_and_go_meanwhile(env):
    """Some become another program, some end, some are born, at any moment."""
    env.run_detached("s", "sh", "-c",
                     "while [ ! -e /tmp/go ]; do python3 -c 'x = bytearray(4 << 20)'; done & "
                     "(while [ ! -e /tmp/go ]; do sh -c 'exec sh -c true'; done) & %s 32 2000; e=$?; wait; "
                     "exit $e" % WORK)
    for i in range(4):
        other = there(env, "other%d" % i)
        moved(env, "--force", "--rounds", str(1 + i))
        env = other
    assert "ok" in finish(env, "s").split()


REDIS = r"""
import os, socket, subprocess, sys, time
n = int(sys.argv[1])
server = subprocess.Popen(["redis-server", "--port", "6391", "--save", "", "--dir", "/tmp"], stdout=subprocess.DEVNULL)
def connect():
    while True:
        try: return socket.create_connection(("127.0.0.1", 6391)).makefile("rwb")
        except OSError: time.sleep(.05)
c = connect()
def ask(*commands):
    c.write(b"".join(b"*%d\r\n" % len(k) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in k) for k in commands))
    c.flush()
    for k in commands:
        line = c.readline()
        if line[:1] == b"$": line = c.read(int(line[1:]) + 2)
        elif line[:1] not in (b"+", b":"): raise SystemExit("FAIL %r" % line)
        yield line.rstrip(b"\r\n")
def value(i, k): return (b"%d.%d." % (i, k)) * 100
times = [0] * n
for i in range(0, n, 500): list(ask(*[(b"SET", b"k%d" % j, value(j, 0)) for j in range(i, min(n, i + 500))]))
print("ready", flush=True)
x = 1
while not os.path.exists("/tmp/go"):
    batch = []
    for _ in range(20):
        x = x * 1103515245 + 12345 & 0x7fffffff
        i = (x >> 8) % n
        times[i] += 1
        batch.append((b"SET", b"k%d" % i, value(i, times[i])))
    assert all(r == b"+OK" for r in ask(*batch))
for i in range(0, n, 500):
    for j, got in zip(range(i, min(n, i + 500)), ask(*[(b"GET", b"k%d" % j) for j in range(i, min(n, i + 500))])):
        assert got == value(j, times[j]), ("FAIL", j, times[j], got[:40])
server.kill(); server.wait()
print("ok")
"""


@test
def redis_under_writes_moves_and_its_client_notices_nothing(env):
    """256 MiB; each value is checked in the end."""
    needs("redis-server")
    env.run_detached("s", "python3", "-u", "-c", REDIS, "330000")
    other = there(env)
    r = moved(env, "--force")
    assert r["ahead"] > 200 << 20, r
    assert "ok" in finish(other, "s").split()


# Where the other side's podrun is killed, or fails.
for _fault in ("ahead.arrived kill", "ahead.arrived fail", "restore.unpack kill", "resume.unpacked kill",
               "restore.data kill", "restore.data fail", "resume.restored kill-supervisor"):
    def killed_there(env, fault=_fault):
        env.run_detached("s", WORK, 16, 2000)
        other = there(env, fault=fault)
        r = live(env, "--force", code=8)
        one_line(r, "s")
        assert not other.podrun("ps", "-a", "--json").json()
        assert "ok" in finish(env, "s").split()

    add("the_other_side_fails/" + _fault.replace(" ", "_"), killed_there)


# Where our own does, before anything is given away.
for _fault in ("ahead.begin fail", "ahead.begin kill", "ahead.watched kill", "ahead.round fail",
               "ahead.round kill", "ahead.round kill 2",
               "ahead.ready fail", "freeze.survey kill", "freeze.files fail", "write.records kill",
               "write.data fail", "ahead.round kill-client"):
    def killed_here(env, fault=_fault):
        env.path("fault").write_text(fault + "\n")
        env.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))
        env.run_detached("s", WORK, 16, 2000)
        del env.environ["PODRUN_TEST_FAULT"]
        other = there(env)
        r = live(env, "--force", check=False)
        assert r.code != 0, r
        env.path("fault").write_text("")
        until("it runs on", lambda: [x for x in env.sessions() if x["state"] == "running"])
        until("nothing is there", lambda: not other.podrun("ps", "-a", "--json").json())
        moved(env, "--force")
        assert "ok" in finish(other, "s").split()

    add("this_side_fails/" + _fault.replace(" ", "_"), killed_here)


@test
def an_acknowledgement_that_is_lost_leaves_it_frozen(env):
    for verdict in ("--finish", "--abort"):
        other = there(env, "other" + verdict, lines=2)  # HERE and READY come back, ACK does not
        env.run_detached("s", WORK, 16, 2000)
        r = live(env, "--force", code=9)
        assert "--finish" in r.errors, r
        (s,) = env.sessions()
        assert s["state"] == "in-doubt", s
        if verdict == "--finish":
            env.podrun("migrate", "--finish", "s")
            assert not env.sessions()
            assert "ok" in finish(other, "s").split()
        else:
            other.podrun("kill", "s")
            env.podrun("migrate", "--abort", "s")
            assert "ok" in finish(env, "s").split()
        env.podrun("rm", "s")


@test
def who_writes_faster_than_the_line_is_told_so(env):
    # Several: one that is not given the CPU for a moment has written to nothing, and little is left of it.
    env.run_detached("s", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do %s 4 0 & done; wait" % WORK)
    other = there(env)
    # Few rounds: the more there are, the more likely is one in which nobody was given it.
    r = live(env, "--rest", "4", "--rounds", "4", code=1)
    one_line(r, "s", "MiB are left", "in a second", "hint", "--force")
    assert not other.podrun("ps", "-a", "--json").json()
    moved(env, "--rest", "4", "--rounds", "3", "--force")
    assert finish(other, "s").split().count("ok") == 8


@test
def a_target_that_is_full_leaves_it_here(env):
    needs("unshare")
    if env.call("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt", check=False).code:
        raise Skip("no namespace to mount a small file system in")
    env.run_detached("s", WORK, 64, 1000)
    other = there(env)
    script = env.path("ssh")
    lines = script.read_text().splitlines()
    lines[-1] = "exec unshare -Urm sh -c 'mount -t tmpfs -o size=8m none %s && %s'" % (
        other.environ["XDG_STATE_HOME"], PODRUN + " receive")
    script.write_text("\n".join(lines) + "\n")
    r = live(env, "--force", code=8)
    one_line(r, "s", "No space left")
    assert "ok" in finish(env, "s").split()


@test
def one_that_ends_meanwhile_has_ended(env):
    env.run_detached("s", "sh", "-c", "echo ready; %s 64 0" % WORK)
    other = there(env)
    p = env.start(PODRUN, "migrate", "--live", "--rest", "1", "--rounds", "1000", "s", "there",
                  stderr=subprocess.PIPE)
    until("it is copied", lambda: [x for x in env.sessions() if x["state"] == "copying"] or p.poll() is not None)
    env.podrun("kill", "s", check=False)
    _, err = p.communicate(timeout=PATIENCE)
    assert p.returncode not in (0, 9), (p.returncode, err)
    until("nothing is there", lambda: not other.podrun("ps", "-a", "--json").json())
    assert not env.sessions()


@test
def what_can_not_be_done_is_said(env):
    other = there(env)
    one_line(env.podrun("migrate", "--force", "s", "there", code=2), "--live")
    env.run_detached("s", *COUNT)
    one_line(live(env, "--tracker", "clairvoyance", code=2), "--tracker", "wp_async|soft_dirty")
    env.podrun("pause", "s")
    assert "paused" in live(env).json()["note"]
    assert "ok" in finish(other, "s").split()


@test
def rewritten_names_are_moved_as_without_it(env):
    env.run_detached("s", *COUNT, options=["--names", "rewrite", "--net", "host"])
    other = there(env)
    r = live(env)
    assert "rewritten" in r.json()["note"] and "rewritten" in r.errors, r
    assert "ok" in finish(other, "s").split()


# ---- snapshots from time to time ---------------------------------------------------------------


def images(env, name="s", suffix=""):
    """The numbers of its snapshots; with `suffix` those that are kept for others only."""
    found = [p.name[len(name) + 5:] for p in (env.path("state") / "podrun" / "images").glob(name + ".img@*")]
    return sorted(int(n[:len(n) - len(suffix)]) for n in found
                  if n.endswith(suffix) and n[:len(n) - len(suffix)].isdigit())


def until_number(env, n):
    return until("snapshot %d" % n, lambda: images(env) and images(env)[-1] >= n)


def begun_by_now(env):
    """Number of the newest snapshot that may show what was before now; on a busy machine the first comes before a program is ready."""
    return (images(env) or [0])[-1] + 1


def holder(env, n):
    """Number of the largest image that snapshot `n` refers to."""
    text = env.podrun("image", "show", "s@%d" % n).text
    return max(map(int, re.findall(r"pages of it are in s\.img@(\d+)\n", text)),
               key=lambda n: image_of(env, n).stat().st_size)


def image_of(env, n, name="s"):
    return env.path("state") / "podrun" / "images" / ("%s.img@%d" % (name, n))


@test
def periodic_snapshots_are_each_what_the_session_was(env):
    """All that are kept are resumed, and it is rolled back."""
    env.run_detached("s", WORK, 32, 3000, options=["--every", "1", "--keep", "3"])
    until_number(env, 6)
    env.podrun("kill", "s")
    kept = images(env)
    assert 3 <= len(kept) <= 4 and kept[-1] >= 6, kept
    for n in kept:
        env.podrun("image", "verify", "s@%d" % n)
        env.podrun("resume", "-d", "--name", "copy", "s@%d" % n)
        assert "ok" in finish(env, "copy").split()
        env.podrun("rm", "copy")
    env.podrun("resume", "-d", "--replace", "s@%d" % kept[0])
    # what is rolled back goes on making them
    until("a new one", lambda: images(env)[-1] > kept[-1])
    env.podrun("resume", "-d", "--replace", "s@%d" % kept[-1])
    assert "ok" in finish(env, "s").split()


HOLDS = """
import hashlib, os, random, time
data = bytearray(random.Random(1).randbytes(48 << 20))
print('ready', flush=True)
while not os.path.exists('/tmp/go'): time.sleep(.02)
print('ok' if data == random.Random(1).randbytes(48 << 20) else 'FAIL')
"""


ADVISED = """
import ctypes, mmap, os, re, sys, time
libc = ctypes.CDLL(None, use_errno=True)
MIB, n = 1 << 20, 0
ADVICE = {"": 0, "wf": 18, "dd": 16, "hg": 14, "nh": 15, "sr": 2, "rr": 1, "dc": 10}
class Area:
    def __init__(self, flag, size, fill=True, flags=0):
        global n
        n += 1
        self.m = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags)
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.m))
        self.want = bytes([n if fill else 0]) * min(size, 64 * MIB)
        if ADVICE.get(flag):
            assert libc.madvise(ctypes.c_void_p(self.at), ctypes.c_size_t(size), ADVICE[flag]) == 0, flag
        if flag == "lo": assert libc.mlock(ctypes.c_void_p(self.at), ctypes.c_size_t(size)) == 0
        if fill: self.m[:] = self.want
        self.flags = self.look()
        assert not flag or flag in self.flags, (flag, self.flags)
    def look(self):
        inside = False
        for line in open("/proc/self/smaps"):
            head = re.match("([0-9a-f]+)-([0-9a-f]+) ", line)
            if head: inside = int(head[1], 16) <= self.at < int(head[2], 16)
            elif inside and line.startswith("VmFlags:"): return set(line.split()[1:])
    def check(self):
        assert self.m[:len(self.want)] == self.want, "contents"
        now = self.look()
        # how the kernel counts what was reserved, and what a tracker leaves behind, is its own affair
        assert now - {"ac", "sd", "uw"} == self.flags - {"ac", "sd", "uw"}, (now, self.flags)
areas = [Area("", 12 * MIB), Area("wf", 5 * MIB), Area("", 5 * MIB), Area("wf", 5 * MIB, fill=False), Area("wf", 4096),
         Area("", 2 << 30, fill=False, flags=0x4000)]
areas += [Area(flag, 5 * MIB) for flag in ("dd", "hg", "nh", "sr", "rr")]
areas += [Area(flag, MIB) for flag in sys.argv[1:]]
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.02)
for a in areas: a.check()
if os.fork() == 0:
    for a in areas:
        if "wf" in a.flags: assert a.m[:] == bytes(len(a.want))
        elif "dc" not in a.flags: assert a.m[:len(a.want)] == a.want
    os._exit(0)
assert os.wait()[1] == 0
print("ok")
"""


def a_copy_is_as_well(env, *command):
    """Who runs it, and who was resumed from a snapshot of it, say ok at their end."""
    env.run_detached("s", *command)
    env.podrun("snapshot", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", "--name", "copy", env.path("image"))
    for name in "s", "copy":
        log = finish(env, name)
        assert "ok" in log.split(), log
    env.podrun("rm", "s", "copy")
    env.path("image").unlink()


@test
def a_snapshot_of_large_memory_has_what_was_said_of_it(env):
    """Its mappings are looked at in a copy of it, but for some (DONTFORK, locked) that are no more in a copy what they were."""
    for flags in [], ["dc"], ["lo"]:
        a_copy_is_as_well(env, "python3", "-c", ADVISED, *flags)


SHARED = r"""
import mmap, os, random, struct, sys
m = mmap.mmap(-1, int(sys.argv[1]) << 20)
at = range(0, len(m), 1 << 20)
want = [random.randbytes(1 << 20) for _ in at]
for i, w in zip(at, want):
    m[i:i + len(w)] = w
n = 0
while not (n and os.path.exists("/tmp/go")):
    n += 1
    for i in at:
        struct.pack_into("Q", m, i, n)
    for i in at:
        assert struct.unpack_from("Q", m, i)[0] == n
    if n == 1:
        print("ready", flush=True)
for i, w in zip(at, want):
    assert m[i + 8:i + len(w)] == w[8:]
print("ok")
"""


@test
def a_snapshot_has_shared_memory_as_it_stood_still(env):
    """It is written later, and no copy has it: as much as is put aside, and more than that."""
    for mib in 8, 60:
        a_copy_is_as_well(env, "python3", "-c", SHARED, str(mib))


@test
def a_snapshot_has_what_is_in_hardly_used_gigabytes_where_no_pages_are_scanned(env):
    """As before Linux 6.7; `tests/kernels/run.py inside/snapshot` asks such a kernel."""
    env.prefix = env.prefix + PROFILE + ["--no-scan"]
    checks = {c["name"]: c["ok"] for c in env.podrun("check", "--json", check=False).json()["checks"]}
    assert not checks["pagemap-scan"]
    a_copy_is_as_well(env, *SPARSE)


@test
def periodic_snapshots_cost_what_has_changed(env):
    env.run_detached("s", "python3", "-c", HOLDS, options=["--every", "1s", "--keep", "2"])
    until_number(env, begun_by_now(env) + 4)
    env.podrun("kill", "s")
    first, last = images(env, suffix=".base"), images(env)
    assert sum(image_of(env, n).with_name("s.img@%d.base" % n).stat().st_size for n in first) > 48 << 20
    shown = ""
    for n in last:
        assert image_of(env, n).stat().st_size < 2 << 20, n
        shown += env.podrun("image", "show", "s@%d" % n).text
    # none is kept for which there is no use
    for n in first:
        assert "pages of it are in s.img@%d\n" % n in shown, (first, last, shown)
    # which are not for anybody to choose
    assert [i["image"].rpartition("/")[2] for i in env.podrun("image", "ls", "--json").json()] == \
        ["s.img@%d" % n for n in last]
    for hidden in "s@%d" % first[0], "s@%d.base" % first[0]:
        assert "podrun image ls lists snapshots" in env.podrun("resume", "-d", hidden, check=False).errors
    env.podrun("resume", "-d", "s@%d" % last[-1], "--name", "back")
    assert "ok" in finish(env, "back").split()


@test
def snapshots_go_with_their_session(env):
    """But for what those need that it made under another name; these are removed by theirs."""
    def left():
        return sorted(p.name for p in (env.path("state") / "podrun" / "images").iterdir())

    env.run_detached("s", "python3", "-c", HOLDS, options=["--every", "1s", "--keep", "2"])
    until_number(env, begun_by_now(env) + 4)
    assert [x for x in left() if x.endswith(".base")], left()
    env.podrun("rename", "s", "t")
    until("a snapshot of its new name", lambda: [x for x in left() if x.startswith("t.img@")])
    env.podrun("kill", "t")
    env.podrun("rm", "s")
    last = [x for x in left() if x.startswith("t.img@") and not x.endswith(".base")][-1]
    env.podrun("resume", "-d", last.replace(".img", ""), "--name", "back")
    assert "ok" in finish(env, "back").split()
    env.podrun("rm", "t", "back")
    env.podrun("rm", "s", check=False)
    assert not [x for x in left() if x.startswith("t.")], left()
    one_line(env.podrun("rm", "s", code=5), "no session 's'")


@test
def what_is_told_of_snapshots_that_refer_to_others(env):
    """Their memory is put together from several images: stacks, cores, and what has changed."""
    env.run_detached("s", "python3", "-c", HOLDS, options=["--every", "1", "--keep", "9"])
    first = begun_by_now(env) + 1
    until_number(env, first + 2)
    env.podrun("kill", "s")
    last = images(env)[-1]
    holds = holder(env, last)
    (thread,) = env.podrun("image", "stacks", "--json", "s@%d" % last).json()
    assert len(thread["frames"]) > 3, thread
    (core,) = env.podrun("image", "core", "s@%d" % last, "-o", env.path("core")).text.split()
    with open(core, "rb") as f:
        assert random.Random(1).randbytes(48 << 20) in f.read()
    r = env.podrun("image", "diff", "--json", "s@%d" % first, "s@%d" % last).json()
    pages = [m["pages"] for p in r["processes"] for m in p["memory"]]
    assert pages and sum(pages) < 500, r
    changed = bytearray(image_of(env, holds).read_bytes())
    changed[len(changed) // 2] ^= 1
    image_of(env, holds).write_bytes(changed)
    for command in (["stacks"], ["core", "-o", env.path("no")], ["diff", "s@%d" % (last - 1)]):
        one_line(env.podrun("image", *command, "s@%d" % last, code=7), "s.img@%d" % holds)
    assert not list(env.dir.glob("no*"))


@test
def a_snapshot_is_not_believed_if_what_it_refers_to_is_not_the_same(env):
    env.run_detached("s", "python3", "-c", HOLDS, options=["--every", "1", "--keep", "9"])
    n = begun_by_now(env) + 1
    until_number(env, n)
    env.podrun("kill", "s")
    second, holds = "s@%d" % n, "s.img@%d" % holder(env, n)
    first = image_of(env, n).with_name(holds)
    whole = first.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    first.write_bytes(changed)
    for command in (["image", "verify", second], ["resume", "-d", second]):
        one_line(env.podrun(*command, code=7), holds, "digest")
    first.write_bytes(whole[:-200])
    one_line(env.podrun("resume", "-d", second, code=7), holds)
    # another snapshot of the same session, under that name
    first.write_bytes(image_of(env, n).read_bytes())
    one_line(env.podrun("resume", "-d", second, code=7), holds)
    first.unlink()
    one_line(env.podrun("resume", "-d", second, code=5), holds)
    with open(image_of(env, n), "rb") as f:
        one_line(env.call(PODRUN, "resume", "-d", "-", stdin=f.read(), code=7), "refers to other images")
    first.write_bytes(whole)
    env.podrun("image", "verify", second)
    env.podrun("resume", "-d", second)
    assert "ok" in finish(env, "s").split()


@test
def a_periodic_snapshot_is_in_nobodys_way(env):
    """Who wants to suspend, pause, move, rename or look at the session while one is written waits for it."""
    def while_one_is_written(*words):
        n = max(images(env), default=0)
        until("one is being written", lambda: [x for x in env.sessions() if x["state"] == "writing"]
              or max(images(env), default=0) > n + 1)
        return env.podrun(*words).text

    env.run_detached("s", WORK, 96, 2000, options=["--every", "1", "--keep", "2"])
    for _ in range(3):
        while_one_is_written("pause", "s")
        env.podrun("unpause", "s")
        assert "#0" in while_one_is_written("stacks", "s")
        while_one_is_written("rename", "s", "t")
        env.podrun("rename", "t", "s")
    while_one_is_written("suspend", "s")
    env.podrun("resume", "-d", "s")
    assert "ok" in finish(env, "s").split()


UNFREEZABLE = """
import os, time
os.symlink("nowhere", "/tmp/l")
fd = os.open("/tmp/l", os.O_PATH | os.O_NOFOLLOW)
os.unlink("/tmp/l")
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
os.close(fd)
while not os.path.exists("/tmp/end"): time.sleep(.01)
"""


@test
def a_periodic_snapshot_that_fails_is_told(env):
    """In the supervisor's log; the next is tried."""
    log = env.path("state") / "podrun" / "sessions" / "s" / "supervisor.log"
    env.run_detached("s", sys.executable, "-c", UNFREEZABLE, options=["--every", "1s"])
    until("two have failed", lambda: log.read_text().count("warn: snapshot ") == 2)
    assert "fd 3" in log.read_text(), log.read_text()
    env.exec_last("s", "touch", "/tmp/go")
    until("one is there", lambda: "img@" in env.podrun("image", "ls").text)
    env.let_end(path="/tmp/end")
    env.podrun("wait", "s")
    env.podrun("rm", "s")


@test
def times_and_numbers_of_snapshots_are_checked(env):
    for wrong in (["--every", "soon"], ["--every", "0"], ["--every", "5w"], ["--every", "99999999999"],
                  ["--keep", "3"]):
        one_line(env.podrun("run", *wrong, "--", "true", code=2), "--every")


if __name__ == "__main__":
    main()
