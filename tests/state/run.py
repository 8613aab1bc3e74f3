#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""State tests: a program sets a kernel state up, says "ready", is moved, and checks the state.

Every program of tests/state is run in each of these ways:

    plain      not in a session at all: the test itself is right
    session    in a session, not moved
    suspend    suspended to a file, resumed from it
    twice      the same two times over
    pipe       suspended into a pipe that is resumed from at once
    snapshot   a snapshot is taken; both the session that ran on and the resumed copy are right
    faults     every step of suspend, snapshot and resume fails once before it succeeds (faults.py)
    kills      the worker is killed at each of these steps
    rewrite    as session, with numbers of tasks that podrun gives instead of the kernel, under the
               default profile of container engines
    leave      the same with a private view, suspended there, and resumed where the kernel has
               numbers for it
    rewritten  moved twice between hosts without namespaces
    back       from such a host to one with namespaces, and back
    kept       a snapshot is taken there; the session runs on, ends, and the copy takes its place
    clocks     as rewritten, between hosts whose clocks are days apart; and
    clocks_back as back, between such

Those built as 32-bit programs (NAME_i386) are run in some of them.

And some of them, because it is podrun's doing and not the program's, in these:

    supervisor the supervisor is killed at each step
    client     the command is killed at each step
    careful    somebody is killed while what waits in a queue has been taken out of it
    rewritten_faults  as faults, between hosts without namespaces
    rooted     as back, with a root directory of its own (run --root)
    accounts   between two accounts without namespaces: what tells of users tells of the session's
    root_inside  as back, as root inside (run --user root)
"""
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import faults as fault_ways  # noqa: E402
import harness  # noqa: E402
import left_out  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, PROFILE, REWRITE, Failed, Skip, add, main, needs, until  # noqa: E402
from tree import make_tree  # noqa: E402

PROGRAMS = BUILD / "tests" / "state"
GO = "/tmp/go"


# Resumed with their memory mapped from the image at first (supervisor/mapped.h).
MAPPED = ("mem_mapped",)


def _finish(env, name):
    env.let_end(name, GO)
    log = env.wait(name)
    if "ok" not in log.split():
        raise Failed("no verdict from %s:\n%s" % (name, log))
    env.podrun("rm", name, check=False)


def plain(env, program):
    go = env.path("go")
    p = env.start(program, go, stdout=subprocess.PIPE)
    patience = threading.Timer(PATIENCE, p.kill)
    patience.start()
    try:
        line = p.stdout.readline()
        if line != b"ready\n":
            raise Failed("not ready but %r" % line)
        go.touch()
        out = p.stdout.read().decode()
        if p.wait() != 0 or "ok" not in out.split():
            raise Failed("exit %d, %s" % (p.returncode, out))
    finally:
        patience.cancel()


def session(env, program):
    env.run_detached("s", program, GO)
    _finish(env, "s")


# These look at /proc, which is a part of the private view.
# An exec is looked at there only.
PRIVATE = {"procfiles", "procfiles_open", "task_headless", "task_robust_exec", "task_seccomp"}


def rewrite(env, program):
    go = env.path("go")
    env.contain()
    if fault_ways.base_name(program) in PRIVATE:
        env.run_detached("s", program, GO, options=("--names", "rewrite", "--net", "host"))
        return _finish(env, "s")
    env.run_detached("s", program, go,
                     options=("--names", "rewrite", "--view", "host", "--net", "host"))
    go.touch()
    log = env.wait("s")
    if "ok" not in log.split():
        raise Failed("no verdict:\n%s" % log)


def resume_here(env, *args):
    """On the host's network somebody else may have been given one of its ports meanwhile, and have it until a minute after."""
    def attempt():
        r = env.podrun("resume", "-d", *args, check=False)
        if r.code and "Address already in use" not in r.errors:
            raise Failed(str(r))
        return r.code == 0

    until("its ports are free", attempt, PATIENCE + 20)


def leave(env, program):
    image = env.path("image")
    env.contain()
    env.run_detached("s", program, GO, options=("--names", "rewrite", "--net", "host"))
    env.podrun("suspend", "s", "-o", image)
    env.leave()
    resume_here(env, image)
    _finish(env, "s")


