#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections between two sessions, which have no others: either is away, or both: every byte is checked."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import add, main, needs_namespaces, test, until  # noqa: E402
from pair import goes_on, start, stop  # noqa: E402


def suspend(env, name, i=0):
    image = env.path("%s-%d" % (name, i))
    env.podrun("suspend", name, "-o", image)
    return image


def either_is_away(env, family, size):
    start(env, family, size)
    for i, name in enumerate(["client", "server", "client", "server"]):
        image = suspend(env, name, i)
        time.sleep(.5)  # its neighbour tries again
        env.podrun("resume", "-d", image)
        goes_on(env)
    stop(env)


for f in (4, 6):
    for text, n in (("ping_pong", 64), ("in_bulk", 1 << 18)):
        add("either_is_away/%s_by_ipv%d" % (text, f), needs_namespaces("a network of its own")(
            lambda env, f=f, n=n: either_is_away(env, f, n)))


@test
@needs_namespaces("a network of its own")
def both_are_away(env):
    start(env)
    for order in (("client", "server"), ("server", "client")):
        images = [suspend(env, name) for name in order]
        assert {s["state"] for s in env.sessions()} <= {"suspended"}, env.sessions()
        for image in images:
            env.podrun("resume", "-d", image)
        goes_on(env)
        for image in images:
            image.unlink()
    stop(env)


@test
@needs_namespaces("a network of its own")
def it_is_answered_at_once_after_a_long_time(env):
    """By then the neighbour's kernel tries again in ever longer intervals: what it says is kept for who comes back."""
    start(env, size=0)
    image = suspend(env, "server")
    env.podrun("exec", "client", "touch", "/tmp/stop")

    def retransmitted():
        names, values = (line.split() for line in env.podrun("exec", "client", "cat", "/proc/net/snmp").text.splitlines()
                         if line.startswith("Tcp:"))
        return int(values[names.index("RetransSegs")])

    until("it has tried for more than ten seconds", lambda: retransmitted() >= 7)
    before = retransmitted()
    env.podrun("resume", "-d", image)
    assert env.wait("client").split()[-3:] == ["retransmitted", str(before), "intact"]
    env.podrun("kill", "server")


@test
@needs_namespaces("a network of its own")
def a_copy_is_reset_and_the_original_is_not(env):
    start(env)
    image = env.path("image")
    env.podrun("snapshot", "client", "-o", image)
    goes_on(env)
    env.podrun("resume", "-d", image, "--name", "copy")
    assert env.wait("copy").split()[-1] == "reset"
    goes_on(env)
    stop(env)


@test
@needs_namespaces("a network of its own")
def who_is_suspended_is_forgotten_with_the_last_neighbour(env):
    start(env)
    image = suspend(env, "client")
    assert [s["state"] for s in env.podrun("net", "ls", "--json").json() if s["name"] == "client"] == ["suspended"]
    env.podrun("kill", "server")
    until("there is no gateway any more", lambda: not env.podrun("net", "ls", "--json").json())
    env.podrun("resume", "-d", image)
    assert env.wait("client").split()[-1] == "reset"


if __name__ == "__main__":
    main()
