#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions with addresses of their own (--net vnat), as a user has them.

This script is the outside: 192.0.2.1 and 2001:db8::1 in a network of its own.  podrun runs on a host beside
it, 192.0.2.2, a namespace of an ordinary user (tests/lib/networks.py).
"""
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import networks  # noqa: E402
from cli import one_line  # noqa: E402
from nameserver import NameServer  # noqa: E402
from harness import PODRUN, Failed, main, test, until  # noqa: E402

OUT4, OUT6, HOST4, HOST6 = "192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2"
BLOCK = 1 << 16
host = None

# What programs in sessions begin with.
COMMON = r"""
import errno, hashlib, os, socket, sys, time
def say(*what): print(*what, flush=True)
def connect(host, port): return socket.create_connection((host, int(port)))
def wait_for(path):
    while not os.path.exists(path): time.sleep(.01)
"""
# Talks until that fails, and stays.
TALK = COMMON + r"""
s = connect(sys.argv[1], sys.argv[2])
say("ready")
try:
    while True:
        s.sendall(b"hello")
        time.sleep(.01)
except OSError as e:
    say(errno.errorcode[e.errno])
wait_for("/tmp/go")
"""
ONCE = COMMON + r"""
try:
    s = connect(sys.argv[1], sys.argv[2])
    say("connected from", s.getsockname()[0])
    s.sendall(b"hello")
    s.shutdown(socket.SHUT_WR)
    data = b""
    while b := s.recv(100): data += b
    say("got", data.decode())
except OSError as e:
    say(errno.errorcode.get(e.errno, str(e)))
"""
# Reads until the end, and says what it was.
DOWNLOAD = COMMON + r"""
s = connect(sys.argv[1], sys.argv[2])
h, n = hashlib.sha256(), 0
try:
    while b := s.recv(1 << 16):
        h.update(b)
        if n < 1 << 20 <= n + len(b): say("ready")
        n += len(b)
    say("end", n, h.hexdigest())
except OSError as e:
    say("broken", errno.errorcode[e.errno])
"""
LISTEN = COMMON + r"""
l = socket.create_server((sys.argv[2], int(sys.argv[1])),
                         family=socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET,
                         dualstack_ipv6=":" in sys.argv[2])
say("ready")
while True:
    s, client = l.accept()
    say("client", client[0])
    s.sendall(sys.argv[3].encode())
    s.close()
