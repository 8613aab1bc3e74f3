#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests of single moments: something happens just when a session is being frozen, or rebuilt.

Whoever is at one of the steps of base/fault.c stops there until the test has done what it wants to be done at that
moment.  What tests/torture has found once and nothing else would is kept here.
"""
import os
import pathlib
import signal
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
sys.path.insert(0, str(TESTS / "state"))
from faults import descendants, due, prepare, read, state  # noqa: E402
from harness import PATIENCE, PODRUN, Failed, add, main, until  # noqa: E402


def at(env, point, what, *command):
    """Runs a command of podrun's, and calls `what` at that step of it."""
    supervisor = env.podrun("inspect", "s").json()["supervisor"]
    due(env, point, "stop")
    p = env.start(PODRUN, *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def standing():
        return [pid for pid in descendants(supervisor)
                if state(pid) == "T" and read("/proc/%d/comm" % pid).startswith("podrun-")]

    try:
        (who,) = until("it stands at " + point, standing)
        what()
        due(env, None, None)
        os.kill(who, signal.SIGCONT)
    finally:
        _, err = p.communicate(timeout=PATIENCE)
    if p.returncode:
        raise Failed(err.decode())



def stopped_when_frozen(env, way):
    """A SIGSTOP that had not arrived when it was frozen arrives afterwards, wherever it goes on."""
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", "sleep 1000 & echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; "
                     "kill -9 $!; wait; echo ok")
    (sleeper,) = [p for p in env.podrun("inspect", "s").json()["processes"] if p["command"] == "sleep 1000"]
    image = env.path("image")
    at(env, "freeze.swept", lambda: os.kill(sleeper["host_pid"], signal.SIGSTOP), way, "s", "-o", image)

    def stands():
        return env.podrun("exec", "s", "cat", "/proc/%d/stat" % sleeper["pid"]).text.split()[2] == "T"

    if way == "snapshot":
        until("it is stopped where it was", stands)
        env.podrun("kill", "s")
        env.podrun("rm", "s")
    env.podrun("resume", "-d", image)
    until("it is stopped where it has come to", stands)
    env.podrun("exec", "s", "touch", "/tmp/go")
    assert "ok" in env.wait("s").split()


for _way in ("suspend", "snapshot"):
    add("stopped_when_frozen/" + _way, lambda env, w=_way: stopped_when_frozen(env, w))

if __name__ == "__main__":
    main()
