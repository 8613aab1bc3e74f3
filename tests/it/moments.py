#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests of single moments: something happens just when a session is being frozen, or rebuilt.

Whoever is at one of the steps of base/fault.c stops there until the test has done what it wants to be done at that
moment.  What tests/torture has found once and nothing else would is kept here.
"""
import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
sys.path.insert(0, str(TESTS / "state"))
from faults import children, due, nothing_but, prepare, read, state, stopped  # noqa: E402
from harness import PATIENCE, PODRUN, Failed, add, main, needs_namespaces, test, until  # noqa: E402
from screens import Viewer, begin, inside  # noqa: E402


def ours(env):
    """Processes of podrun's that belong to this test."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if read("/proc/%d/comm" % pid).startswith("podrun-") and str(env.dir) in read("/proc/%d/environ" % pid)]


def at(env, point, what, *command):
    """Runs a command of podrun's, and calls `what` at that step of it."""
    due(env, point, "stop")
    p = env.start(PODRUN, *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def standing():
        return [pid for pid in ours(env) if state(pid) == "T"]

    try:
        (who,) = until("it stands at " + point, standing)
        what()
    except Exception:
        p.kill()
        raise
    finally:
        due(env, None, None)
        for pid in standing():
            os.kill(pid, signal.SIGCONT)
    _, err = p.communicate(timeout=PATIENCE)
    if p.returncode:
        raise Failed(err.decode())


def sleepers(env):
    return [p for p in env.podrun("inspect", "s").json()["processes"] if p["command"] == "sleep 1000"]


def stopped_when_frozen(env, way):
    """A SIGSTOP that had not arrived when it was frozen arrives afterwards, wherever it goes on."""
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", "sleep 1000 & echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; "
                     "kill -9 $!; wait; echo ok")
    (sleeper,) = until("it sleeps", lambda: sleepers(env))
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
    env.let_end()
    assert "ok" in env.wait("s").split()


for _way in ("suspend", "snapshot"):
    add("stopped_when_frozen/" + _way, lambda env, w=_way: stopped_when_frozen(env, w))


@test
def renamed_when_it_has_just_been_suspended(env):
    """Its supervisor is still there, and hears of nothing any more."""
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo ok")
    began = []

    def rename():
        p = env.start(PODRUN, "rename", "s", "t", stderr=subprocess.PIPE)
        fds = pathlib.Path("/proc/%d/fd" % p.pid)
        until("it waits for an answer", lambda: state(p.pid) == "S" and
              any(os.readlink(f).startswith("socket:") for f in fds.iterdir()))
        began.append(p)

    due(env, "suspend.ended", "stop")
    suspend = env.start(PODRUN, "suspend", "s", stdout=subprocess.DEVNULL)
    (supervisor,) = until("it stands", lambda: stopped(env))
    try:
        rename()
    finally:
        due(env, None, None)
        os.kill(supervisor, signal.SIGCONT)
    assert suspend.wait(PATIENCE) == 0
    _, err = began[0].communicate(timeout=PATIENCE)
    assert began[0].returncode == 0, err
    env.podrun("resume", "-d", "t")
    env.let_end("t")
    assert "ok" in env.podrun("wait", "t").text + env.logs("t")
    env.podrun("rm", "t")


