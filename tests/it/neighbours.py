#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections between two sessions, which have no others: either is away, or both: every byte is checked."""
import pathlib
import platform
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import Failed, Skip, add, main, needs_namespaces, test, until  # noqa: E402
from pair import SERVER, goes_on, start, stop  # noqa: E402


def suspend(env, name, i=0):
    image = env.path("%s-%d" % (name, i))
    env.podrun("suspend", name, "-o", image)
    return image


def counted(env, name, file, group, counter):
    """What session @name's kernel has counted so far."""
    text = env.podrun("exec", name, "cat", "/proc/net/" + file).text
    names, values = (line.split() for line in text.splitlines() if line.startswith(group))
    return int(values[names.index(counter)])


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
        return counted(env, "client", "snmp", "Tcp:", "RetransSegs")

    until("it has tried for more than ten seconds", lambda: retransmitted() >= 7)
    before = retransmitted()
    env.podrun("resume", "-d", image)
    assert env.wait("client").split()[-3:] == ["retransmitted", str(before), "intact"]
    env.podrun("kill", "server")


@test
@needs_namespaces("a network of its own")
def by_its_new_name(env):
    """A running session that is renamed is known to its neighbours and at the gateway by the new name, and no other."""
    for name in "before", "asks":
        env.run_detached(name, "sh", "-c", "echo ready; exec sleep 1000", options=["--net", "vnat"])
    known = lambda name: env.podrun("exec", "asks", "getent", "ahosts", name + ".podrun.internal", check=False).code == 0
    assert known("before")
    env.podrun("rename", "before", "after")
    assert known("after") and not known("before")
    assert sorted(s["name"] for s in env.podrun("net", "ls", "--json").json()) == ["after", "asks"]
    env.podrun("net", "stats", "after")
    for name in "after", "asks":
        env.podrun("kill", name, check=False)


# Says "lost" when its connection is; one that gives up after few probes, or few tries of what nobody acknowledges.
PATIENT = r"""
import os, socket, sys, time
how = sys.argv[1]
family = socket.AF_INET6 if sys.argv[2] == "6" else socket.AF_INET
if how == "data": open("/proc/sys/net/ipv4/tcp_retries2", "w").write("3")
s = socket.socket(family)
s.connect(socket.getaddrinfo("server.podrun.internal", 80, family, socket.SOCK_STREAM)[0][4])
if how == "probes":
    for level, option, value in ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
                                 (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)):
        s.setsockopt(level, option, value)
print("ready", flush=True)
while not os.path.exists("/tmp/away"): time.sleep(.01)
if how == "data": s.sendall(b"first")
while not os.path.exists("/tmp/stop"):
    time.sleep(.01)
    error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        print("lost", os.strerror(error), flush=True)
        sys.exit(1)
s.sendall(b"last")
got = b""
while not got.endswith(b"last"):
    got += s.recv(100)
print("got", got.decode(), flush=True)
"""


def nobody_gives_up(env, how, family, tried, expected):
    """@tried: how often the kernel has tried, by one of its counters, when the session comes back."""
    env.run_detached("server", sys.executable, "-c", SERVER, options=["--net", "vnat"])
    env.run_detached("client", sys.executable, "-c", PATIENT, how, str(family),
                     options=["--net", "vnat", *(["--user", "root"] if how == "data" else [])])
    image = suspend(env, "server")
    env.podrun("exec", "client", "touch", "/tmp/away")

    def long_enough():
        if "lost" in env.logs("client"):
            raise Failed(env.logs("client"))
        return counted(env, "client", *tried[:-1]) >= tried[-1]

    until("its neighbour has tried often enough", long_enough)
    env.podrun("resume", "-d", image)
    env.podrun("exec", "client", "touch", "/tmp/stop")
    if env.wait("client").split("\n")[-2] != "got " + expected:
        raise Failed(env.logs("client"))
    env.podrun("kill", "server")


PROBES = "netstat", "TcpExt:", "TCPKeepAlive", 6
TRIES = "snmp", "Tcp:", "RetransSegs", 6


def kernel():
    return tuple(map(int, platform.release().split("-")[0].split(".")[:2]))


@test
@needs_namespaces("a network of its own")
def nobody_gives_up_whose_probes_are_answered(env):
    nobody_gives_up(env, "probes", 6, PROBES, "last")


@test
@needs_namespaces("a network of its own")
def nobody_gives_up_whose_data_has_no_room(env):
    if kernel() < (6, 6):
        raise Skip("before Linux 6.6 a closed window is no reason to go on trying")
    nobody_gives_up(env, "data", 4, TRIES, "firstlast")


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
