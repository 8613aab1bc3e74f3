#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs whose other end is outside: moved while they work, with their connections.

Each program of clients/ works in a session on one of two hosts (world.py) with somebody outside who
knows nothing of podrun, tells how far it is in /tmp/beat, checks all it gets, and stops when
/tmp/go is there.  In `NAME/again` its session is suspended and resumed several times, in
`NAME/hosts` it goes to another host and back while its gateway is on a third, in `NAME/away` the
same away from a gateway on the first host, in `NAME/tunnel` and
`NAME/away_by_tunnel` both with packets by UDP, and in `NAME/line` it is suspended and resumed behind a
line that is slow, loses packets and reorders them.  After each move the work has to go on.

PODRUN_TEST_MOVES is how many moves each makes (3).  PODRUN_TEST_NET=host is to try the programs
themselves: they run on the hosts' network then, and nothing is moved.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import networks  # noqa: E402
import pair  # noqa: E402
from harness import PATIENCE, PODRUN, Skip, add, main, needs, test, until  # noqa: E402
from world import OUTSIDE, World  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MOVES = int(os.environ.get("PODRUN_TEST_MOVES", "3"))
NET = os.environ.get("PODRUN_TEST_NET", "vnat")
PORTS = {"redis-cli": 6379, "psql": 5432, "iperf3": 5201, "websocket": 8001}
PG = "/usr/lib/postgresql"


def start_postgres(w):
    bins = max(pathlib.Path(PG).glob("*/bin"))
    data = w.env.path("pg")
    w.env.call(*w.outside.user, bins / "initdb", "-U", "postgres", "-A", "trust", "-D", data)
    with open(data / "pg_hba.conf", "a") as f:
        f.write("host all all 0.0.0.0/0 trust\n")
    w.serve("outside", bins / "postgres", "-D", data, "-h", "0.0.0.0", "-k", w.env.dir, "-c", "fsync=off")
    w.answers("outside", OUTSIDE, 5432)
    until("a database", lambda: w.env.call(*w.outside.user, "psql", "-h", OUTSIDE, "-U", "postgres", "-c",
                                           "CREATE DATABASE bench", check=False).code == 0)
    w.env.call(*w.outside.user, "pgbench", "-q", "-i", "-h", OUTSIDE, "-U", "postgres", "bench")


def start_others(w, name):
    """Those whose servers are programs of their own."""
    if name == "redis-cli":
        w.serve("outside", "redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", cwd=w.env.dir)
    elif name == "iperf3":
        w.serve("outside", "iperf3", "-s")
    elif name == "psql":
        start_postgres(w)
    if name in PORTS:
        w.answers("outside", OUTSIDE, PORTS[name])


def serve(w, name):
    place = w.env.path("outside")
    place.mkdir()
    w.outside.sysctl("net/ipv4/ip_unprivileged_port_start", 0)
    w.serve("outside", sys.executable, HERE / "server.py", place)
    for port in (8000, 53):
        w.answers("outside", OUTSIDE, port)
    start_others(w, name)


def beat_of(host, session):
    r = host.podrun("exec", session, "cat", "/tmp/beat", check=False)
    if r.code != 0:  # there is none yet, or nobody any more
        log = host.logs(session)
        assert "FAIL" not in log, log[-2000:]
        return 0
    return int(r.out or 0)


def goes_on(host, session):
    """It works, and did not only finish what it had."""
    before = beat_of(host, session)
    try:
        until("the work goes on", lambda: beat_of(host, session) > before + 1, 3 * PATIENCE)
    except BaseException as e:
        raise AssertionError("%s: %s" % (e, host.logs(session)[-500:])) from e


def requirements(script):
    text = script.read_text()
    for key, found in re.findall(r"^# (needs|needs-python): *(.*)$", text, re.M):
        if key == "needs":
            os.environ["PATH"] += os.pathsep + os.pathsep.join(map(str, pathlib.Path(PG).glob("*/bin")))
            needs(*found.split())
        else:
            try:
                __import__(found)
            except ImportError as e:
                raise Skip("python3-%s is not installed" % found) from e


def ends_well(w, host, name):
    host.let_end()  # one that waits for the outside is still there
    (w.env.path("outside") / "enough").touch()
    log = host.wait("s", timeout=120)
    assert "FAIL" not in log and re.search(r"^ok after \d+$", log, re.M), log[-2000:]
    host.podrun("rm", "s", check=False)


