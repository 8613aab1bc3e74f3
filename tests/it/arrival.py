#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: the world of a session that is moved is made before the session comes, from what is foretold of it
(supervisor/arrival.h), and made again where that was not so.

What became of it is in the log of the supervisor there.  In between stands an `ssh` of the tests', which may change the
greeting, and what it was true of.
"""
import base64
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line, ssh_to  # noqa: E402
from harness import PATIENCE, PODRUN, main, needs_namespaces, test, until  # noqa: E402

KEPT = "the world was there before the image"
AGAIN = "the world is made again"
WHY = "without namespaces there is no world to be made"

# Reads the greeting, hands it to the function, and goes on with what comes of it.
GREETER = """#!/usr/bin/env python3
import base64, os, subprocess, sys
os.environ.update(%r)
os.environ["PATH"] = %r + ":" + os.environ["PATH"]
line = b""
while not line.endswith(b"\\n"):
    line += os.read(0, 1)
open(%r, "ab").write(line)
words = line.decode().split()
%s
p = subprocess.Popen(["sh", "-c", " ".join(sys.argv[2:])], stdin=subprocess.PIPE)
p.stdin.write((" ".join(words) + "\\n").encode())
p.stdin.flush()
while (data := os.read(0, 1 << 20)):
    p.stdin.write(data)
    p.stdin.flush()
p.stdin.close()
sys.exit(p.wait())
"""


def greeted(env, other, code=""):
    """`ssh` leads to `other`, and runs `code` on the words of the greeting."""
    script = env.path("ssh")
    script.write_text(GREETER % ({k: v for k, v in other.environ.items() if k.startswith("XDG_")},
                                 str(pathlib.Path(PODRUN).parent), str(env.path("greetings")), code))
    script.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(script)
    env.environ["PODRUN_LOG"] = "info"


def log(env, name="s"):
    return (env.path("state") / "podrun" / "sessions" / name / "supervisor.log").read_text()


def moved(env, other, code="", **kw):
    """What the supervisor there has said of the move."""
    greeted(env, other, code)
    env.podrun("migrate", "s", "there", **kw)
    return log(other)


@test
@needs_namespaces(WHY)
def it_is_there_before_the_session(env):
    other = env.host("other")
    env.run_detached("s", *COUNT)
    assert KEPT in moved(env, other), log(other)
    assert not env.sessions()
    assert "ok" in finish(other, "s")
    # Nothing is left that was made for it, here or there.
    for e in env, other:
        assert not list((e.path("state") / "podrun" / "sessions").glob(".*")), e


@test
@needs_namespaces(WHY)
def clocks_go_on(env):
    """A time namespace is told of its offsets after all else."""
    other = env.host("other")
    env.run_detached("s", "python3", "-c", """
import time
last = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
print('ready', flush=True)
import os
while not os.path.exists('/tmp/go'):
    now = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    assert all(0 <= b - a < 30 for a, b in zip(last, now)), (last, now)
    last = now
    time.sleep(.01)
print('ok')
""")
    start = ["unshare", "--user", "--map-current-user", "--time", "--monotonic", "5000", "--boottime", "900000"]
    assert KEPT in moved(env, other, "sys.argv[2:2] = %r" % start), log(other)
    assert KEPT in moved(other, env), log(env)
    assert "ok" in finish(env, "s")


@test
@needs_namespaces(WHY)
def files_of_its_own_come_along(env):
    """In /tmp and /run, which are no layers: beside what every session has there, and in its place."""
    other = env.host("other")
    env.run_detached("s", "sh", "-c", """
