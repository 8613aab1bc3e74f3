#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A session that runs before all of its memory has been copied from its image."""
import fcntl
import mmap
import os
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "state"))
import faults  # noqa: E402
from harness import BUILD, PODRUN, Skip, main, needs_namespaces, test, until  # noqa: E402

# Where names are rewritten memory is copied before anything runs.
MAPS = "memory that is mapped from the image needs a tracer of its own"
MAPPED = BUILD / "tests" / "state" / "mem_mapped"


def _mapped(image):
    """The processes that have @image mapped."""
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(image) in (p / "maps").read_text():
                found.append(int(p.name))
        except OSError:
            pass
    return found


def _needs_leases(image):
    fd = os.open(image, os.O_RDONLY)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as e:
        raise Skip("no leases on this file system: %s" % e)
    finally:
        os.close(fd)


def _resume_mapped(env):
    """A session of much memory, resumed a moment ago; its image, which it still maps."""
    image = env.path("image")
    env.environ["PODRUN_TEST_MAP_NAP"] = "60000"
    env.run_detached("s", MAPPED, "/tmp/go", "calm")
    env.podrun("suspend", "s", "-o", image)
    _needs_leases(image)
    env.podrun("resume", "-d", "--map", image)
    assert _mapped(image), "the image is not mapped"
    return image


def _finish_mapped(env):
    """Suspends the session, which has all of it converted, and once more without a pause."""
    del env.environ["PODRUN_TEST_MAP_NAP"]
    env.podrun("suspend", "s", "-o", env.path("last"))
    env.podrun("resume", "-d", "--map", env.path("last"))
    env.let_end()
    log = env.wait("s")
    assert "ok" in log.split(), log


@test
@needs_namespaces(MAPS)
def resume_keeps_writers_from_an_image_it_maps(env):
    image = _resume_mapped(env)
    with open(image, "r+b") as f:
        assert not _mapped(image), "it was opened for writing while it was mapped"
        f.write(b"\0" * 200000)
        f.truncate(100)
    _finish_mapped(env)


def _comm(pid):
    try:
        return pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
    except OSError:
        return ""


def _waits_for_answer(pid):
    """Is a thread of @pid in a system call that the supervisor has yet to answer?"""
    try:
        return any("seccomp" in (t / "wchan").read_text()
                   for t in pathlib.Path("/proc/%d/task" % pid).iterdir())
    except OSError:
        return False


@test
@needs_namespaces(MAPS)
def resume_holds_calls_from_the_first_instruction_on(env):
    """Half of the session has been let go, and there is no converter yet."""
    def below(comm):
        top = env.podrun("inspect", "s", check=False)
        top = top.json().get("supervisor", 0) if top.code == 0 else 0
        found = [p for p in faults.descendants(top) if top and _comm(p) == comm]
        return found[0] if found else 0

    image = env.path("image")
    faults.prepare(env)
    faults.due(env, None, None)
    env.run_detached("s", "sh", "-c", '"$0" /tmp/go alone & m=$!; sleep 9999 & a=$!; sleep 9999 & b=$!; '
                     'echo all; wait $m; kill $a $b', MAPPED)
    until("all have begun", lambda: "all" in env.logs("s").split())
    env.podrun("suspend", "s", "-o", image)
    _needs_leases(image)
    faults.due(env, "release.half", "stop")
    resume = env.start(PODRUN, "resume", "-d", "--map", image)
    worker = until("a worker that stopped", lambda: next(
        (p for p in [below("podrun-rebuild")] if p and faults.state(p) == "T"), 0))
    try:
        program = below("mem_mapped")
        until("a call that is held", lambda: _waits_for_answer(program) or not _comm(program))
        assert _comm(program), env.logs("s")
    finally:
        os.kill(worker, signal.SIGCONT)
    assert resume.wait() == 0
    env.let_end()
    log = env.wait("s")
    assert "ok" in log.split(), log


CHAIN = """
import mmap, os, signal, sys
m = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(m), 4096):
    m[at:at + 8] = b"%8x" % at
if os.fork():
    os.wait()
    signal.pause()
print("ready", flush=True)
n = 0
while not os.path.exists("/tmp/go"):
    if os.fork():
        os._exit(0)
    at = n * 40961 % (len(m) // 4096) * 4096
    assert m[at:at + 8] == b"%8x" % at
    m.madvise(mmap.MADV_DONTNEED, at, 4096)
    assert m[at:at + 8] == bytes(8)
    m[at:at + 8] = b"%8x" % at
    n += 1
print("ok", flush=True)
"""


