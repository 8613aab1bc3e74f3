#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: numbers of tasks that podrun gives, where no namespace holds them."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line, read_until, terminal  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, main, needs, needs_built, test, until  # noqa: E402

# What names are rewritten for (tests/lib/profile.c).
os.environ.setdefault("PODRUN_TEST_PROFILE", "1")

HERE = ("--names", "rewrite", "--view", "host", "--net", "host")
SLEEP = ("sh", "-c", "echo ready; exec sleep 1000")


def run(env, *command, **more):
    return env.podrun("run", *HERE, "--rm", "--", *command, **more)


REFUSED = """
import ctypes, errno
call = ctypes.CDLL(None, use_errno=True).syscall
def refusal(nr, *args):
    ctypes.set_errno(0)
    return errno.errorcode[ctypes.get_errno()] if call(nr, *map(ctypes.c_long, args)) == -1 else "-"
NEWUSER = 0x10000000
names = {"unshare": (272, NEWUSER), "clone": (56, NEWUSER | 17, 0, 0, 0, 0), "clone3": (435, 0, 0),
         "setns": (308, -1, 0), "mount": (165, 0, 0, 0, 0, 0), "pivot_root": (155, 0, 0), "chroot": (161, 0),
         "pidfd_getfd": (438, -1, 0, 0), "kcmp": (312, 1, 1, 0, 0, 0), "userfaultfd": (323, 1),
         "mbind": (237, 0, 0, 0, 0, 0, 0), "personality": (135, 0x40000), "io_uring_setup": (425, 0, 0),
         "bpf": (321, 0, 0, 0), "process_madvise": (440, -1, 0, 0, 0, 0), "vsock": (41, 40, 1, 0),
         "getpid": (39,), "uname26": (135, 0x20000), "process_vm_readv": (310, 0, 0, 0, 0, 0, 0)}
print(" ".join("%s=%s" % (k, refusal(*v)) for k, v in names.items()))
"""


@test
def the_environment_is_a_container_engines(env):
    said = dict(w.split("=") for w in env.call(sys.executable, "-c", REFUSED).text.split())
    assert said.pop("clone3") == "ENOSYS", said
    allowed = {k for k, v in said.items() if v != "EPERM"}
    assert allowed == {"getpid", "uname26", "process_vm_readv"}, said


@test
def numbers_begin_with_one(env):
    script = "echo $$ $PPID; sh -c 'echo $$ $PPID'; sleep 0 & wait; echo $!"
    assert run(env, "sh", "-c", script).text.split() == ["2", "1", "3", "2", "4"]


@test
def it_must_be_said_that_the_rest_is_the_hosts(env):
    one_line(env.podrun("run", "--names", "rewrite", "--", "true", code=4), "no network")
    one_line(env.podrun("run", "--view", "host", "--", "true", code=2), "--view")
    one_line(env.podrun("run", *HERE, "-v", "/usr:/mnt", "--", "true", code=2), "--volume")


@test
def jobs_of_a_shell(env):
    script = "set -m; sleep 1000 & kill -STOP %1; wait %1; kill -CONT %1; kill %1; wait %1; echo $?"
    assert run(env, "bash", "-c", script).text.split()[-1] == "143"
    script = "set -m; sleep 1000 | sleep 1000 & sleep 0.1; kill -- -$(jobs -p); wait; echo over"
    assert "over" in run(env, "bash", "-c", script).text


SIGNALS = """
import ctypes, os, signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD])
parent = os.getpid()
if os.fork() == 0:
    os.kill(parent, signal.SIGUSR1)
    os._exit(0)
got = signal.sigwaitinfo([signal.SIGUSR1])
assert (got.si_pid, got.si_code) == (3, 0), got
got = signal.sigwaitinfo([signal.SIGCHLD])
assert got.si_pid == 3, got
assert os.waitid(os.P_ALL, 0, os.WEXITED).si_pid == 3
signal.raise_signal(signal.SIGUSR2)
got = signal.sigwaitinfo([signal.SIGUSR2])
assert got.si_pid == parent == 2, got
print("right")
"""


