#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that lead out of a session: refused, undisturbed by a snapshot, severed by a resume."""
import contextlib
import os
import pathlib
import pty
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import ssh_to  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, REWRITE, add, main, needs_namespaces, quiet_port, test, until  # noqa: E402

# Inside: connects, says "ready", and when /tmp/go is there tells how reading and writing end.
CLIENT = r"""
import errno, os, socket, sys, time
kind, where = sys.argv[1], sys.argv[2]
def name(e): return errno.errorcode[e.errno]
def connect():
    if kind == "tcp":
        return socket.create_connection(("127.0.0.1", int(where)))
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if kind == "dgram" else socket.SOCK_STREAM)
    if kind == "dgram":
        s.bind("/tmp/mine")
    s.connect("\0" + where[1:] if where[0] == "@" else where)
    return s
s = connect()
s.sendall(b"hello")
if kind != "dgram":
    while s.recv(64, socket.MSG_PEEK) != b"unread":
        time.sleep(.01)
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
s.settimeout(.2)
if os.path.exists("/tmp/alive"):
    s.sendall(b"still here")
def read():
    try:
        return repr(s.recv(64))
    except TimeoutError:
        return "nothing"
    except OSError as e:
        return name(e)
def write():
    try:
        return str(s.send(b"x"))
    except OSError as e:
        return name(e)
print("read", read(), read(), read(), "write", write(), write(), flush=True)
"""


@contextlib.contextmanager
def server(env, kind, where=None):
    """Outside: one connection; what it says is collected in `said`."""
    said = []
    if kind == "tcp":
        listener = socket.create_server(("127.0.0.1", 0))
        where = str(listener.getsockname()[1])
    else:
        listener = socket.socket(socket.AF_UNIX,
                                 socket.SOCK_DGRAM if kind == "dgram" else socket.SOCK_STREAM)
        listener.bind("\0" + where[1:] if where[0] == "@" else where)
    if kind != "dgram":
        listener.listen(5)

    def serve():
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(said.append, "end")
            c = listener if kind == "dgram" else listener.accept()[0]
            if kind != "dgram":
                said.append(c.recv(64))
                c.sendall(b"unread")
            while data := c.recv(64):
                said.append(data)

    t = threading.Thread(target=serve, daemon=True)
    t.start()
    try:
        yield where, said
    finally:
        listener.close()


def options_of(env, kind):
    env.path("v").mkdir(exist_ok=True)
    return ["--net", "host"] if kind in ("tcp", "abstract") else ["-v", "%s:/out%s" % (
        env.path("v"), ":ro" if kind == "readable" else "")]


@contextlib.contextmanager
def connected(env, kind, name="s", options=()):
    place = {"abstract": "@" + env.dir.name, "tcp": None}.get(
        kind, str(env.path("v") / "sock"))
    more = options_of(env, kind)
    kind = "unix" if kind == "readable" else kind
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place or "")
    with server(env, kind, place) as (where, said):
        inside = "/out/sock" if kind in ("unix", "dgram") else where
        env.run_detached(name, "python3", "-c", CLIENT, kind, inside, options=[*more, *options])
        yield said


def verdict(env, name, alive=False):
    if alive:
        env.podrun("exec", name, "touch", "/tmp/alive")
    env.let_end(name)
    log = env.wait(name)
    env.podrun("rm", name, check=False)
    return log[log.index("read "):].strip()


GONE = {"close": "read b'unread' b'' b'' write EPIPE EPIPE",
        "reset": "read b'unread' ECONNRESET b'' write EPIPE EPIPE"}


@test
def connections_to_the_outside_are_refused_by_name(env):
    place = "/out/sock" if REWRITE else "/v/sock"
    for kind, words in (("unix", [place]), ("dgram", [place]), ("abstract", ["@podrun-"]),
                        ("tcp", ["a connection to 127.0.0.1:"])):
        if kind == "abstract" and REWRITE:  # ABSTRACT
            continue
        with connected(env, kind) as said:
            for what in ("suspend", "snapshot"):
                r = env.podrun(what, "s", "-o", env.path("i"), code=3)
                assert "--outside=close" in r.errors and "(python3) fd 3" in r.errors, r
                assert all(w in r.errors for w in words), r
            verdict(env, "s", alive=True)
            until("the server hears it", lambda: b"still here" in said)




