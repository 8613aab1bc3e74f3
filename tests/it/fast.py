#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that the kernel carries for sessions, by pairs of interfaces: every byte is checked."""
import contextlib
import functools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import echo  # noqa: E402
from harness import PODRUN, PROFILE, Failed, Skip, main, needs_namespaces, quiet_port, test, until  # noqa: E402

LOOPBACK = {4: "10.171.0.100", 6: "fd7a:706f:6472::100"}  # what stands for the host's, inside
BLOCK = 1 << 16

# Inside: sends blocks that tell their place and reads them back, while /tmp/on is there; until /tmp/stop is.
CLIENT = r"""
import os, socket, sys, time
BLOCK = 1 << 16
def block(i): return i.to_bytes(8, "big") * (BLOCK // 8)
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
i = 0
open("/tmp/on", "w").close()
print("ready", flush=True)
try:
    while not os.path.exists("/tmp/stop"):
        if not os.path.exists("/tmp/on"):
            time.sleep(.01)
            continue
        s.sendall(block(i))
        got = b""
        while len(got) < BLOCK:
            data = s.recv(BLOCK - len(got))
            if not data:
                print("ended", flush=True)
                sys.exit(1)
            got += data
        if got != block(i):
            print("wrong in block", i, flush=True)
            sys.exit(1)
        i += 1
    s.shutdown(socket.SHUT_WR)
    print("more" if s.recv(1) else "intact", flush=True)
except (ConnectionResetError, BrokenPipeError):
    print("reset", flush=True)
"""
# Inside: packets of all kinds that nobody is to send there, out of the pair; as the session's root.
FORGE = r"""
import ctypes, os, socket, struct, sys
inside, outside, pid, sport, dport, times = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
libc = ctypes.CDLL(None, use_errno=True)
for ns in ("user", "net"):
    if libc.setns(os.open("/proc/%d/ns/%s" % (pid, ns), os.O_RDONLY), 0):
        raise OSError(ctypes.get_errno(), "setns " + ns)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"podrun1")
def total(data):
    n = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while n >> 16: n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff
def packet(src, dst, sport, dport, flags=4, protocol=6):
    src, dst = socket.inet_aton(src), socket.inet_aton(dst)
    body = struct.pack("!HHIIBBHHH", sport, dport, 1, 1, 5 << 4, flags, 1000, 0, 0)
    if protocol == 17:
        body = struct.pack("!HHHH", sport, dport, 20, 0) + b"x" * 12
    if protocol == 1:
        body = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"x" * 12
        body = body[:2] + struct.pack("!H", total(body)) + body[4:]
    if protocol == 6:
        body = body[:16] + struct.pack("!H", total(src + dst + struct.pack("!HH", 6, len(body)) + body)) + body[18:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0, src, dst)
    raw.sendto(head + body, (socket.inet_ntoa(dst), 0))
for _ in range(times):
    packet("198.18.0.1", "100.64.0.1", sport, dport)           # as the gateway's own inner legs
    packet("198.18.0.2", "100.64.0.1", sport, dport, 2)        # another session's, and a SYN
    packet(inside, "100.64.0.1", sport, 80, 2)
    packet(inside, outside, sport ^ 1, dport)                  # nearly right
    packet("10.9.9.9", outside, sport, dport)
    packet(inside, "100.64.0.1", 1, 2, protocol=17)
    packet(inside, "100.64.0.1", 1, 2, protocol=1)
print("sent", 7 * times)
"""


@functools.cache
def lacking():
    """What podrun says of a host that has no such pairs, or not what they need; else None."""
    out = subprocess.run([PODRUN, "check", "--json"], stdout=subprocess.PIPE, check=False).stdout
    row = next(c for c in json.loads(out)["checks"] if c["name"] == "veth")
    return None if row["ok"] else row["lost"]


def needs_veth(fn):
    """Skips where nothing can be fast."""
    @functools.wraps(fn)
    def run(env):
        if lacking():
            raise Skip(lacking())
        fn(env)
    return run