COUNT = "i=0; while :; do i=$((i+1)); echo $$ $i $(sh -c 'echo $$'); sleep 0.05; done"


@test
def it_moves_between_the_two_ways(env):
    env.prefix = []
    env.run_detached("s", "sh", "-c", COUNT, options=HERE, ready=None)
    until("it counts", lambda: "2 9 " in env.podrun("logs", "s").text)
    env.podrun("pause", "s")
    env.podrun("unpause", "s")
    assert "read" in env.podrun("stacks", "s").text
    env.podrun("snapshot", "s", "-o", env.path("snapshot"))
    assert "read" in env.podrun("image", "stacks", env.path("snapshot")).text
    env.podrun("suspend", "s", "-o", env.path("image"))
    for way in ("rewrite", "kernel", "rewrite", "rewrite"):
        env.podrun("resume", "-d", "--names", way, env.path("image"))
        before = env.podrun("logs", "s").text
        until("it goes on", lambda: len(env.podrun("logs", "s").text) > len(before) + 100)
        assert env.podrun("inspect", "s").json()["config"]["names"] == way
        env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", "--names", "kernel", env.path("image"))
    lines = [line.split() for line in env.podrun("logs", "s").text.splitlines()[:-1]]
    assert [int(a[1]) for a in lines] == list(range(1, len(lines) + 1)), lines
    numbers = [int(a[2]) for a in lines]
    assert {a[0] for a in lines} == {"2"} and min(numbers) > 2, lines
    assert max(numbers) < 10 + 4 * len(lines), lines
    env.podrun("rm", "-f", "s")


@test
def resumed_where_there_are_no_namespaces(env):
    env.prefix = []
    env.run_detached("s", "sh", "-c", COUNT, ready=None)
    until("it counts", lambda: "2 9 " in env.podrun("logs", "s").text)
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.contain()
    one_line(env.podrun("resume", "-d", "--names", "kernel", env.path("image"), code=4), "podrun check")
    one_line(env.podrun("resume", "-d", env.path("image")), "names are rewritten")
    before = env.podrun("logs", "s").text
    until("it goes on", lambda: len(env.podrun("logs", "s").text) > len(before) + 100)
    assert env.podrun("inspect", "s").json()["config"]["names"] == "rewrite"
    env.podrun("rm", "-f", "s")


@test
def one_that_is_paused_is_killed(env):
    for end in ("kill", "stop", "rm"):
        env.run_detached("s", *SLEEP, options=HERE)
        env.podrun("pause", "s")
        env.podrun(end, *(["-f"] if end == "rm" else []), "s")
        until("it has ended", lambda: "running" not in env.podrun("ps", "-a").text and
              "paused" not in env.podrun("ps", "-a").text)
        env.podrun("rm", "s", check=False)


@test
def what_needs_a_namespace_is_not_resumed_without(env):
    env.prefix = []
    env.run_detached("s", "sh", "-c", "echo changed > $HOME/.podrun-test; echo ready; exec sleep 1000")
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.contain()
    one_line(env.podrun("resume", "-d", env.path("image"), code=4), ".podrun-test")
    env.prefix = []
    env.podrun("resume", "-d", env.path("image"))
    env.podrun("rm", "-f", "s")


@test
def who_sent_a_signal(env):
    assert run(env, sys.executable, "-c", SIGNALS).text == "right\n"


STORM = """
import ctypes, os, signal
signal.signal(signal.SIGALRM, lambda s, f: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
getpid = ctypes.CDLL(None, use_errno=True).getpid
assert {getpid() for _ in range(20000)} == {2}
signal.setitimer(signal.ITIMER_REAL, 0)
print("right")
"""


@test
def a_storm_of_signals_ends_no_call(env):
    assert run(env, sys.executable, "-c", STORM).text == "right\n"


@test
def nothing_at_the_wrong_moment_stops_it(env):
    assert run(env, BUILD / "tests" / "it" / "hammer", "4").text == "right\n"


