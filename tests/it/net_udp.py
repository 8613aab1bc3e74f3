#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Published ports of UDP, and what else the outside sees of a session's sockets.

This script is the outside, as in net.py: beside the host on which podrun runs, which has several addresses.
"""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import networks  # noqa: E402
from harness import Failed, main, test, until  # noqa: E402

OUT4, OUT6 = "192.0.2.1", "2001:db8::1"
HOST4, SECOND4, HOST6, SECOND6 = "192.0.2.2", "192.0.2.3", "2001:db8::2", "2001:db8::3"
host = None

# Says to each who he is, and how much he has sent.
ECHO = r"""
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.bind(("::", int(sys.argv[1])))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(70000)
    s.sendto(("%s %d" % (peer[0].removeprefix("::ffff:"), len(data))).encode(), peer)
"""
ASK = r"""
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b"hi")
print(s.recv(100).decode())
"""


def from_host(address, port):
    """How much the host's own program is told that it has sent."""
    r = subprocess.run(host.user + ["python3", "-c", ASK, address, str(port)], capture_output=True, text=True, timeout=60)
    return r.stdout.split()[1:]


def options(env, *more):
    env.prefix = host.user
    return ["--net", "vnat", *(x for p in more for x in ("-p", p))]


def ask(address, port, data=b"hi"):
    """What comes back from there, and from nowhere else; None if nothing does."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(.5)
        with contextlib.suppress(OSError):
            s.connect((address, port))
            s.send(data)
            return s.recv(100).decode()
    return None


def answers(address, port, want, data=b"hi"):
    until("%s at port %d says %r" % (address, port, want), lambda: ask(address, port, data) == want)


def close(env, *names):
    for name in names:
        env.podrun("kill", name)
        env.podrun("rm", name, check=False)
    until("the gateway ends", lambda: not env.podrun("gateway", "--json").json()["running"])


@test
def a_port_is_published(env):
    """Large ones, too; it is there again after a suspend, and gone with its session."""
    env.run_detached("s", "python3", "-c", ECHO, "5000", options=options(env, "5000:5000/udp", "5000:5000"))
    for _ in range(2):
        answers(HOST4, 5000, OUT4 + " 2")
        answers(HOST6, 5000, OUT6 + " 2")
        answers(HOST4, 5000, OUT4 + " 60000", bytes(60000))
        answers(HOST6, 5000, OUT6 + " 60000", bytes(60000))
        env.podrun("suspend", "s")
        assert ask(HOST4, 5000) is None
        env.podrun("resume", "-d", "s")
    answers(HOST4, 5000, OUT4 + " 2")
    for port in env.podrun("net", "ls", "--json").json()[0]["ports"]:
        assert port["open"] == (port["protocol"] == "udp"), port  # the other is open while somebody listens
    r = env.podrun("run", *options(env, "5000:1/udp"), "--", "true", check=False)
    assert r.code and "5000" in r.errors, r
    close(env, "s")
    assert ask(HOST4, 5000) is None


@test
def the_host_reaches_a_published_port(env):
    env.run_detached("s", "python3", "-c", ECHO, "5000", options=options(env, "5010:5000/udp"))
    for address in "127.0.0.1", HOST4, "::1", HOST6:
        assert from_host(address, 5010) == ["2"], address
    close(env, "s")


@test
def who_is_asked_answers(env):
    """Whichever of the host's addresses, and of the ports that lead to one of the session's."""
    env.run_detached("s", "python3", "-c", ECHO, "5000", options=options(
        env, "5001:5000/udp", "5002:5000/udp", "127.0.0.1:5003:5000/udp", "%s:5003:5000/udp" % SECOND4))
    for _ in range(2):
        for port in 5001, 5002:
            for address in HOST4, SECOND4:
                answers(address, port, OUT4 + " 2")
            for address in HOST6, SECOND6:
                answers(address, port, OUT6 + " 2")
        answers(SECOND4, 5003, OUT4 + " 2")
        assert ask(HOST4, 5003) is None
        assert from_host("127.0.0.1", 5003) == ["2"]
    close(env, "s")


@test
def one_published_at_the_hosts_loopback_can_send_elsewhere(env):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((OUT4, 0))
        s.settimeout(5)
        program = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 5000)); "
                   "s.sendto(b'hi', ('%s', %d)); print(s.recv(10).decode())" % s.getsockname())
        threading.Thread(target=lambda: s.sendto(b"heard", s.recvfrom(10)[1]), daemon=True).start()
        r = env.podrun("run", *options(env, "127.0.0.1:5020:5000/udp"), "--", "python3", "-c", program)
        assert r.text == "heard\n", r
    close(env)


@test
def a_port_that_was_reset_connects_again_at_once(env):
    """From the same one to the same place: the first SYN is not lost, as most of them would be."""
    program = r"""
import socket, struct, sys, time
slow = 0
for i in range(40):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.bind(("", 36000))
    s.connect((sys.argv[1], int(sys.argv[2])))
    # tcpi_total_retrans: of the SYN
    slow += struct.unpack("I", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)[100:104])[0]
    s.sendall(b"x")
    assert s.recv(1) == b"x"
    s.close()
print(slow)
"""
    with socket.create_server((OUT4, 0), backlog=512) as server:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    s = server.accept()[0]
                    threading.Thread(target=lambda s=s: echo(s), daemon=True).start()

        def echo(s):
            with contextlib.suppress(OSError), s:
                while data := s.recv(100):
                    s.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        r = env.podrun("run", *options(env), "--", "python3", "-c", program, OUT4, server.getsockname()[1])
    assert int(r.text) < 10, r  # a busy host may lose one
    close(env)


def begin():
    """The host beside us, and the way there."""
    global host
    networks.enter()
    host = networks.Node("host")
    for command in (["link", "add", "out", "type", "veth", "peer", "name", "eth0", "netns", host.pid],
                    ["address", "add", OUT4 + "/24", "dev", "out"],
                    ["address", "add", OUT6 + "/64", "dev", "out", "nodad"], ["link", "set", "out", "up"]):
        if os.spawnvp(os.P_WAIT, "ip", ["ip", *command]):
            raise Failed("ip " + " ".join(command))
    host.addresses("eth0", HOST4 + "/24", SECOND4 + "/24", HOST6 + "/64", SECOND6 + "/64")


if __name__ == "__main__":
    begin()
    main()