def move(env, *options, name="s"):
    env.podrun("suspend", name, "-o", env.path("i"), *options)
    text = env.podrun("image", "show", env.path("i")).text
    env.podrun("resume", "-d", env.path("i"))
    return text


def severed(env, kind):
    for how in ("close", "reset"):
        with connected(env, kind) as said:
            assert "severed" in move(env, "--outside", how)
            until("the server sees the end", lambda: said[-1] == "end")
            got = verdict(env, "s")
            assert got == GONE[how], (how, got)


LISTENER = r"""
import os, socket, time
l = socket.socket(socket.AF_UNIX)
l.bind("/out/sock")
l.listen()
print("listens", flush=True)
c = l.accept()[0]
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
print("read", c.recv(64), c.recv(64))
"""


@test
def a_guest_that_has_left_leads_nowhere(env):
    """Its connection was made in another network, and has not been looked at since it was closed."""
    options = options_of(env, "unix")
    env.run_detached("s", "python3", "-c", LISTENER, options=options, ready="listens")
    with socket.socket(socket.AF_UNIX) as guest:
        guest.connect(str(env.path("v") / "sock"))
        until("it is let in", lambda: "ready" in env.logs("s"))
        guest.sendall(b"bye")
        assert "outside the session" in env.podrun("snapshot", "s", "-o", env.path("i"), code=3).errors
    env.podrun("snapshot", "s", "-o", env.path("i"))
    assert "severed" not in move(env)
    assert verdict(env, "s") == "read b'bye' b''"


ABSTRACT = "Landlock keeps a session with a private view from the host's abstract sockets"
add("severed_unix", lambda env: severed(env, "unix"))
add("severed_abstract", needs_namespaces(ABSTRACT)(lambda env: severed(env, "abstract")))
add("severed_tcp", lambda env: severed(env, "tcp"))


@test
def severed_dgram(env):
    with connected(env, "dgram"):
        assert "severed" in move(env, "--outside=close")
        got = verdict(env, "s")
        assert got == "read nothing nothing nothing write ECONNREFUSED ENOTCONN", got


@test
def severed_twice_is_severed_once(env):
    for kind in ("unix", "tcp"):
        with connected(env, kind):
            move(env, "--outside=reset")
            env.podrun("suspend", "s", "-o", env.path("j"))
            env.podrun("resume", "-d", env.path("j"))
            assert verdict(env, "s") == GONE["reset"]


@test
def a_snapshot_leaves_connections_alone(env):
    for kind in ("readable", "tcp"):
        with connected(env, kind) as said:
            env.podrun("snapshot", "s", "-o", env.path("i"), "--outside=close")
            got = verdict(env, "s", alive=True)
            until("the server hears it", lambda: b"still here" in said)
            assert got == "read b'unread' nothing nothing write 1 1", got
        env.podrun("resume", "-d", "--name", "t", env.path("i"))
        assert verdict(env, "t") == GONE["close"]


@test
def what_run_was_told_holds_until_something_else_is_said(env):
    env.path("f").write_text("outside = close\n")
    with connected(env, "unix", options=["--file", env.path("f")]):
        assert env.podrun("inspect", "s").json()["config"]["outside"] == "close"
        env.podrun("suspend", "s", "-o", env.path("i"), "--outside=refuse", code=3)
        env.podrun("suspend", "s", "-o", env.path("i"), "--outside=nonsense", code=2)
        move(env)
        assert verdict(env, "s") == GONE["close"]
    env.podrun("run", "--outside=nonsense", "--", "true", code=2)


@test
def a_pause_refuses_nothing(env):
    with connected(env, "unix") as said:
        env.podrun("pause", "s")
        env.podrun("suspend", "s", "-o", env.path("i"), code=3)
        env.podrun("unpause", "s")
        env.podrun("pause", "s")
        move(env, "--outside=close")
        env.podrun("unpause", "s", check=False)
        assert verdict(env, "s") == GONE["close"]
        until("the server sees the end", lambda: said[-1] == "end")