@test
def nobody_outside_is_named(env):
    outside = env.start("sleep", "1000", stdout=subprocess.DEVNULL)
    script = "kill -9 %d; kill -9 -1; kill -0 %d && echo seen; exit 0" % (
        outside.pid, os.getpid())
    r = run(env, "sh", "-c", script)
    assert "seen" not in r.text, r
    assert outside.poll() is None
    outside.send_signal(signal.SIGKILL)
    outside.wait()


@test
def a_debugger_is_told(env):
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); " \
             "print(l.ptrace(16, %d, 0, 0), ctypes.get_errno())" % os.getpid()
    assert run(env, sys.executable, "-c", script).text == "-1 1\n"


@test
def sandboxes_of_namespaces_say_what_they_lack(env):
    """The kernel's own error, as where a container's profile refuses them."""
    needs("bwrap", "unshare")
    r = run(env, "bwrap", "--ro-bind", "/", "/", "true", check=False)
    assert r.code == 1 and "No permissions to create" in r.errors, r
    r = run(env, "unshare", "-r", "true", check=False)
    assert r.code == 1 and "Operation not permitted" in r.errors, r


SIGNALFD = """
import ctypes, os, signal, struct
both = {signal.SIGUSR1, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
mask = struct.pack("16Q", sum(1 << s - 1 for s in both), *[0] * 15)
fd = ctypes.CDLL(None).signalfd(-1, mask, 0)
parent, child = os.getpid(), os.fork()
if child == 0:
    os.kill(parent, signal.SIGUSR1)
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
for _ in both:
    signo, _, code, pid = struct.unpack("IiiI", os.read(fd, 128)[:16])
    print(signal.Signals(signo).name, code, pid == child)
assert os.wait() == (child, 0)
"""


@test
def what_a_signalfd_says(env):
    """As docs/names.md has it: only who waits for a child learns its number."""
    said = sorted(run(env, sys.executable, "-c", SIGNALFD).text.split("\n"))
    assert said == ["", "SIGCHLD 1 False", "SIGUSR1 -28772 True"], said


@test
def what_debuggers_say(env):
    """One line of the kernel's own error, and what they wanted to look at runs on."""
    needs("strace", "gdb")
    env.run_detached("s", "python3", "-c", TICKS, options=HERE)
    for command in (("strace", "true"), ("strace", "-p", "2"), ("gdb", "-nx", "-batch", "-p", "2"),
                    ("gdb", "-nx", "-batch", "-ex", "run", "true")):
        r = env.podrun("exec", "s", *command, check=False)
        # Some gdbs say what they advise in between, and then the error of that.
        assert "Operation not permitted" in r.errors or "Could not attach" in r.text, r
        assert r.code != 0 or command[0] == "gdb", r
    before = len(env.logs("s"))
    until("it goes on", lambda: len(env.logs("s")) > before)
    # What they are for is had from outside, while it runs on.
    env.podrun("snapshot", "s", "-o", env.path("i"))
    env.podrun("image", "core", env.path("i"), "-o", env.path("core"))
    r = env.call("gdb", "-nx", "-batch", "-ex", "thread apply all bt", "python3", env.path("core.2"))
    assert r.text.count("\nThread ") == 2, r
    env.podrun("kill", "s")


@test
def a_child_that_nobody_traces_is_not_born(env):
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); " \
             "print(l.syscall(56, 0x00800000 | 17, 0, 0, 0, 0), ctypes.get_errno())"
    assert run(env, sys.executable, "-c", script).text == "-1 1\n"


@test
def whoever_leaves_its_parents_stays_in(env):
    script = "setsid sh -c 'sleep 1000 & exec sleep 1000' & (sleep 1000 &) & wait; echo ready; " \
             "exec sleep 1000"
    env.run_detached("s", "sh", "-c", script, options=HERE, ready=None)
    until("all are there", lambda: len(env.podrun("top", "s").text.splitlines()) >= 4)
    inside = env.podrun("inspect", "s").json()
    pids = [p["host_pid"] for p in inside["processes"]]
    assert all(p["pid"] < 20 for p in inside["processes"]), inside
    os.kill(inside["supervisor"], signal.SIGKILL)
    until("all have ended", lambda: not any(os.path.exists("/proc/%d" % p) for p in pids))


