#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what is done otherwise where kcmp and pidfd_getfd are refused to podrun itself."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import main, test  # noqa: E402

# Which refuses both (tests/lib/profile.c).
os.environ.setdefault("PODRUN_TEST_PROFILE", "1")

HERE = ("--names", "rewrite", "--net", "host")
GO = "/tmp/go"
PREFACE = """
import ctypes, errno, fcntl, os, resource, select, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def ready():
    print("ready", flush=True)
    while not os.path.exists("/tmp/go"):
        time.sleep(0.01)
def eventfd():
    return libc.eventfd(0, 0)
"""


def start(env, script, *prefix):
    env.run_detached("s", *prefix, sys.executable, "-c", PREFACE + script, options=HERE)


def finish(env, verdict="right"):
    env.let_end("s", GO)
    log = env.wait("s")
    assert log.split()[-1] == verdict, log


# Nothing of what is changed to see what is shared stays so.
MARKS = """
os.umask(0o27)
kept = [eventfd() for i in range(80)]
kept += [os.dup(fd) for fd in kept[::3]] + [os.open("/dev/null", os.O_RDONLY) for i in range(5)]
kept += [os.open("/", os.O_PATH), os.open("/", os.O_PATH)]
for fd in kept[:7]:
    fcntl.fcntl(fd, fcntl.F_SETSIG, 40)
a, b = os.pipe()
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [64])
os.kill(os.getpid(), 64)
# With its parent's directory and descriptors, and memory of its own.
child = libc.syscall(56, 0x200 | 0x400 | 17, 0, 0, 0, 0)
# How a file was opened once more is in its flags (O_LARGEFILE; O_NOFOLLOW of O_PATH).
def state():
    fds = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]
    path = [fd for fd in fds if os.readlink("/proc/self/fd/%d" % fd) == "/"]
    mask = os.umask(0)
    os.umask(mask)
    return (fds, mask, [fcntl.fcntl(fd, fcntl.F_GETSIG) for fd in fds if fd not in path],
            [fcntl.fcntl(fd, fcntl.F_GETFL) & ~0o500000 for fd in fds], signal.getsignal(signal.SIGUSR1),
            signal.sigpending(), [open("/proc/self/status").read().split(k)[1][:20] for k in ("SigIgn:", "SigCgt:")])
if child == 0:
    while not os.path.exists("/tmp/go"):
        time.sleep(0.01)
    os._exit(0)
before = state()
ready()
os.waitpid(child, 0)
after = state()
print("right" if before == after else "%s\\n%s" % (before, after))
"""


@test
def what_was_marked_is_as_before(env):
    start(env, MARKS)
    env.podrun("pause", "s")
    env.podrun("unpause", "s")
    finish(env)


@test
def what_was_marked_moves_as_it_was(env):
    start(env, MARKS)
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    finish(env)


FULL = """
kept = [eventfd() for i in range(200)]
last = os.dup(kept[0])
resource.setrlimit(resource.RLIMIT_NOFILE, (%s))
ready()
os.write(last, (7).to_bytes(8, "little"))
print("right" if int.from_bytes(os.read(kept[0], 8), "little") == 7
      and resource.getrlimit(resource.RLIMIT_NOFILE) == (%s) else "wrong")
"""


@test
def a_table_without_a_free_place(env):
    # python itself needs some to end.
    start(env, FULL % (("20, 4096",) * 2))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    finish(env)


TWICE = """
epoll = select.epoll()
first = eventfd()
epoll.register(first, select.EPOLLIN)
kept = os.dup(first)
os.close(first)
second = eventfd()
assert second == first
epoll.register(second, select.EPOLLIN)
ready()
os.write(kept, (1).to_bytes(8, "little"))
print("right" if len(epoll.poll(1)) == 1 else "wrong")
"""


@test
def an_entry_that_cannot_be_told_from_another(env):
    start(env, TWICE)
    one_line(env.podrun("suspend", "s", "-o", env.path("image"), code=4), "kcmp")
    finish(env)


# One thread that shares no more with its process than it must has ended; another shares something more.
APART = """
def state():
    mask = os.umask(0)
    os.umask(mask)
    return mask, os.listdir("/proc/self/fd")
def thread(what, flags):
    top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
    assert libc.clone(ctypes.cast(what, ctypes.c_void_p), top, 0x50900 | flags, None) > 0
stack = ctypes.create_string_buffer(1 << 16)
os.umask(0o27)
before = state()
thread(libc.getppid, 0)
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(.01)
thread(libc.pause, %d)
ready()
print("right" if state() == before else state(), flush=True)
os._exit(0)
"""
FS, FILES = 0x200, 0x400


@test
def threads_that_have_parted_are_refused(env):
    for what, shared in ("a working directory", FILES), ("descriptors", FS):
        start(env, APART % shared)
        for way in "suspend", "snapshot":
            one_line(env.podrun(way, "s", "-o", env.path("image"), code=3), "(python", "has %s of its own" % what)
            assert not env.path("image").exists()
        finish(env)
        env.podrun("rm", "s")


@test
def threads_that_had_parted_are_no_more(env):
    start(env, APART % (FS | FILES))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    finish(env)


@test
def a_personality_that_is_not_allowed(env):
    env.prefix = []
    start(env, "ready()\nprint('right')", "setarch", "-R")
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.contain()
    one_line(env.podrun("resume", "-d", env.path("image"), code=4), "personality 0x40000")
    env.prefix = []
    env.podrun("resume", "-d", env.path("image"))
    finish(env)


if __name__ == "__main__":
    main()