# Where neither host has namespaces.
def rewritten(env, program, ways=("rewrite", "rewrite")):
    image = env.path("image")
    if set(ways) == {"rewrite"}:
        env.contain()
    env.run_detached("s", program, GO, options=("--names", "rewrite", "--net", "host"))
    for way in ways:
        env.podrun("suspend", "s", "-o", image)
        # By the time it comes back, others have the numbers of its terminals.
        held = [fd for _ in range(6) for fd in os.openpty()] if fault_ways.base_name(program) == "ptys" else []
        resume_here(env, "--names", way, image)
        for fd in held:
            os.close(fd)
        image.unlink()
    _finish(env, "s")


# What each host's monotonic and boot time say more than this one's, in seconds: days apart, up and down.
CLOCKS = ((1000000, 2000000), (87000, 3000000), (400000, 5000000))


def clocks(env, program, ways=("rewrite", "rewrite")):
    image = env.path("image")
    env.elsewhere(*CLOCKS[0], contained=True)
    env.run_detached("s", program, GO, options=("--names", "rewrite", "--net", "host"))
    for way, host in zip(ways, CLOCKS[1:]):
        env.podrun("suspend", "s", "-o", image)
        env.elsewhere(*host, contained=way == "rewrite")
        env.podrun("resume", "-d", "--names", way, image)
        image.unlink()
    _finish(env, "s")


def clocks_back(env, program):
    clocks(env, program, ("kernel", "rewrite"))


# There and back again.
def back(env, program):
    rewritten(env, program, ("kernel", "rewrite"))


def rooted(env, program):
    root = make_tree(env.path("tree"), programs=[program])
    image = env.path("image")
    env.run_detached("s", "/usr/bin/" + program.name, GO,
                     options=("--names", "rewrite", "--net", "host", "--root", root))
    for way in ("kernel", "rewrite"):
        env.podrun("suspend", "s", "-o", image)
        env.podrun("resume", "-d", "--names", way, image)
        image.unlink()
    _finish(env, "s")


# From one account to another without namespaces, and back: the session's ids stay.
def accounts(env, program):
    image = env.path("image")
    elsewhere = ["unshare", "--user", "--map-user=4242", "--map-group=4243"]
    needs("unshare")
    if env.call(*elsewhere, "true", check=False).code:
        raise Skip("this host lets nobody be another account")
    env.contain()
    env.run_detached("s", program, GO, options=("--names", "rewrite", "--net", "host"))
    for prefix in (elsewhere, []):
        env.podrun("suspend", "s", "-o", image)
        env.prefix = prefix + PROFILE
        env.podrun("resume", "-d", "--names", "rewrite", image)
        image.unlink()
    _finish(env, "s")


# As root inside, to where the kernel holds the names, and back.
def root_inside(env, program):
    image = env.path("image")
    env.share_cache()
    env.run_detached("s", program, GO, options=("--names", "rewrite", "--net", "host", "--user", "root"))
    for way in ("kernel", "rewrite"):
        env.podrun("suspend", "s", "-o", image)
        env.podrun("resume", "-d", "--names", way, image)
        image.unlink()
    _finish(env, "s")


def kept(env, program):
    env.contain()
    env.run_detached("s", program, GO, *fault_ways.goes_on(program),
                     options=("--names", "rewrite", "--net", "host"))
    env.podrun("snapshot", "s", "-o", env.path("image"))
    _finish(env, "s")
    resume_here(env, env.path("image"))
    _finish(env, "s")


def suspend(env, program, times=1):
    env.run_detached("s", program, GO)
    for i in range(times):
        image = env.path("image%d" % i)
        env.podrun("suspend", "s", "-o", image)
        env.podrun("resume", "-d", image)
        image.unlink()
    _finish(env, "s")


def twice(env, program):
    suspend(env, program, 2)