@test
def commands_see_the_same_numbers(env):
    env.run_detached("s", *SLEEP, options=HERE)
    assert env.podrun("exec", "s", "sh", "-c", "kill -0 2 && echo $$").text.strip() == "3"
    env.podrun("kill", "s", "--signal", "TERM")
    until("it has ended", lambda: env.podrun("ps", "-a", "--json").json()[0]["state"] == "ended")


# Ends when number 2 has, whose end has been told by then.
LAST = """
import os, sys, time
print("in", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(.01)
while True:
    try:
        os.kill(2, 0)
    except ProcessLookupError:
        sys.exit(7)
    time.sleep(.01)
"""


@test
def a_command_that_ends_as_the_session_does_has_its_own_status(env):
    """Who is told of both ends at the same time tells the second one's, too."""
    go = env.path("go")
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e %s ]; do sleep .01; done" % go, options=HERE)
    told = env.podrun("inspect", "s").json()
    last = env.start(PODRUN, "exec", "s", sys.executable, "-c", LAST, go, stdout=subprocess.PIPE)
    assert last.stdout.readline() == b"in\n"
    (started,) = [p["host_pid"] for p in env.podrun("inspect", "s").json()["processes"] if "python" in p["command"]]
    os.kill(told["supervisor"], signal.SIGSTOP)
    try:
        go.touch()
        until("both have ended", lambda: not os.path.exists("/proc/%d" % started))
    finally:
        os.kill(told["supervisor"], signal.SIGCONT)
    assert last.wait(timeout=PATIENCE) == 7
    assert env.wait("s") == "ready\n"


TICKS = """
import threading, time
def sleeper():
    time.sleep(1000)
threading.Thread(target=sleeper, daemon=True).start()
print("ready", flush=True)
while True:
    time.sleep(.01)
    print("tick", flush=True)
"""


def both_sleep(threads):
    """One of them says "tick" now and then, and may be seen in the middle of it."""
    assert {t["tid"] for t in threads} == {2, 3}, threads
    return all(any("sleep" in (f.get("function") or "") for f in t["frames"]) for t in threads)


@test
def where_its_threads_stand(env):
    """Who traces them tells, while the session runs: before a move, and after it."""
    env.run_detached("s", "python3", "-c", TICKS, options=HERE)
    for move in (False, True):
        if move:
            env.podrun("suspend", "s", "-o", env.path("image"))
            env.podrun("resume", "-d", env.path("image"))
        until("both are seen to sleep", lambda: both_sleep(env.podrun("stacks", "--json", "s").json()))
        assert "thread 3" in env.podrun("stacks", "s").text
        before = len(env.logs("s"))
        until("it goes on", lambda: len(env.logs("s")) > before)
    env.podrun("pause", "s")
    one_line(env.podrun("stacks", "s", code=6), "paused")
    env.podrun("kill", "s")


@test
def commands_as_with_namespaces(env):
    env.run_detached("s", "sh", "-c", "echo ready; read line; echo got $line; exit 7",
                     options=HERE + ("-i",))
    assert env.podrun("ps", "--json").json()[0]["name"] == "s"
    told = env.podrun("inspect", "s").json()["config"]
    assert (told["names"], told["view"], told["net"]) == ("rewrite", "host", "host"), told
    assert env.podrun("top", "s").text.split("\n")[1].split()[0] == "2"
    env.podrun("rename", "s", "t")
    r = env.podrun("attach", "t", stdin="hello\n", code=7)
    assert "got hello" in r.text, r
    assert env.podrun("wait", "t").text.strip() == "7"
    assert "got hello" in env.logs("t")
    env.podrun("rm", "t")
    env.run_detached("s", *SLEEP, options=HERE)
    env.podrun("stop", "s")
    assert env.podrun("wait", "s").text.strip() == "143"


@test
def a_terminal(env):
    pid, master = terminal(env, "run", *HERE, "--rm", "-it", "--", "sh")
    os.write(master, b"sh -c 'stty size; exec sleep 1000'\n")
    read_until(master, b"24 80")
    os.write(master, b"\x03")
    os.write(master, b"echo over $((6 * 7)); exit 3\n")
    read_until(master, b"over 42")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