# Inside: a UDP socket connected to a port of the host.
DATAGRAMS = r"""
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
s.send(b"ping")
print(s.recv(9).decode())
"""


@test
def udp_is_connected_again(env):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    s.settimeout(30)
    env.run_detached("s", "python3", "-c", DATAGRAMS, str(s.getsockname()[1]), options=["--net", "host"])
    r = env.podrun("suspend", "s", "-o", env.path("i"), code=3)
    assert "a UDP socket connected to 127.0.0.1" in r.errors, r
    move(env, "--outside=close")
    env.let_end()
    data, sender = s.recvfrom(9)
    s.sendto(b"pong", sender)
    assert data == b"ping" and "pong" in env.wait("s")


# Inside: both ends.
PAIR = r"""
import os, socket, time
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(2))
for s in a, b:
    s.bind(("127.0.0.1", 0))
    s.settimeout(30)
a.connect(b.getsockname())
b.connect(a.getsockname())
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
a.send(b"ping")
assert b.recv(9) == b"ping"
b.send(b"pong")
print(a.recv(9).decode())
"""


@test
def udp_within_the_session_does_not_lead_out(env):
    env.run_detached("s", "python3", "-c", PAIR, options=["--net", "host"])
    assert "severed" not in move(env)
    env.let_end()
    assert "pong" in env.wait("s")


# Inside: listens at argv[1]; when /tmp/go is there it accepts what comes in a second.
SERVER = r"""
import os, socket, sys, time
kind, where = sys.argv[1], sys.argv[2]
if kind == "tcp":
    l = socket.create_server(("127.0.0.1", int(where)))
else:
    l = socket.socket(socket.AF_UNIX)
    l.bind(where)
    l.listen(5)
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
l.settimeout(1)
try:
    l.accept()
    print("somebody")
except TimeoutError:
    print("nobody")
"""


@test
def those_who_wait_outside_do_not_come_along(env):
    for kind in ("unix", "tcp"):
        if kind == "tcp":
            where = outside = ("127.0.0.1", quiet_port())
        else:
            where, outside = "/out/in", str(env.path("v") / "in")
        env.run_detached("s", "python3", "-c", SERVER, kind, where[1] if kind == "tcp" else where,
                         options=options_of(env, kind))
        s = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
        s.connect(outside)
        r = env.podrun("suspend", "s", "-o", env.path("i"), code=3)
        assert "has not been accepted yet" in r.errors, r
        move(env, "--outside=close")
        env.let_end()
        assert "nobody" in env.wait("s")
        env.podrun("rm", "s")
        s.close()


# Inside: a connection that has brought something, and is accepted when /out/go is there.
SLOW = r"""
import os, socket, time
l = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(l.getsockname())
c.sendall(b"hello")
print("ready", flush=True)
while not os.path.exists("/out/go"): time.sleep(.01)
s, _ = l.accept()
print("got", s.recv(5).decode(), flush=True)
while not os.path.exists("/out/end"): time.sleep(.01)
"""


@test
def what_will_pass_is_waited_for(env):
    place = env.path("v")
    place.mkdir()
    env.run_detached("s", "python3", "-c", SLOW, options=["-v", "%s:/out" % place])
    r = env.podrun("suspend", "s", "-o", env.path("i"), "--deadline", "500", code=3)
    assert "holds data" in r.errors and "try again" in r.errors, r
    # Meanwhile the session runs a little, and accepts it.
    p = env.start(PODRUN, "snapshot", "s", "-o", env.path("i"), "--deadline", str(int(PATIENCE * 1000)))
    (place / "go").touch()
    assert p.wait() == 0
    (place / "end").touch()
    assert "got hello" in env.wait("s")