@test
@needs_namespaces(MAPS)
def resume_converts_whoever_never_stays(env):
    """Each process of a chain is the child of one that has ended already."""
    image = env.path("image")
    env.run_detached("s", "python3", "-c", CHAIN)
    env.podrun("suspend", "s", "-o", image)
    env.podrun("resume", "-d", "--map", image)
    until("nobody maps the image", lambda: not _mapped(image))
    with open(image, "r+b") as f:  # waits for the converter to say so
        f.truncate(100)
    env.podrun("suspend", "s", "-o", env.path("last"))
    env.podrun("resume", "-d", "--map", env.path("last"))
    env.let_end()
    until("the end of the chain", lambda: "ok" in env.logs("s").split())
    env.podrun("kill", "s")
    until("gone", lambda: not env.sessions())


# Where its own memory waits is where nothing was; here the program takes that for its own, blindly.
OVER = """
import ctypes, mmap, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
ANON, FIXED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0x10
m = mmap.mmap(-1, 64 << 20, flags=ANON)
for at in range(0, len(m), 4096):
    m[at:at + 8] = b"%8x" % at
def spares():
    found = []
    for line in open("/proc/self/maps"):
        place, prot, offset, device, inode = line.split()[:5]
        start, end = (int(x, 16) for x in place.split("-"))
        if prot == "---p" and inode == "0" and end - start >= 1 << 20:
            found.append((start, end - start))
    return found
before = spares()
print("ready", flush=True)
while not os.path.exists("/tmp/over"):
    time.sleep(0.01)
taken = [s for s in spares() if s not in before]
for start, size in taken:
    assert libc.mmap(start, size, 3, ANON | FIXED, -1, 0) == start
    ctypes.memset(start, 7, size)
print("taken", len(taken), flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(0.01)
for start, size in taken:
    assert ctypes.string_at(start, size) == bytes([7]) * size
for at in range(0, len(m), 4096):
    assert m[at:at + 8] == b"%8x" % at
print("ok", flush=True)
"""


@test
@needs_namespaces(MAPS)
def resume_leaves_alone_what_lies_where_memory_waits(env):
    image = env.path("image")
    env.environ["PODRUN_TEST_MAP_NAP"] = "60000"
    env.run_detached("s", "python3", "-c", OVER)
    env.podrun("suspend", "s", "-o", image)
    _needs_leases(image)
    env.podrun("resume", "-d", "--map", image)
    env.let_end("s", "/tmp/over")
    until("it has taken them", lambda: "taken" in env.logs("s").split())
    assert "taken 0" not in env.logs("s"), "nothing waited"
    env.podrun("suspend", "s", "-o", env.path("last"))
    env.podrun("resume", "-d", env.path("last"))
    env.let_end()
    log = env.wait("s")
    assert "ok" in log.split(), log


@test
def resume_hashes_an_image_that_somebody_could_write_to(env):
    """What is written through a mapping leaves no trace in the inode, so nothing is known of it."""
    if not os.access("/dev/shm", os.W_OK):
        raise Skip("no /dev/shm to write to")
    directory = tempfile.TemporaryDirectory(dir="/dev/shm")
    image = pathlib.Path(directory.name) / "image"
    env.run_detached("s", "sh", "-c", "echo ready; WORD=remember-this exec sleep 9999")
    env.podrun("snapshot", "s", "-o", image)
    env.podrun("kill", "s")
    with directory, open(image, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        os.utime(image)  # it is not the file any more that this host has written
        middle = m.rfind(b"remember-this")
        m[middle] = m[middle]
        env.podrun("resume", "-d", "--name", "whole", image)
        before = image.stat()
        m[middle] ^= 1
        assert image.stat().st_ctime_ns == before.st_ctime_ns, "nothing is shown by this"
        m.close()
        f.close()
        env.podrun("resume", "-d", "--name", "damaged", image, code=7)
    env.podrun("kill", "whole")


@test
@needs_namespaces(MAPS)
def resume_maps_an_image_that_is_removed(env):
    image = _resume_mapped(env)
    image.unlink()
    assert _mapped(image), "it was converted too soon"
    _finish_mapped(env)
    assert not _mapped(image)


@test
@needs_namespaces(MAPS)
def resume_goes_on_when_its_converter_is_killed(env):
    def converter():
        for child in pathlib.Path("/proc/%d/task/%d/children" % (top, top)).read_text().split():
            try:
                if pathlib.Path("/proc/%s/comm" % child).read_text() == "podrun-convert\n":
                    return int(child)
            except OSError:
                pass
        return 0

    image = _resume_mapped(env)
    top = env.podrun("inspect", "s").json()["supervisor"]
    killed = 0
    while _mapped(image):
        pid = until("a converter, or the end", lambda: converter() or not _mapped(image))
        if pid is not True:
            os.kill(pid, signal.SIGKILL)
            until("its end", lambda: converter() != pid)
            killed += 1
    assert killed
    _finish_mapped(env)


@test
@needs_namespaces(MAPS)
def resume_of_mapped_memory_can_be_killed(env):
    image = _resume_mapped(env)
    env.podrun("kill", "s")
    until("gone", lambda: not env.sessions())
    assert not _mapped(image)


if __name__ == "__main__":
    main()