TERMINALS = """
import fcntl, os, struct, sys
names = set()
for i in range(int(sys.argv[1])):
    master, slave = os.openpty()
    name = os.ttyname(slave)
    told = struct.unpack("i", fcntl.ioctl(master, 0x80045430, b"1234"))[0]  # TIOCGPTN
    assert os.readlink("/proc/self/fd/%d" % slave) == name == "/dev/pts/%d" % told, (name, told)
    again = os.open(name, os.O_RDWR | os.O_NOCTTY)
    assert os.path.samestat(os.fstat(again), os.fstat(slave))
    os.write(again, b"x")
    assert os.read(master, 1) == b"x"
    names.add(name)
names.add(os.ttyname(0))
print("right", len(names))
"""


# Takes all numbers up to that of `name`; the descriptors.
def take_terminal(name):
    held = []
    while not os.path.exists(name):
        held += os.openpty()
    return held


@test
def a_terminal_whose_number_is_taken(env):
    env.prefix = []
    pid, master = terminal(env, "run", "--names", "rewrite", "--net", "host", "--name", "s", "-it", "--",
                           "sh")
    os.write(master, b"echo at $(tty) $((6 * 7))\n")
    name = re.search(r"/dev/pts/\d+", read_until(master, b" 42\r\n").decode()).group()
    env.podrun("suspend", "s", "-o", env.path("image"))
    os.close(master)
    os.waitpid(pid, 0)
    held = take_terminal(name)
    pid, master = terminal(env, "resume", "-it", "--names", "rewrite", str(env.path("image")))
    os.write(master, b"echo now $(tty) $(readlink /proc/self/fd/0) $((6 * 7))\n")
    assert ("now %s %s 42" % (name, name)).encode() in read_until(master, b" 42\r\n"), name
    # The host gives the numbers away that the session has, and those that it would have had.
    for fd in held:
        os.close(fd)
    command, other = terminal(env, "exec", "-it", "s", "sh", "-c",
                              "echo at $(tty) $(readlink /proc/self/fd/0) $(stty size <$(tty))")
    told = re.search(r"at (\S+) (\S+) 24 80", read_until(other, b" 80\r\n").decode())
    assert told and told[1] == told[2] != name and told[1].startswith("/dev/pts/"), told
    assert os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]) == 0
    env.podrun("exec", "-i", "s", "sh", "-c", "cat >/tmp/terminals", stdin=TERMINALS)
    os.write(master, b"%s /tmp/terminals 4\n" % sys.executable.encode())
    read_until(master, b"right 5")
    # A moment after a resume it is another, so that programs draw themselves.
    until("it is as large as ours", lambda: env.podrun("exec", "s", "sh", "-c", "stty size <%s" % name).text.split() == ["24", "80"])
    os.write(master, b"exit 3\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


BIRTHS = """
import os, threading
def can():
    try:
        pid = os.fork()
    except BlockingIOError:
        return 0
    if pid == 0:
        os.read(gone[0], 1)
        os._exit(0)
    return pid
gone = os.pipe()
made = []
while len(made) < 100 and (pid := can()):
    made.append(pid)
print(len(made), can())
try:
    threading.Thread(target=lambda: None).start()
    print("a thread more")
except RuntimeError:
    print("no thread")
os.kill(made[0], 9)
os.waitpid(made[0], 0)
print(can() > 0, can())
"""


@test
def each_row_of_the_tables(env):
    program = BUILD / "tests" / "rows" / "rows"
    for prefix in (env.prefix, []):
        env.prefix = prefix
        r = env.podrun("run", "--names", "rewrite", "--net", "host", "--hostname", "rows",
                       "--end-with-command", "--", program)
        assert r.text.endswith(" rows ok\n"), r


@test
def each_row_of_32_bit_programs(env):
    program = needs_built("rows", "rows32")
    for prefix in (env.prefix, []):
        env.prefix = prefix
        r = env.podrun("run", "--names", "rewrite", "--net", "host", "--hostname", "rows",
                       "--end-with-command", "--", program)
        assert r.text.endswith(" rows ok\n"), r


def from_elsewhere(env, *command):
    """In a session that has come from a host with clocks of its own, which `command` is told."""
    script = "import time; print(int(time.clock_gettime(1)), int(time.clock_gettime(7)))"
    env.elsewhere(1000000, 2000000, contained=True)
    env.podrun("run", "-d", "--name", "s", "--names", "rewrite", "--net", "host", "--hostname", "rows", "--",
               "sleep", "1000")
    since = env.podrun("exec", "s", sys.executable, "-c", script).text.split()
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.elsewhere(87000, 3000000, contained=True)
    env.podrun("resume", "-d", "--names", "rewrite", env.path("image"))
    r = env.podrun("exec", "s", *command, "--since", *since, check=False)
    env.podrun("kill", "s")
    return r


@test
def each_row_in_a_session_from_elsewhere(env):
    r = from_elsewhere(env, BUILD / "tests" / "rows" / "rows")
    assert " rows ok\n" in r.text, r


@test
def each_row_of_32_bit_programs_from_elsewhere(env):
    r = from_elsewhere(env, needs_built("rows", "rows32"))
    assert " rows ok\n" in r.text, r


@test
def a_32_bit_program(env):
    program = needs_built("it", "narrow")
    for names, prefix in ("rewrite", env.prefix), ("rewrite", []), ("kernel", []):
        env.prefix = prefix
        r = env.podrun("run", "--names", names, "--net", "host", "--end-with-command", "--", program)
        assert r.text == "right\n", (names, r)


@test
def hammered_by_32_bit_programs(env):
    assert run(env, needs_built("it", "hammer32"), "4").text == "right\n"


@test
def births_are_counted(env):
    r = env.podrun("run", *HERE, "--pids", "20", "--end-with-command", "--", sys.executable, "-c", BIRTHS)
    assert r.text.split("\n")[:3] == ["19 0", "no thread", "True 0"], r


@test
def births_of_32_bit_programs_are_counted(env):
    r = env.podrun("run", *HERE, "--pids", "20", "--end-with-command", "--", needs_built("it", "narrow"), "births")
    assert r.text == "19\n", r


@test
def chosen_where_there_are_no_namespaces(env):
    r = env.podrun("run", "--", "sh", "-c", "echo $$")
    assert r.text == "2\n"
    one_line(r, "user-namespaces", "rewritten", "the network is the host's")
    env.podrun("run", "-d", "--name", "s", "--", *SLEEP)
    told = env.podrun("inspect", "s").json()["config"]
    assert (told["names"], told["view"], told["net"]) == ("rewrite", "private", "host"), told
    env.podrun("kill", "s")
    one_line(env.podrun("run", "--names", "kernel", "--", "true", code=4), "namespaces")
    env.podrun("run", "--", "sh", "-c", "exit 3", code=3)


@test
def what_then_can_not_be_had_is_refused(env):
    for options in (("--net", "none"),):
        one_line(env.podrun("run", *options, "--", "true", code=4), "namespaces", "hint: ",
                 options[0] if len(options[0]) > 2 else "--volume")


@test
def chosen_where_only_mounts_are_refused(env):
    env.prefix = env.prefix + ["--refuse", "mount"]
    one_line(env.podrun("run", "--", "true"), "mount-namespaces", "rewritten")


@test
def check_says_what_is_weaker(env):
    facts = env.podrun("check", "--json").json()
    assert facts["ok"] and facts["names"] == "rewrite", facts
    assert {"network", "connections", "files", "isolation"} <= {w["what"] for w in facts["weaker"]}, facts
    text = env.podrun("check").text
    assert "rewritten by podrun" in text and "to lift it:" in text


@test
def another_listener_is_reported(env):
    env.prefix = env.prefix + ["--listen"]
    facts = env.podrun("check", "--json", code=4).json()
    assert [c["name"] for c in facts["checks"] if c["needed"] and not c["ok"]] == ["no-listener"]
    one_line(env.podrun("run", "--", "true", code=4), "listen", "hint: ")


if __name__ == "__main__":
    main()
