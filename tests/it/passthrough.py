#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions that have an interface of their host's for a while (--net passthrough:IF).

This script is the administrator, and 192.0.2.1 at the other end of each wire, a veth. podrun runs on a host
(tests/lib/networks.py) as a user of it, who owns another network namespace there: what is put into that is his.
"""
import json
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import networks  # noqa: E402
from harness import main, test, until  # noqa: E402

host, wires = None, 0
lock = threading.Lock()
# Says hello, and stays until it is told to close.
ONCE = r"""
import os, socket, sys, time
def once():
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
        s.sendall(b"hello")
        print("got", s.recv(100).decode(), "as", s.getsockname()[0], flush=True)
        print("ready", flush=True)
        while not os.path.exists("/tmp/close"): time.sleep(.01)
    os.unlink("/tmp/close")
    print("closed", flush=True)
once()
"""
TWICE = ONCE + r"""
while not os.path.exists("/tmp/again"): time.sleep(.01)
once()
"""


def ip(*argv):
    subprocess.run(["ip", *map(str, argv)], check=True)


class Wire:
    """An interface that a user's network namespace has got, with 192.0.2.0/24 of its own at the other end.

    `.place`: that namespace, by the pid of who holds it."""

    def __init__(self, env):
        global wires
        with lock:
            wires += 1
            self.name, peer = "vf%d" % wires, "pf%d" % wires
        env.prefix = host.user
        # The far end is in a network of its own, so that each wire may have the same addresses.
        self.far = networks.Node("far")
        ip("link", "add", self.name, "type", "veth", "peer", "name", peer, "netns", self.far.pid)
        self.far.addresses(peer, "192.0.2.1/24", "2001:db8::1/64")
        self.far.addresses("lo", "198.51.100.1/32")
        self.holder = env.start("unshare", "--user", "--net", "sh", "-c", "echo ready; exec sleep infinity",
                                stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"
        self.place = str(self.holder.pid)
        ip("link", "set", self.name, "netns", self.place)
        self.inside("ip", "address", "add", "192.0.2.2/24", "dev", self.name)
        self.inside("ip", "address", "add", "2001:db8::2/64", "dev", self.name, "nodad")
        self.inside("ip", "link", "set", self.name, "up")
        self.inside("ip", "route", "add", "default", "via", "192.0.2.1")
        self.inside("ip", "route", "add", "203.0.113.0/24", "dev", self.name, "metric", "7")
        self.before = self.state()

    def inside(self, *argv):
        return subprocess.run(["nsenter", "-t", self.place, "-n", *argv], check=True, capture_output=True,
                              text=True).stdout

    def state(self):
        """What it has there, or None: it is somewhere else."""
        links = json.loads(self.inside("ip", "-j", "address"))
        mine = [link for link in links if link["ifname"] == self.name]
        if not mine:
            return None
        addresses = sorted((a["local"], a["prefixlen"]) for a in mine[0]["addr_info"] if a["scope"] == "global")
        return mine[0]["address"], "UP" in mine[0]["flags"], addresses, self.inside("ip", "route")

    def net(self, form="%(name)s@%(place)s"):
        return ["--net", "passthrough:" + form % vars(self)]

    def serve(self):
        """Answers at the other end; its port."""
        code = ("import socket, threading\nl = socket.create_server(('192.0.2.1', 0))\n"
                "print(l.getsockname()[1], flush=True)\n"
                "def one(s):\n"
                " while data := s.recv(100): s.sendall(data.upper())\n"
                " s.close()\n"
                "while True: threading.Thread(target=one, args=(l.accept()[0],), daemon=True).start()\n")
        self.server = self.far.start(sys.executable, "-c", code, stdout=subprocess.PIPE, text=True)
        return self.server.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if hasattr(self, "server"):
            self.server.kill()
            self.server.wait()
        self.holder.kill()
        self.holder.wait()
        self.far.close()


@test
def an_interface_in_a_session_and_back(env):
    with Wire(env) as w:
        port = w.serve()
        look = ("ip -o -4 address show dev %s; ip -o -6 address show dev %s; ip route; ping -c1 -W10 198.51.100.1; "
                "touch /tmp/close; exec python3 -c \"$0\" 192.0.2.1 %s" % (w.name, w.name, port))
        r = env.podrun("run", *w.net(), "--", "sh", "-c", look, ONCE)
        for words in ("inet 192.0.2.2/24", "inet6 2001:db8::2/64", "default via 192.0.2.1", "203.0.113.0/24",
                      "1 received", "got HELLO as 192.0.2.2"):
            assert words in r.text, r
        assert w.state() == w.before, (w.state(), w.before)
        # It was there, and nowhere else.
        env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=w.net("%(name)s@/proc/%(place)s/ns/net"))
        assert w.state() is None
        r = env.podrun("run", *w.net(), "--", "true", code=125)
        assert "podrun: session 's' has the interface " + w.name in r.errors, r
        assert "passthrough:" + w.name in env.podrun("ps").text
        env.podrun("kill", "s")
        until("it is back", lambda: w.state() == w.before)
        env.podrun("rm", "s")


@test
def a_suspend_refuses_while_it_is_in_use(env):
    with Wire(env) as w:
        port = w.serve()
        env.run_detached("s", "python3", "-c", TWICE, "192.0.2.1", port, options=w.net())
        for command in ("suspend", "snapshot"):
            r = env.podrun(command, "s", code=3)
            assert "a connection to 192.0.2.1:%s leads out of the session" % port in r.errors, r
        # It runs on, with its connection.
        env.podrun("pause", "s")
        env.podrun("unpause", "s")
        env.podrun("exec", "s", "touch", "/tmp/close")
        until("it is not in use", lambda: "closed" in env.logs("s"))
        # The far end's goodbye may be on its way.
        until("it is suspended", lambda: env.podrun("suspend", "s", check=False).code == 0)
        assert w.state() == w.before, (w.state(), w.before)
        env.podrun("resume", "-d", "s")
        assert w.state() is None
        env.podrun("exec", "s", "touch", "/tmp/again")
        until("it is used again", lambda: env.logs("s").count("got HELLO as 192.0.2.2") == 2)
        # Whoever says so loses the connection.
        env.podrun("suspend", "--outside", "reset", "s")
        env.podrun("resume", "-d", "s")
        env.let_end("s", "/tmp/close")
        assert env.wait("s").count("closed") == 2
        until("it is back", lambda: w.state() == w.before)
        env.podrun("rm", "s")


@test
def one_that_is_not_there_is_no_end_of_an_image(env):
    with Wire(env) as w:
        env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=w.net())
        env.podrun("suspend", "s")
        w.inside("ip", "link", "set", w.name, "name", "gone")
        r = env.podrun("resume", "-d", "s", code=5)
        assert "no interface" in r.errors, r
        w.inside("ip", "link", "set", "gone", "name", w.name)
        env.podrun("resume", "-d", "s")
        env.podrun("kill", "s")
        env.podrun("rm", "s")


@test
def an_image_made_elsewhere_gets_no_interface_unasked(env):
    with Wire(env) as w:
        other = env.host("other")
        other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
        env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=w.net())
        env.podrun("suspend", "s", "-o", env.path("i"))
        r = other.podrun("resume", "-d", env.path("i"), code=7)
        assert "have an interface of its host" in r.errors and "--trust-network" in r.errors, r
        assert w.state() == w.before
        other.podrun("resume", "-d", "--trust-network", env.path("i"))
        other.podrun("kill", "s")
        other.podrun("rm", "s")
        env.podrun("rm", "s")


@test
def only_what_is_granted(env):
    with Wire(env) as w:
        # The host's own is not the user's, nor is what he can see of others.
        host.root("ip", "link", "add", "mine" + w.name, "type", "veth", "peer", "name", "other" + w.name)
        for net in ("mine" + w.name, "mine%s@/proc/self/ns/net" % w.name, "lo0@/proc/%s/ns/net" % os.getpid()):
            r = env.podrun("run", "--net", "passthrough:" + net, "--", "true", check=False)
            assert r.code and r.errors.startswith("podrun: "), r
        assert "mine" + w.name in host.root("ip", "link")
        r = env.podrun("run", "--net", "passthrough:mine" + w.name, "--", "true", check=False)
        assert r.code == 4 and "interface mine%s is not granted to this user" % w.name in r.errors and "hint: " in r.errors, r
        # Who has the capability over the host's network has its interfaces.
        env.prefix = host.inside()
        r = env.podrun("run", "--net", "passthrough:mine" + w.name, "--", "ip", "-o", "link")
        assert "mine" + w.name in r.text, r
        assert "mine" + w.name in host.root("ip", "link")
        host.root("ip", "link", "delete", "mine" + w.name)


@test
def what_is_no_interface(env):
    env.prefix = host.user
    for text in ("", "lo", "a/b", "a b", "x" * 16, "a@", "a@../b", "a@.b", "..", "-x", "a:b"):
        r = env.podrun("run", "--net", "passthrough:" + text, "--", "true", check=False)
        assert r.code == 2 and "is no interface" in r.errors, r
    r = env.podrun("run", "--net", "passthrough:a@nobody", "--", "true", check=False)
    assert r.code == 125 and "'nobody'" in r.errors, r
    r = env.podrun("run", "--net", "passthrough:a@%s" % env.dir, "--", "true", check=False)
    assert r.code == 125 and r.errors.startswith("podrun: network namespace"), r
    r = env.podrun("run", "--net", "passthrough:a", "-p", "80:80", "--", "true", check=False)
    assert r.code == 2 and "--publish does not go with" in r.errors, r
    r = env.podrun("run", "--names", "rewrite", "--net", "passthrough:a", "--", "true", check=False)
    assert r.code == 4 and "only the host's" in r.errors, r


def begin():
    global host
    networks.enter()
    host = networks.Node("host")


if __name__ == "__main__":
    begin()
    main()
