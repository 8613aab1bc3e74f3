#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The gateway: streams of sessions through it, in a network of this script's own.

What is outside, and what a session is here, says tests/lib/gateways.py.
"""
import contextlib
import errno
import hashlib
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from gateways import (DOWNLOAD, OUT4, OUT6, REASON, Server, Session, begin, blocks, digest,  # noqa: E402
                      expect, gateway_gone, send)
from cli import one_line  # noqa: E402
from harness import PODRUN, test, until  # noqa: E402


# A session that sends, ends, and still hears everything: half-closed.
EXCHANGE = r"""
s = connect(sys.argv[1], sys.argv[2])
for b in blocks(int(sys.argv[3]), 'up'):
    s.sendall(b)
s.shutdown(socket.SHUT_WR)
say(digest(s))
"""


def receive_then_send(n):
    def serve(conn):
        got = digest(conn)
        for b in blocks(n, "down"):
            conn.sendall(b)
        return got
    return serve


# ---- outbound -------------------------------------------------------------------------------

@test
def streams_and_half_close(env):
    s = Session(env)
    for host in (OUT4, OUT6):
        server = Server(receive_then_send(100), host)
        assert s.run(EXCHANGE, host, server.port, 100) == expect(100, "down")
        assert server.result() == expect(100, "up")
    s.close()
    until("the gateway has ended", lambda: gateway_gone(env))


@test
def refused_and_unreachable(env):
    s = Session(env)
    for host in (OUT4, OUT6):
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as gone:
            port = gone.getsockname()[1]
        assert s.run(REASON, host, port) == "ECONNREFUSED"
    assert s.run(REASON, "198.51.100.1", 80) == "ENETUNREACH"
    assert s.run(REASON, "2001:db8:1::1", 80) == "ENETUNREACH"
    s.close()


@test
def the_hosts_loopback_by_its_address_only(env):
    s = Session(env)
    server = Server(send(1, "lo"), "127.0.0.1")
    code = "s = connect(sys.argv[1], sys.argv[2])\nsay(digest(s))"
    assert s.run(code, "10.171.0.3", server.port) == expect(1, "lo")
    assert s.run(REASON, "10.171.0.1", server.port) == "ECONNREFUSED"
    s.close()


RESET = r"""
s = connect(sys.argv[1], sys.argv[2])
s.sendall(b'x')
if sys.argv[3] == 'ours':
    s.recv(1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()
    say('closed')
else:
    try:
        say('data', s.recv(1))
    except ConnectionResetError:
        say('reset')
"""


@test
def resets_both_ways(env):
    s = Session(env)

    def resets(conn):
        conn.recv(1)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, (1).to_bytes(4, "little") + bytes(4))

    def is_reset(conn):
        conn.sendall(b"y")
        conn.recv(1)
        try:
            conn.recv(1)
        except ConnectionResetError:
            return "reset"
        return "end"

    assert s.run(RESET, OUT4, Server(resets).port, "theirs") == "reset"
    server = Server(is_reset)
    assert s.run(RESET, OUT4, server.port, "ours") == "closed"
    assert server.result() == "reset"
    s.close()


@test
def many_at_once(env):
    s = Session(env)
    server = Server(send(1, "one"))
    code = r"""
all = [connect(sys.argv[1], sys.argv[2]) for _ in range(300)]
for s in all:
    s.shutdown(socket.SHUT_WR)
say(' '.join(sorted({digest(s) for s in all})))
"""
    assert s.run(code, OUT4, server.port) == expect(1, "one")
    until("all flows have ended", lambda: s.list()["mine"]["flows"] == "0")
    s.close()


GIVE_UP = r"""
s = socket.socket()
s.setblocking(False)
s.connect_ex((sys.argv[1], int(sys.argv[2])))
say('asked')
sys.stdin.readline()
"""


@test
def given_up_before_the_answer(env):
    """Outside answers when the program has gone: nothing is left of it on either side."""
    s = Session(env)
    full = socket.socket()
    full.bind((OUT4, 0))
    full.listen(0)
    port = full.getsockname()[1]
    in_front = socket.create_connection((OUT4, port))
    p = s.python(GIVE_UP, OUT4, port)
    assert p.stdout.readline() == "asked\n"
    until("outside is being asked", lambda: s.list()["mine"]["flows"] == "1")
    p.communicate("\n")
    full.accept()[0].close()
    until("the flow has ended", lambda: s.list()["mine"]["flows"] == "0")
    # The server need not hear of it: the handshake is over when the program's is.
    full.setblocking(False)
    with contextlib.suppress(BlockingIOError, ConnectionResetError):
        with full.accept()[0] as late:
            late.settimeout(60)
            assert late.recv(1) == b""
    for sock in in_front, full:
        sock.close()
    s.close()


# ---- inbound --------------------------------------------------------------------------------

LISTEN = r"""
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
l = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family, dualstack_ipv6=family == socket.AF_INET6)
say('listening')
for line in sys.stdin:
    c, peer = l.accept()
    got = digest(c)
    for b in blocks(20, 'answer'):
        c.sendall(b)
    c.close()
    say(peer[0], peer[1], got)
