#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what a shell allows the commands it starts, what it has them ignore, and where nothing can be written.

What is too little for something is said in one line, and the session is as it was.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line  # noqa: E402
from harness import PODRUN, Skip, main, needs, needs_namespaces, test, until  # noqa: E402


def under(env, shell, *words, check=True, code=0):
    """podrun, from a shell in which something was said before."""
    return env.call("bash", "-c", shell + '; exec "$0" "$@"', PODRUN, *words, check=check, code=code)


TALK = ("sh", "-c", "x=$(head -c 300000 /dev/zero | tr '\\0' x); echo ready; while [ ! -e /tmp/go ]; do sleep .01; done; "
                    "echo $x; echo $x >/dev/shm/x; exit 1")


@test
def a_log_that_may_not_grow(env):
    """Nor may an image.  The program has what it is used to: a signal."""
    under(env, "ulimit -f 100", "run", "-d", "--name", "s", "--", *TALK)
    until("ready", lambda: "ready" in env.logs("s"))
    log = env.path("state") / "podrun" / "sessions" / "s" / "supervisor.log"
    for what in "suspend", "snapshot":
        one_line(env.podrun(what, "s", "-o", env.path("i"), code=1), "cannot %s 's'" % what, "File too large")
        assert not env.path("i").exists() and [x["state"] for x in env.sessions()] == ["running"]
    env.let_end()
    assert env.podrun("wait", "s", check=False).text.strip() == str(128 + 25)
    assert log.read_text().count("not in its log any more: File too large") == 1, log.read_text()
    assert "xxx" in env.logs("s")
    env.podrun("rm", "s")


@test
def an_image_with_large_files(env):
    env.run_detached("s", "sh", "-c", "head -c 900000 /dev/urandom >/tmp/f; " + COUNT[2])
    env.podrun("suspend", "s", "-o", env.path("i"))
    one_line(under(env, "ulimit -f 100", "resume", "-d", env.path("i"), code=4), "File too large", "ulimit -f")
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s")


HIGH = """
import os, time, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
os.dup2(os.open("/tmp/f", os.O_RDWR | os.O_CREAT), 1500)
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
print("ok" if os.write(1500, b"x") else "")
"""


@test
def a_descriptor_with_a_high_number(env):
    env.run_detached("s", sys.executable, "-c", HIGH)
    env.podrun("suspend", "s", "-o", env.path("i"))
    one_line(under(env, "ulimit -n 512", "resume", "-d", env.path("i"), code=4), "descriptor 1500", "ulimit -Hn")
    under(env, "ulimit -Sn 512", "resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s").split()


@test
@needs_namespaces("a pid 1 that is not the rewriter's")
def too_little_to_begin_with(env):
    """The image is as good as it was."""
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    one_line(under(env, "ulimit -s 32", "resume", "-d", env.path("i"), code=1), "pid 1 ended while it was starting")
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s")


@test
def too_few_descriptors(env):
    """It is said what there is too little of, wherever it ran short; and nothing of the image."""
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    for limit in "-n 10", "-n 16", "-n 20", "-n 24", "-n 32", "-Sn 20":
        r = under(env, "ulimit " + limit, "resume", "-d", env.path("i"), code=1)
        one_line(r, "Too many open files", "limits open files to %s (ulimit -n)" % limit.split()[1])
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s")


PIPES = """
import os, resource, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
held = [os.pipe() for _ in range(700)]
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
print("ok")
"""


@test
def too_few_descriptors_for_many_files(env):
    """While pipes are made again, podrun has their ends twice."""
    env.run_detached("s", sys.executable, "-c", PIPES)
    env.podrun("suspend", "s", "-o", env.path("i"))
    one_line(under(env, "ulimit -n 2000", "resume", "-d", env.path("i"), code=1), "Too many open files",
             "limits open files to 2000 (ulimit -n)")
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s").split()


FULL = """
import os, time
held = []
try:
    while True: held.append(os.eventfd(0))
except OSError: pass
os.close(held.pop())
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.01)
print("ok")
"""


@test
def a_table_that_is_full(env):
    """podrun has to have all of it open in one process, beside its own, under the same hard limit."""
    under(env, "ulimit -n 300", "run", "-d", "--name", "s", "--", sys.executable, "-c", FULL)
    until("ready", lambda: "ready" in env.logs("s"))
    for way in "suspend", "snapshot":
        one_line(env.podrun(way, "s", "-o", env.path("i"), code=3), "open files of a session", "ulimit -Hn")
    assert not env.path("i").exists() and "ok" in finish(env, "s").split()


@test
def signals_that_are_ignored(env):
    """Inside all is as it is by default."""
    ignored = "grep SigIgn /proc/self/status"
    for name in "CHLD", "PIPE", "HUP":
        shell = "trap '' %s" % name
        under(env, shell, "run", "-d", "--name", "s", "--", "sh", "-c", ignored + "; " + COUNT[2])
        until("ready", lambda: "ready" in env.logs("s"))
        assert "SigIgn:\t0000000000000000" in env.logs("s"), env.logs("s")
        under(env, shell, "suspend", "s", "-o", env.path("i"))
        under(env, shell, "resume", "-d", env.path("i"))
        assert "ok" in finish(env, "s")
        env.podrun("rm", "s")