def at_work(env, name, move, options=(), **kw):
    script = HERE / "clients" / name
    requirements(script)
    with World(env, **kw) as w:
        serve(w, name)
        host = w.a
        w.run(host, "s", "python3", script, net=NET, options=["-e", "PYTHONDONTWRITEBYTECODE=1", *options])
        for i in range(MOVES if NET == "vnat" else 0):
            goes_on(host, "s")
            host = move(w, host, i)
        goes_on(host, "s")
        ends_well(w, host, name)


def again(w, host, i):
    w.again(host, "s")
    return host


def to_the_other(w, host, i):
    there = w.b if host is w.a else w.a
    w.migrate("s", host, there)
    log = host.path("state") / "podrun" / "sessions" / "s" / "supervisor.log"
    # That the session's gateway has let go of it there is as it should be.
    assert not log.exists() or "is gone" not in log.read_text(), log.read_text()
    return there


def away_from_it(w, host, i):
    """Its gateway is where it began: it depends on that host while it is away, and says so."""
    there = to_the_other(w, host, i)
    network = network_of(there)
    assert network.get("through") == (os.uname().nodename if there is w.b else None), network
    assert ("(through " in there.podrun("ps").text) == (there is w.b), there.podrun("ps").text
    return there


def carried_by(host):
    return network_of(host)["carried_by"]


def gateway_tunnel(host):
    """Does the gateway there have its session's packets by a tunnel?"""
    return [s["tunnel"] for s in host.podrun("net", "stats", "--json").json()]


def datagrams(host):
    """How many of UDP have come to a host, ever."""
    with open("/proc/%s/net/snmp" % host.node.pid) as f:
        return int([line for line in f if line.startswith("Udp:")][1].split()[1])


def block_datagrams(host, block=True):
    """A firewall of a host's that lets none of UDP in or out, but for names."""
    if not block:
        host.node.root("nft", "delete", "table", "inet", "wall")
        return
    host.node.root("nft", "add table inet wall")
    for hook in "input", "output":
        host.node.root("nft", "add chain inet wall %s { type filter hook %s priority 0; }" % (hook, hook))
        host.node.root("nft", "add rule inet wall %s udp dport != 53 udp sport != 53 drop" % hook)


def goes_by_tunnel(w, host, gateway):
    """Most of its packets, and both ends say so."""
    until("%s sends by a tunnel" % host.dir.name, lambda: carried_by(host) == "tunnel")
    until("%s sends by a tunnel" % gateway.dir.name, lambda: gateway_tunnel(gateway) == [True])
    before = datagrams(host), datagrams(gateway)
    goes_on(host, "s")
    until("datagrams come", lambda: datagrams(host) - before[0] > 100 and datagrams(gateway) - before[1] > 100)


def kept(w, host):
    """While it is suspended nobody says that packets go by a tunnel."""
    host.podrun("suspend", "s", timeout=120)
    assert "carried_by" not in network_of(host), network_of(host)
    until("the gateway says so", lambda: gateway_tunnel(w.c) == [False])
    host.podrun("resume", "-d", "s", timeout=120)


def by_a_tunnel(env, name):
    """Moved while packets go by it; when UDP does not get through any more the line has them, and back."""
    needs("nft")
    if env.call("unshare", "-Urn", "nft", "add table inet wall", check=False).code:
        raise Skip("the kernel has no nf_tables")
    script = HERE / "clients" / name
    requirements(script)
    with World(env, hosts=("a", "b", "c")) as w:
        serve(w, name)
        w.run(w.a, "s", "python3", script, options=["-e", "PYTHONDONTWRITEBYTECODE=1", "--gateway", "c",
                                                    "--carrier", "auto"])
        host = w.a
        for move in again, to_the_other, again, to_the_other:
            goes_by_tunnel(w, host, w.c)
            host = move(w, host, 0)
        goes_by_tunnel(w, host, w.c)
        kept(w, host)
        goes_by_tunnel(w, host, w.c)
        host.podrun("snapshot", "s", "-o", host.path("kept"), timeout=120)
        goes_by_tunnel(w, host, w.c)
        os.kill(w.c.podrun("gateway", "--json").json()["worker"], signal.SIGKILL)
        goes_by_tunnel(w, host, w.c)
        block_datagrams(w.c)
        until("the line is taken", lambda: carried_by(host) == "stream" and gateway_tunnel(w.c) == [False])
        goes_on(host, "s")
        host = again(w, host, 0)
        goes_on(host, "s")
        assert carried_by(host) == "stream" and gateway_tunnel(w.c) == [False]
        block_datagrams(w.c, False)
        goes_by_tunnel(w, host, w.c)
        ends_well(w, host, name)