say('ends')
"""


def refused(host, port):
    try:
        socket.create_connection((host, port), timeout=20).close()
    except ConnectionRefusedError:
        return True
    return False


def exchange(host, port, source):
    """Sends, ends, and hears the answer; returns our port."""
    with socket.create_connection((host, port), source_address=(source, 0)) as c:
        ours = c.getsockname()[1]
        for b in blocks(20, "ask"):
            c.sendall(b)
        c.shutdown(socket.SHUT_WR)
        assert digest(c) == expect(20, "answer")
    return ours


@test
def published_with_the_clients_address(env):
    s = Session(env, "s", ["8080:80"])
    assert refused(OUT4, 8080), "nobody listens inside"
    p = s.python(LISTEN, "::", 80)
    assert p.stdout.readline() == "listening\n"
    until("it listens outside", lambda: s.list()["mine"]["listening"] == "1")
    for host, source, seen in ((OUT4, OUT4, "::ffff:" + OUT4), (OUT6, OUT6, OUT6), ("127.0.0.1", "127.0.0.1", None)):
        p.stdin.write("\n")
        p.stdin.flush()
        ours = exchange(host, 8080, source)
        address, port, got = p.stdout.readline().split()
        assert got == expect(20, "ask")
        if seen:
            assert (address, int(port)) == (seen, ours), (address, port)
        else:
            assert address == "::ffff:10.171.0.1", address
    p.stdin.close()
    assert p.stdout.readline() == "ends\n"
    p.wait()
    until("it does not listen outside", lambda: s.list()["mine"]["listening"] == "0")
    assert refused(OUT4, 8080)
    other = Session(env, "other", ["8080:80"])
    assert other.attached == "failed port 8080 of this host is published by 's'", other.attached
    other.close()
    s.close()


@test
def published_by_the_family_that_listens(env):
    """A client of the other is led there too, as the gateway."""
    for address, seen in (("0.0.0.0", "10.171.0.1"), ("fd7a:706f:6472::2", "fd7a:706f:6472::1")):
        s = Session(env, "s", ["8085:80"])
        p = s.python(LISTEN, address, 80)
        assert p.stdout.readline() == "listening\n"
        until("it listens outside", lambda: s.list()["mine"]["listening"] == "1")
        for host in OUT4, OUT6:
            p.stdin.write("\n")
            p.stdin.flush()
            exchange(host, 8085, host)
            peer, _, got = p.stdout.readline().split()
            assert got == expect(20, "ask")
            assert peer == (host if (":" in host) == (":" in address) else seen), (address, host, peer)
        p.stdin.close()
        p.wait()
        until("their ends are heard", lambda: s.list()["mine"]["flows"] == "0")
        s.close()


def may_listen(port):
    """May somebody else of this host, by what any server sets?"""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("0.0.0.0", port))
            other.listen()
        except OSError as e:
            assert e.errno == errno.EADDRINUSE, e
            return False
    return True


@test
def a_published_port_is_nobody_elses(env):
    """Not before the session listens, nor after, though nobody does outside then."""
    s = Session(env, "s", ["8083:80"])
    assert not may_listen(8083)
    for _ in range(2):
        p = s.python(LISTEN, "::", 80)
        assert p.stdout.readline() == "listening\n"
        until("it listens outside", lambda: s.list()["mine"]["listening"] == "1")
        p.stdin.write("\n")
        p.stdin.flush()
        exchange(OUT4, 8083, OUT4)
        p.communicate()
        until("it does not listen outside", lambda: s.list()["mine"]["listening"] == "0")
        assert not may_listen(8083)
    s.close()
    until("the port is free", lambda: may_listen(8083))


PENDING = r"""
l = socket.create_server(('0.0.0.0', 80))
say('listening')
sys.stdin.readline()
c, peer = l.accept()
say(*peer)
say(digest(c))
"""


@test
def nobody_had_accepted_it(env):
    """The session's listener is made anew, and its client does not notice."""
    s = Session(env, "s", ["8082:80"])
    first = s.python(PENDING)
    assert first.stdout.readline() == "listening\n"
    until("it listens outside", lambda: s.list()["mine"]["listening"] == "1")
    h = hashlib.sha256(b"received")
    with socket.create_connection((OUT4, 8082), source_address=(OUT4, 0)) as c:
        ours = c.getsockname()[1]
        c.sendall(b"received")
        waiting = ["ss", "-tnH", "state", "established", "( sport = :80 )"]
        until("it waits there", lambda: subprocess.run(s.argv(*waiting), capture_output=True,
                                                       text=True).stdout.split()[:1] == ["8"])
        assert s.say("suspend") == "done flows 1"
        first.kill()
        first.wait()
        for b in blocks(10, "more"):
            c.sendall(b)
            h.update(b)
        c.shutdown(socket.SHUT_WR)
        second = s.python(PENDING)
        assert second.stdout.readline() == "listening\n"
        assert "lost 0 flows 1" in s.say("frozen")
        assert s.say("redo %s %d 80 received" % (OUT4, ours)) == "done"
        assert s.say("redo %s %d 80 received" % (OUT4, ours)) == "done", "twice is as good as once"
        assert s.say("redo %s 1 80 received" % OUT4) == "no such connection"
        assert s.say("go").startswith("done")
        second.stdin.write("\n")
        second.stdin.close()
        assert second.stdout.readline().split() == [OUT4, str(ours)]
        assert second.stdout.readline().strip() == h.hexdigest()
    second.wait()
    s.close()