"""


class Server:
    """Outside: each connection is served in a thread."""

    def __init__(self, serve, address=OUT4):
        six = ":" in address
        self.sock = socket.create_server((address, 0), family=socket.AF_INET6 if six else socket.AF_INET)
        self.address, self.port = address, self.sock.getsockname()[1]
        self.serve, self.peers = serve, []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                s, peer = self.sock.accept()
                self.peers.append(peer[0])
                threading.Thread(target=self._one, args=(s,), daemon=True).start()

    def _one(self, s):
        with contextlib.suppress(OSError), s:
            self.serve(s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


def answer(s):
    while data := s.recv(100):
        s.sendall(data.upper())


def swallow(s):
    while s.recv(100):
        pass


class Stream:
    """Sends as fast as it is taken, until it is told to end, and knows what it was."""

    def __init__(self):
        self.sent, self.hash = 0, hashlib.sha256()
        self.ending, self.ended = threading.Event(), threading.Event()
        self.broken = None

    def __call__(self, s):
        block = hashlib.sha256(b"podrun").digest() * (BLOCK // 32 - 1)
        try:
            while not self.ending.is_set():
                data = self.sent.to_bytes(32, "big") + block
                s.sendall(data)
                self.hash.update(data)
                self.sent += len(data)
        except OSError as e:
            self.broken = e
            raise
        finally:
            self.ended.set()

    def more(self, megabytes=4):
        """Waits until so much more has gone out."""
        want = self.sent + (megabytes << 20)
        until("%d bytes are sent (%s)" % (want, self.broken), lambda: self.broken or self.sent >= want)
        assert not self.broken, self.broken

    def end(self):
        self.ending.set()
        until("the last block is sent", self.ended.is_set)
        return "end %d %s" % (self.sent, self.hash.hexdigest())


def virtual(env, *more):
    """Commands of this test run on the host beside us; the options of a session there."""
    env.prefix = host.user
    return ["--net", "vnat", *more]


def there(env, *more):
    """
    Options of a session whose gateway is another host's as far as podrun knows: its `ssh` is the same host, and says
    by which addresses, as sshd does.
    """
    ssh = env.path("ssh")
    ssh.write_text("#!/bin/sh\nshift\nexport SSH_CONNECTION='%s 1 %s 22'\nPATH=%s:$PATH exec sh -c \"$*\"\n" % (
        HOST4, HOST4, pathlib.Path(PODRUN).parent))
    ssh.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(ssh)
    return ["--gateway", "there", *more]


def ask(env, address, port, *options):
    """What a session finds there, in one line each."""
    return env.podrun("run", *virtual(env, *options), "--", "python3", "-c", ONCE, address, port).text


def close(env, *names):
    for name in names:
        env.podrun("kill", name, check=False)
        env.podrun("rm", name, check=False)
    until("the gateway ends", lambda: not env.podrun("gateway", "--json").json()["running"])


@test
def a_session_has_addresses_of_its_own(env):
    look = "ip -o addr show net0; cat /etc/resolv.conf /etc/hosts; cat /proc/sys/net/mptcp/enabled"
    r = env.podrun("run", *virtual(env, "--hostname", "here"), "--", "sh", "-c", look)
    for words in ("inet 10.171.0.2/32", "inet6 fd7a:706f:6472::2/128", "nameserver 10.171.0.1",
                  "nameserver fd7a:706f:6472::1\nsearch one.example two.example\n", "10.171.0.2 here", "fd7a:706f:6472::2 here"):
        assert words in r.text, r
    assert r.text.endswith("\n0\n"), r
    r = env.podrun("run", "--address", "192.168.7.7", "--address", "2001:db8:7::7", "--", "sh", "-c", look)
    assert "inet 192.168.7.7/32" in r.text and "inet6 2001:db8:7::7/128" in r.text, r
    close(env)


@test
def connections_to_the_outside(env):
    for address, own, seen in ((OUT4, "10.171.0.2", HOST4), (OUT6, "fd7a:706f:6472::2", HOST6)):
        with Server(answer, address) as s:
            assert ask(env, address, s.port) == "connected from %s\ngot HELLO\n" % own
            assert s.peers == [seen], s.peers
    close(env)


UDP = COMMON + r"""
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], int(sys.argv[2])))
def talk():
    s.settimeout(.2)
    while True:  # one may be lost
        s.send(b"hello")
        try: return s.recv(100).decode()
        except TimeoutError: pass
