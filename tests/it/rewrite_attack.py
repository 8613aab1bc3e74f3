#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what a session without namespaces tries against others must fail.

The attacks are programs (tests/attack); what they try against is another process of the same user, and
podrun's own: supervisor, rewriter, pid 1.  Afterwards each of these is as it was.
"""
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PATIENCE, PROFILE, Failed, add, main, needs_built, test, until  # noqa: E402

HERE = ("--names", "rewrite", "--view", "host", "--net", "host")
ROOT = ("--user", "root")
READY = ("sh", "-c", "trap '' USR1; echo ready; exec sleep 1000")


def stat(pid):
    """What others can change of a process: state, nice, priority, policy, processors, limits."""
    text = pathlib.Path("/proc/%d/stat" % pid).read_text()
    fields = text[text.rindex(")") + 2:].split()
    # Field 3 of proc(5) is the first here.
    numbers = {k: fields[k - 3] for k in (5, 6, 18, 19, 40, 41)}
    status = pathlib.Path("/proc/%d/status" % pid).read_text()
    lines = [ln for ln in status.split("\n") if ln.startswith(("Cpus_allowed:", "TracerPid:"))]
    limits = pathlib.Path("/proc/%d/limits" % pid).read_text() \
        if os.access("/proc/%d/limits" % pid, os.R_OK) else ""
    return fields[0] in "tTZX", numbers, lines, limits


class Scene:
    """A session that lives, a victim outside, and what is known of podrun's processes."""

    def __init__(self, env, program="attack", options=()):
        self.env = env
        self.program = needs_built("attack", program)
        self.file = env.path("victim")
        self.victim = env.start(self.program, "victim", self.file, stdout=subprocess.DEVNULL)
        until("the victim is there", self.file.exists)
        env.run_detached("s", *READY, options=HERE + options)
        told = env.podrun("inspect", "s").json()
        init = told["init_pid"]
        rewriter = int(pathlib.Path("/proc/%d/status" % init).read_text()
                       .split("PPid:")[1].split()[0])
        self.targets = {"victim": self.victim.pid, "supervisor": told["supervisor"],
                        "rewriter": rewriter, "pid 1": init}
        self.before = {k: stat(p) for k, p in self.targets.items()}

    def try_all(self, name, targets=None):
        for target in targets or self.targets:
            r = self.env.podrun("exec", "s", self.program, name, self.file, self.targets[target],
                                check=False)
            if r.code != 0 or "done" not in r.text:
                raise Failed("%s against the %s\n%s" % (name, target, r))
            self.check(name, target)

    def check(self, name, target):
        assert self.victim.poll() is None, "%s: the victim has ended: %s" % (
            name, self.victim.returncode)
        for k, p in self.targets.items():
            try:
                until("%s against the %s has left the %s as it was" % (name, target, k),
                      lambda p=p, k=k: stat(p) == self.before[k], 5)
            except OSError:
                raise Failed("%s against the %s has ended the %s" % (name, target, k)) from None

    def end(self):
        self.env.podrun("kill", "s", check=False)
        self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()


# In a container; there as root inside; without Landlock, which would hide what else fails; and where all is allowed.
PLACES = {"": PROFILE, "/root": PROFILE, "/unfenced": PROFILE + ["--refuse", "landlock_create_ruleset"] + PROFILE,
          "/free": []}


def attack(name, targets=None, places=PLACES):
    for place in places:
        def run(env, place=place):
            env.prefix = PLACES[place]
            scene = Scene(env, options=ROOT if place == "/root" else ())
            try:
                scene.try_all(name, targets)
            finally:
                scene.end()
        add(name + place, run)

    def run_32(env):
        """As a 32-bit program, whose calls have a table of their own; its victim as well, for addresses."""
        env.prefix = PLACES["/unfenced"]
        scene = Scene(env, "attack32")
        try:
            scene.try_all(name, targets)
        finally:
            scene.end()
    if "/unfenced" in places:
        add(name + "/32", run_32)


for each in ("signals", "attributes", "looks", "owners"):
    attack(each)
# Files of /proc are the host's where nothing but Landlock keeps them closed.
attack("inspects", places=("", "/free"))
for each in ("peers", "shared", "first", "terminal", "owners_race", "pidfd_race", "reuse"):
    attack(each, ["victim"])


def births(env, kill, program="attack"):
    """All that was ever born in a session ends with it: nobody holds the FIFO any more."""
    attacker = needs_built("attack", program)
    fifo = env.path("fifo")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    env.path("victim").write_bytes(b"\\0" * 256)
    env.podrun("run", "-d", "--name", "s", *HERE, "--", "sh", "-c",
               "exec 9>%s; %s births %s; exec sleep 1000" % (fifo, attacker, env.path("victim")))
    until("all are born", lambda: "done" in env.logs("s"))
    log = env.logs("s")
    assert "outside" not in log and "reached" not in log, log
    kill(env.podrun("inspect", "s").json())
    poll = select.poll()
    poll.register(reader, 0)
    end = time.monotonic() + PATIENCE
    while not any(e & select.POLLHUP for _, e in poll.poll(100)):
        if time.monotonic() > end:
            raise Failed("somebody has outlived the session")
    os.close(reader)


@test
def births_end_with_the_supervisor(env):
    births(env, lambda told: os.kill(told["supervisor"], signal.SIGKILL))


@test
def births_of_32_bit_programs_end_with_the_supervisor(env):
    births(env, lambda told: os.kill(told["supervisor"], signal.SIGKILL), "attack32")


@test
def births_end_with_pid_1(env):
    births(env, lambda told: os.kill(told["init_pid"], signal.SIGKILL))


@test
def births_end_with_the_rewriter(env):
    births(env, lambda told: os.kill(int(
        pathlib.Path("/proc/%d/status" % told["init_pid"]).read_text()
        .split("PPid:")[1].split()[0]), signal.SIGKILL))


@test
def births_end_with_kill(env):
    births(env, lambda told: env.podrun("kill", "s"))


if __name__ == "__main__":
    main()