@test
def published_while_the_worker_is_killed(env):
    s = Session(env, "s", ["8081:80"])
    p = s.python(LISTEN, "0.0.0.0", 80)
    assert p.stdout.readline() == "listening\n"
    until("it listens outside", lambda: s.list()["mine"]["listening"] == "1")
    for _ in range(10):
        p.stdin.write("\n")
        p.stdin.flush()
        os.kill(int(s.list()["worker"]), 9)
        exchange(OUT4, 8081, OUT4)
        assert p.stdout.readline().split()[2] == expect(20, "ask")
    p.stdin.close()
    p.wait()
    s.close()


# ---- from session to session ----------------------------------------------------------------

LOOK_UP = r"""
def look_up(name, kind):
    q = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0)
    q += b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + struct.pack('>BHH', 0, kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(q, ('10.171.0.1', 53))
    return s.recv(512)[-16 if kind == 28 else -4:]
"""


@test
def sessions_by_their_names(env):
    s, other = Session(env), Session(env, "other")
    p = other.python(LISTEN, "::", 80)
    assert p.stdout.readline() == "listening\n"
    code = LOOK_UP + r"""
for kind, family in ((1, socket.AF_INET), (28, socket.AF_INET6)):
    s = connect(socket.inet_ntop(family, look_up('other.podrun.internal', kind)), 80)
    for b in blocks(20, 'ask'):
        s.sendall(b)
    s.shutdown(socket.SHUT_WR)
    say(digest(s))
"""
    p.stdin.write("\n\n")
    p.stdin.close()
    assert s.run(code).split() == [expect(20, "answer")] * 2
    assert [p.stdout.readline().split()[2] for _ in range(2)] == [expect(20, "ask")] * 2
    p.wait()
    other.close()
    s.close()