say("ready", talk())
wait_for("/tmp/go")
say("again", talk())
"""


def answer_datagrams(s, peers):
    with contextlib.suppress(OSError):
        while True:
            data, peer = s.recvfrom(100)
            peers.append(peer)
            s.sendto(data.upper(), peer)


@test
def datagrams(env):
    for address in (OUT4, OUT6):
        peers = []
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((address, 0))
            threading.Thread(target=answer_datagrams, args=(s, peers), daemon=True).start()
            env.run_detached("s", "python3", "-c", UDP, address, s.getsockname()[1], options=virtual(env),
                             ready="ready HELLO")
            env.podrun("suspend", "s")
            env.podrun("resume", "-d", "s")
            env.let_end()
            assert "again HELLO" in env.wait("s")
            # the outside has seen one peer all the time
            assert len(set(peers)) == 1, peers
            env.podrun("rm", "s")
    close(env)


@test
def pings(env):
    for address in (OUT4, OUT6, "10.171.0.1"):
        r = env.podrun("run", *virtual(env), "--", "ping", "-c1", "-W10", address)
        assert "1 received" in r.text, r
    close(env)


def name_server(s, asked):
    """Knows one name, outside.test; anything else is not there."""
    with contextlib.suppress(OSError):
        while True:
            data, peer = s.recvfrom(512)
            asked.append(data)
            question = data[12:]
            end = question.index(0) + 5
            known = question[:end - 4] == b"\x07outside\x04test\0" and question[end - 4:end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(OUT4) if known else b""
            flags = b"\x81\x80" if b"\x07outside\x04test" in question else b"\x81\x83"
            s.sendto(data[:2] + flags + b"\0\1" + (b"\0\1" if known else b"\0\0") + b"\0\0\0\0" +
                     question[:end] + answer, peer)


@test
def names_of_hosts(env):
    asked = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, Server(answer) as there:
        s.bind((OUT4, 53))
        threading.Thread(target=name_server, args=(s, asked), daemon=True).start()
        assert "got HELLO" in ask(env, "outside.test", there.port)
        assert asked
        r = env.podrun("run", *virtual(env), "--", "getent", "hosts", "nobody.test", check=False)
        assert r.code == 2, r
    close(env)


@test
def a_long_answer_is_asked_for_by_tcp(env):
    """At the gateway's address, also where that stands for the host's loopback."""
    with socket.create_server((OUT4, 53)) as s:
        threading.Thread(target=lambda: answer(s.accept()[0]), daemon=True).start()
        assert "got HELLO" in ask(env, "10.171.0.1", 53, "--host-loopback")
    close(env)


@test
def what_was_said_last_arrives(env):
    """A session ends with its command, and all that it has sent goes out all the same."""
    say = COMMON + "connect(sys.argv[1], sys.argv[2]).sendall(b'x' * int(sys.argv[3]))\n"
    got = []

    def collect(s):
        n = 0
        while data := s.recv(BLOCK):
            n += len(data)
        got.append(n)

    for size in (5, 4 << 20):
        got.clear()
        with Server(collect) as s:
            env.podrun("run", *virtual(env), "--", "python3", "-c", say, OUT4, s.port, size)
            until("all %d bytes arrive (%s)" % (size, got), lambda: got == [size])
    close(env)


@test
def what_was_said_last_arrives_at_a_gateway_that_had_no_time(env):
    """It still reads what a session had sent when that has ended, also if another worker does it."""
    say = COMMON + r"""