def away_by_tunnel(w, host, i):
    """Its gateway was left behind."""
    host = away_from_it(w, host, i)
    if host is w.b:
        goes_by_tunnel(w, host, w.a)
    return host


HOLDER = """
import os, socket, time
c = socket.create_connection(("%s", 8000))
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.05)
    if c and os.path.exists("/tmp/close"):
        c = c.close()
"""


def seen_as(host):
    """Where the outside thinks that the session is."""
    return host.podrun("exec", "s", "curl", "-sS", "http://%s:8000/whoami/x" % OUTSIDE).text.split()[0]


def network_of(host):
    return host.podrun("inspect", "s").json()["config"]["network"]


def on_a_bad_line(w, host, i):
    w.lines["a"].say("delay", 10 * i)
    w.lines["a"].say("loss", 5 * i)
    w.lines["a"].say("reorder", 20 * i)
    return again(w, host, i)


@test
def the_line_itself(env):
    """What stands between is what it says: packets are late, lost and out of order, and streams exact."""
    with World(env, relays=["a"]) as w:
        serve(w, "curl-download")
        line = w.lines["a"]
        for words in ("delay", 20), ("loss", 20), ("reorder", 50):
            line.say(*words)
        got = env.call(*w.a.prefix, "ping", "-n", "-q", "-i", "0.002", "-c", "500", OUTSIDE, check=False).text
        came = int(re.search(r"(\d+) received", got)[1])
        assert 400 < came < 500, got
        p = env.start(*w.a.prefix, "sh", "-c", "curl -sS http://%s:8000/stream/x | tee %s | sha256sum" % (
            OUTSIDE, env.path("got")), stdout=subprocess.PIPE)
        until("some of it", lambda: env.path("got").exists() and env.path("got").stat().st_size > 1 << 20)
        (env.path("outside") / "enough").touch()
        mine = p.communicate(timeout=300)[0].split()[0].decode()
        theirs = env.call(*w.a.prefix, "curl", "-sS", "http://%s:8000/digest/x" % OUTSIDE).text
        assert theirs == "%s %d" % (mine, env.path("got").stat().st_size), (mine, theirs)
        line.say("cut")
        assert "0 received" in env.call(*w.a.prefix, "ping", "-q", "-W1", "-c1", OUTSIDE, check=False).text


def let_go(env):
    """A gateway left behind serves its session until no connection needs it; the new host's own does then."""
    requirements(HERE / "clients" / "curl-download")
    with World(env) as w:
        serve(w, "curl-download")
        w.run(w.a, "s", "python3", "-c", HOLDER % OUTSIDE)
        w.migrate("s", w.a, w.b)
        assert seen_as(w.b).endswith(w.a.address) and "through" in network_of(w.b), network_of(w.b)
        w.b.podrun("exec", "s", "touch", "/tmp/close")
        until("nothing goes through the old host", lambda: "through" not in network_of(w.b))
        assert seen_as(w.b).endswith(w.b.address)
        w.b.let_end()
        w.b.wait("s")


def not_kept(env):
    """Connections that are not to be kept are no reason to depend on a host that was left."""
    requirements(HERE / "clients" / "curl-download")
    with World(env) as w:
        serve(w, "curl-download")
        w.run(w.a, "s", "python3", "-c", HOLDER % OUTSIDE)
        r = w.a.podrun("migrate", "--connections", "reset", "s", w.b.dir.name, timeout=120)
        assert "its connections to the outside were reset" in r.errors, r
        assert seen_as(w.b).endswith(w.b.address) and "through" not in network_of(w.b), network_of(w.b)
        w.b.let_end()
        w.b.wait("s")


ANSWERS = r"""
import os, socket
l = socket.create_server(("", 80))
l.settimeout(.05)
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    try: s, _ = l.accept()
    except TimeoutError: continue
    s.settimeout(30)
    data = b""
    while b := s.recv(100): data += b
    s.sendall(data.upper())
    s.close()
"""


