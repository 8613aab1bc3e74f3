#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The gateway's outside: what hosts, name servers and lines there do that connections have to bear."""
import contextlib
import hashlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from gateways import DOWNLOAD, OUT4, OUT6, REASON, Server, Session, begin, digest, expect, send  # noqa: E402
from harness import needs, test, until  # noqa: E402
from nameserver import NameServer  # noqa: E402


@contextlib.contextmanager
def name_servers(env, *ports):
    """The host's name servers are this script's, at these ports."""
    resolv, real = env.path("resolv.conf"), os.path.realpath("/etc/resolv.conf")
    resolv.write_text("".join("nameserver [%s]:%d\n" % (OUT4, p) for p in ports))
    subprocess.run(["mount", "--bind", resolv, real], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", real], check=True)


@test
def a_name_server_that_refuses_is_followed_by_the_next(env):
    with socket.create_server((OUT4, 0)) as gone, socket.create_server((OUT4, 0)) as gone_too:
        refuse = [s.getsockname()[1] for s in (gone, gone_too)]
    server = Server(send(1, "name"))
    with name_servers(env, *refuse, server.port):
        s = Session(env)
        code = "s = connect('10.171.0.1', 53)\nsay(digest(s))"
        assert s.run(code) == expect(1, "name")
    with name_servers(env, *refuse):
        assert s.run(REASON, "10.171.0.1", 53) == "ECONNREFUSED"
    s.close()


# Both ends do the same at once. Who sets SO_OOBINLINE later may lose a byte to the next urgent one.
URGENT = r"""
import threading
def inline(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    return s
def urgent(s):
    def talk():
        for i in range(40):
            s.sendall(b'x' * (i * i * 100))
            s.send(b'!', socket.MSG_OOB)
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=talk)
    t.start()
    got = digest(s)
    t.join()
    return got
def urgent_in_all():
    return hashlib.sha256(b''.join(b'x' * (i * i * 100) + b'!' for i in range(40))).hexdigest()
"""
exec(URGENT)  # pylint: disable=exec-used


@test
def urgent_data_stops_nothing(env):
    s = Session(env)
    server = Server(urgent)  # noqa: F821
    inline(server.sock)  # noqa: F821
    code = URGENT + "s = inline(socket.socket())\ns.connect((sys.argv[1], int(sys.argv[2])))\nsay(urgent(s))"
    assert s.run(code, OUT4, server.port) == urgent_in_all()  # noqa: F821
    assert server.result() == urgent_in_all()

    def out_of_line(conn):
        select.select([], [], [conn])
        got = conn.recv(1, socket.MSG_OOB)
        conn.send(b"?", socket.MSG_OOB)
        # It stays in the queue all the same, so a close() is a reset: not before the other side has read.
        with contextlib.suppress(ConnectionResetError):
            conn.recv(1)
        return got

    server = Server(out_of_line)
    code = ("import select\ns = connect(sys.argv[1], sys.argv[2])\ns.send(b'!', socket.MSG_OOB)\n"
            "select.select([], [], [s])\nsay(s.recv(1, socket.MSG_OOB))")
    assert s.run(code, OUT4, server.port) == "b'?'"
    assert server.result() == b"!", "urgent outside as well"
    s.close()


# Sends without end, and reads what it was told when it is stopped.
UNWELCOME = r"""
for i in range(20):
    s, told = connect(sys.argv[1], sys.argv[2]), b''
    try:
        while True:
            s.sendall(b'x' * 65536)
    except (ConnectionResetError, BrokenPipeError):
        pass
    try:
        while more := s.recv(100):
            told += more
    except ConnectionResetError:
        pass
    say(told.decode())
"""


@test
def what_is_said_before_a_reset_arrives(env):
    """Of a server that answers and closes without having read all, as those of HTTP do: both at once."""
    s = Session(env)
    worker = int(s.list()["worker"])

    def refuse(conn):
        conn.recv(1)
        os.kill(worker, signal.SIGSTOP)
        conn.recv(1, socket.MSG_PEEK)
        conn.sendall(b"denied")
        conn.close()
        os.kill(worker, signal.SIGCONT)

    assert s.run(UNWELCOME, OUT4, Server(refuse).port).split("\n") == ["denied"] * 20
    s.close()


def has_keepalive(local, remote):
    """Of ports: has that socket of the host's the timer of one that is idle (proc(5), net/tcp)?"""
    with open("/proc/net/tcp") as f:
        for line in f.read().splitlines()[1:]:
            _, own, peer, _, _, timer = line.split()[:6]
            if int(own.split(":")[1], 16) == local and int(peer.split(":")[1], 16) == remote:
                return timer.startswith("02:")
    return False


@test
def who_says_nothing_is_kept_alive_outside(env):
    """While the session is there: its own keepalives end at the gateway."""
    s = Session(env)
    peer, done = [], threading.Event()

    def serve(conn):
        peer.append(conn.getpeername()[1])
        done.wait()

    server = Server(serve)
    p = s.python(DOWNLOAD, OUT4, server.port)
    assert p.stdout.readline() == "connected\n"
    until("the connection is kept alive", lambda: peer and has_keepalive(peer[0], server.port))
    done.set()
    p.wait()
    s.close()


# What a datagram there comes to, by a socket that asks for all errors (IP_RECVERR).
DATAGRAM = r"""
import errno
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 11, 1)
s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b'x')
try:
    say(s.recv(10))
except OSError as e:
    say(errno.errorcode[e.errno])
"""


@test
def link_local_addresses_are_the_hosts_alone(env):
    """As the metadata service of a cloud, with the host's credentials."""
    here = "169.254.169.254"
    subprocess.run(["ip", "address", "replace", here + "/32", "dev", "lo"], check=True)
    server = Server(send(1, "secret"), here)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((here, 0))

    def echo():
        data, peer = datagrams.recvfrom(10)
        datagrams.sendto(data, peer)

    threading.Thread(target=echo, daemon=True).start()
    closed, opened = Session(env), Session(env, "allowed", ["link-local"])
    assert closed.run(REASON, here, server.port) == "EHOSTUNREACH"
    assert closed.run(DATAGRAM, here, datagrams.getsockname()[1]) == "EHOSTUNREACH"
    for other in "100.100.100.200", "168.63.129.16", "192.0.0.192":
        assert closed.run(REASON, other, 80) == "EHOSTUNREACH", other
    assert opened.run(DOWNLOAD, here, server.port).split()[1] == expect(1, "secret")
    assert opened.run(DATAGRAM, here, datagrams.getsockname()[1]) == "b'x'"
    closed.close()
    opened.close()
    datagrams.close()


SECRET = "cG9kcnVuIHRlc3RzIGEga2V5IG9mIDMyIGJ5dGVzLi4="


def key_file(env, name, secret=SECRET):
    path = env.path(name)
    path.write_text('key "%s" {\n\talgorithm hmac-sha256;\n\tsecret "%s";\n};\n' % (name, secret))
    return path


def serve_names(server, drop=0):
    """In a thread; the first `drop` datagrams are lost."""
    def run():
        for _ in range(drop):
            server.sock.recvfrom(4096)
        while True:
            server.serve_one()
    threading.Thread(target=run, daemon=True).start()


@test
def a_name_follows_the_session(env):
    server = NameServer(OUT4, 0, "example.test", "mover", SECRET)
    serve_names(server, drop=1)
    update = "update=example.test/web@%s#%d:%s" % (OUT4, server.port, key_file(env, "mover"))
    s = Session(env, "s", [update, "8090:80"])
    mine = sorted([OUT4, OUT6])
    until("the name is there", lambda: server.addresses("web.example.test") == mine)
    before = server.told
    server.records.clear()
    s.say("suspend")
    s.say("resume")
    until("it is told again", lambda: server.told > before)
    assert server.addresses("web.example.test") == mine and not server.refused
    s.close()
    until("the name is gone", lambda: not server.addresses("web.example.test"))
    for bad in "update=example.test/web@%s#%d" % (OUT4, server.port), update.replace("/mover", "/wrong"):
        key_file(env, "wrong", SECRET.replace("cG9k", "cG9L"))
        refused = server.refused
        other = Session(env, "other", [bad])
        until("it is refused", lambda: server.refused > refused)
        assert not server.addresses("web.example.test")
        other.close()


@test
def the_name_server_of_the_tests_is_one(env):
    """nsupdate(1), which others have written, gets on with it."""
    needs("nsupdate")
    server = NameServer(OUT4, 0, "example.test", "mover", SECRET)
    serve_names(server)
    commands = "server %s %d\nzone example.test\nupdate delete web.example.test A\n" \
        "update add web.example.test 60 A 192.0.2.9\nsend\n" % (OUT4, server.port)
    # An answer that is not signed is none to it, but it has said what it had to say.
    subprocess.run(["nsupdate", "-t", "2", "-r", "0", "-k", key_file(env, "mover")], input=commands, text=True,
                   capture_output=True, check=False)
    assert server.addresses("web.example.test") == ["192.0.2.9"], server.records


if __name__ == "__main__":
    begin()