class Server(echo.Server):
    def goes_on(self, more=4 * BLOCK):
        """So much more comes back that all of it was sent later."""
        super().goes_on(more)


def stats(env, name="s"):
    return json.loads(env.podrun("net", "stats", name, "--json").text)[0]


def is_fast(env, n=1, name="s"):
    until("%d of its connections are fast" % n, lambda: stats(env, name)["fast"] == n)


def begin(env, server, name="s", options=(), client=CLIENT):
    address = LOOPBACK[server.family]
    env.run_detached(name, sys.executable, "-c", client, address, str(server.port),
                     options=["--net", "vnat", "--host-loopback=" + address, *options])
    server.goes_on()


def start(env, server, name="s", options=()):
    begin(env, server, name, options)
    is_fast(env, name=name)


def stop(env, server, name="s", clients=1):
    env.let_end(name, "/tmp/stop")
    assert env.wait(name).split()[-1] == "intact"
    assert server.clients == clients, server.clients
    # with what else runs in it, which has heard of the end, too
    until("all of it has ended", lambda: not any(x["name"] == name for x in env.sessions()))


def rules_text(env, name="s"):
    return env.podrun("exec", name, "ip", "rule").text + env.podrun("exec", name, "ip", "-6", "rule").text


def rules(env, name="s"):
    return rules_text(env, name).count("ipproto tcp")


def carried(env, name="s"):
    """Bytes that came to the session by the pair, and packets that went out by it."""
    for line in env.podrun("exec", name, "cat", "/proc/net/dev").text.splitlines():
        if line.strip().startswith("podrun1:"):
            fields = line.split(":")[1].split()
            return int(fields[0]), int(fields[9])
    return 0, 0


