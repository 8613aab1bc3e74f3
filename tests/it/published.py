#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Published ports of sessions whose clients come again and again."""
import contextlib
import os
import pathlib
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import main, needs_namespaces, quiet_port, test, until  # noqa: E402

# Ends first, so that the session's kernel keeps the connection for a minute (TIME_WAIT).
GREET = """
import socket
l = socket.create_server(('0.0.0.0', 80), backlog=64)
print('ready', flush=True)
while True:
    s, _ = l.accept()
    s.sendall(b'hello')
    s.close()
"""

# Counts who asks, by TCP and UDP.
COUNT = """
import select
import socket
l, u = socket.create_server(('0.0.0.0', 80)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(('0.0.0.0', 80))
n = 0
print('ready', flush=True)
while True:
    for ready in select.select([l, u], [], [])[0]:
        n += 1
        if ready is u:
            u.sendto(b'%d' % n, u.recvfrom(10)[1])
        else:
            s, _ = l.accept()
            s.sendall(b'%d' % n)
            s.close()
"""

# As FTP does: who asks is told of a port that is opened just then, and is nobody's again behind him.
OPEN = """
import socket
l = socket.create_server(('0.0.0.0', 80))
print('ready', flush=True)
while True:
    s, _ = l.accept()
    while s.recv(10):
        with socket.create_server(('0.0.0.0', 81)) as data:
            s.sendall(b'come')
            data.accept()[0].sendall(b'data')
"""


def resets(env):
    """So many the gateway's kernel has sent to sessions."""
    who = env.podrun("gateway", "--json").json()["worker"]
    nets = list(pathlib.Path("/proc/%d/task" % who).glob("*/net"))
    text = next((t / "snmp").read_text() for t in nets if "gw0:" in (t / "dev").read_text())
    names, values = [line.split()[1:] for line in text.splitlines() if line.startswith("Tcp:")]
    return int(dict(zip(names, values))["OutRsts"])


def greeted(port, own):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", own))
        s.connect(("127.0.0.1", port))
        return s.recv(10) + s.recv(10) == b"hello"


def counted(port):
    """What it says by TCP, and then by UDP; None where nobody does."""
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
        with socket.create_connection(("127.0.0.1", port)) as s:
            first = int(s.recv(10))
        u.settimeout(5)
        u.connect(("127.0.0.1", port))
        u.send(b"")
        return first, int(u.recv(10))
    return None


def bound(s, port):
    with contextlib.suppress(OSError):
        s.bind(("127.0.0.1", port))
        return True
    return False


def listens(port):
    """Does somebody outside, as the kernel has it?  Whoever tries would be there already."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(x.split()[1] == "0100007F:%04X" % port and x.split()[3] == "0A" for x in lines)


@test
@needs_namespaces("a network of its own")
def from_a_port_that_was_used_a_moment_ago(env):
    """Its kernel takes the new connection for what it is, as it would without a gateway."""
    port, own = quiet_port(), quiet_port()
    env.run_detached("s", sys.executable, "-c", GREET, options=["-p", "127.0.0.1:%d:80" % port])
    until("it is published", lambda: listens(port) and greeted(port, own))
    before = resets(env)
    for _ in range(16):
        time.sleep(0.01)  # the clock has milliseconds
        assert greeted(port, own)
    assert resets(env) == before, (before, resets(env))
    env.podrun("kill", "s")


def who_counts(env):
    """A session that does, by both protocols: its port, and how that is published."""
    port = quiet_port()
    where = "127.0.0.1:%d:80" % port
    env.run_detached("s", sys.executable, "-c", COUNT, options=["-p", where, "-p", where + "/udp"])
    until("it is published", lambda: listens(port))
    return port, where


@test
@needs_namespaces("a network of its own")
def they_are_those_of_who_takes_its_place(env):
    """A session that goes back to a snapshot has them when it is whole, and the one that runs until then."""
    port, where = who_counts(env)
    env.podrun("snapshot", "s")
    assert counted(port) == (1, 2)
    env.path("fault").write_text("resume.restored fail")
    env.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))
    env.podrun("resume", "-d", "--replace", "s@1", code=1)
    del env.environ["PODRUN_TEST_FAULT"]
    assert counted(port) == (3, 4)
    for _ in range(2):
        while counted(port) < (100,):
            pass
        env.podrun("resume", "-d", "--replace", "s@1")
        until("it is what it was", lambda: (counted(port) or (100,)) < (100,))
    # they are not those of somebody else
    r = env.podrun("run", "-d", "--name", "u", "-p", where, "sleep", "1000", check=False)
    assert r.code != 0 and "published by 's'" in r.errors, r
    env.podrun("kill", "s")


@test
@needs_namespaces("a network of its own")
def somebody_else_has_it_when_the_gateway_is_gone(env):
    """The session has a network again when the port is free."""
    port, where = who_counts(env)
    supervisor, gateway = env.podrun("inspect", "s").json()["supervisor"], env.podrun("gateway", "--json").json()
    os.kill(supervisor, signal.SIGSTOP)
    for how in signal.SIGSTOP, signal.SIGKILL:
        for process in "keeper", "worker":
            os.kill(gateway[process], how)
    log = env.path("state") / "podrun" / "sessions" / "s" / "supervisor.log"
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        until("the port is free", lambda: bound(s, port))
        s.listen()
        os.kill(supervisor, signal.SIGCONT)
        until("that is told", lambda: "port %d of this host is in use" % port in log.read_text())
    until("it is there again", lambda: counted(port))
    env.podrun("kill", "s")


@test
@needs_namespaces("a network of its own")
def one_that_is_told_of_when_it_is_opened(env):
    """Who connects to it at once is not too early."""
    port, data = quiet_port(), quiet_port()
    options = ["-p", "127.0.0.1:%d:80" % port, "-p", "127.0.0.1:%d:81" % data]
    env.run_detached("s", sys.executable, "-c", OPEN, options=options)
    until("it is published", lambda: listens(port))
    with socket.create_connection(("127.0.0.1", port)) as s:
        for _ in range(3):
            until("the other one is not", lambda: not listens(data))
            s.sendall(b"data?")
            assert s.recv(10) == b"come"
            with socket.create_connection(("127.0.0.1", data)) as d:
                assert d.recv(10) == b"data"
    env.podrun("kill", "s")


@test
@needs_namespaces("a network of its own")
def an_address_of_nobody(env):
    """It is named: there may be several."""
    for address, said in ("192.0.2.9", "192.0.2.9"), ("[2001:db8::9]", "2001:db8::9"):
        r = env.podrun("run", "-p", "127.0.0.1:%d:80" % quiet_port(), "-p", "%s:%d:80" % (address, quiet_port()), "true",
                       code=125)
        one_line(r, "this host does not have %s, the address" % said)


if __name__ == "__main__":
    main()
