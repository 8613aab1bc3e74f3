#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What no image could hold: calls that are not there in a session, and objects whose suspend is refused by name.

Each is a row of docs/coverage.md.  Sockets, terminals and IPC have theirs in run.py, outside.py and rewrite_ipc.py.
"""
import errno
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import finish, one_line  # noqa: E402
from harness import PODRUN, REWRITE, Failed, Skip, add, left_out, main, needs_namespaces, test, until  # noqa: E402

# Number and arguments; which error.
CALLS = {
    "io_setup": (206, (1, 0), errno.ENOSYS),
    "fanotify_init": (300, (0, 0), errno.ENOSYS),
    "userfaultfd": (323, (1,), errno.ENOSYS),
    "io_uring_setup": (425, (1, 0), errno.ENOSYS),
    "landlock_create_ruleset": (444, (0, 0, 1), errno.ENOSYS),
    "memfd_secret": (447, (0,), errno.ENOSYS),
    "map_shadow_stack": (453, (0, 4096, 0), errno.ENOSYS),
    "mseal": (462, (0, 0, 0), errno.ENOSYS),
    "modify_ldt": (154, (0, 0, 0), errno.ENOSYS),
    "prctl, system call user dispatch": (157, (59, 1, 0, 0, 0), errno.EINVAL),
    "arch_prctl, shadow stack": (158, (0x5001, 1), errno.EINVAL),
    "fcntl, F_NOTIFY": (72, (0, 1026, 4), errno.EINVAL),
    "mount": (165, (0, 0, 0, 0, 0), errno.EPERM),
    "umount2": (166, (0, 0), errno.EPERM),
    "pivot_root": (155, (0, 0), errno.EPERM),
    "unshare, of mounts": (272, (0x20000,), errno.EPERM),
    "unshare, of control groups": (272, (0x2000000,), errno.EPERM),
    "setns": (308, (-1, 0), errno.EPERM),
    "bpf": (321, (0, 0, 0), errno.EPERM),
    "perf_event_open": (298, (0, 0, 0, 0, 0), errno.EPERM),
    "open_by_handle_at": (304, (-1, 0, 0), errno.EPERM),
    "open_tree": (428, (-1, 0, 0), errno.EPERM),
    "fsopen": (430, (0, 0), errno.EPERM),
}

CALL = """
import ctypes, sys
c = ctypes.CDLL(None, use_errno=True)
for call in sys.argv[1:]:
    nr, *args = [ctypes.c_long(int(x)) for x in call.split(",")]
    print(c.syscall(nr, *args), ctypes.get_errno())
