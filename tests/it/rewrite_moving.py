#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what a session with rewritten names takes along, and what it shares."""
import os
import pathlib
import sys

os.environ["PODRUN_TEST_NAMES"] = "rewrite"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import main, test  # noqa: E402

# Inside: holds something at the path argv[2], which is the host's or the session's.
HOLDER = """
import mmap, os, socket, sys, time
what, path = sys.argv[1:]
if what == "port":
    kept = socket.create_server(("127.0.0.1", 0))
elif what == "socket":
    kept = socket.socket(socket.AF_UNIX)
    kept.bind(path)
elif what == "fifo":
    os.mkfifo(path)
    kept = os.open(path, os.O_RDWR)
else:
    kept = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(kept, b"x" * 4096)
    if what == "mapped":
        kept = [mmap.mmap(kept, 4096), os.close(kept)]
    if what == "read":
        os.dup2(os.open(path, os.O_RDONLY), kept)
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(0.01)
print("ok")
"""


def hold(env, what, path):
    env.run_detached("s", "python3", "-c", HOLDER, what, path)
    env.podrun("snapshot", "s", "-o", env.path("i"))


def finish(env, name):
    env.let_end(name)
    assert "ok" in env.wait(name).split()
    env.podrun("rm", name)


@test
def a_copy_shares_nothing_that_is_written_to(env):
    place = pathlib.Path("/var/tmp") / env.dir.name
    for what, word in (("file", "host's file"), ("mapped", "host's file"), ("fifo", "host's FIFO"),
                       ("socket", "host's socket"), ("port", "127.0.0.1")):
        try:
            hold(env, what, place)
            one_line(env.podrun("resume", "-d", "--names", "rewrite", "--name", "t", env.path("i"), check=False), word,
                     "" if what == "port" else str(place))
            assert [s["name"] for s in env.sessions()] == ["s"]
            assert what == "port" or place.exists(), what
        finally:
            place.unlink(missing_ok=True)
        finish(env, "s")


@test
def a_copy_has_what_is_its_own(env):
    place = pathlib.Path("/var/tmp") / env.dir.name
    for what, path in (("file", "/tmp/f"), ("mapped", "/run/f"), ("fifo", "/tmp/f"), ("socket", "/tmp/f"),
                       ("read", place)):
        try:
            hold(env, what, path)
            env.podrun("resume", "-d", "--name", "t", env.path("i"))
            finish(env, "t")
        finally:
            place.unlink(missing_ok=True)
        finish(env, "s")


@test
def a_command_of_many_words(env):
    """What the rewriter is told to begin with is more than a socket takes at once."""
    words = ["%0100d" % i for i in range(4000)]
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep .01; done; echo ok $#", "sh", *words)
    for _ in range(10):
        env.podrun("suspend", "s", "-o", env.path("i"))
        env.podrun("resume", "-d", env.path("i"))
    env.let_end("s")
    assert env.wait("s").split() == ["ready", "ok", "4000"]


if __name__ == "__main__":
    main()
