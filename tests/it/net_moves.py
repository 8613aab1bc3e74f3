#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections through the gateway to a server of the host's, of sessions that are moved: every byte is checked."""
import contextlib
import fcntl
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from echo import Server  # noqa: E402
from harness import PODRUN, Skip, add, main, needs_namespaces, quiet_port, test, until  # noqa: E402

LOOPBACK = "10.171.0.100"  # what stands for the host's, inside

# Inside: sends bytes that tell their place, and reads them back, until /tmp/stop is there.
CLIENT = r"""
import os, socket, sys
def pattern(at, n): return bytes((i * 7 + i // 251) & 255 for i in range(at, at + n))
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
sent = got = 0
block = int(sys.argv[3])
print("ready", flush=True)
def ends(fn, *args):
    try:
        return fn(*args)
    except (ConnectionResetError, BrokenPipeError):
        print("reset", flush=True)
        sys.exit(0)
while not os.path.exists("/tmp/stop"):
    ends(s.sendall, pattern(sent, block))
    sent += block
    while got < sent:
        data = ends(s.recv, 65536)
        if data != pattern(got, len(data)) or not data:
            print("wrong at", got, flush=True)
            sys.exit(1)
        got += len(data)
print("intact", flush=True)
"""


def start(env, server, block):
    env.run_detached("s", sys.executable, "-c", CLIENT, LOOPBACK, str(server.port), str(block),
                     options=["--net", "vnat", "--host-loopback=" + LOOPBACK])
    server.goes_on()


def stop(env, server):
    env.let_end("s", "/tmp/stop")
    assert env.wait("s").split()[-1] == "intact"
    assert server.clients == 1, server.clients


def moves(env, block):
    server = Server()
    start(env, server, block)
    for i in range(3):
        env.podrun("suspend", "s", "-o", env.path("i%d" % i))
        env.podrun("resume", env.path("i%d" % i), "-d")
        server.goes_on()
    stop(env, server)


for text, size in (("ping_pong", 64), ("in_bulk", 65536)):
    add("a_connection_survives_suspends_" + text, needs_namespaces("a network of its own")(
        lambda env, size=size: moves(env, size)))


@test
@needs_namespaces("a network of its own")
def a_snapshot_leaves_it_alone_and_a_copy_finds_it_reset(env):
    server = Server()
    start(env, server, 4096)
    env.podrun("snapshot", "s", "-o", env.path("i"))
    server.goes_on()
    env.podrun("resume", env.path("i"), "--name", "copy", "-d")
    assert env.wait("copy").split()[-1] == "reset"
    server.goes_on()
    stop(env, server)


@test
@needs_namespaces("a network of its own")
def a_failed_suspend_leaves_it_alone(env):
    server = Server()
    start(env, server, 4096)
    assert env.podrun("suspend", "s", "-o", "/nonexistent/i", check=False).code
    server.goes_on()
    stop(env, server)


MANY = r"""
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
there = []
for _ in range(int(sys.argv[3])):
    there.append(socket.create_connection((sys.argv[1], int(sys.argv[2]))))
print("ready", flush=True)
assert all(s.recv(1) == b"x" for s in there)
print("heard", flush=True)
assert all(s.recv(1) == b"" for s in there)
"""


@test
@needs_namespaces("a network of its own")
def nothing_is_lost_that_comes_for_many_meanwhile(env):
    count = 1500
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < count + 200:
        raise Skip("%d descriptors are not enough" % hard)
    with socket.create_server(("127.0.0.1", 0), backlog=count) as listener:
        env.run_detached("s", sys.executable, "-c", MANY, LOOPBACK, str(listener.getsockname()[1]), str(count),
                         options=["--net", "vnat", "--host-loopback=" + LOOPBACK])
        clients = [listener.accept()[0] for _ in range(count)]
        env.podrun("suspend", "s", "-o", env.path("i"))
        before = env.podrun("net", "stats", "--json").json()[0]["dropped"]
        for c in clients:
            c.sendall(b"x")
        # The gateway has it all: whoever sent it has been told so.
        until("all of it has left", lambda: not any(
            struct.unpack("i", fcntl.ioctl(c, termios.TIOCOUTQ, b"\0" * 4))[0] for c in clients))
        env.podrun("resume", env.path("i"), "-d")
        until("it hears all of it", lambda: "heard" in env.logs("s"))
        assert env.podrun("net", "stats", "--json").json()[0]["dropped"] == before
        # Nor is what all of them say at once when they go on: bytes, packets, errors and drops, in and then out.
        (net0,) = [line.split() for line in env.podrun("exec", "s", "cat", "/proc/net/dev").text.splitlines() if "net0" in line]
        assert net0[12] == "0", net0
        for c in clients:
            c.close()
    env.wait("s")