s = connect(sys.argv[1], sys.argv[2])
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200000)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
say("ready")
wait_for("/tmp/go")
u.sendto(b"a datagram", (sys.argv[1], int(sys.argv[3])))
s.sendall(b"x" * int(sys.argv[4]))
"""
    size = 100000
    for how, options in ("-CONT", []), ("-KILL", []), ("-CONT", there(env)), ("-KILL", there(env)), \
            ("-KILL", there(env, "--carrier", "auto")):
        got = []

        def collect(s, got=got):
            n = 0
            while data := s.recv(BLOCK):
                n += len(data)
            got.append(n)

        with Server(collect) as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
            u.bind((OUT4, 0))
            u.settimeout(60)
            env.run_detached("s", "python3", "-c", say, OUT4, s.port, u.getsockname()[1], size,
                             options=virtual(env, "-v", "%s:/tmp" % env.path("."), *options))
            if "auto" in options:
                until("packets go by a tunnel", lambda: env.podrun("inspect", "s").json()["config"]["network"][
                    "carried_by"] == "tunnel")
            worker = env.podrun("gateway", "--json").json()["worker"]
            env.call("kill", "-STOP", worker)
            open(env.path("go"), "w").close()
            env.wait("s")
            os.unlink(env.path("go"))
            assert not got, got
            env.call("kill", how, worker)
            until("all %d bytes arrive (%s)" % (size, got), lambda got=got: got == [size])
            # by the tunnel nothing says that it comes before the end, which goes by the line
            assert "auto" in options or u.recv(100) == b"a datagram"
        close(env, "s")


@test
def nobody_there(env):
    with socket.create_server((OUT4, 0)) as s:
        port = s.getsockname()[1]
    assert ask(env, OUT4, port) == "ECONNREFUSED\n"
    assert ask(env, OUT6, port) == "ECONNREFUSED\n"
    # The host has no way there.
    assert ask(env, "198.51.100.1", port) in ("ENETUNREACH\n", "EHOSTUNREACH\n")
    close(env)


@test
def the_hosts_loopback_is_closed_unless_asked_for(env):
    virtual(env)
    server = ("import socket\nl = socket.create_server(('127.0.0.1', 0))\nprint(l.getsockname()[1], flush=True)\n"
              "while True:\n s = l.accept()[0]\n s.recv(5)\n s.sendall(b'the host')\n s.close()\n")
    p = env.start(sys.executable, "-c", server, stdout=-1, text=True)
    port = p.stdout.readline().strip()
    assert "the host" not in ask(env, "10.171.0.1", port)
    assert "got the host" in ask(env, "10.171.0.1", port, "--host-loopback")
    assert "got the host" in ask(env, "10.171.0.9", port, "--host-loopback=10.171.0.9")
    assert "the host" not in ask(env, "127.0.0.1", port, "--host-loopback")
    p.kill()
    p.wait()
    close(env)


@test
def an_image_made_elsewhere_gets_nothing_of_this_host_unasked(env):
    """Somebody whose images are trusted is not trusted with the loopback; which ports are opened is said."""
    loops = ["sh", "-c", "echo ready; exec sleep 1000"]
    virtual(env)
    other = env.host("other")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    for option in "--host-loopback", "--link-local":
        env.run_detached("s", *loops, options=virtual(env, "-p", "8101:80", option))
        env.podrun("suspend", "s", "-o", env.path("i"))
        r = other.podrun("resume", "-d", env.path("i"), code=7)
        assert "--trust-network" in r.errors and "made elsewhere" in r.errors, r
        r = other.podrun("resume", "-d", "--trust-network", env.path("i"))
        assert "publishes here 8101->80" in r.errors, r
        close(other, "s")
        env.podrun("rm", "s")
        env.path("i").unlink()
    env.run_detached("s", *loops, options=virtual(env, "-p", "8101:80", "--host-loopback"))
    env.podrun("suspend", "s", "-o", env.path("i"))
    r = env.podrun("resume", "-d", env.path("i"))
    assert "elsewhere" not in r.errors, r
    close(env, "s")


def get(address, port):
    with socket.create_connection((address, port)) as s:
        return s.recv(100).decode()


@test
def published_ports(env):
    options = virtual(env, "-p", "8080:80", "-p", "%s:8081:80" % HOST4, "-p", "[%s]:8082:80" % HOST6)
    env.run_detached("web", "python3", "-c", LISTEN, "80", "::", "web", options=options)
    for address, port in ((HOST4, 8080), (HOST6, 8080), (HOST4, 8081), (HOST6, 8082)):
        until("port %d leads inside" % port, lambda: attempt(get, address, port) == "web")
    assert attempt(get, HOST6, 8081) is None and attempt(get, HOST4, 8082) is None
    # who is there
    until("the client's address is seen", lambda: "client ::ffff:" + OUT4 in env.logs("web"))
    assert "client " + OUT6 in env.logs("web")
    ports = env.podrun("net", "ls", "--json").json()[0]["ports"]
    assert sorted(p["host"] for p in ports) == [8080, 8081, 8082] and all(p["open"] for p in ports), ports
    close(env, "web")
    assert attempt(get, HOST4, 8080) is None


def attempt(f, *args):
    with contextlib.suppress(OSError):
        return f(*args)
    return None


@test
def two_sessions_listen_on_the_same_port(env):
    for name, port in (("one", 8001), ("two", 8002)):
        env.run_detached(name, "python3", "-c", LISTEN, "80", "0.0.0.0", name,
                         options=virtual(env, "-p", "%d:80" % port))
    for name, port in (("one", 8001), ("two", 8002)):
        until(name + " answers", lambda: attempt(get, HOST4, port) == name)
    r = env.podrun("run", "-p", "8001:80", "--", "true", check=False)
    assert r.code != 0 and "8001" in r.errors, r
    assert get(HOST4, 8001) == "one"
    close(env, "one", "two")


@contextlib.contextmanager
def downloading(env, name="s", *options):
    stream = Stream()
    with Server(stream) as s:
        env.run_detached(name, "python3", "-c", DOWNLOAD, OUT4, s.port, options=virtual(env, *options))
        stream.more()
        yield stream


@test
def a_download_goes_on_behind_a_suspend(env):
    with downloading(env) as stream:
        for _ in range(3):
            env.podrun("suspend", "s")
            left = env.podrun("net", "ls", "--json").json()
            assert [x["state"] for x in left] == ["suspended"] and left[0]["connections"] == 1, left
            r = env.podrun("resume", "-d", "s")
            assert "reset" not in r.errors, r
            stream.more()
        assert stream.end() in env.wait("s")
    close(env, "s")


@test
def a_pause_and_a_snapshot_leave_it_alone(env):
    with downloading(env) as stream:
        env.podrun("pause", "s")
        env.podrun("unpause", "s")
        stream.more()
        env.podrun("snapshot", "s", "-o", env.path("i"))
        stream.more()
        assert stream.end() in env.wait("s")
        # Later its image has no connection any more, and says so.
        env.podrun("rm", "s")
        env.podrun("resume", "-d", env.path("i"))
        assert "broken ECONNRESET" in env.wait("s")
    close(env, "s")


@test
def a_clone_begins_without_connections(env):
    with downloading(env) as stream:
        env.podrun("clone", "s")
        assert "broken ECONNRESET" in env.wait("s-1")
        stream.more()
        assert stream.end() in env.wait("s")
    close(env, "s", "s-1")


@test
def a_clone_publishes_nothing(env):
    env.run_detached("web", "python3", "-c", LISTEN, "80", "::", "web", options=virtual(env, "-p", "8100:80"))
    env.podrun("clone", "web", "2")
    assert env.podrun("inspect", "web-1").json()["config"]["network"]["publish"] == []
    assert "vnat 10.171.0.2, fd7a:706f:6472::2, 8100->80" in env.podrun("ps").text
    until("the original answers", lambda: attempt(get, HOST4, 8100) == "web")
    close(env, "web", "web-1", "web-2")


@test
def a_paused_session_does_without_a_gateway(env):
    with Server(answer) as s:
        env.run_detached("s", "sh", "-c", "echo ready; sleep 1000", options=virtual(env))
        env.podrun("pause", "s")
        old = env.podrun("gateway", "--json").json()
        end_gateway(env, old)
        env.podrun("unpause", "s")
        until("the session is attached again", lambda: attached(env) not in (None, old["keeper"]))
        assert "got HELLO" in env.podrun("exec", "s", "python3", "-c", ONCE, OUT4, s.port).text
    close(env, "s")


@test
def connections_are_reset_where_one_says_so(env):
    with downloading(env) as stream:
        env.podrun("suspend", "s")
        env.podrun("resume", "-d", "--connections", "reset", "s")
        assert "broken ECONNRESET" in env.wait("s")
        until("the outside hears it", lambda: stream.broken)
    close(env, "s")


@test
def a_resume_that_fails_changes_nothing(env):
    with downloading(env) as stream:
        env.podrun("suspend", "s")
        env.path("fault").write_text("resume.restored fail")
        env.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))
        for _ in range(2):
            r = env.podrun("resume", "-d", "s", check=False)
            assert r.code != 0, r
        del env.environ["PODRUN_TEST_FAULT"]
        r = env.podrun("resume", "-d", "s")
        assert "reset" not in r.errors, r
        stream.more()
        assert stream.end() in env.wait("s")
    close(env, "s")


@test
def an_image_that_comes_late_has_no_connections(env):
    image, late = env.path("i"), env.path("late")
    with downloading(env) as stream:
        env.podrun("suspend", "s", "-o", image)
        shutil.copy(image, late)
        env.podrun("resume", "-d", image)
        stream.more()
        other = env.host("b")  # has not heard that the image is used up
        shutil.copytree(env.dir / "config", other.dir / "config", dirs_exist_ok=True)
        other.environ["XDG_RUNTIME_DIR"] = env.environ["XDG_RUNTIME_DIR"]  # the same gateway
        r = other.podrun("resume", "-d", "--name", "t", late)
        assert "were reset" in r.errors, r
        assert "broken ECONNRESET" in other.wait("t")
        stream.more()
        assert stream.end() in env.wait("s")
    close(env, "s")


@test
def a_gateway_whose_worker_is_killed_goes_on(env):
    with downloading(env) as stream:
        for n in range(3):
            worker = env.podrun("gateway", "--json").json()["worker"]
            env.call("kill", "-KILL", worker)
            until("another is there", lambda: env.podrun("gateway", "--json").json()["restarts"] > n)
            stream.more()
        assert stream.end() in env.wait("s")
    close(env, "s")


@test
def another_gateway_takes_the_place_of_one_that_is_gone(env):
    with Server(swallow) as silent, Server(answer) as s:
        env.run_detached("s", "python3", "-c", TALK, OUT4, silent.port, options=virtual(env))
        old = env.podrun("gateway", "--json").json()
        end_gateway(env, old)
        until("old connections are reset", lambda: "ECONNRESET" in env.logs("s"))
        until("the session is attached again", lambda: attached(env) not in (None, old["keeper"]))
        assert "got HELLO" in env.podrun("exec", "s", "python3", "-c", ONCE, OUT4, s.port).text
    close(env, "s")


def end_gateway(env, old):
    """Wholly: neither process can take the place of the other."""
    for what in ("-STOP", "-KILL"):
        env.call("kill", what, old["keeper"], old["worker"])


def attached(env):
    now = env.podrun("gateway", "--json").json()
    return now["keeper"] if now.get("sessions") else None


@test
def what_is_told_of_networks(env):
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000", options=virtual(env, "-p", "8090:80"))
    network = env.podrun("inspect", "s").json()["config"]["network"]
    assert network["addresses"] == ["10.171.0.2", "fd7a:706f:6472::2"] and network["gateway"] == "local"
    assert network["publish"] == [{"address": "", "host": 8090, "session": 80, "protocol": "tcp"}], network
    assert "8090" in env.podrun("net", "ls").text
    assert env.podrun("net", "stats", "s", "--json").json()[0]["name"] == "s"
    r = env.podrun("net", "stats", "nobody", code=5)
    assert "nobody" in r.errors, r
    close(env, "s")
    assert env.podrun("net", "ls", "--json").json() == []


def network(env, name):
    """What ps and inspect, which agree, say of it."""
    told = env.podrun("inspect", name).json()["config"]["network"]
    listed = {s["name"]: s for s in env.podrun("ps", "-a", "--json").json()}
    assert listed[name]["network"] == told, (listed, told)
    return told


@test
def what_a_session_depends_on_is_told(env):
    """Nothing but its host while it runs, the gateway there while its connections wait for it."""
    with downloading(env) as stream:
        assert network(env, "s")["residual_dependency"] is None
        assert "depends" not in env.podrun("ps").text
        env.podrun("suspend", "s")
        assert "gateway on this host" in network(env, "s")["residual_dependency"]
        assert "s depends on the gateway on this host" in env.podrun("ps", "-a").text
        env.podrun("resume", "-d", "s")
        assert network(env, "s")["residual_dependency"] is None
        assert stream.end() in env.wait("s")
    close(env, "s")


@test
def a_dependency_on_another_host_is_told(env):
    with downloading(env, "s", *there(env), "-p", "8095:80") as stream:
        told = network(env, "s")
        assert told["gateway"] == "there" and told["addresses"] == ["10.171.0.2", "fd7a:706f:6472::2"], told
        assert "the gateway on there" in told["residual_dependency"], told
        text = env.podrun("ps").text
        assert "8095->80, gateway: there" in text and "s depends on the gateway on there" in text, text
        assert stream.end() in env.wait("s")
        until("it needs nobody any more", lambda: env.podrun("inspect", "s").json()["config"]["network"]
              ["residual_dependency"] is None)
    close(env, "s")


def dynamic_names(env):
    """One that takes updates signed with the key of a file, and what --dns-update says of it."""
    secret = "cG9kcnVuIHRlc3RzIGEga2V5IG9mIDMyIGJ5dGVzLi4="
    env.path("key").write_text('key "mover" { algorithm hmac-sha256; secret "%s"; };\n' % secret)
    server = NameServer(OUT4, 0, "example.test", "mover", secret)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                server.serve_one()

    threading.Thread(target=serve, daemon=True).start()
    return server, ["--dns-update", "example.test/web@%s#%d:%s" % (OUT4, server.port, env.path("key"))]


def points_to(server, *addresses):
    until("it points to %s" % (addresses,), lambda: server.addresses("web.example.test") == sorted(addresses))


@test
def a_name_in_dns_goes_when_its_session_does(env):
    """Ended, killed, or removed while it is suspended; addresses that others have given the name stay."""
    server, update = dynamic_names(env)
    options = virtual(env, *update)
    waits = ["sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep .05; done"]

    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    points_to(server, HOST4, HOST6)
    env.let_end()
    env.wait("s")
    points_to(server)
    env.podrun("rm", "s")
    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    server.records["web.example.test"][1].append("203.0.113.7")
    env.podrun("kill", "s")
    points_to(server, "203.0.113.7")
    env.podrun("rm", "s")
    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    env.podrun("suspend", "s")
    assert server.addresses("web.example.test") == sorted([HOST4, HOST6])
    env.podrun("rm", "s")
    assert server.addresses("web.example.test") == []
    assert not server.refused
    # A server that has gone keeps nobody.
    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    env.podrun("suspend", "s")
    server.sock.close()
    assert "still in DNS" in env.podrun("rm", "s").errors
    close(env)


@test
def a_name_in_dns_goes_from_the_host_of_its_gateway(env):
    """By ssh, when its session is removed while it is suspended; or that is said."""
    server, update = dynamic_names(env)
    options = virtual(env, *there(env), *update)
    waits = ["sh", "-c", "echo ready; sleep 1000"]
    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    env.podrun("suspend", "s")
    assert not env.podrun("rm", "s").errors
    assert server.addresses("web.example.test") == [] and not server.refused
    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    env.podrun("suspend", "s")
    env.path("ssh").write_text("#!/bin/sh\nexit 255\n")
    one_line(env.podrun("rm", "s"), "still in DNS", "there has not answered")
    env.podrun("inspect", "s", code=5)
    # The server's word comes from there as well.
    there(env)
    env.run_detached("s", *waits, options=options)
    points_to(server, HOST4, HOST6)
    env.podrun("suspend", "s")
    env.path("key").write_text("none")
    one_line(env.podrun("rm", "s"), "still in DNS", "is no key")
    close(env)


@test
def who_is_told_of_moves_keeps_no_session(env):
    """It ends with its command, whatever --on-move is doing then, and nothing is said of that."""
    for told in "true", "sleep 1000", "sleep 1000 & sleep 1000; true":
        r = env.podrun("run", *virtual(env, "--on-move", told), "--", "sh", "-c", "exit 7", code=7)
        assert not r.errors, r
    # What its command has left behind keeps it, as ever.
    r = env.podrun("run", "--name", "s", *virtual(env, "--on-move", "sleep 1000"), "--", "sh", "-c",
                   "(while [ ! -e /tmp/go ]; do sleep .05; done) & exit 7", code=7)
    assert "'s' goes on with" in r.errors, r
    env.let_end()
    env.wait("s", code=7)
    close(env)


@test
def packets_can_be_captured(env):
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000", options=virtual(env))
    p = env.start(PODRUN, "net", "capture", "s", "-w", env.path("x.pcap"), stderr=-1, text=True)
    assert "capturing" in p.stderr.readline()
    with Server(answer) as s:
        env.podrun("exec", "s", "python3", "-c", ONCE, OUT4, s.port)
    size = env.path("x.pcap").stat().st_size
    one_line(env.podrun("net", "capture", "s", "-w", env.path("x.pcap"), code=6, check=False), "already")
    assert env.path("x.pcap").stat().st_size >= size > 0
    p.send_signal(signal.SIGINT)
    p.wait()
    data = env.path("x.pcap").read_bytes()
    one_line(env.podrun("net", "capture", "nobody", "-w", env.path("x.pcap"), check=False), "nobody")
    assert env.path("x.pcap").read_bytes() == data
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") and socket.inet_aton(OUT4) in data and b"hello" in data
    close(env, "s")


def begin():
    """The host beside us, and the way there."""
    global host
    networks.enter()
    resolv = pathlib.Path(tempfile.mkdtemp(prefix="podrun-net-")) / "resolv.conf"
    resolv.write_text("nameserver %s\nsearch one.example two.example\n" % OUT4)
    host = networks.Node("host", str(resolv))
    for command in (["link", "add", "out", "type", "veth", "peer", "name", "eth0", "netns", host.pid],
                    ["address", "add", OUT4 + "/24", "dev", "out"],
                    ["address", "add", OUT6 + "/64", "dev", "out", "nodad"], ["link", "set", "out", "up"]):
        if os.spawnvp(os.P_WAIT, "ip", ["ip", *command]):
            raise Failed("ip " + " ".join(command))
    host.addresses("eth0", HOST4 + "/24", HOST6 + "/64")


if __name__ == "__main__":
    begin()
    main()
