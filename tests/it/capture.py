#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How `podrun net capture` ends, and of whom the gateway here knows nothing."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PODRUN, main, needs_namespaces, test, until  # noqa: E402

# Packets to the gateway, until the session is killed.
SENDER = r"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
while True:
    s.sendto(b"hello", ("10.171.0.1", 9))
    time.sleep(.02)
"""


def begin(env, to, **kw):
    p = env.start(PODRUN, "net", "capture", "s", "-w", to, stderr=-1, text=True, **kw)
    assert "capturing" in p.stderr.readline()
    return p


def sender(env):
    env.run_detached("s", "python3", "-c", SENDER, options=["--net", "vnat"])


def close(env):
    env.podrun("kill", "s", check=False)
    env.podrun("rm", "s", check=False)
    until("the gateway ends", lambda: not env.podrun("gateway", "--json").json()["running"])


@test
@needs_namespaces("a network of its own")
def where_nobody_reads(env):
    """The reader has had enough, as `tcpdump -c 5` has: it ends, and another may begin."""
    sender(env)
    for silent in False, True:
        if silent:
            env.podrun("pause", "s")
        with begin(env, "-", stdout=subprocess.PIPE) as p:
            p.stdout.close()
            assert p.wait() == 0
            assert p.stderr.read() == ""
    close(env)


@test
@needs_namespaces("a network of its own")
def where_there_is_no_room(env):
    sender(env)
    with begin(env, "/dev/full") as p:
        assert p.wait() == 1
        assert "/dev/full: No space left" in p.stderr.read()
    close(env)


@test
@needs_namespaces("a network of its own")
def with_its_session(env):
    sender(env)
    with begin(env, env.path("x.pcap")) as p:
        until("packets", lambda: env.path("x.pcap").stat().st_size > 1000)
        env.podrun("kill", "s")
        assert p.wait() == 0
        assert "has left" in p.stderr.read()
    close(env)


@test
@needs_namespaces("a network of its own")
def with_whoever_captures(env):
    """Packets of a worker that is killed are not all there: that is said, and the session goes on."""
    sender(env)
    with begin(env, env.path("x.pcap")) as p:
        os.kill(env.podrun("gateway", "--json").json()["worker"], signal.SIGKILL)
        assert p.wait() == 1
        assert "was killed" in p.stderr.read()
    with begin(env, env.path("x.pcap")) as p:
        until("packets", lambda: env.path("x.pcap").stat().st_size > 1000)
        p.send_signal(signal.SIGINT)
        assert p.wait() == 0
    close(env)


def told(env):
    for name, why in ("away", "is on there"), ("none", "has no gateway"), ("nobody", "gateway"):
        for words in ("stats", name), ("capture", name, "-w", env.path("x.pcap")):
            assert why in env.podrun("net", *words, code=5).errors
    assert not env.path("x.pcap").exists()


@test
@needs_namespaces("a network of its own")
def where_its_gateway_is(env):
    """Not here: that is said of a session of this host's, whether a gateway runs here or not."""
    ssh = env.path("ssh")
    there = env.path("there")
    there.mkdir(0o700)
    ssh.write_text("#!/bin/sh\nshift\nXDG_RUNTIME_DIR=%s PATH=%s:$PATH exec sh -c \"$*\"\n" % (
        there, pathlib.Path(PODRUN).parent))
    ssh.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(ssh)
    for name, options in ("away", ["--gateway", "there"]), ("none", []), ("s", ["--net", "vnat"]):
        if name == "s":
            told(env)
        env.run_detached(name, "sh", "-c", "echo ready; exec sleep 1000", options=options)
    told(env)
    for name in "away", "none":
        env.podrun("kill", name)
    close(env)


if __name__ == "__main__":
    main()
