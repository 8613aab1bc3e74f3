#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: a session without namespaces that does whatever comes.

PODRUN_TEST_SEED is where it begins and PODRUN_TEST_CALLS how many calls are made (20000, by 4 processes).
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, PATIENCE, PROFILE, Failed, add, main, needs_built, test, until  # noqa: E402

SEED = int(os.environ.get("PODRUN_TEST_SEED") or time.time())
CALLS = int(os.environ.get("PODRUN_TEST_CALLS", "20000"))
IGNORED = [n for n in range(1, 65) if n not in (9, 17, 19, 32, 33)]
WAYS = {"private": ("--names", "rewrite", "--net", "host"),
        "host": ("--names", "rewrite", "--net", "host", "--view", "host"),
        "root": ("--names", "rewrite", "--net", "host", "--user", "root")}


def processes_of(env, name):
    told = env.podrun("inspect", name).json()
    return [p["host_pid"] for p in told["processes"]] + [told["init_pid"], told["supervisor"]]


def still_well(env, name):
    """A session in which everything has been tried does what it is asked to, and can be ended."""
    r = env.podrun("exec", name, "sh", "-c", "sleep 0 & wait $! && echo well $$")
    assert r.text.startswith("well "), r
    pids = processes_of(env, name)
    env.podrun("kill", name)
    until("all of %s have ended" % name, lambda: not any(os.path.exists("/proc/%d" % p) for p in pids))


def calls(env, view, place, program="calls", moved=False):
    caller = needs_built("attack", program)
    env.prefix = place
    victim = env.start("sleep", "1000", stdout=subprocess.DEVNULL)
    files = env.path("files")
    files.mkdir()
    script = "cp %s %s/calls && %s/calls %d %d %s" % (
        (caller, "/tmp", "/tmp", SEED, CALLS, "/tmp") if view != "host" else
        (caller, env.dir, env.dir, SEED, CALLS, files))
    # The command's own process, sh, is not what counts: it may be killed by what it has started.
    env.podrun("run", "-d", "--name", "s", "--pids", "60", *WAYS[view], "--", "sh", "-c",
               "trap '' %s; while :; do sleep 1000; done" % " ".join(map(str, IGNORED)))
    if moved:  # its clocks are others than the host's from then on
        env.podrun("suspend", "s", "-o", env.path("image"))
        env.podrun("resume", "-d", "--names", "rewrite", env.path("image"))
    job = env.start(BUILD / "podrun", "exec", "s", "sh", "-c", script, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, errors="replace")
    said = ""
    try:
        said, _ = job.communicate(timeout=PATIENCE + CALLS / 200)
    except subprocess.TimeoutExpired:
        job.kill()
        raise Failed("seed %d: the calls come to no end" % SEED) from None
    if "done: " not in said:
        raise Failed("seed %d: ended with %d: %s" % (SEED, job.returncode, said[-2000:]))
    still_well(env, "s")
    assert victim.poll() is None, "seed %d: somebody outside has been ended" % SEED
    victim.send_signal(signal.SIGKILL)


for each in WAYS:
    add("calls/" + each, lambda env, w=each: calls(env, w, PROFILE))
    add("calls32/" + each, lambda env, w=each: calls(env, w, PROFILE, "calls32"))
add("calls/moved", lambda env: calls(env, "private", PROFILE, moved=True))
add("calls32/moved", lambda env: calls(env, "private", PROFILE, "calls32", moved=True))
add("calls/free", lambda env: calls(env, "private", []))


BOMB = "trap '' 1 2 3 15; bomb() { bomb | bomb & }; bomb; exec sleep 1000"


@test
def a_bomb_of_forks_is_bounded(env):
    env.prefix = PROFILE
    env.podrun("run", "-d", "--name", "s", "--pids", "50", *WAYS["host"], "--", "bash", "-c", BOMB)

    def count():
        told = env.podrun("inspect", "s").json()["processes"]
        return len([p for p in told if p["state"] != "Z" and p["pid"] != 1])
    most = 0
    end = time.monotonic() + 2
    while time.monotonic() < end:
        most = max(most, count())
    assert 10 < most <= 50, most
    pids = processes_of(env, "s")
    env.podrun("kill", "s")
    until("all have ended", lambda: not any(os.path.exists("/proc/%d" % p) for p in pids))


CLOSE = """
import os, signal
for fd in range(0, 4096):
    if fd != 1:
        try:
            os.close(fd)
        except OSError:
            pass
for i in range(200):
    pid = os.fork()
    if pid == 0:
        os.closerange(0, 1 << 20)
        os.kill(os.getppid(), 0)
        os._exit(3)
    assert os.waitpid(pid, 0) == (pid, 3 << 8)
os.write(1, b"right\\n")
"""


@test
def descriptors_of_others_are_not_closed(env):
    env.prefix = PROFILE
    r = env.podrun("run", *WAYS["host"], "--", sys.executable, "-c", CLOSE)
    assert r.text == "right\n", r


if __name__ == "__main__":
    main()