@test
@needs_namespaces("a network of its own")
@needs_veth
def much_goes_by_the_kernel(env):
    for family in (4, 6):
        server = Server(family)
        name = "s%d" % family
        start(env, server, name)
        until("its rule is there", lambda: rules(env, name) == 1)
        before = carried(env, name)
        counted = stats(env, name)
        server.goes_on()
        until("both ways are used", lambda: all(
            b > a + BLOCK // 1000 for a, b in zip(before, carried(env, name))))
        now = stats(env, name)
        assert now["sent"]["bytes"] > counted["sent"]["bytes"] + BLOCK, (counted, now)
        assert now["received"]["bytes"] > counted["received"]["bytes"] + BLOCK, (counted, now)
        stop(env, server, name)


# Inside: the other end of a published port.
ECHO = r"""
import socket
l = socket.create_server(("", 80))
print("ready", flush=True)
s, _ = l.accept()
while data := s.recv(1 << 18): s.sendall(data)
"""


@test
@needs_namespaces("a network of its own")
@needs_veth
def who_comes_in_by_a_published_port(env):
    port = quiet_port()
    env.run_detached("s", sys.executable, "-c", ECHO, options=["-p", "127.0.0.1:%d:80" % port])
    with until("it listens", lambda: connect(port)) as s:
        block = os.urandom(BLOCK)

        def exchange():
            s.sendall(block)
            got = b""
            while len(got) < BLOCK:
                got += s.recv(BLOCK)
            return got == block
        for _ in range(64):
            assert exchange()
        until("it is fast", lambda: exchange() and stats(env)["fast"] == 1)
        env.podrun("suspend", "s", "-o", env.path("i"))
        env.podrun("resume", env.path("i"), "-d")
        until("it is fast again", lambda: exchange() and stats(env)["fast"] == 1)
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""
    env.wait("s")


def connect(port):
    with contextlib.suppress(OSError):
        return socket.create_connection(("127.0.0.1", port), timeout=60)


@test
@needs_namespaces("a network of its own")
@needs_veth
def what_has_ended_leaves_no_rules(env):
    server = Server()
    env.run_detached("s", "sleep", "1000", ready=None, options=["--net", "vnat", "--host-loopback=" + LOOPBACK[4]])
    for _ in range(3):
        one = subprocess.Popen([PODRUN, "exec", "s", sys.executable, "-c", CLIENT, LOOPBACK[4], str(server.port)],
                               env=env.environ, stdout=subprocess.PIPE, text=True)
        until("it has begun", lambda: stats(env)["connections"] == 1)
        is_fast(env)
        until("its rule is there", lambda: rules(env) == 1)
        env.podrun("exec", "s", "touch", "/tmp/stop")
        assert one.communicate()[0].split() == ["ready", "intact"]
        is_fast(env, 0)
        until("its rule is gone", lambda: rules(env) == 0)
        env.podrun("exec", "s", "rm", "/tmp/stop", "/tmp/on")
    env.podrun("kill", "s")


@test
@needs_namespaces("a network of its own")
@needs_veth
def moves_leave_it_alone(env):
    server = Server()
    start(env, server)
    for i in range(3):
        env.podrun("suspend", "s", "-o", env.path("i%d" % i))
        env.podrun("resume", env.path("i%d" % i), "-d")
        server.goes_on()
        is_fast(env)
    until("only the last pair is there", lambda: inner(env, "dev").count("veth") == 1)
    assert env.podrun("suspend", "s", "-o", "/nonexistent/i", check=False).code
    server.goes_on()
    is_fast(env)
    env.podrun("pause", "s")
    env.podrun("unpause", "s")
    server.goes_on()
    stop(env, server)


@test
@needs_namespaces("a network of its own")
@needs_veth
def a_snapshot_leaves_it_alone_and_a_copy_finds_it_reset(env):
    server = Server()
    start(env, server)
    for i in range(3):
        env.podrun("snapshot", "s", "-o", env.path("i%d" % i))
        server.goes_on()
        is_fast(env)
    env.podrun("resume", env.path("i2"), "--name", "copy", "-d")
    assert env.wait("copy").split()[-1] == "reset"
    server.goes_on()
    stop(env, server)


@test
@needs_namespaces("a network of its own")
@needs_veth
def a_killed_worker_leaves_it_alone(env):
    server = Server()
    start(env, server)
    for who in ("worker", "keeper", "worker"):
        os.kill(gateway(env)[who], signal.SIGKILL)
        server.goes_on()
        is_fast(env)
    stop(env, server)


def gateway(env):
    words = env.podrun("gateway").text.split()
    return {"keeper": int(words[words.index("process") + 1].rstrip(",")),
            "worker": int(words[words.index("worker") + 1])}


@test
@needs_namespaces("a network of its own")
@needs_veth
def without_its_gateway_it_is_reset_and_the_next_is_fast(env):
    server = Server()
    start(env, server)
    who = gateway(env)
    os.kill(who["keeper"], signal.SIGSTOP)
    os.kill(who["worker"], signal.SIGKILL)
    os.kill(who["keeper"], signal.SIGKILL)
    assert env.wait("s").split()[-1] == "reset"
    env.podrun("rm", "s")
    server = Server()
    start(env, server)
    stop(env, server)


@test
@needs_namespaces("a network of its own")
@needs_veth
def a_capture_sees_everything(env):
    server = Server()
    start(env, server)
    at = env.path("out.pcap")
    with subprocess.Popen([PODRUN, "net", "capture", "s", "-w", at], env=env.environ) as capture:
        is_fast(env, 0)
        server.goes_on(4 << 20)
        assert stats(env)["fast"] == 0
        until("it was seen", lambda: os.path.getsize(at) > 4 << 20)
        capture.send_signal(signal.SIGINT)
    is_fast(env)
    server.goes_on()
    stop(env, server)


def inner(env, file):
    """A file of /proc/net in the gateway's inner network."""
    tasks = list(pathlib.Path("/proc/%d/task" % gateway(env)["worker"]).glob("*/net"))
    return next((t / file).read_text() for t in tasks if "gw0:" in (t / "dev").read_text())


def inner_values(env):
    """What the kernel counts there."""
    names, values = [line.split()[1:] for line in inner(env, "snmp").splitlines() if line.startswith("Ip:")]
    return dict(zip(names, map(int, values)))


def inner_counts(env):
    """Packets that came by any interface, and those that somebody there got."""
    values = inner_values(env)
    return values["InReceives"], values["InDelivers"]


@test
@needs_namespaces("a network of its own")
@needs_veth
def what_is_forged_is_dropped(env):
    server, other = Server(), Server()
    start(env, server)
    start(env, other, "other")
    for name in ("s", "other"):
        env.podrun("exec", name, "rm", "/tmp/on")
    for one in (server, other):
        until("it is quiet", lambda: quiet(one))
    port, pid = local_port(env, server.port), program_of(env)
    received, delivered = inner_counts(env)
    forge = env.call(sys.executable, "-c", FORGE, "10.171.0.2", LOOPBACK[4], pid, port, server.port, 20)
    sent = int(forge.text.split()[1])
    until("it has come there", lambda: inner_counts(env)[0] >= received + sent)
    assert inner_counts(env)[1] - delivered < sent // 7, (received, delivered, inner_counts(env))
    for name, one in (("s", server), ("other", other)):
        env.podrun("exec", name, "touch", "/tmp/on")
        one.goes_on()
        stop(env, one, name)


@test
@needs_namespaces("a network of its own")
@needs_veth
def a_pair_that_is_removed_inside_is_made_anew(env):
    """By who may do that there; the next connection that has much to carry finds it gone."""
    env.share_cache()
    server, other = Server(), Server()
    start(env, server, options=["--user", "root"])
    env.podrun("exec", "s", "ip", "link", "del", "podrun1")
    env.start(PODRUN, "exec", "s", sys.executable, "-c", CLIENT, LOOPBACK[4], str(other.port), stdout=subprocess.DEVNULL)
    for one in (other, server):
        one.goes_on()
    is_fast(env, 2)
    stop(env, server)


@test
@needs_namespaces("a network of its own")
@needs_veth
def one_with_many_short_messages_is_fast(env):
    begin(env, server := echo.Server(), client=CLIENT.replace("1 << 16", "8"))
    server.goes_on(1 << 15)
    env.podrun("exec", "s", "rm", "/tmp/on")
    is_fast(env)
    stop(env, server)


# Inside: all the places, each with its own stream; idle while /tmp/idle is there, until /tmp/stop is.
MANY = r"""
import os, socket, sys, time
BLOCK, PLACES = 1 << 16, 32
socks = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(PLACES)]
print("ready", flush=True)
i = 0
while not os.path.exists("/tmp/stop"):
    if os.path.exists("/tmp/idle"):
        open("/tmp/is_idle", "w").close()
        time.sleep(.01)
        continue
    for n, s in enumerate(socks):
        block = (i * PLACES + n).to_bytes(8, "big") * (BLOCK // 8)
        s.sendall(block)
        got = b""
        while len(got) < BLOCK:
            data = s.recv(BLOCK - len(got))
            if not data: sys.exit("ended")
            got += data
        if got != block: sys.exit("wrong in block %d" % i)
    i += 1
for s in socks: s.shutdown(socket.SHUT_WR)
print("more" if any(s.recv(1) for s in socks) else "intact", flush=True)
"""


def is_in_session(env, path, name="s"):
    return env.podrun("exec", name, "test", "-e", path, check=False).code == 0


@test
@needs_namespaces("a network of its own")
@needs_veth
def one_that_is_idle_makes_room_for_one_that_is_not(env):
    for family in (4, 6):
        server, other = Server(family), Server(family)
        name = "s%d" % family
        env.run_detached(name, sys.executable, "-c", MANY, LOOPBACK[family], str(server.port),
                         options=["--net", "vnat", "--host-loopback=" + LOOPBACK[family]])
        is_fast(env, 32, name)
        env.podrun("exec", name, "touch", "/tmp/idle")
        until("they are idle", lambda: is_in_session(env, "/tmp/is_idle", name))
        env.start(PODRUN, "exec", name, sys.executable, "-c", CLIENT, LOOPBACK[family], str(other.port),
                  stdout=subprocess.DEVNULL)
        until("another has the place of one", lambda: "dport %d " % other.port in rules_text(env, name))
        other.goes_on()
        until("its own rule is gone", lambda: rules(env, name) == 32)
        env.podrun("exec", name, "rm", "/tmp/idle")
        for _ in range(16):  # each of them more than once
            server.goes_on()
        other.goes_on()
        assert stats(env, name)["fast"] == 32
        stop(env, server, name, clients=32)


@test
@needs_namespaces("a network of its own")
@needs_veth
def a_pair_that_is_set_down_inside_is_given_up(env):
    """Until the session is there anew."""
    env.share_cache()
    for family in (4, 6):
        server, other = Server(family), Server(family)
        name = "s%d" % family
        start(env, server, name, options=["--user", "root"])
        env.podrun("exec", name, "ip", "link", "set", "podrun1", "down")
        is_fast(env, 0, name)
        env.start(PODRUN, "exec", name, sys.executable, "-c", CLIENT, LOOPBACK[family], str(other.port),
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(8):
            server.goes_on()
            other.goes_on()
        assert stats(env, name)["fast"] == 0
        env.podrun("suspend", name, "-o", env.path(name))
        env.podrun("resume", env.path(name), "-d")
        is_fast(env, 2, name)
        for one in (server, other):
            one.goes_on()
        stop(env, server, name)


@test
@needs_namespaces("a network of its own")
def without_nf_tables_all_of_it_goes_by_net0(env):
    env.prefix = env.prefix + PROFILE + ["--no-netfilter"]
    env.environ["PODRUN_LOG"] = "info"
    assert [c["ok"] for c in env.podrun("check", "--json").json()["checks"] if c["name"] == "veth"] == [False]
    assert "modprobe" in env.podrun("check").text.partition("\nveth ")[2].partition("\nping ")[0]
    server = Server()
    begin(env, server)
    for _ in range(8):
        server.goes_on()
    assert stats(env)["fast"] == 0
    log = pathlib.Path(env.environ["XDG_RUNTIME_DIR"], "podrun", ".gateway", "log").read_text()
    assert log.count("everything goes by the TUNs: nf_tables") == 1, log
    stop(env, server)


# ---- from one session to another -----------------------------------------------------------

# Inside, both.
BOTH = r"""
import os, socket, sys, threading, time
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
"""
# Sends back what it gets.
NEIGHBOUR = BOTH + r"""
l = socket.create_server(("", 80), family=family)
print("ready", flush=True)
def serve(s):
    try:
        while data := s.recv(1 << 18): s.sendall(data)
    except ConnectionResetError:
        print("reset", flush=True)
    s.close()
while True: threading.Thread(target=serve, args=l.accept()[:1]).start()
"""
# As CLIENT and MANY, whose other end is a neighbour.
TO_NEIGHBOUR = r"""
sys.argv[1:] = [socket.getaddrinfo("b.podrun.internal", 80, family, socket.SOCK_STREAM)[0][4][0], "80"]
"""
# As CLIENT, of three streams that go both ways at once, as much as there is room for.
FULL = r"""
BLOCK = 1 << 16
def block(i): return i.to_bytes(8, "big") * (BLOCK // 8)
def send(s):
    i = 0
    while not os.path.exists("/tmp/stop"):
        s.sendall(block(i))
        i += 1
    s.shutdown(socket.SHUT_WR)
def stream(s):
    i, got = 0, b""
    while data := s.recv(1 << 20):
        got += data
        while len(got) >= BLOCK:
            if got[:BLOCK] != block(i):
                print("wrong in block", i, flush=True)
                os._exit(1)
            i, got = i + 1, got[BLOCK:]
socks = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(3)]
threads = [threading.Thread(target=f, args=(s,)) for f in (send, stream) for s in socks]
for t in threads: t.start()
print("ready", flush=True)
for t in threads: t.join()
print("intact", flush=True)
"""


class Neighbours:
    """Session a has a stream to session b and back, which a checks."""

    def __init__(self, env, family=4, client=CLIENT, n=1, options=()):
        self.env, self.family = env, family
        options = ["--net", "vnat", "--host-loopback=" + LOOPBACK[family], *options]
        env.run_detached("b", sys.executable, "-c", NEIGHBOUR, str(family), options=options)
        env.run_detached("a", sys.executable, "-c", BOTH + TO_NEIGHBOUR + client, str(family), options=options)
        if n:
            self.is_fast(n)

    def is_fast(self, n=1):
        for name in "ab":
            is_fast(self.env, n, name)

    def goes_on(self):
        """More than is on its way has come back."""
        before = stats(self.env, "a")["received"]["bytes"]
        until("a hears of b", lambda: stats(self.env, "a")["received"]["bytes"] > before + 16 * BLOCK)

    def both(self, n=1):
        self.goes_on()
        self.is_fast(n)

    def stop(self):
        self.env.let_end("a", "/tmp/stop")
        assert self.env.wait("a").split()[-1] == "intact"
        assert "reset" not in self.env.logs("b")
        self.env.podrun("kill", "b")
        until("both have ended", lambda: not self.env.sessions())
        self.env.podrun("rm", "a", "b")


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_it_goes_by_the_kernel(env):
    for family in (4, 6):
        n = Neighbours(env, family)
        counted, before = stats(env, "b"), [carried(env, name) for name in "ab"]
        n.goes_on()
        until("both pairs are used, both ways", lambda: all(
            b > a + BLOCK // 1000 for name, old in zip("ab", before) for a, b in zip(old, carried(env, name))))
        assert all(stats(env, "b")[way]["bytes"] > counted[way]["bytes"] + BLOCK for way in ("sent", "received"))
        # for a moment, every five seconds, it has none
        for name in "ab":
            until("it has a rule", lambda: (rules(env, name), stats(env, name)["fast"]) == (1, 1))  # noqa: B023
        env.podrun("exec", "a", "rm", "/tmp/on")
        n.is_fast(0)
        for name in "ab":
            until("an idle one has no rule", lambda: rules(env, name) == 0)  # noqa: B023
        env.podrun("exec", "a", "touch", "/tmp/on")
        n.both()
        n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_either_may_be_frozen_and_move(env):
    n = Neighbours(env)
    for i in range(2):
        for name in "ab":
            image = env.path("%s%d" % (name, i))
            env.podrun("suspend", name, "-o", image)
            other = "ab".replace(name, "")
            is_fast(env, 0, other)
            until("its neighbour sends it nothing there", lambda: rules(env, other) == 0)  # noqa: B023
            env.podrun("resume", image, "-d")
            n.both()
            env.podrun("snapshot", name, "-o", image)
            n.both()
            env.podrun("pause", name)
            is_fast(env, 0, other)
            env.podrun("unpause", name)
            n.both()
            assert env.podrun("suspend", name, "-o", "/nonexistent/i", check=False).code
            n.both()
    n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_full_streams_stand_still_and_move(env):
    for family in (4, 6):
        n = Neighbours(env, family, FULL, 3)
        for name in "ab":
            image = env.path("%s%d" % (name, family))
            env.podrun("snapshot", name, "-o", image)
            n.both(3)
            env.podrun("suspend", name, "-o", image)
            env.podrun("resume", image, "-d")
            n.both(3)
            env.podrun("pause", name)
            env.podrun("unpause", name)
            n.both(3)
            os.kill(gateway(env)["worker"], signal.SIGKILL)
            n.both(3)
        n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_a_killed_worker_leaves_it_alone(env):
    n = Neighbours(env)
    for who in ("worker", "keeper", "worker"):
        os.kill(gateway(env)[who], signal.SIGKILL)
        n.both()
    n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_a_capture_sees_everything(env):
    n = Neighbours(env)
    for name in "ab":
        at = env.path(name + ".pcap")
        with subprocess.Popen([PODRUN, "net", "capture", name, "-w", at], env=env.environ) as capture:
            n.is_fast(0)
            until("it was seen", lambda: os.path.exists(at) and os.path.getsize(at) > 4 << 20)  # noqa: B023
            n.is_fast(0)
            capture.send_signal(signal.SIGINT)
        n.both()
    n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_the_end_of_one_is_heard_of(env):
    Neighbours(env)
    env.podrun("kill", "b")
    assert env.wait("a").split()[-1] in ("reset", "ended")


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_a_pair_may_be_removed_or_set_down(env):
    env.share_cache()
    n = Neighbours(env, options=["--user", "root"])
    for name in "ab":
        env.podrun("exec", name, "ip", "link", "del", "podrun1")
        n.both()
    env.podrun("exec", "a", "ip", "link", "set", "podrun1", "down")
    n.is_fast(0)
    n.goes_on()
    n.is_fast(0)
    n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def an_address_that_the_gateway_has_uses_for_is_not_fast(env):
    """Its own kernel would take such packets."""
    for family, own in ((4, "100.64.0.9"), (6, "fd64::9")):
        server = Server(family)
        begin(env, server, "s%d" % family, options=["--address", own])
        for _ in range(8):
            server.goes_on()
        is_fast(env, 0, "s%d" % family)
        stop(env, server, "s%d" % family)


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_an_address_that_the_gateway_has_uses_for_is_not_fast(env):
    for family, own in ((4, "100.64.0.9"), (6, "fd64::9")):
        n = Neighbours(env, family, n=0, options=["--address", own])
        for _ in range(4):
            n.goes_on()
        n.is_fast(0)
        n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_what_is_idle_makes_room(env):
    for family in (4, 6):
        n, server = Neighbours(env, family, MANY, 32), Server(family)
        env.podrun("exec", "a", "touch", "/tmp/idle")
        env.start(PODRUN, "exec", "a", sys.executable, "-c", CLIENT, LOOPBACK[family], str(server.port),
                  stdout=subprocess.DEVNULL)
        until("another has a place", lambda: "dport %d " % server.port in rules_text(env, "a"))  # noqa: B023
        server.goes_on()
        env.podrun("exec", "a", "rm", "/tmp/idle")
        is_fast(env, 32, "a")
        server.goes_on()
        n.stop()


@test
@needs_namespaces("a network of its own")
@needs_veth
def between_sessions_what_is_forged_is_dropped(env):
    n = Neighbours(env)
    env.podrun("exec", "a", "rm", "/tmp/on")
    local, outside = ends_of(env, "a", 80)
    until("it is quiet", lambda: len({(threading.Event().wait(.1), inner_values(env)["ForwDatagrams"])[1] for _ in range(5)}) == 1)
    before, received = inner_values(env)["ForwDatagrams"], inner_counts(env)[0]
    forge = env.call(sys.executable, "-c", FORGE, "10.171.0.2", outside, program_of(env, "a"), local, 80, 20)
    until("it has come there", lambda: inner_counts(env)[0] >= received + int(forge.text.split()[1]))
    assert inner_values(env)["ForwDatagrams"] == before
    env.podrun("exec", "a", "touch", "/tmp/on")
    n.both()
    until("its own goes on", lambda: inner_values(env)["ForwDatagrams"] > before)
    n.stop()


def quiet(server):
    before = server.echoed
    threading.Event().wait(.1)
    return server.echoed == before


def program_of(env, name="s"):
    """The process on the host that is the session's program."""
    init = str(env.podrun("inspect", name).json()["init_pid"])
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == init:
                return int(stat.parent.name)
    raise Failed("the session has no program")


def ends_of(env, name, remote):
    """The port here of the connection to that port, and the address there."""
    for line in env.podrun("exec", name, "cat", "/proc/net/tcp").text.splitlines()[1:]:
        local, (address, port) = line.split()[1], line.split()[2].split(":")
        if int(port, 16) == remote:
            return int(local.split(":")[1], 16), socket.inet_ntoa(int(address, 16).to_bytes(4, sys.byteorder))
    raise Failed("the session has no such connection")


def local_port(env, remote):
    return ends_of(env, "s", remote)[0]


if __name__ == "__main__":
    main()