"""


@test
def calls_that_are_not_there(env):
    said = ",".join
    r = env.podrun("run", "--", sys.executable, "-c", CALL,
                   *[said(map(str, (nr, *args))) for nr, args, _ in CALLS.values()])
    for name, line in zip(CALLS, r.text.splitlines(), strict=True):
        # Where names are rewritten a container engine's profile has its say, too.
        expected = CALLS[name][2:] + ((errno.EPERM, errno.ENOSYS) if REWRITE else ())
        if line not in ["-1 %d" % x for x in expected]:
            raise Failed("%s: %s" % (name, line))


HUGE = "MAP_ANONYMOUS | 0x40000 | 0x4000"  # MAP_HUGETLB, MAP_NORESERVE
# What the program does, and a word of the refusal.
OBJECTS = {
    "a link's name that is gone": (
        "os.symlink('x', '/tmp/soft'); os.open('/tmp/soft', os.O_PATH | os.O_NOFOLLOW); os.unlink('/tmp/soft')",
        "/tmp/soft (deleted) cannot be found by its name any more"),
    "a file whose other name cannot be found": (
        "import atexit; os.mkdir('/tmp/d'); f = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.link('/tmp/f', '/tmp/d/f'); "
        "os.unlink('/tmp/f'); os.chmod('/tmp/d', 0o300); atexit.register(os.chmod, '/tmp/d', 0o700)",
        "has lost the name it was opened by"),
    "shared huge pages": (
        "m = mmap.mmap(-1, 2 << 20, flags=mmap.MAP_SHARED | mmap.%s)" % HUGE, "huge pages (hugetlbfs)"),
    "huge pages of a file": (
        "f = os.memfd_create('h', os.MFD_HUGETLB); os.ftruncate(f, 2 << 20); "
        "m = mmap.mmap(f, 2 << 20, flags=mmap.MAP_PRIVATE | 0x4000)",
        "huge pages (hugetlbfs)"),
    "a vsock socket": (
        "import socket; s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", "(a vsock socket)"),
    "news of pressure": (
        "p = os.open('/proc/pressure/memory', os.O_RDWR); os.write(p, b'some 900000 2000000 ')", "/proc/pressure/memory"),
    "memory of a socket": (
        "import socket; a = socket.create_server(('127.0.0.1', 0)); b = socket.create_connection(a.getsockname()); "
        "m = mmap.mmap(b.fileno(), 4096, prot=mmap.PROT_READ)",
        "memory of a socket"),
}

HOLD = """
import mmap, os, sys, time
exec(sys.argv[1])
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
print("ok")
"""


def has_vsock():
    try:
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def object_is_refused(env, what):
    statement, word = OBJECTS[what]
    if "huge" in what and not os.path.isdir("/sys/kernel/mm/hugepages/hugepages-2048kB"):
        raise Skip("this kernel has no huge pages of 2 MiB")
    env.run_detached("s", sys.executable, "-c", HOLD, statement)
    one_line(env.podrun("suspend", "s", "-o", env.path("i"), code=3), "(python", word)
    if env.path("i").exists() or "ok" not in finish(env, "s"):
        raise Failed("not as before")


def can_be_had(what):
    """By the kernel, or the profile of container engines."""
    if "vsock" in what:
        return has_vsock() and not REWRITE
    return "pressure" not in what or os.access("/proc/pressure/memory", os.W_OK)


for _what in OBJECTS:
    _test = lambda env, w=_what: object_is_refused(env, w)  # noqa: E731
    add("object_is_refused/" + _what.replace(" ", "_").replace("'", ""),
        _test if can_be_had(_what) else left_out("nobody has them here")(_test))


@test
@needs_namespaces("where names are rewritten nobody has an IPC namespace of its own")
def memory_of_an_ipc_namespace_that_was_left(env):
    """Who has its own now can't attach it again.  Browsers' helpers are so for a moment; a suspend waits until it is over."""
    program = ("import ctypes, os, time\nc = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p\n"
               "at = c.shmat(c.shmget(0, 4096, 0o600), None, 0); ctypes.memset(at, 7, 1)\n"
               "if not os.fork():\n    assert c.unshare(0x18000000) == 0; print('ready', flush=True)\n"  # NEWUSER, NEWIPC
               "    while not os.path.exists('/mnt/over'): time.sleep(.01)\n    os._exit(0)\n"
               "while not os.path.exists('/tmp/go'): time.sleep(.01)\nprint(ctypes.string_at(at, 1) == b'\\7' and 'ok')")
    volume = env.path("v")
    volume.mkdir()
    env.run_detached("s", sys.executable, "-c", program, options=["-v", "%s:/mnt" % volume])
    one_line(env.podrun("suspend", "s", "--deadline", "100", code=3), "(python", "an ipc namespace that the process has left")
    later = env.start(PODRUN, "suspend", "s", "--deadline", "100000", stdout=subprocess.DEVNULL)
    (volume / "over").touch()
    if later.wait(100):
        raise Failed("it is not over")
    env.podrun("resume", "-d", "s")
    if "ok" not in finish(env, "s").split():
        raise Failed("not as before")


@test
@needs_namespaces("where names are rewritten the network is the host's")
def an_address_that_a_root_inside_has_given(env):
    """It is not there at a resume, which would fail; the session's own is, and any."""
    program = ("import os, socket, time; a = [socket.create_server((x, 8080)) for x in %r]; print('ready', flush=True)\n"
               "while not os.path.exists('/tmp/go'): time.sleep(.01)\nprint('ok')")
    own = "ip addr add 10.7.7.1/24 dev lo && exec python3 -c \"$0\""
    for addresses, code in (["10.7.7.1"], 3), (["127.0.0.9"], 0), (["0.0.0.0"], 0):
        env.run_detached("s", "sh", "-c", own, program % addresses, options=["--user", "root"])
        r = env.podrun("suspend", "s", "-o", env.path("i"), code=code)
        if code:
            one_line(r, "10.7.7.1:8080", "has given itself")
        else:
            env.podrun("resume", "-d", env.path("i"))
        if "ok" not in finish(env, "s").split():
            raise Failed("not as before")
        env.podrun("rm", "s")