# Inside: takes descriptors from outside, then looks at them when /tmp/go is there.
TAKER = r"""
import array, errno, os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect("/out/sock")
_, anc, _, _ = s.recvmsg(1, socket.CMSG_SPACE(32))
s.close()
reader, writer, slave, pair = array.array("i", anc[0][2])
signal = __import__("signal").signal(13, 1)
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
def attempt(what, *args):
    try:
        return repr(what(*args))
    except OSError as e:
        return errno.errorcode[e.errno]
print("reader", attempt(os.read, reader, 9), attempt(os.read, reader, 9), flush=True)
print("writer", attempt(os.write, writer, b"x"), flush=True)
print("slave", attempt(os.read, slave, 9), attempt(os.write, slave, b"x"), flush=True)
print("pair", attempt(os.read, pair, 9), attempt(os.read, pair, 9), attempt(os.write, pair, b"x"))
"""


def given(env, program, *fds):
    """Starts a session of that program, and passes it these through a socket of the host's; they are its alone then."""
    options = options_of(env, "unix")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(env.path("v") / "sock"))
    listener.listen()
    env.run_detached("s", "python3", "-c", program, options=options, ready=None)
    conn, _ = listener.accept()
    socket.send_fds(conn, [b"x"], fds)
    for fd in fds:
        os.close(fd)
    conn.close()
    until("it has them", lambda: "ready" in env.logs("s"))


@test
def pipes_terminals_and_sockets_passed_from_outside(env):
    to, out = os.pipe(), os.pipe()
    master, slave = pty.openpty()
    a, b = socket.socketpair()
    os.write(to[1], b"waiting")
    a.sendall(b"there")
    given(env, TAKER, to[0], out[1], slave, b.detach())
    r = env.podrun("suspend", "s", "-o", env.path("i"), code=3)
    assert "outside" in r.errors, r
    move(env, "--outside=close")
    env.let_end()
    log = env.wait("s").split("\n")
    assert log[-5:-1] == ["reader b'waiting' b''", "writer EPIPE", "slave b'' EIO",
                          "pair b'there' b'' EPIPE"], log
    os.close(master)


# Inside: is given both ends of a pair made outside, and sends one end of its own through it.
CARRIER = r"""
import array, os, socket, time
s = socket.socket(socket.AF_UNIX)
s.connect("/out/sock")
_, (a, b), _, _ = socket.recv_fds(s, 1, 2)
s.close()
a, b = socket.socket(fileno=a), socket.socket(fileno=b)
near, far = socket.socketpair()
near.sendall(b"in a queue within a queue")
socket.send_fds(a, [b"x"], [far.fileno()])
far.close()
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
_, (far,), _, _ = socket.recv_fds(b, 1, 1)
far = socket.socket(fileno=far)
far.setblocking(False)
print("queue", far.recv(64), flush=True)
far.sendall(b"back")
print("near", near.recv(64), flush=True)
"""


@test
def what_waits_in_sockets_from_outside(env):
    """A socket in flight in one that was passed in has a queue, too."""
    a, b = socket.socketpair()
    given(env, CARRIER, a.detach(), b.detach())
    move(env, "--outside=close")
    env.let_end()
    log = env.wait("s").split("\n")
    assert log[-3:-1] == ["queue b'in a queue within a queue'", "near b'back'"], log


@test
def migrate_severs_as_well(env):
    other = env.host("other")
    ssh_to(env, other)
    with connected(env, "unix") as said:
        r = env.podrun("migrate", "s", "there", code=3)
        assert "/out/sock" in r.errors or "/v/sock" in r.errors and not REWRITE, r
        assert "--outside=close" in r.errors, r
        env.podrun("migrate", "s", "there", "--outside=reset")
        until("the server sees the end", lambda: said[-1] == "end")
        assert verdict(other, "s") == GONE["reset"]


@test
def connections_inside_on_the_hosts_network(env):
    """Their addresses are free again at once."""
    most = int(pathlib.Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[2])
    # The others have megabytes on their way, which have to fit into the receiver.
    programs = ["tcp_listen"] + ["tcp_pair", "tcp_goodbye"] * (most >= 16 << 20)
    for p in programs:
        env.run_detached("s", BUILD / "tests" / "state" / p, "/tmp/go", options=["--net", "host"])
        move(env)
        move(env)
        env.let_end()
        assert "ok" in env.wait("s")
        env.podrun("rm", "s")


if __name__ == "__main__":
    main()
