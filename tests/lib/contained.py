# SPDX-License-Identifier: GPL-2.0-or-later
"""A container of one's own, in which all that a session may leave behind can be counted: processes, objects of System V,
queues and files of /dev/shm.

A suite that wants one calls `contain(env, __file__, ...)`: it is run once more in there, with "--inside" and these
arguments.  There it is pid 1, so the dead come to it.  tests/state, for faults.py, must be in sys.path.
"""
import contextlib
import os
import sys

from faults import children, read, state
from harness import Skip, needs

QUEUES = "/mnt/queues"
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "sh", "-c")
# As root of it, and then as who one is, without any capability.
CONTAINER = """
mount -t tmpfs none /mnt && mkdir %s && mount -t mqueue none %s && mount -t tmpfs none /dev/shm && { %%s; } &&
u=$1 g=$2 && shift 2 && exec unshare --user --map-user="$u" --map-group="$g" "$@"
""" % (QUEUES, QUEUES)
OURS = []  # numbers of children that somebody else here waits for


def contain(env, script, *args, profile=(), network=False, prepare="true", timeout=600, check=True):
    """Runs `script --inside ARGS` there, under `profile`; `prepare` is done first, as root of it, in a shell."""
    needs("unshare")
    env.leave()
    unshare = UNSHARE[:1] + ("--net",) * network + UNSHARE[1:]
    if env.call(*unshare, "mount -t tmpfs none /mnt", check=False).code:
        raise Skip("this host makes no such container for us")
    return env.call(*unshare, CONTAINER % prepare.strip(), "sh", os.getuid(), os.getgid(), *profile, sys.executable, script,
                    "--inside", *args, timeout=timeout, check=check)


def has_ended(pid):
    """All of it: the first thread may have before the others, which have its files open until then."""
    try:
        return state(pid) in ("", "Z", "X") and len(os.listdir("/proc/%d/task" % pid)) < 2
    except OSError:
        return True


def reap():
    for pid in children(os.getpid()):
        if pid not in OURS and has_ended(pid):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def processes():
    """All in this container but us: what they are, by number."""
    reap()
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if pid != os.getpid() and not has_ended(pid):
            found[pid] = "%s (%s)" % (read("/proc/%d/cmdline" % pid).replace("\0", " ").strip(),
                                      read("/proc/%d/comm" % pid).strip())
    return found


def objects():
    found = []
    for sort in ("shm", "sem", "msg"):
        found += [sort + line for line in read("/proc/sysvipc/" + sort).splitlines()[1:]]
    return found + os.listdir(QUEUES) + os.listdir("/dev/shm")