def asked(w, address):
    """What a client outside, who ends what it says first, is told at port 8080 there."""
    code = ("import socket\ns = socket.create_connection(('%s', 8080), 10)\ns.sendall(b'hello')\n"
            "s.shutdown(socket.SHUT_WR)\ndata = b''\nwhile b := s.recv(100): data += b\nprint(data.decode())" % address)
    return subprocess.run(w.outside.user + [sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()


# Memory that takes a while to send, and a server that says everything again.
ECHOES = """
import os, socket, threading
memory = os.urandom(30 << 20)
def serve(s):
    while b := s.recv(100): s.sendall(b)
l = socket.create_server(("", 80))
print("ready", flush=True)
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
"""

# Says what it is told to, and what is answered to that.
CLIENT = """
import socket, sys
s = socket.create_connection(("%s", 8080), 60)
for line in sys.stdin.buffer:
    s.sendall(line)
    print(s.recv(100).decode().strip(), flush=True)
"""

# Some of an image passes, and then no more, which neither end is told.
STALLS = """
import os, time
left = 8 << 20
while left > 0 and (data := os.read(0, min(left, 65536))):
    left -= len(data)
    os.write(1, data)
with open("%s", "w") as f: f.write("%%d\\n" %% os.getpid())
os.close(0)
while True: time.sleep(100)
"""


@contextlib.contextmanager
def cut_on_its_way(w):
    """A move from a to b that a gives up, for the line is cut while the image comes; b does not hear of it."""
    ssh, stalls, pid = pathlib.Path(w.a.environ["PODRUN_SSH"]), w.env.path("stalls"), w.env.path("stalls.pid")
    stalls.write_text(STALLS % pid)
    whole = ssh.read_text()
    # One whose ssh ended would be heard of.
    ssh.write_text(whole.replace("exec ssh", "[ \"$*\" = 'podrun receive' ] && { python3 %s | ssh -F %s $host \"$@\"; exit; }\n"
                                 "exec ssh" % (stalls, w.keys / "config")))
    p = w.a.start(PODRUN, "migrate", "s", w.b.dir.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until("the line is cut", lambda: pid.exists() and pid.read_text().endswith("\n"), 3 * PATIENCE)
    p.send_signal(signal.SIGINT)
    assert p.wait(3 * PATIENCE) != 0
    ssh.write_text(whole)
    try:
        yield
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def tried_again(env, options=(), **kw):
    """A session whose move was cut off goes on, with its connections and ports, where it is, and comes by the next line:
    what has come by the first, and waits for the rest, is in nobody's way."""
    def client(address):
        return w.outside.start(sys.executable, "-c", CLIENT % address, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answered(c, word):
        c.stdin.write(word + "\n")
        c.stdin.flush()
        assert c.stdout.readline() == word + "\n", word

    with World(env, **kw) as w, contextlib.ExitStack() as stack:
        w.run(w.a, "s", "python3", "-c", ECHOES, options=["-p", "8080:80", *options])
        here, there = (w.c.address,) * 2 if options else (w.a.address, w.b.address)
        w.answers("outside", here, 8080)
        if options:
            kept = stack.enter_context(client(here))
            answered(kept, "before")
        with cut_on_its_way(w):
            if options:
                answered(kept, "meanwhile")
            w.answers("outside", here, 8080)
            w.migrate("s", w.a, w.b)
            if options:
                answered(kept, "behind it")
            w.answers("outside", there, 8080)
        if options:
            kept.stdin.close()
        w.b.podrun("kill", "s")


def name_follows(env):
    """A name in DNS points to the host where the session's ports are, and goes along with them."""
    secret = "cG9kcnVuIHRlc3RzIGEga2V5IG9mIDMyIGJ5dGVzLi4="
    known, key = env.path("known"), env.path("mover")
    key.write_text('key "mover" { algorithm hmac-sha256; secret "%s"; };\n' % secret)
    with World(env) as w:
        w.serve("outside", sys.executable, HERE.parent / "lib" / "nameserver.py", OUTSIDE, 5300, "example.test",
                "mover", secret, known)
        update = "example.test/web@%s#5300:%s" % (OUTSIDE, key)
        w.run(w.a, "s", "python3", "-c", ANSWERS, options=["-p", "8080:80", "--dns-update", update])

        def points_to(address):
            lines = known.read_text().splitlines() if known.exists() else []
            return "web.example.test " + address in lines and "refused 0" in lines

        until("the name points to a", lambda: points_to(w.a.address))
        w.migrate("s", w.a, w.b)
        until("the name points to b", lambda: points_to(w.b.address) and not points_to(w.a.address))
        # Who has looked it up before is led on for a while; ports are there again for who comes back.
        until("a leads on to b", lambda: asked(w, w.a.address) == "HELLO")
        assert asked(w, w.b.address) == "HELLO"
        w.migrate("s", w.b, w.a)
        until("the name points to a again", lambda: points_to(w.a.address) and not points_to(w.b.address))
        until("b leads on to a", lambda: asked(w, w.b.address) == "HELLO")
        until("a has its port", lambda: asked(w, w.a.address) == "HELLO")
        w.migrate("s", w.a, w.b)
        until("the name points to b again", lambda: points_to(w.b.address) and not points_to(w.a.address))
        w.again(w.b, "s")
        assert network_of(w.b)["dns_update"] == update, network_of(w.b)
        w.b.let_end()
        w.b.wait("s")
        # They would be there for another minute.
        for host in w.a, w.b:
            host.podrun("run", "--rm", "-p", "8081:80", "--", "true")


def neighbours_apart(env):
    """What sessions have with each other goes on where one of them, or each in turn, leaves the other's host."""
    with World(env) as w:
        pair.start(w.a)
        w.migrate("client", w.a, w.b)
        pair.goes_on(w.b)
        w.again(w.a, "server")
        pair.goes_on(w.b)
        w.migrate("server", w.a, w.b)
        pair.goes_on(w.b)
        w.migrate("client", w.b, w.a)
        pair.goes_on(w.a)
        w.a.let_end("client", "/tmp/stop")
        assert w.a.wait("client").split()[-1] == "intact"
        w.b.podrun("kill", "server")


def told_where(env):
    """A session that has asked hears by which addresses the outside knows it, after each move."""
    with World(env) as w:
        w.run(w.a, "s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep .05; done",
              options=["--on-move", "echo at $PODRUN_OUTSIDE; cp /run/podrun/outside /tmp/where"])

        def where(host):
            return host.podrun("exec", "s", "cat", "/tmp/where", check=False).text.split()

        until("it is at a", lambda: w.a.address in where(w.a))
        w.a.podrun("pause", "s")
        w.a.podrun("unpause", "s")
        w.migrate("s", w.a, w.b)
        until("it is at b", lambda: w.b.address in where(w.b))
        assert w.a.address not in where(w.b)
        w.b.podrun("exec", "s", "rm", "/tmp/where")
        w.again(w.b, "s")
        until("it is at b still", lambda: w.b.address in where(w.b))
        w.b.let_end()
        w.b.wait("s")


if "PODRUN_TEST_NAMES" not in os.environ or os.environ["PODRUN_TEST_NAMES"] != "rewrite":
    if NET == "vnat":
        add("gateway/let_go", let_go)
        add("gateway/not_kept", not_kept)
        add("gateway/name_follows", name_follows)
        add("gateway/told_where", told_where)
        add("gateway/neighbours_apart", neighbours_apart)
        add("gateway/tried_again", tried_again)
        add("gateway/tried_again/hosts", lambda env: tried_again(env, ["--gateway", "c"], hosts=("a", "b", "c")))
        add("curl-download/away_by_tunnel", lambda env: at_work(
            env, "curl-download", away_by_tunnel, ["--carrier", "auto"]))
    for path in sorted((HERE / "clients").iterdir()):
        if os.access(path, os.X_OK) and path.is_file():
            add(path.name + "/again", lambda env, n=path.name: at_work(env, n, again))
            add(path.name + "/hosts", lambda env, n=path.name: at_work(
                env, n, to_the_other, ["--gateway", "c"] if NET == "vnat" else [], hosts=("a", "b", "c")))
            if path.name.startswith("curl-") and NET == "vnat":
                add(path.name + "/tunnel", lambda env, n=path.name: by_a_tunnel(env, n))
                add(path.name + "/away", lambda env, n=path.name: at_work(env, n, away_from_it))
            if path.name not in ("ping", "udp"):
                add(path.name + "/line", lambda env, n=path.name: at_work(
                    env, n, on_a_bad_line, ["-e", "BAD_LINE=1"], relays=["a"]))

if __name__ == "__main__":
    if "-l" not in sys.argv and shutil.which("unshare"):
        networks.enter()
    main()