# Both limits are hard: nobody can raise them for the moment.
NO_ROOM = {
    "address space": "resource.setrlimit(resource.RLIMIT_AS, (1, 1))",
    "locked memory": "resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20)); c.mlockall(6)\n"
                     "try:\n    while True: maps.append(mmap.mmap(-1, 4096))\nexcept OSError: pass",
}


def no_room(env, what):
    """A page more is what it takes to ask a task anything."""
    program = ("import ctypes, mmap, os, resource, time; c = ctypes.CDLL(None); maps = []; print('ready', flush=True)\n"
               "%s\nos.mkdir('/tmp/full')\nwhile not os.path.exists('/tmp/go'): time.sleep(.01)\nprint('ok')" % NO_ROOM[what])
    env.run_detached("s", sys.executable, "-c", program)
    until("it is full", lambda: env.podrun("exec", "s", "test", "-e", "/tmp/full", check=False).code == 0)
    for way in "suspend", "snapshot":
        one_line(env.podrun(way, "s", "-o", env.path("i"), code=3), "(python", "no room for one more page")
    if env.path("i").exists() or "ok" not in finish(env, "s"):
        raise Failed("not as before")


for _what in NO_ROOM:
    add("no_room/" + _what.replace(" ", "_"), lambda env, w=_what: no_room(env, w))


UNREAD = ('cp "$(command -v sh)" /tmp/program; chmod 111 /tmp/program; exec /tmp/program -c "$0; echo ready; '
          'while [ ! -e /tmp/go ]; do sleep .02; done; echo ok"')


@test
@needs_namespaces("where names are rewritten such a program is not executed")
def a_program_that_may_not_be_read(env):
    """Nobody could say that it is the same elsewhere; of one that is deleted the memory is carried."""
    env.run_detached("s", "sh", "-c", UNREAD, "true")
    one_line(env.podrun("suspend", "s", "-o", env.path("i"), code=3), "/tmp/program", "Permission denied")
    if "ok" not in finish(env, "s"):
        raise Failed("not as before")
    env.podrun("rm", "s")
    env.run_detached("s", "sh", "-c", UNREAD, "rm /tmp/program")
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    log = finish(env, "s")
    if "ok" not in log.split():
        raise Failed(log)


DEEP = """
import os, sys, time
os.chdir(sys.argv[1])
for i in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
f = open("f", "w") if "file" in sys.argv else os.chdir("/") if "below" in sys.argv else None
if f: os.chdir("/")
print("ready", flush=True)
time.sleep(1000)
"""


@test
@needs_namespaces("where names are rewritten only what a process holds has a path")
def a_path_that_is_too_long(env):
    for i, (place, what, words) in enumerate((("/v", "cwd", "working directory"), ("/v", "file", "fd 3"),
                                              ("/tmp", "below", "the path of d"))):
        volume = env.path("v%d" % i)
        volume.mkdir()
        env.run_detached("s", sys.executable, "-c", DEEP, place, what, options=("-v", "%s:/v" % volume))
        one_line(env.podrun("suspend", "s", code=3), words, "too long", "hint: a path may have 4095 bytes")
        assert [s["state"] for s in env.sessions()] == ["running"]
        env.podrun("kill", "s")
        env.podrun("wait", "s", check=False)
        env.podrun("rm", "s")


if __name__ == "__main__":
    main()