def asks(port):
    """Does somebody on this host connect to @port, and is not answered?"""
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(x[2] == "0100007F:%04X" % port and x[3] == "02" for x in lines)


@test
@needs_namespaces("a network of its own")
def a_connect_that_is_answered_meanwhile_succeeds(env):
    server = Server(accepts=False)
    with socket.create_connection(("127.0.0.1", server.port)):
        env.run_detached("s", sys.executable, "-c", CLIENT, LOOPBACK, str(server.port), "64", ready="",
                         options=["--net", "vnat", "--host-loopback=" + LOOPBACK])
        until("the gateway asks for it", lambda: asks(server.port))
        env.podrun("suspend", "s", "-o", env.path("i"))
        assert asks(server.port)
        server.listener.accept()[0].close()
        threading.Thread(target=server.accept, daemon=True).start()
        until("the gateway is answered", lambda: server.clients == 1)
    env.podrun("resume", env.path("i"), "-d")
    server.goes_on()
    stop(env, server)


@test
@needs_namespaces("a network of its own")
def a_connect_that_was_answered_succeeds(env):
    """Its thread, which was stopped, has not seen that yet when it is frozen."""
    server = Server(accepts=False)

    def inside(path):
        return env.podrun("exec", "s", "cat", path).text

    with socket.create_connection(("127.0.0.1", server.port)):
        env.run_detached("s", sys.executable, "-c", CLIENT, LOOPBACK, str(server.port), "64", ready="",
                         options=["--net", "vnat", "--host-loopback=" + LOOPBACK])
        until("the gateway asks for it", lambda: asks(server.port))
        env.podrun("kill", "-s", "STOP", "s", "2")
        until("the client is stopped", lambda: ") T " in inside("/proc/2/stat"))
        server.listener.accept()[0].close()
        threading.Thread(target=server.accept, daemon=True).start()
        until("it is connected", lambda: any(
            line.split()[2].endswith(":%04X" % server.port) and line.split()[3] == "01"
            for line in inside("/proc/net/tcp").splitlines()[1:]))
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("resume", env.path("i"), "-d")
    env.podrun("kill", "-s", "CONT", "s", "2")
    server.goes_on()
    stop(env, server)


# Inside: hears one byte, and says nothing.
QUIET = r"""
import socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
assert s.recv(1) == b"x"
print("heard", flush=True)
assert s.recv(1) == b""
"""


def acknowledged(pcap, port):
    """The segments of no bytes, to @port, that the receiver looks at: what each says is acknowledged."""
    data, at, begun, said = pcap.read_bytes(), 24, None, []
    while at + 16 <= len(data):
        length = struct.unpack_from("=I", data, at + 8)[0]
        packet, at = data[at + 16:at + 16 + length], at + 16 + length
        if len(packet) < length or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            continue
        tcp = packet[(packet[0] & 15) * 4:struct.unpack_from("!H", packet, 2)[0]]
        to, seq, ack, offset, flags = struct.unpack_from("!2xHIIBB", tcp)
        if to != port:
            continue
        if flags & 2:
            begun = seq + 1
        elif seq == begun and len(tcp) == (offset >> 4) * 4:
            said.append(ack)
    return said


