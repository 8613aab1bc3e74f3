#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is killed while a session with rewritten names is suspended or resumed, and what is left then.

At each step of base/fault.c's table whoever takes it is stopped, and one of the rewriter, pid 1 and the supervisor is
killed.  It all happens in a container of its own: processes, System V objects, queues and /dev/shm can be counted there.
Afterwards

    the session runs, and there is no image; or it does not, and there is none, or one that is whole;
    after the next command of podrun's there is no process, no object, no queue and no file of it.

A step has one victim, another one with another PODRUN_TEST_SEED; with PODRUN_TEST_KILLS=all each has all three.
"""
import contextlib
import os
import pathlib
import random
import signal
import sys

os.environ["PODRUN_TEST_NAMES"] = "rewrite"
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
sys.path.insert(0, str(TESTS / "state"))
from contained import OURS, contain, objects, processes  # noqa: E402
from faults import due, points, prepare, state  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, PROFILE, Env, Failed, add, main, until  # noqa: E402

# What is made on the host by other means than files of the session's own.
PROGRAMS = [str(BUILD / "tests" / "state" / p) for p in ("sysv_ipc", "mqueue", "mem_devshm")]
RUN = "for p in %s; do $p /tmp/go & done; wait" % " ".join(PROGRAMS)


# ---- what is there ----------------------------------------------------------------------------

VICTIMS = {
    "the rewriter": ("(podrun-rewriter)", "(podrun-rebuild)", "(podrun-freeze)"),
    "pid 1": ("(podrun-init)",),
    "the supervisor": ("podrun supervise (podrun)", "podrun supervise (exe)"),
}


def find(victim):
    return [pid for pid, text in processes().items() if text.endswith(VICTIMS[victim])]


def is_clean():
    return not processes() and not objects()


# ---- one kill ---------------------------------------------------------------------------------

def sessions(env):
    return env.podrun("ps", "--json").json()


def begin(env):
    due(env, None, None)
    env.podrun("rm", "-f", "s", check=False)
    env.podrun("run", "-d", "--name", "s", "--", "sh", "-c", RUN)
    until("all are ready", lambda: env.logs("s").count("ready") == len(PROGRAMS))


def finish(env):
    env.let_end()
    log = env.wait("s")
    if log.count("ok") != len(PROGRAMS):
        raise Failed("the session is not what it was:\n" + log)


def stopped():
    """Who stands at the step, and is podrun's."""
    return [pid for pid, text in processes().items() if "podrun" in text and state(pid) == "T"]


def strike(env, point, victim, command):
    """Runs @command up to @point, and kills there; returns its exit code, and whether anybody was killed."""
    due(env, point.name, "stop")
    p = env.start(PODRUN, *command)
    OURS.append(p.pid)
    until("it stands at " + point.name, lambda: stopped() or p.poll() is not None)
    here, hit = stopped(), find(victim)
    for pid in hit:
        os.kill(pid, signal.SIGKILL)
    for pid in here:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    due(env, None, None)
    code = p.wait(timeout=PATIENCE)
    OURS.remove(p.pid)
    return code, bool(hit)


def runs_on(env, hit):
    """
    Waits until the session runs or nothing of it does; True if it runs.  Without any of the victims it can't, but may
    be listed for a moment.
    """
    def look():
        if not processes():
            return "over"
        return not hit and [s for s in sessions(env) if s["state"] == "running"] and "running"

    return until("it is decided", look) == "running"


def nothing_left(env):
    """What somebody who is killed leaves is removed by the next command, once nobody runs who may still need it."""
    try:
        until("nobody is left", lambda: not processes())
        env.podrun("ps", "-a")
        until("nothing is left", is_clean)
    except Failed:
        raise Failed("left: %s %s" % (processes(), objects())) from None


def suspends(env, point, victim):
    image = env.path("image")
    begin(env)
    code, hit = strike(env, point, victim, ("suspend", "s", "-o", image))
    if runs_on(env, hit):
        if image.exists():
            raise Failed("it runs, and there is an image")
        finish(env)
    elif image.exists():
        nothing_left(env)
        env.podrun("resume", "-d", image)
        finish(env)
        image.unlink()
    elif code == 0:
        raise Failed("the command says that it is suspended, and there is no image")
    nothing_left(env)


def snapshots(env, point, victim):
    image = env.path("image")
    begin(env)
    strike(env, point, victim, ("snapshot", "s", "-o", image))
    env.podrun("kill", "s", check=False)
    nothing_left(env)
    if image.exists():
        env.podrun("rm", "s", check=False)
        env.podrun("resume", "-d", image)
        finish(env)
        image.unlink()
        nothing_left(env)


def resumes(env, point, victim):
    image = env.path("image")
    begin(env)
    env.podrun("suspend", "s", "-o", image)
    nothing_left(env)
    _, hit = strike(env, point, victim, ("resume", "-d", image))
    if runs_on(env, hit):
        finish(env)
    else:
        nothing_left(env)
        r = env.podrun("resume", "-d", image, check=False)
        if r.code == 0:
            finish(env)
        elif r.code != 6:
            raise Failed("the image is neither used up nor good: %s" % r)
    nothing_left(env)
    image.unlink()


WAYS = {"suspend": suspends, "snapshot": snapshots, "resume": resumes}


# ---- all of them ------------------------------------------------------------------------------

def chosen(way):
    rng = random.Random(os.environ.get("PODRUN_TEST_SEED") or None)
    for point in points(way):
        everybody = sorted(VICTIMS)
        yield from ((point, v) for v in (everybody if os.environ.get("PODRUN_TEST_KILLS") == "all"
                                         else [rng.choice(everybody)]))


def inside(way):
    env = Env("kills")
    env.leave()  # we are in it already
    prepare(env)
    try:
        for point, victim in chosen(way):
            print("%s: %s, %s" % (way, point.name, victim), flush=True)
            WAYS[way](env, point, victim)
    finally:
        env.close()


def outside(env, way):
    contain(env, __file__, way, profile=PROFILE[:1])


for _way in WAYS:
    add("somebody_is_killed_in_a_" + _way, lambda env, w=_way: outside(env, w))

if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2])
    else:
        main()