@test
def asked_when_it_has_just_been_suspended(env):
    """Its supervisor, which waits for the names before it goes, keeps nobody waiting for an answer."""
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000")
    with open(env.path("state") / "podrun" / "names.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        env.podrun("suspend", "s")
        for words in (("snapshot", "s"), ("pause", "s"), ("exec", "s", "true")):
            p = env.start(PODRUN, *words, stderr=subprocess.PIPE)
            until("it has ended", lambda: p.poll() is not None)
            assert b"'s' is suspended" in p.stderr.read()
    env.podrun("rm", "s")


@test
def told_while_it_stands_still(env):
    """A signal that comes to a session that is paused, as of a timer, goes along when it is suspended."""
    env.run_detached("s", "sh", "-c", "trap 'echo ok; exit' USR1; echo ready; while :; do sleep 0.01; done")
    # a child that has not called exec yet has the same command
    shell = min(env.podrun("inspect", "s").json()["processes"], key=lambda p: p["pid"])
    env.podrun("pause", "s")
    os.kill(shell["host_pid"], signal.SIGUSR1)
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    assert "ok" in env.wait("s").split()


@test
@needs_namespaces("where names are rewritten the session ends with who freezes it")
def stopped_when_its_freezer_is_killed(env):
    """A SIGSTOP that had not arrived is not gone with a worker that has had the process do something meanwhile."""
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", "x=$(head -c 3000000 /dev/zero | tr '\\0' x); sleep 1000 & echo ready; wait")
    (sleeper,) = until("it sleeps", lambda: sleepers(env))
    at(env, "freeze.swept", lambda: os.kill(sleeper["host_pid"], signal.SIGSTOP), "pause", "s")
    (worker,) = [pid for pid in ours(env) if read("/proc/%d/comm" % pid) == "podrun-freeze\n"]
    p = env.start(PODRUN, "suspend", "s", "-o", "-", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.read(500000)  # all records, and something of the shell's memory; more waits for a reader
    os.kill(worker, signal.SIGKILL)
    p.communicate(timeout=PATIENCE)
    assert p.returncode
    until("it is stopped", lambda: "T" in env.podrun("exec", "s", "cat", "/proc/%d/stat" % sleeper["pid"], check=False).text.split()[2:3])
    env.podrun("kill", "s")


@test
def nobody_asks_it_for_anything(env):
    """A supervisor whose first client is killed before it has said what for ends, too."""
    here, there = socket.socketpair()
    p = env.start("sh", "-c", "exec %s supervise 3<&0 </dev/null" % PODRUN, stdin=there)
    there.close()
    here.close()
    p.wait(timeout=PATIENCE)


@test
@needs_namespaces("where names are rewritten nobody is let go before all are")
def killed_by_one_that_runs_already(env):
    """All are let go one by one when a session has been rebuilt, and who runs may kill those who do not yet."""
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", "for i in 1 2 3 4; do p=$p\\ $!; sleep 1000 & done; echo ready; wait $!; "
                     "echo ok $?; kill -9 $p; exit 0")
    image = env.path("image")
    env.podrun("suspend", "s", "-o", image)

    def kill_the_last():
        sleepers = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                    if read("/proc/%d/comm" % pid) == "sleep\n" and str(env.dir) in read("/proc/%d/environ" % pid)]
        os.kill(max(sleepers, key=lambda pid: int(read("/proc/%d/status" % pid).split("NSpid:")[1].split("\n")[0]
                                                  .split()[-1])), signal.SIGKILL)

    at(env, "release.half", kill_the_last, "resume", "-d", image)
    assert "ok 137" in env.wait("s", code=0), env.logs("s")


# ---- somebody ends in the middle ---------------------------------------------------------------

WAITS = "echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo ok"