def pipe(env, program):
    env.run_detached("s", program, GO)
    a = env.start(PODRUN, "suspend", "s", "-o", "-", stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    b = env.start(PODRUN, "resume", "-d", "--name", "t", "-", stdin=a.stdout,
                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    a.stdout.close()
    _, b_err = b.communicate(timeout=PATIENCE)
    _, a_err = a.communicate(timeout=PATIENCE)
    if a.returncode != 0 or b.returncode != 0:
        raise Failed("suspend %d %s\nresume %d %s" % (
            a.returncode, a_err.decode(), b.returncode, b_err.decode()))
    _finish(env, "t")


def snapshot(env, program):
    env.run_detached("s", program, GO, *fault_ways.goes_on(program))
    env.podrun("snapshot", "s", "-o", env.path("image"))
    _finish(env, "s")
    env.podrun("resume", "-d", "--name", "copy", env.path("image"))
    _finish(env, "copy")


def _faulty(way):
    def run(env, program):
        getattr(fault_ways, way)(env, program, _finish)
    run.__name__ = way
    return run


faults, kills, careful, supervisor, client, rewritten_faults = map(
    _faulty, ("faults", "kills", "careful", "supervisor", "client", "rewritten_faults"))
SOME = ("counter", "pipes", "task_tree")
# What a failed resume leaves on the host's network would be in the way of the next.
SHARING = ("tcp_pair", "tcp_listen")
# Time passes for them.
CLOCKED = ("clocks", "counter", "epolls", "eventfds", "mem_vdso", "task_alarm", "task_in_calls", "task_threads", "task_timers",
           "task_waits", "timerfds")
# What has to do with paths and programs.
ROOTED = ("file_ghost", "file_regular", "inotifys", "mem_deleted_file", "mem_devshm", "mem_private_file", "memfds",
          "posix_locks", "procfiles", "stacked", "task_attributes", "task_fds", "task_headless", "task_robust",
          "task_threads", "task_tree", "unix_abstract", "unix_flight")
# What tells of users.
OWNED = ("dirs_gone", "file_ghost", "file_regular", "memfds", "mqueue", "posix_locks", "procfiles", "signal_storm", "sysv_ipc",
         "task_attributes", "task_signals", "task_tree", "task_waits", "unix_flight", "unix_pair")
# A 32-bit program is another one to few kinds, but to what runs calls in it.
I386_WAYS = (plain, twice, snapshot, rewrite, rewritten)
I386_ONLY = ("i386_family", "i386_task")
I386_KILLED = ("i386_task", "task_in_calls")
I386_BACK = ("i386_family", "i386_task", "netlink", "ptys", "sysv_ipc", "task_threads", "task_timers", "unix_pair")


def _no_i386(env):
    raise Skip("this compiler makes no 32-bit programs (gcc-multilib)")


def _run(env, way, program):
    if program.name in MAPPED:
        env.environ.setdefault("PODRUN_MAP_RUN", "0")
    way(env, program)


def _ways(path):
    name = fault_ways.base_name(path)
    if path.name != name or name in I386_ONLY:
        return I386_WAYS + ((faults, kills) if name in I386_KILLED else ()) + \
            ((leave, back) if name in I386_BACK else ()) + \
            ((clocks, clocks_back) if name in CLOCKED else ())
    return (plain, session, rewrite, leave, rewritten, back, kept, suspend, twice, pipe, snapshot, faults) + \
        ((kills,) if name not in fault_ways.TIMED + fault_ways.WAITING else ()) + \
        ((careful,) if name in fault_ways.CAREFUL else ()) + \
        ((rooted,) if name in ROOTED else ()) + \
        ((clocks, clocks_back) if name in CLOCKED else ()) + \
        ((accounts, root_inside) if name in OWNED else ()) + \
        ((supervisor, client) if name in SOME else ()) + \
        ((rewritten_faults,) if name in SOME + SHARING else ())


# They say themselves who holds the names; and where the rewriter does it is whom those would kill.
OF_THEIR_OWN = (plain, rewrite, leave, rewritten, back, kept, rooted, accounts, root_inside, rewritten_faults)
KILLS = (kills, careful)


def add_program(path):
    for way in _ways(path):
        if path.name in fault_ways.LIVELY and way in (faults, kills) or REWRITE and way in OF_THEIR_OWN + KILLS:
            continue
        fn = lambda env, w=way: _run(env, w, path)  # noqa: E731
        why = left_out.why(path.name, way.__name__) or left_out.why(fault_ways.base_name(path), way.__name__)
        add("%s/%s" % (path.name, way.__name__), harness.left_out(why)(fn) if why else fn)


for path in sorted(PROGRAMS.iterdir()) if PROGRAMS.is_dir() else []:
    if path.is_file() and os.access(path, os.X_OK):
        add_program(path)

if PROGRAMS.is_dir() and not (PROGRAMS / ("pipes" + fault_ways.I386)).exists():
    add("pipes%s/plain" % fault_ways.I386, _no_i386)

if __name__ == "__main__":
    main()