@test
@needs_namespaces("a network of its own")
def what_has_arrived_is_acknowledged_when_it_is_back(env):
    """Nobody inside says anything, and the peer would send all of it again: its kernel was told that it was frozen."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, pcap = listener.getsockname()[1], env.path("x.pcap")
        env.run_detached("s", "sh", "-c", "sleep 1000", options=["--net", "vnat", "--host-loopback=" + LOOPBACK], ready="")
        capture = env.start(PODRUN, "net", "capture", "s", "-w", pcap, stderr=-1, text=True)
        assert "capturing" in capture.stderr.readline()
        env.start(PODRUN, "exec", "s", sys.executable, "-c", QUIET, LOOPBACK, str(port),
                  stdout=env.path("said").open("w"), stderr=subprocess.DEVNULL)
        with listener.accept()[0] as client:
            client.sendall(b"x")
            until("it is heard", lambda: "heard" in env.path("said").read_text())
            until("its kernel says so", lambda: len(acknowledged(pcap, port)) >= 2)
            env.podrun("suspend", "s", "-o", env.path("i"))
            before = acknowledged(pcap, port)
            env.podrun("resume", env.path("i"), "-d")
            until("its kernel says so again", lambda: len(acknowledged(pcap, port)) > len(before))
            assert set(acknowledged(pcap, port)[len(before) - 1:]) == {max(before)}
        capture.send_signal(signal.SIGINT)
        capture.wait()
    env.podrun("kill", "s")


LISTENS = r"""
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while s.recv(1 << 16):
    pass
"""


def tell(client):
    """As much as it takes."""
    with contextlib.suppress(OSError):
        while True:
            client.sendall(bytes(1 << 16))


ANSWERS = r"""
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while byte := s.recv(1):
    s.sendall(byte)
"""


@test
@needs_namespaces("a network of its own")
def packets_pass_when_it_can_not_be_frozen(env):
    """Of who is told much they are held from when its tasks stand still, of others later; what fails then lets them go on."""
    env.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))
    env.path("fault").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        env.run_detached("s", "sh", "-c", "sleep 1000", options=["--net", "vnat", "--host-loopback=" + LOOPBACK], ready="")
        env.start(PODRUN, "exec", "s", sys.executable, "-c", ANSWERS, LOOPBACK, str(listener.getsockname()[1]))
        with listener.accept()[0] as client:
            client.settimeout(20)
            for way in "snapshot", "suspend", "suspend told much":
                way, *told = way.split()
                if told:
                    env.start(PODRUN, "exec", "s", sys.executable, "-c", LISTENS, LOOPBACK, str(listener.getsockname()[1]))
                    threading.Thread(target=tell, args=(listener.accept()[0],), daemon=True).start()
                for point in "quiesce", "survey", "memory", "network", "files":
                    for action in "fail", "kill":
                        env.path("fault").write_text("freeze.%s %s\n" % (point, action))
                        env.podrun(way, "s", "-o", env.path("i"), code=1)
                        client.sendall(b"x")
                        assert client.recv(1) == b"x", (way, point, action)
            env.path("fault").write_text("")
            env.podrun("suspend", "s", "-o", env.path("i"))
            client.sendall(b"y")
            env.podrun("resume", env.path("i"), "-d")
            assert client.recv(1) == b"y"
    env.podrun("kill", "s")


# Nobody hears of a client before that has said something.
DEFERRED = r"""
import socket
l = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
l.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 60)
print("ready", flush=True)
while True:
    s, _ = l.accept()
    s.sendall(s.recv(100).upper())
    s.close()
"""


def shaking(env):
    text = env.podrun("exec", "s", "cat", "/proc/net/tcp", "/proc/net/tcp6").text
    return sum(line.split()[3] == "03" for line in text.splitlines())


@test
@needs_namespaces("a network of its own")
def who_has_said_nothing_yet_is_connected_still(env):
    with contextlib.ExitStack() as stack:
        port = quiet_port()
        env.run_detached("s", sys.executable, "-c", DEFERRED, options=["-p", "%d:80" % port])
        until("it listens outside", lambda: env.podrun("net", "ls", "--json").json()[0]["ports"][0]["open"])
        clients = [stack.enter_context(socket.create_connection((a, port))) for a in ("127.0.0.1", "::1")]
        until("they are connected", lambda: shaking(env) == len(clients))
        for i in range(2):
            env.podrun("suspend", "s", "-o", env.path("i%d" % i))
            env.podrun("resume", env.path("i%d" % i), "-d")
        for c in clients:
            c.sendall(b"at last")
            assert c.recv(100) == b"AT LAST"
    env.podrun("kill", "s")


@test
@needs_namespaces("a network of its own")
def removing_it_ends_its_connections(env):
    server = Server()
    start(env, server, 64)
    env.podrun("suspend", "s")
    assert not server.gone
    env.podrun("rm", "s")
    until("the server sees the end", lambda: server.gone == 1)


if __name__ == "__main__":
    main()
