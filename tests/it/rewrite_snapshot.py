#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots where names are rewritten: the session runs on while its image is written, as everywhere."""
import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import PATIENCE, PODRUN, main, test, until  # noqa: E402

os.environ.setdefault("PODRUN_TEST_PROFILE", "1")

HERE = ("--names", "rewrite", "--net", "host")
# Worth a copy; what it says it has asked the rewriter for.
MUCH = """
import os, sys, time
b = bytearray(os.urandom(1 << 20)) * 64
print('ready', flush=True)
while not os.path.exists('/tmp/go'):
    time.sleep(0.01)
    assert os.getppid() == 1 and os.spawnlp(os.P_WAIT, 'true', 'true') == 0
print('ok' if b[:1 << 20] == b[-1 << 20:] else 'broken', flush=True)
"""


def begin(env, program=MUCH, options=()):
    env.run_detached("s", "python3", "-c", program, options=HERE + tuple(options))
    p = env.start(PODRUN, "snapshot", "s", "-o", "-", stdout=subprocess.PIPE)
    return p, bytearray(p.stdout.read(4096))


def read_until_over(p, image, x):
    """What is written before the session goes on has to be read; it is not over then."""
    while x.poll() is None:
        image += p.stdout.read(65536)
        with contextlib.suppress(subprocess.TimeoutExpired):
            x.wait(0.005)
    assert len(image) < 64 << 20, "the image was written first"


def read_rest(p, image):
    image += p.stdout.read()
    assert p.wait(timeout=PATIENCE) == 0


def finish(env, name):
    env.let_end(name)
    assert "ok" in env.wait(name).split()


@test
def it_is_there_while_its_snapshot_is_written(env):
    """What reads the image is slow: calls are answered, commands taken, and no copies shown."""
    p, image = begin(env)
    x = env.start(PODRUN, "exec", "s", "sh", "-c", "ls /proc | grep -c ^[0-9]; exit 3", stdout=subprocess.PIPE)
    read_until_over(p, image, x)
    seen = int(x.communicate()[0])
    assert x.returncode == 3 and 4 <= seen <= 6, (x.returncode, seen)
    info = env.podrun("inspect", "s").json()
    assert info["state"] == "writing" and all(q["pid"] for q in info["processes"]), info
    assert len(info["processes"]) <= 2, info["processes"]
    one_line(env.podrun("suspend", "s", code=6), "s")
    read_rest(p, image)
    assert env.sessions()[0]["state"] == "running"
    env.path("i").write_bytes(image)
    env.podrun("suspend", "s", "-o", env.path("suspended"))
    env.podrun("resume", "-d", "--name", "t", env.path("i"))
    finish(env, "t")
    for file in ("suspended", "i"):
        env.podrun("resume", "-d", env.path(file))
        finish(env, "s")
        env.podrun("rm", "s")


@test
def it_may_end_while_its_snapshot_is_written(env):
    """It needs nothing of it any more: the image is whole, and then the session has ended."""
    for options in ((), ("--end-with-command",)):
        p, image = begin(env, options=options)
        x = env.start(PODRUN, "exec", "s", "touch", "/tmp/go")
        read_until_over(p, image, x)
        until("it has come to its end", lambda: "ok" in env.logs("s").split())
        read_rest(p, image)
        assert env.wait("s").split() == ["ready", "ok"]
        until("it has ended", lambda: env.podrun("ps", "-a", "--json").json()[0]["state"] == "ended")
        env.podrun("rm", "s")
        env.path("i").write_bytes(image)
        env.podrun("resume", "-d", env.path("i"))
        finish(env, "s")
        env.podrun("rm", "s")


REAPER = """
import ctypes, os, time
b = bytearray(os.urandom(1 << 20)) * 64
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) # PR_SET_CHILD_SUBREAPER
def child():
    pid = os.fork()
    if pid == 0:
        while not os.path.exists('/tmp/go'):
            time.sleep(.01)
        os._exit(7)
    return pid
%s
"""
WAYS = ("""
pid = child()
print('ready', flush=True)
print('ok' if os.waitpid(-1, 0) == (pid, 7 << 8) else 'broken', flush=True)
""", """
pid = child()
print('ready', flush=True)
r = os.waitid(os.P_ALL, 0, os.WEXITED)
print('ok' if (r.si_pid, r.si_status) == (pid, 7) else 'broken', flush=True)
""")


@test
def nobody_is_told_of_the_end_of_a_copy(env):
    """A program that reaps orphans would be its parent."""
    for way in WAYS:
        p, image = begin(env, REAPER % way)
        read_rest(p, image)
        finish(env, "s")
        env.podrun("rm", "s")


@test
def whoever_reads_goes_away(env):
    """The snapshot fails, the session runs on, and the next one is whole."""
    p, _ = begin(env)
    x = env.start(PODRUN, "exec", "s", "true")
    read_until_over(p, bytearray(), x)
    p.stdout.close()
    assert p.wait(timeout=PATIENCE) != 0
    until("it runs", lambda: env.sessions()[0]["state"] == "running")
    env.podrun("snapshot", "s", "-o", env.path("i"))
    finish(env, "s")
    env.podrun("rm", "s")
    env.podrun("resume", "-d", env.path("i"))
    finish(env, "s")


@test
def it_is_killed_while_its_snapshot_is_written(env):
    p, image = begin(env)
    x = env.start(PODRUN, "exec", "s", "true")
    read_until_over(p, image, x)
    env.podrun("kill", "s")
    p.stdout.close()
    assert p.wait(timeout=PATIENCE) != 0
    until("it is gone", lambda: not env.sessions())


if __name__ == "__main__":
    main()