# ---- datagrams -----------------------------------------------------------------------------

# Each has a number and is sent again until it has come back, as anybody does who uses datagrams.
DATAGRAMS = r"""
host, port, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM)
s.connect((host, port))
s.settimeout(.2)
h = hashlib.sha256()
for i, b in enumerate(blocks(n, 'ask')):
    b = b[:1200]
    while True:
        try:
            s.send(b)
            back = s.recv(2000)
            while back[:8] != b[:8]:
                back = s.recv(2000)
            break
        except (TimeoutError, ConnectionRefusedError):
            pass
    h.update(back[8:])
say(h.hexdigest())
"""


def echoes(out):
    """A socket outside that sends everything back the other way round, and whom it has seen."""
    s = socket.socket(socket.AF_INET6 if ":" in out else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((out, 0))
    seen = set()

    def serve():
        while True:
            b, a = s.recvfrom(2000)
            if b == b"end":
                return
            seen.add(a[1])
            s.sendto(b[:8] + b[:7:-1], a)
    thread = threading.Thread(target=serve)
    thread.start()

    def end():
        s.sendto(b"end", s.getsockname())
        thread.join()
        s.close()
        return seen
    return s.getsockname()[1], end


def echoed(n):
    h = hashlib.sha256()
    for b in blocks(n, "ask"):
        h.update(b[:1200][:7:-1])
    return h.hexdigest()


@test
def datagrams_both_ways(env):
    s = Session(env)
    for out in OUT4, OUT6:
        port, end = echoes(out)
        assert s.run(DATAGRAMS, out, port, 500) == echoed(500)
        assert len(end()) == 1
    s.close()


@test
def datagrams_while_the_worker_is_killed(env):
    """The port outside stays the same, so whoever is outside does not notice."""
    s = Session(env)
    port, end = echoes(OUT4)
    p = s.python(DATAGRAMS, OUT4, port, 10000)
    kills = 0
    while p.poll() is None:
        os.kill(int(s.list()["worker"]), 9)
        kills += 1
        time.sleep(random.random() / 5)  # another moment each time
    assert p.stdout.read().strip() == echoed(10000)
    assert len(end()) == 1
    assert kills > 1, kills
    s.close()


# ---- the worker is killed -------------------------------------------------------------------

@test
def killed_again_and_again(env):
    s = Session(env)
    n = 3000
    down, up = Server(send(n, "down")), Server(receive_then_send(1))
    loader = s.python("s = connect(sys.argv[1], sys.argv[2])\nsay(digest(s))", OUT4, down.port)
    sender = s.python(EXCHANGE, OUT4, up.port, n)
    kills = 0
    while loader.poll() is None or sender.poll() is None:
        os.kill(int(s.list()["worker"]), 9)
        kills += 1
        time.sleep(random.random() / 5)  # another moment each time
    assert loader.stdout.read().strip() == expect(n, "down")
    assert sender.stdout.read().strip() == expect(1, "down")
    assert up.result() == expect(n, "up")
    assert kills > 3, kills
    assert int(s.list()["restarts"]) == kills
    s.close()


@test
def the_keeper_is_killed_too(env):
    s = Session(env)
    server = Server(send(2000, "down"))
    p = s.python("s = connect(sys.argv[1], sys.argv[2])\nsay(digest(s))", OUT4, server.port)
    for _ in range(3):
        keeper = s.list()["keeper"]
        os.kill(int(keeper), 9)
        until("there is another keeper", lambda: s.list()["keeper"] != keeper)
        os.kill(int(s.list()["worker"]), 9)
    assert p.stdout.read().strip() == expect(2000, "down")
    s.close()
    until("the gateway has ended", lambda: gateway_gone(env))


# ---- held, away and back --------------------------------------------------------------------

def proc_word(pid, name):
    return pathlib.Path("/proc/%d/%s" % (pid, name)).read_text().split()[0]



@test
def held_and_on(env):
    s = Session(env)
    server = Server(send(1000, "down"))
    p = s.python(DOWNLOAD, OUT4, server.port)
    assert p.stdout.readline() == "connected\n"
    for _ in range(20):
        assert s.say("hold").startswith("done")
        assert s.say("go").startswith("done")
    assert p.stdout.read().strip() == expect(1000, "down")
    s.close()


SENDERS = r"""
all = [connect(sys.argv[1], sys.argv[2]) for _ in range(int(sys.argv[3]))]
for s in all:
    s.sendall(b'0')
    s.recv(1)
say('connected')
sys.stdin.readline()
for s in all:
    s.sendall(b'1')
say('sent')
sys.stdin.readline()
"""


@test
def what_was_sent_before_a_hold_goes_out(env):
    """Also what the gateway has not read yet: it would be sent again, but not before the session is back."""
    n, got, lock, full = 1200, [], threading.Lock(), threading.Event()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # here, and inside

    def serve(conn):
        assert conn.recv(1) == b"0"
        conn.sendall(b"0")
        one = conn.recv(1)
        with lock:
            got.append(one)
        full.wait()

    s, server = Session(env), Server(serve)
    server.sock.listen(n)
    p = s.python(SENDERS, OUT4, server.port, n)
    assert p.stdout.readline() == "connected\n"
    worker = s.list()["worker"]
    os.kill(int(worker), signal.SIGSTOP)
    p.stdin.write("\n")
    p.stdin.flush()
    assert p.stdout.readline() == "sent\n"
    held = threading.Thread(target=lambda: got.append(s.say("hold")))
    held.start()
    until("the gateway is asked", lambda: proc_word(s.process.pid, "syscall") not in ("0", "running"))
    assert not got
    os.kill(int(worker), signal.SIGCONT)
    held.join()
    until("all of it arrives (%s)" % got[:1], lambda: len(got) == n + 1)
    assert sorted(map(str, got))[:n] == ["b'1'"] * n, got
    full.set()
    assert s.say("go").startswith("done")
    p.stdin.write("\n")
    p.stdin.close()
    p.wait()
    s.close()


def inner_tcp(s, name):
    """What the kernel counts in the gateway's inner network."""
    for net in pathlib.Path("/proc/%s/task" % s.list()["worker"]).glob("*/net"):
        if "gw0:" in (net / "dev").read_text():
            names, values = [x.split()[1:] for x in (net / "snmp").read_text().splitlines() if x.startswith("Tcp:")]
            return int(dict(zip(names, values))[name])
    raise AssertionError("no inner network")


@test
def what_was_held_comes_whole_when_it_is_back(env):
    """Of what its sender sends while it is away less is kept: one segment, cut short."""
    s, go = Session(env), threading.Event()

    def serve(conn):
        conn.sendall(b"b")
        go.wait()
        conn.sendall(b"a" * 1000)
        return conn.recv(1)

    server = Server(serve)
    p = s.python("s = connect(sys.argv[1], sys.argv[2])\nsay(len(s.recv(1)))\nsay(len(s.recv(4096)))",
                 OUT4, server.port)
    assert p.stdout.readline() == "1\n"
    assert s.say("hold").startswith("done")
    sent = inner_tcp(s, "OutSegs")
    go.set()
    until("it is sent", lambda: inner_tcp(s, "OutSegs") > sent)
    s.list()  # in a later turn of the gateway's
    again = inner_tcp(s, "RetransSegs")
    assert s.say("suspend") == "done flows 1"
    until("its sender tries again", lambda: inner_tcp(s, "RetransSegs") > again)
    assert "lost 0 flows 1" in s.say("resume")
    assert p.stdout.readline() == "1000\n"
    p.wait()
    s.close()


@test
def away_and_back(env):
    s = Session(env)
    go = threading.Event()

    def serve(conn):
        conn.sendall(b"before")
        go.wait()
        return send(200, "after")(conn)

    server = Server(serve)
    p = s.python("s = connect(sys.argv[1], sys.argv[2])\nsay(s.recv(6))\nsay(digest(s))", OUT4, server.port)
    assert p.stdout.readline() == "b'before'\n"
    assert s.say("suspend") == "done flows 1"
    go.set()
    os.kill(int(s.list()["worker"]), 9)
    assert s.list()["mine"]["suspended"] == "1"
    other = Session(env, "other")
    assert "lost 0 flows 0" in other.attached
    assert "epoch 2 lost 0 flows 1" in s.say("resume"), "the connections are its own"
    assert p.stdout.read().strip() == expect(200, "after")
    other.close()
    s.close()


@test
def who_comes_late_gets_nothing(env):
    s = Session(env)
    quiet = threading.Event()
    server = Server(lambda conn: quiet.wait())
    p = s.python("s = connect(sys.argv[1], sys.argv[2])\nsay('up')\n"
                 "try:\n  s.recv(1)\nexcept OSError as e:\n  say(type(e).__name__)", OUT4, server.port)
    assert p.stdout.readline() == "up\n"
    assert s.say("suspend") == "done flows 1"
    assert "lost 0 flows 1" in s.say("resume")
    assert s.say("suspend") == "done flows 1"
    assert "lost 1 flows 0" in s.say("late")
    quiet.set()
    p.kill()
    p.wait()
    s.close()


# ---- limits ---------------------------------------------------------------------------------

@test
def no_more_connections_than_allowed(env):
    s = Session(env, "s", ["flows=3"])
    server = Server(send(1, "one"))
    code = r"""
all, refused = [], 0
for _ in range(5):
    try:
        all.append(connect(sys.argv[1], sys.argv[2]))
    except ConnectionRefusedError:
        refused += 1
say(len(all), refused)
for s in all:
    digest(s)
    s.close()
"""
    assert s.run(code, OUT4, server.port) == "3 2"
    assert s.list()["mine"]["refused"] == "2"
    until("all flows have ended", lambda: s.list()["mine"]["flows"] == "0")
    assert s.run(DOWNLOAD, OUT4, server.port).split()[1] == expect(1, "one")
    s.close()


@test
def other_sources_are_dropped(env):
    s = Session(env)
    before = int(s.list()["mine"]["dropped"])
    subprocess.run(s.argv("ip", "address", "add", "10.171.0.77/32", "dev", "net0"), check=True)
    s.run("s = socket.socket()\ns.bind(('10.171.0.77', 0))\ns.setblocking(False)\ns.connect_ex((sys.argv[1], 9))",
          OUT4)
    until("the SYN is dropped", lambda: int(s.list()["mine"]["dropped"]) > before)
    s.close()


@test
def a_host_is_no_option(env):
    """Its name may come with an image, and ssh would take it for an option."""
    called, ssh = env.path("called"), env.path("ssh")
    ssh.write_text('#!/bin/sh\necho "$1" >>"%s"\n' % called)
    ssh.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(ssh)
    for host in "some.host", "-oProxyCommand=true":
        # who starts it gives it a socket, whose end it sees here at once
        env.call("sh", "-c", 'exec "$@" 3</dev/null', "sh", PODRUN, "gateway", "--carry=" + host, check=False)
    assert called.read_text() == "some.host\n"
    one_line(env.podrun("gateway", "--carry=some.host", code=2), "--carry")
    assert called.read_text() == "some.host\n"


if __name__ == "__main__":
    begin()