echo mine > /tmp/mine; mkdir -p /run/mine; echo 127.0.0.1 it > /run/mine/hosts; chmod 700 /run/lock; echo ready
while [ ! -e /tmp/go ]; do sleep .05; done
cat /tmp/mine /run/mine/hosts; stat -c %a /run/lock /tmp; touch /run/lock/x /var/tmp/x && echo ok""")
    assert KEPT in moved(env, other), log(other)
    assert finish(other, "s").split()[-6:] == ["mine", "127.0.0.1", "it", "700", "1777", "ok"], other.logs("s")


@test
@needs_namespaces(WHY)
def who_has_changed_a_layer_is_not_foretold(env):
    other = env.host("other")
    env.run_detached("s", "sh", "-c", "echo mine > /var/tmp/mine; echo ready; while [ ! -e /tmp/go ]; do sleep .05; done; "
                     "cat /var/tmp/mine && echo ok")
    said = moved(env, other)
    assert KEPT not in said and AGAIN not in said, said
    assert " =" not in env.path("greetings").read_text()
    assert finish(other, "s").split()[-2:] == ["mine", "ok"]


@test
@needs_namespaces(WHY)
def a_layer_that_changes_at_the_last_moment(env):
    """Foretold it was not, when the session is frozen it is."""
    other = env.host("other")
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep .05; done; "
                     "cat /var/tmp/late /var/tmp/dir/late; echo more > /var/tmp/dir/more && cat /var/tmp/dir/more && echo ok")
    change = "subprocess.run([%r, 'exec', 's', 'sh', '-c', 'echo one > /var/tmp/late; mkdir /var/tmp/dir; " \
        "echo two > /var/tmp/dir/late'], check=True, stdin=subprocess.DEVNULL, env=dict(os.environ, **%r))" % (
            PODRUN, {k: v for k, v in env.environ.items() if k.startswith("XDG_")})
    said = moved(env, other, change)
    assert AGAIN in said and KEPT not in said, said
    assert finish(other, "s").split()[-4:] == ["one", "two", "more", "ok"], other.logs("s")
    assert not list((other.path("state") / "podrun" / "sessions").glob(".*"))


@test
@needs_namespaces(WHY)
def a_session_that_is_not_as_foretold(env):
    """That of another is foretold of it: what was made for that one is no part of this one."""
    third = env.host("third")
    third.run_detached("s", *COUNT, options=("-w", "/", "--hostname", "another", "--pids", "40"))
    greeted(third, third, "sys.exit(255)")
    third.podrun("migrate", "s", "nowhere", code=8)
    word = third.path("greetings").read_text().split()[-1]
    assert word.startswith("="), word
    other = env.host("other")
    env.run_detached("s", "sh", "-c", "hostname; echo ready; while [ ! -e /tmp/go ]; do sleep .05; done; "
                     "cat /proc/sys/kernel/hostname; ulimit -u; echo ok")
    said = moved(env, other, "words = [w for w in words if w[0] != '='] + [%r]" % word)
    assert KEPT not in said and AGAIN not in said, said
    assert "another" not in finish(other, "s") and "40\n" not in other.logs("s"), other.logs("s")
    assert "ok" in other.logs("s").split()
    third.podrun("kill", "s")


@test
@needs_namespaces(WHY)
def what_makes_no_sense_is_no_misfortune(env):
    """The image is what counts."""
    other = env.host("other")
    said = [b"\0\0\0", b"\xff" * 900, b"\x0a\x04\x0a\x02..",  # no name
            b"\x0a\x0a\x0a\x01s\x62\x05/nope"]  # a root that is not there, which is found out when the world is made
    for word in ["=", "=%%%%"] + ["=" + base64.b64encode(b).decode() for b in said]:
        env.run_detached("s", *COUNT)
        said = moved(env, other, "words = [w for w in words if w[0] != '='] + [%r]" % word)
        assert KEPT not in said and AGAIN not in said, (word, said)
        assert "ok" in finish(other, "s")
        for e in env, other:
            e.podrun("rm", "s")


@test
@needs_namespaces(WHY)
def nobody_comes(env):
    """Whoever was waited for with a world leaves nothing of it."""
    other = env.host("other")
    env.run_detached("s", *COUNT)
    greeted(env, other, """
p = subprocess.Popen(["sh", "-c", " ".join(sys.argv[2:])], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdin.write((" ".join(words) + "\\n").encode())
p.stdin.flush()
assert p.stdout.readline() == b"HERE\\n"
p.stdin.close()
open(%r, "w").write(p.stdout.readline().decode())
sys.exit(p.wait())
""" % str(env.path("answer")))
    one_line(env.podrun("migrate", "s", "there", code=8), "there")
    assert "ok" in finish(env, "s")
    until("nothing is left there", lambda: not list((other.path("state") / "podrun" / "sessions").glob("*")))
    assert not other.sessions()
    assert env.path("answer").read_text().startswith("FAIL "), env.path("answer").read_text()


@test
@needs_namespaces(WHY)
def an_older_podrun_takes_no_line_as_long(env):
    """It ends at one as at any wrong usage, and is greeted again without what is foretold."""
    other = env.host("other")
    greeted(env, other, "if len(line) > 511: sys.exit(2)")
    env.run_detached("s", *COUNT)
    env.podrun("migrate", "s", "there")
    lines = env.path("greetings").read_text().splitlines()
    assert [len(line) > 511 for line in lines] == [True, False], lines
    assert all(line.startswith("podrun-receive 2 ") for line in lines), lines
    assert "ok" in finish(other, "s")


if __name__ == "__main__":
    main()