def in_vain(env, point, victim, *command):
    """Runs a command of podrun's, ends `victim` (called with who stands at that step), and returns what is said."""
    due(env, point, "stop")
    p = env.start(PODRUN, *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    (who,) = until("it stands at " + point, lambda: [pid for pid in ours(env) if state(pid) == "T"])
    due(env, None, None)
    pid = victim(who)
    os.kill(pid, signal.SIGKILL)
    until("it ends, and who goes with it", lambda: ends(pid))
    with contextlib.suppress(ProcessLookupError):
        os.kill(who, signal.SIGCONT)
    _, err = p.communicate(timeout=PATIENCE)
    lines = err.decode().splitlines()
    assert p.returncode and lines[0].startswith("podrun: cannot "), err
    until("nobody is left", lambda: not ours(env))
    return lines


def ends(pid):
    """Stands in the last stop of one that is traced, or has closed everything, and its children have ended."""
    if state(pid) in ("t", "Z", "X", ""):
        return True
    return "FDSize:\t0\n" in read("/proc/%d/status" % pid) and all(state(c) in "ZX" for c in children(pid))


def itself(who):
    return who


def pid_1(who):
    """A child of who rewrites its names, or of the supervisor."""
    stat = read("/proc/%d/stat" % who)
    parent = int(stat.rpartition(")")[2].split()[1])
    (found,) = [pid for above in (who, parent) for pid in children(above)
                if read("/proc/%d/comm" % pid) == "podrun-init\n"]
    return found


ENDS = {
    "worker": (itself, "restore.create", "the worker was killed by signal 9 (Killed)"),
    "rewriter": (itself, "restore.create", "the process that rewrites the session's names was killed by signal 9 (Killed)"),
    "pid_1_before_the_tasks": (pid_1, "restore.world", "the session's pid 1 was killed by signal 9 (Killed)"),
    "pid_1": (pid_1, "restore.link", "the session's pid 1 was killed by signal 9 (Killed)"),
}


def ended_in_a_resume(env, names, victim):
    """What ends in the middle is said in one line, nothing is left of it, and the image can be resumed."""
    who, point, words = ENDS[victim]
    options = ("--names", names)
    image = env.path("image")
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", WAITS, options=(*options, "--net", "host"))
    env.podrun("suspend", "s", "-o", image)
    lines = in_vain(env, point, who, "resume", "-d", *options, image)
    assert len(lines) == 1 and lines[0].endswith(": " + words), lines
    until("nothing but the record is left", lambda: not nothing_but(env, "s"))
    env.podrun("resume", "-d", *options, image)
    env.let_end()
    assert "ok" in env.wait("s").split()


def rewriter_ended_in_a_suspend(env):
    """Who rewrites a session's names is all that holds it."""
    prepare(env)
    due(env, None, None)
    env.run_detached("s", "sh", "-c", WAITS, options=("--names", "rewrite", "--net", "host"))
    lines = in_vain(env, "write.records", itself, "suspend", "s", "-o", env.path("image"))
    assert lines[0].endswith((ENDS["rewriter"][2], "the session has ended")) and "runs on" not in "".join(lines), lines
    assert not env.path("image").exists()


@test
def pasted_in_a_snapshot(env):
    """What a viewer copies while the session is frozen is newer than what had been copied in it."""
    prepare(env)
    due(env, None, None)
    begin(env, "sleep", "1000")
    inside(env, "sh", "-c", "printf before | xclip -selection clipboard -i > /dev/null 2>&1")
    viewer, other = Viewer(env), Viewer(env)
    viewer.said("clipboard 6 before")
    other.said("clipboard 6 before")

    def copy():
        viewer.do("clipboard meanwhile")
        other.said("clipboard 9 meanwhile")

    at(env, "freeze.quiesce", copy, "snapshot", "s", "-o", env.path("image"))
    for selection in "clipboard", "primary":
        until("the session has it", lambda: inside(
            env, "timeout", "10", "xclip", "-selection", selection, "-o").text == "meanwhile")
    env.podrun("kill", "s")


def waits_for_a_gateway():
    """Somebody has connected and nobody has answered: state 2 of an unnamed end of the gateway's socket."""
    rows = [line.split() for line in read("/proc/net/unix").split("\n")]
    return any(row[5:7] == ["02", "0"] and row[7:] and row[7].endswith("/socket") for row in rows)


@test
@needs_namespaces("a network of its own")
def the_gateway_dies_as_it_is_asked(env):
    """Who connects to one that is being killed starts another, as who comes a moment later does."""
    hold = ["--net", "vnat", "--", "sleep", "1000"]
    env.podrun("run", "-d", "--name", "first", *hold)
    words = env.podrun("gateway").text.split()
    keeper, worker = (int(words[words.index(w) + 1].rstrip(",")) for w in ("process", "worker"))
    os.kill(keeper, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    p = env.start(PODRUN, "run", "-d", "--name", "s", *hold, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until("it waits for the gateway", waits_for_a_gateway)
    os.kill(keeper, signal.SIGKILL)
    _, err = p.communicate(timeout=PATIENCE)
    assert p.returncode == 0, err.decode()
    for name in "first", "s":
        env.podrun("kill", name)


for _victim in ("worker", "pid_1_before_the_tasks", "pid_1"):
    add("ended_in_a_resume/" + _victim, needs_namespaces("its kernel names")(
        lambda env, v=_victim: ended_in_a_resume(env, "kernel", v)))
for _victim in ("rewriter", "pid_1_before_the_tasks", "pid_1"):
    add("ended_in_a_rewritten_resume/" + _victim, lambda env, v=_victim: ended_in_a_resume(env, "rewrite", v))
add("rewriter_ended_in_a_suspend", rewriter_ended_in_a_suspend)


if __name__ == "__main__":
    main()