@test
def a_rename_that_cannot_be_written_down(env):
    """As on a disk that is full."""
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000")
    record = env.path("state") / "podrun" / "sessions" / "s"
    record.chmod(0o500)
    one_line(env.podrun("rename", "s", "t", code=1), "Permission denied")
    record.chmod(0o700)
    assert [x["name"] for x in env.sessions()] == ["s"] and env.podrun("inspect", "s").json()["name"] == "s"
    env.podrun("rename", "s", "t")
    assert env.podrun("inspect", "t").json()["name"] == "t"
    env.podrun("kill", "t")


# A small file system that is full before its sessions have ended.
FULL_DISK = """
set -e
mount -t tmpfs -o size=4m none "$XDG_STATE_HOME"
for s in a b; do "$0" run -d --name $s -- sh -c 'trap "exit 7" TERM; while :; do sleep .01; done' >&2; done
until dd if=/dev/zero of="$XDG_STATE_HOME/filler" bs=64k 2>&1 | grep -q 'No space'; do :; done
"$0" kill a
"$0" stop b
"$0" ps -a --json
"$0" wait b
"""


@test
@needs_namespaces("a small file system of one's own")
def sessions_that_end_on_a_full_disk(env):
    """They have ended, and how is known; none has lost its supervisor."""
    needs("unshare")
    if env.call("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt", check=False).code:
        raise Skip("no namespace to mount a small file system in")
    (env.path("state")).mkdir(exist_ok=True)
    r = env.call("unshare", "-Urm", "bash", "-c", FULL_DISK, PODRUN)
    listed, end = json.JSONDecoder().raw_decode(r.text)
    assert [(x["name"], x["state"]) for x in listed] == [("a", "ended"), ("b", "ended")], r
    assert r.text[end:].split() == ["7"], r


def looked_at(env, name, tasks):
    """It is told of, and so it can be ended."""
    assert [(x["name"], x["tasks"]) for x in env.sessions()] == [(name, tasks)], env.sessions()
    assert len(env.podrun("top", name).text.splitlines()) == 1 + tasks
    env.podrun("rm", "-f", name)
    assert not env.sessions()


@test
def a_command_of_many_words(env):
    """Nearly as many as are taken.  They are the session's, the command's and the process's."""
    words = ["%0100d" % i for i in range(9500)]
    waits = "while [ ! -e /tmp/go ]; do sleep .01; done; "
    env.run_detached("s", "sh", "-c", "echo $#; " + waits + "echo ok $#", "sh", *words, ready="9500")
    env.podrun("exec", "-d", "s", "sh", "-c", waits, "sh", *words)
    env.podrun("snapshot", "s", "-o", env.path("then"))
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    assert json.loads(env.podrun("inspect", "s").text)["command"][4:] == words
    for _ in range(2):
        env.podrun("exec", "-d", "s", "sh", "-c", waits, "sh", *words)
    one_line(env.podrun("exec", "s", "true", "sh", *words, code=125), "too long")
    assert "ok 9500" in finish(env, "s")
    env.podrun("rm", "-f", "s")
    one_line(env.podrun("run", "-d", "--name", "s", "--", "true", *words, *words, code=2), "too long")
    env.podrun("resume", "-d", env.path("then"))
    env.podrun("rm", "-f", "s")
    assert not env.sessions()


MANY = """
import os, signal, sys
for i in range(2200):
    if not os.fork():
        signal.pause()
print("ready", flush=True)
signal.pause()
"""


@test
def many_processes_with_long_command_lines(env):
    env.run_detached("s", sys.executable, "-c", MANY, "x" * 600)
    looked_at(env, "s", 2201)


@test
def clients_that_are_gone_with_what_they_said_unread(env):
    """Their commands do not take it, so that nobody reads from them; they are in nobody's way."""
    env.run_detached("s", *COUNT)
    zeros = open("/dev/zero", "rb")
    clients = [env.start(PODRUN, "exec", "-i", "s", "sleep", "1000", stdin=zeros, stderr=subprocess.DEVNULL)
               for _ in range(132)]
    until("there is no room", lambda: sum(one.poll() == 125 for one in clients) == 4)
    for one in clients:
        one.kill()
        one.wait()
    assert env.podrun("exec", "s", "echo", "hello").text == "hello\n"
    env.podrun("kill", "s")


@test
def output_that_nobody_takes(env):
    """It is kept for whoever ran the command, as long as that is there."""
    env.run_detached("s", *COUNT)
    r, w = os.pipe()
    reader = env.start(PODRUN, "exec", "s", "cat", "/dev/zero", stdout=w)
    os.close(w)
    cat = until("it prints", lambda: [x["host_pid"] for x in env.podrun("top", "--json", "s").json() if "zero" in x["command"]])
    printed = [0]

    def stands():
        printed.append(int(pathlib.Path("/proc/%d/io" % cat[0]).read_text().split()[1]))
        return printed[-1] == printed[-2] > 300000
    until("nobody takes it", stands)
    reader.send_signal(signal.SIGSTOP)
    one_line(env.podrun("rm", "-f", "s", code=6), "it has ended", "not all of its output", "hint: ")
    reader.kill()
    reader.wait()
    os.close(r)
    env.podrun("rm", "s")
    assert not env.sessions()


@test
def fewer_descriptors_than_any_session_needs(env):
    """Too few for any session: it is said so, whatever would have failed first."""
    for n in 5, 16, 31:
        one_line(under(env, "ulimit -n %d" % n, "run", "true", code=125),
                 "cannot start a supervisor: Too many open files", "limits open files to %d" % n)
    assert not env.sessions()


if __name__ == "__main__":
    main()
