#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunnels between two hosts: ours with wireguard-go, in both roles, and with another of ours.

Both hosts are network namespaces of the user who runs this (tests/lib/networks.py), joined by a
veth. Streams go in both directions through the tunnel, and every byte of them is compared
(tests/bench/net/ends.c).
"""
import contextlib
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import networks  # noqa: E402
from harness import BUILD, main, needs, test, until  # noqa: E402

JOIN = BUILD / "tests" / "tunnel_join"
NETSESSION = BUILD / "tests" / "it" / "netsession"
ENDS = BUILD / "tests" / "bench" / "net" / "ends"
PORT = 7700
MS = 400  # of each stream
_numbers = itertools.count()


class Side:
    """One host and its end of the tunnel."""

    def __init__(self, env, i, ipv6):
        self.env, self.i = env, i
        self.node = networks.Node("side%d" % i)
        self.name = "wg%d-%d" % (next(_numbers), i)
        self.outer = ("fd00:6::%d" if ipv6 else "192.0.2.%d") % (i + 1)
        self.inner, self.inner6 = "10.88.0.%d" % (i + 1), "fd88::%d" % (i + 1)
        self.private = subprocess.run(["wg", "genkey"], capture_output=True, text=True, check=True).stdout.strip()
        self.public = subprocess.run(["wg", "pubkey"], input=self.private, capture_output=True, text=True,
                                     check=True).stdout.strip()
        self.started = []

    def endpoint(self):
        return ("[%s]:51820" if ":" in self.outer else "%s:51820") % self.outer

    def config(self, other, preshared, knows, wg_quick):
        """Of ours as users have it; wg(8) does not know what is wg-quick's."""
        text = "[Interface]\nPrivateKey = %s\nListenPort = 51820\n" % self.private
        if wg_quick:
            text += "Address = %s/32, %s/128\n" % (self.inner, self.inner6)
        text += "[Peer]\nPublicKey = %s\nAllowedIPs = %s/32, %s/128\n" % (other.public, other.inner, other.inner6)
        if preshared:
            text += "PresharedKey = %s\n" % preshared
        if knows:
            text += "Endpoint = %s\n" % other.endpoint()
        path = self.env.path("side%d.conf" % self.i)
        path.write_text(text)
        path.chmod(0o600)
        return path

    def route(self, other):
        for a in (other.inner, other.inner6):
            self.node.root("ip", "route", "add", a, "dev", self.name)

    def begin(self, argv, **kw):
        log = open(self.env.path("side%d.log" % self.i), "wb")
        p = subprocess.Popen(self.node.inside(*argv), stderr=log, **kw)
        log.close()
        self.started.append(p)
        return p

    def podrun(self, other, config, *options, pass_fds=()):
        p = self.begin([JOIN, *options, config, self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       pass_fds=pass_fds)
        assert p.stdout.readline() == b"ready\n", self.env.path("side%d.log" % self.i).read_text()
        self.route(other)

    def wireguard_go(self, other, config):
        needs("wireguard-go")
        self.begin(["wireguard-go", "--foreground", self.name], stdout=subprocess.DEVNULL)
        until("wireguard-go", lambda: os.path.exists("/run/wireguard/%s.sock" % self.name))
        self.node.root("wg", "setconf", self.name, config)
        self.node.root("ip", "link", "set", self.name, "mtu", "1420")
        self.node.addresses(self.name, self.inner + "/32", self.inner6 + "/128")
        self.route(other)

    def close(self):
        for p in self.started:
            p.kill()
            p.wait()
            for f in (p.stdin, p.stdout):
                if f:
                    f.close()
        self.node.close()


@contextlib.contextmanager
def tunnel(env, first, second, *options, preshared=False, ipv6=False, knows=(True, True), stream=False):
    """Two sides; `first` and `second` say whose program each runs."""
    needs("wg")
    sides = [Side(env, i, ipv6) for i in (0, 1)]
    key = preshared and subprocess.run(["wg", "genpsk"], capture_output=True, text=True, check=True).stdout.strip()
    pair = socket.socketpair() if stream else ()
    try:
        networks.join(sides[0].node, "eth0", sides[1].node, "eth0")
        for s in sides:
            s.node.addresses("eth0", s.outer + ("/64" if ipv6 else "/24"))
        for s, program in zip(sides, (first, second)):
            other = sides[1 - s.i]
            config = s.config(other, key, knows[s.i], program == "podrun")
            if program == "podrun":
                extra = ["--stream", pair[s.i].fileno()] if stream else []
                s.podrun(other, config, *options, *extra, pass_fds=[p.fileno() for p in pair])
            else:
                s.wireguard_go(other, config)
        for p in pair:
            p.close()
        yield sides
    finally:
        for s in sides:
            s.close()


@contextlib.contextmanager
def client(a, b, address):
    """A client on side `a` of a server on side `b`."""
    server = b.node.start(ENDS, "serve", address, PORT, stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"
    p = a.node.start(ENDS, "drive", address, PORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(*words):
        p.stdin.write((" ".join(map(str, words)) + "\n").encode())
        p.stdin.flush()
        line = p.stdout.readline()
        assert line, "%s: the client ended" % (words,)
        return json.loads(line)
    try:
        assert p.stdout.readline() == b"ready\n"
        yield ask
    finally:
        for q in (p, server):
            q.kill()
            q.wait()
            q.stdout.close()
        p.stdin.close()


def exchange(a, b):
    """All sorts of traffic, begun by `a`."""
    a.node.root("ping", "-c", "1", "-W", "20", b.inner)
    b.node.root("ping", "-c", "1", "-W", "20", "-s", "3000", a.inner)  # in fragments
    for address in (b.inner, b.inner6):
        with client(a, b, address) as ask:
            for way in ("up", "down"):
                assert ask(way, 65536, MS)["bytes"] > 1 << 20
            assert ask("up", 100, MS)["bytes"] > 1000
            assert ask("rr", 128, MS)["count"] > 10
            assert ask("conn", MS)["count"] > 2


@test
def podrun_asks_wireguard_go(env):
    """Only one knows where the other is."""
    with tunnel(env, "podrun", "wireguard-go", knows=(True, False)) as (a, b):
        exchange(a, b)


@test
def wireguard_go_asks_podrun(env):
    with tunnel(env, "wireguard-go", "podrun", knows=(True, False)) as (a, b):
        exchange(a, b)


@test
def preshared_over_ipv6(env):
    with tunnel(env, "podrun", "wireguard-go", preshared=True, ipv6=True) as (a, b):
        exchange(b, a)


@test
def without_offloads(env):
    """As on old kernels: datagrams and packets one by one."""
    with tunnel(env, "podrun", "wireguard-go", "--no-runs", "--no-super") as (a, b):
        exchange(a, b)


@test
def two_of_ours(env):
    with tunnel(env, "podrun", "podrun", preshared=True) as (a, b):
        exchange(a, b)


@test
def over_a_stream(env):
    with tunnel(env, "podrun", "podrun", stream=True) as (a, b):
        exchange(a, b)


def roams(env, program):
    """Our host gets another address under a connection that is at work."""
    with tunnel(env, "podrun", program, knows=(True, False)) as (a, b):
        with client(a, b, b.inner) as ask:
            assert ask("up", 65536, MS)["bytes"] > 1 << 20
            a.node.root("ip", "address", "add", "192.0.2.77/24", "dev", "eth0")
            a.node.root("ip", "address", "del", "192.0.2.1/24", "dev", "eth0")
            a.node.root("ip", "address", "replace", "192.0.2.77/24", "dev", "eth0")
            for way in ("down", "up"):
                assert ask(way, 65536, MS)["bytes"] > 1 << 20
        if program == "wireguard-go":
            assert "192.0.2.77:" in b.node.root("wg", "show", b.name, "endpoints")


@test
def roams_to_wireguard_go(env):
    roams(env, "wireguard-go")


@test
def roams_to_podrun(env):
    roams(env, "podrun")


class Session:
    """A session's network (netsession.c) behind a gateway that is in this script's own network."""

    def __init__(self, env, name, config):
        self.p = env.start(NETSESSION, env.dir / "run", name, "wg:%s" % config, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
        self.pid = self.p.stdout.readline().split()[1]
        self.attached = self.p.stdout.readline().strip()

    def say(self, command):
        self.p.stdin.write(command + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def start(self, *argv, **kw):
        return subprocess.Popen(["nsenter", "-t", self.pid, "-U", "-n", "--preserve-credentials", *map(str, argv)], **kw)

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


def kill_worker(session):
    """Somebody kills the gateway's worker; another takes its place."""
    words = session.say("list").split()
    os.kill(int(words[1]), 9)
    until("another worker", lambda: session.say("list").split()[1] != words[1])


@contextlib.contextmanager
def wireguard_server(env):
    """
    A server that knows nothing of podrun, on a host `b` beside this one; the file for a session
    behind it, and a list of sessions that are to be closed.
    """
    needs("wg")
    a, b = Side(env, 0, False), Side(env, 1, False)
    n, sessions = next(_numbers), []
    up, a.outer, b.outer = "up%d" % n, "198.18.%d.1" % n, "198.18.%d.2" % n
    try:
        subprocess.run(["ip", "link", "add", up, "type", "veth", "peer", "name", "eth0", "netns", b.node.pid], check=True)
        subprocess.run(["ip", "address", "add", a.outer + "/24", "dev", up], check=True)
        subprocess.run(["ip", "link", "set", up, "up"], check=True)
        b.node.addresses("eth0", b.outer + "/24")
        b.wireguard_go(a, b.config(a, None, False, False))
        config = a.config(b, None, True, True)
        config.write_text(config.read_text().replace("ListenPort = 51820\n", ""))
        yield a, b, config, sessions
    finally:
        for s in sessions:
            s.close()
        for s in (a, b):
            s.close()


@test
def gateway_with_a_wireguard_server(env):
    """A session whose way out is a server that knows nothing of podrun; its connection outlives all else."""
    with wireguard_server(env) as (a, b, config, sessions):
        first = Session(env, "first", config)
        sessions.append(first)
        assert first.attached.startswith("attached"), first.attached
        a.node.start = first.start
        with client(a, b, b.inner) as ask:
            for way in ("up", "down"):
                assert ask(way, 65536, MS)["bytes"] > 1 << 20
            assert ask("conn", MS)["count"] > 2
            kill_worker(first)
            assert ask("up", 65536, MS)["bytes"] > 1 << 20
            assert first.say("hold").startswith("done")
            assert first.say("go").startswith("done")
            assert ask("down", 65536, MS)["bytes"] > 1 << 20
            assert first.say("suspend").startswith("done")
            assert " lost 0 " in first.say("resume")
            assert ask("up", 65536, MS)["bytes"] > 1 << 20
        with client(a, b, b.inner6) as ask:
            assert ask("down", 65536, MS)["bytes"] > 1 << 20
        # One file is one live session.
        second = Session(env, "second", config)
        sessions.append(second)
        assert "another live session has this key" in second.attached, second.attached
        assert first.say("end").startswith("done")
        assert second.say("resume").startswith("attached")


# What the kernel says of packets to: a closed port, nowhere, behind a narrow link.
ERRORS = r"""
import errno, json, socket, sys
def why(call, *args):
    try:
        return str(call(*args))
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
def asked(to, port, size):
    inet6 = ":" in to
    s = socket.socket(socket.AF_INET6 if inet6 else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    s.setsockopt(*((socket.IPPROTO_IPV6, 25, 1) if inet6 else (socket.IPPROTO_IP, 11, 1)))  # soft ones, too
    s.setsockopt(*((socket.IPPROTO_IPV6, 23, 2) if inet6 else (socket.IPPROTO_IP, 10, 2)))  # never fragmented
    s.connect((to, port))
    sent = why(s.send, bytes(size))
    return why(s.recv, 1) if sent == str(size) else sent
print(json.dumps([asked(to, 9, int(size)) for to, size in (a.split("=") for a in sys.argv[1:])]))
"""


@test
def a_wireguard_server_that_has_a_name(env):
    """What the tunnel does not lead to is unreachable at once, wherever the server's address comes from."""
    with wireguard_server(env) as (_, b, config, sessions):
        config.write_text(config.read_text().replace(b.endpoint(), "vpn.example:51820"))
        env.path("hosts").write_text("%s vpn.example\n" % b.outer)
        subprocess.run(["mount", "--bind", env.path("hosts"), "/etc/hosts"], check=True)
        try:
            s = Session(env, "s", config)
            sessions.append(s)
            assert s.attached.startswith("attached"), s.attached
            asks = {b.inner: 10, b.inner6: 10, "203.0.113.9": 10, "fd8a::9": 10}
            p = s.start(sys.executable, "-c", ERRORS, *("%s=%d" % ask for ask in asks.items()), stdout=subprocess.PIPE,
                        text=True)
            out = p.communicate()[0]
            assert json.loads(out) == ["ECONNREFUSED"] * 2 + ["ENETUNREACH"] * 2, out
        finally:
            subprocess.run(["umount", "/etc/hosts"], check=True)


QUESTION = r"""
import errno, socket, sys
to, kind = sys.argv[1:]
s = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, getattr(socket, kind))
s.settimeout(10)
try:
    s.connect((to, 53))
    s.send(b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x00\x00\x01\x00\x01")
    print(s.recv(512).hex())
except OSError as e:
    print(errno.errorcode.get(e.errno, e))
"""


@test
def errors_from_behind_a_wireguard_server(env):
    """ICMP errors reach the sockets that they are about, through a server that is a router for the session."""
    with wireguard_server(env) as (_, b, config, sessions):
        text = config.read_text()
        config.write_text(text[:text.index("AllowedIPs")] + "AllowedIPs = 0.0.0.0/0, ::/0\n" + text[text.index("Endpoint"):])
        for name in "ipv4/ip_forward", "ipv6/conf/all/forwarding":
            b.node.root("sh", "-c", "echo 1 > /proc/sys/net/" + name)
        b.node.root("ip", "link", "add", "narrow", "mtu", "1300", "type", "veth", "peer", "name", "end", "mtu", "1300")
        for device in "end", "narrow":
            b.node.root("ip", "link", "set", device, "up")
        b.node.addresses("narrow", "198.51.100.1/24", "fd89::1/64")
        s = Session(env, "s", config)
        sessions.append(s)
        assert s.attached.startswith("attached"), s.attached
        asks = {b.inner: 10, b.inner6: 10, "203.0.113.9": 10, "fd8a::9": 10, "198.51.100.9": 1340, "fd89::9": 1340}
        p = s.start(sys.executable, "-c", ERRORS, *("%s=%d" % ask for ask in asks.items()), stdout=subprocess.PIPE, text=True)
        out = p.communicate()[0]
        assert json.loads(out) == ["ECONNREFUSED"] * 2 + ["ENETUNREACH"] * 2 + ["EMSGSIZE"] * 2, out


@test
def names_are_asked_for_where_the_file_says(env):
    """A server of one family is all that a session has; the host's own is not asked by the other."""
    with wireguard_server(env) as (_, b, config, sessions):
        text = config.read_text()
        for i, server in enumerate((b.inner, b.inner6)):
            config.write_text(text.replace("Address", "DNS = %s, example.org\nAddress" % server, 1))
            s = Session(env, "s%d" % i, config)
            sessions.append(s)
            assert s.attached.startswith("attached"), s.attached
            other = ("fd7a:706f:6472::1", "10.171.0.1")[i]
            for kind in "SOCK_DGRAM", "SOCK_STREAM":
                p = s.start(sys.executable, "-c", QUESTION, other, kind, stdout=subprocess.PIPE, text=True)
                assert p.communicate()[0] == "ECONNREFUSED\n"
            assert s.say("end").startswith("done")


if __name__ == "__main__":
    networks.enter()
    main()
