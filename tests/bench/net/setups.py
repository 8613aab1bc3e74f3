# SPDX-License-Identifier: GPL-2.0-or-later
"""The setups that are measured: how a client and a server reach each other, and by whose help.

A setup has a client that has said "ready" (ends.c), the process of its server, and `helpers()`: the
processes that stand between the two and whose CPU time counts.  Everything is started as the user
of a node (tests/lib/networks.py); the server of most is in `host`, and a setup begins with a
network of its own, as a session does.
"""
import contextlib
import json
import os
import pathlib
import select
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import networks  # noqa: E402
from harness import BUILD, PODRUN, until  # noqa: E402
from peers import find  # noqa: E402

ENDS = str(BUILD / "tests" / "bench" / "net" / "ends")
PORT = 7700
HOST, OUTSIDE = "192.0.2.2", "192.0.2.1"
PATIENCE = 60  # seconds until an answer, beyond what was asked for


class Lost(Exception):
    """A setup does not go on: its client ended or says nothing, or somebody between the two has died."""


def cpu(pids):
    """Seconds of CPU that these have taken, with all their threads."""
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
        except OSError:
            raise Lost("process %d has died" % pid) from None
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def by_name(*begin):
    """Processes whose names begin so; there are no others' in this namespace."""
    pids = [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()]
    return [pid for pid in pids if any(n.startswith(begin) for n in networks.names_of(pid))]


def parent(pid):
    return int(pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[1])


def inner(p, name):
    """Of a program that was started through others (nsenter, a session): the process itself."""
    def look():
        for pid in by_name(name):
            up = pid
            while up > 1:
                if up == p.pid:
                    return pid
                up = parent(up)
        return 0
    return until("%s runs" % name, look)


def served(node, address):
    p = node.start(ENDS, "serve", address, PORT, stdout=subprocess.PIPE)
    if p.stdout.readline() != b"ready\n":
        raise RuntimeError("no server in " + node.name)
    return inner(p, "ends")


class Setup:
    """One of them; `ask` measures."""

    def __init__(self, argv, server, helpers=lambda: [], errors=None, env=None):
        self.server, self.helpers = server, helpers
        self.errors = pathlib.Path(errors.name) if errors else None
        known = by_name("ends")
        self.process = subprocess.Popen(list(map(str, argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=errors, env=env)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("no client: " + " ".join(map(str, argv)))
        self.client = [pid for pid in by_name("ends") if pid not in known][0]

    def tell(self, *words):
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self.process.stdin.flush()
        except OSError as e:
            raise Lost("the client has ended: %s" % e) from None

    def hear(self):
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise Lost("no answer within %d s" % PATIENCE)
        line = self.process.stdout.readline()
        if not line:
            said = self.errors.read_text(errors="replace").strip() if self.errors else ""
            raise Lost(said.split("\n")[-1] or "the client has ended")
        return json.loads(line)

    def ask(self, *words):
        """What the client says, with CPU seconds: `helper`, and `path`, which is everybody's."""
        return together([self], *words)[0][0]

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def abandon(self):
        """Of one that was lost: whatever its client waits for, it is not waited for any more."""
        self.process.kill()
        self.close()


def together(setups, *words):
    """The same for many at the same time: what each says, and the CPU seconds of all."""
    helpers = {pid for s in setups for pid in s.helpers()}
    own = {pid for s in setups for pid in (s.client, s.server)}
    before = cpu(helpers), cpu(own)
    for s in setups:
        s.tell(*words)
    said = [s.hear() for s in setups]
    used = {"helper": cpu(helpers) - before[0]}
    used["path"] = used["helper"] + cpu(own) - before[1]
    if len(said) == 1:
        said[0].update(used)
    return said, used


class Bench:
    """The networks that all have in common, and what makes each setup."""

    def __init__(self, env):
        self.env, self.place, self.count = env, env.dir, 0
        self.host = networks.Node("host")
        outside = networks.Node("outside")
        networks.join(self.host, "eth0", outside, "eth0")
        self.host.addresses("eth0", HOST + "/24")
        outside.addresses("eth0", OUTSIDE + "/24")
        self.host.default(OUTSIDE)
        # The senders choose it (ends.c), and sockets of those who relay, which have the host's default, are senders.
        self.host.sysctl("net/ipv4/tcp_congestion_control", "reno")
        self.server = served(self.host, "0.0.0.0")
        env.prefix = self.host.user

    def errors(self, name):
        return open(self.place / (name + ".log"), "ab")

    def loopback(self):
        return Setup(self.host.user + [ENDS, "drive", "127.0.0.1", PORT], self.server, errors=self.errors("loopback"))

    def veth(self):
        self.count += 1
        session, device, net = networks.Node("veth"), "veth%d" % self.count, "198.51.%d" % (100 + self.count)
        networks.join(session, "eth0", self.host, device)
        session.addresses("eth0", net + ".2/24")
        self.host.addresses(device, net + ".1/24")
        return Setup(session.user + [ENDS, "drive", net + ".1", PORT], self.server, errors=self.errors("veth"))

    def slirp4netns(self):
        slirp = find("slirp4netns", "slirp4netns")
        session = self.host.start("unshare", "--user", "--map-root-user", "--net", "sh", "-c",
                                  "echo ready; exec sleep infinity", stdout=subprocess.PIPE)
        session.stdout.readline()
        pid = inner(session, "sleep")
        reader, writer = os.pipe()
        # It keeps a descriptor for a minute after a connection has ended, and answers who connects while it has none
        # left that the network is unreachable: it gets as many as podrun's gateway takes for itself.
        helper = self.host.start("sh", "-c", 'ulimit -n "$(ulimit -H -n)"; exec "$@"', "sh",
                                 slirp, "--configure", "--mtu=65520", "--ready-fd=%d" % writer, pid, "tap0",
                                 pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=self.errors("slirp4netns"))
        os.close(writer)
        if os.read(reader, 1) != b"1":
            raise RuntimeError("slirp4netns did not begin")
        os.close(reader)
        helper = inner(helper, "slirp4netns")
        return Setup(self.host.user + ["nsenter", "-t", pid, "-U", "-n", "--preserve-credentials", ENDS, "drive",
                                       "10.0.2.2", PORT], self.server, lambda: [helper], self.errors("client-slirp4netns"))

    def pasta(self):
        pasta = find("pasta", "passt")
        # What the session knows as its gateway is the host's loopback.
        return Setup(self.host.user + [pasta, "--foreground", "--config-net", "-t", "none", "-u", "none", "-T", "none",
                                       "-U", "none", "--", ENDS, "drive", OUTSIDE, PORT],
                     self.server, lambda: by_name("pasta", "passt"), self.errors("pasta"))

    def wireguard(self, a, b):
        """A tunnel between two nodes, by somebody else's program."""
        program = os.environ.get("PODRUN_BENCH_WIREGUARD_GO") or find("wireguard-go", "wireguard-go")
        wg = find("wg", "wireguard-tools")
        networks.join(a, "eth0", b, "eth0")
        sides = []
        self.count += 1
        for node, name, under, inside in ((a, "wg%da" % self.count, "192.0.2.11", "10.88.0.1"),
                                          (b, "wg%db" % self.count, "192.0.2.12", "10.88.0.2")):
            node.addresses("eth0", under + "/24")
            key = self.place / (name + ".key")
            key.write_text(subprocess.run([wg, "genkey"], capture_output=True, text=True, check=True).stdout)
            key.chmod(0o600)
            public = subprocess.run([wg, "pubkey"], input=key.read_text(), capture_output=True, text=True, check=True)
            helper = subprocess.Popen(node.inside(program, "--foreground", name), stdout=subprocess.DEVNULL,
                                      stderr=self.errors(name), env={**os.environ, "LOG_LEVEL": "error"})
            until("wireguard-go of " + name, lambda: os.path.exists("/run/wireguard/%s.sock" % name))
            sides.append((node, name, under, inside, key, public.stdout.strip(), inner(helper, os.path.basename(program))))
        for mine, other in (sides, sides[::-1]):
            mine[0].root(wg, "set", mine[1], "listen-port", "51820", "private-key", mine[4], "peer", other[5],
                         "allowed-ips", other[3] + "/32", "endpoint", other[2] + ":51820")
            mine[0].addresses(mine[1], mine[3] + "/24")
        return [s[-1] for s in sides]

    def wireguard_go(self):
        a, b = networks.Node("wg-a"), networks.Node("wg-b")
        helpers = self.wireguard(a, b)
        return Setup(a.user + [ENDS, "drive", "10.88.0.2", PORT], served(b, "10.88.0.2"), lambda: helpers, self.errors("client-wg"))

    def session(self, *argv, options=()):
        """What starts a session with a virtual network there."""
        return [*self.env.prefix, PODRUN, "run", "--net", "vnat", *options, "--", *map(str, argv)]

    def podrun(self, address, **kw):
        # A gateway and a session's supervisor are begun when they are needed, so they are looked for each time.
        return Setup(self.session(ENDS, "drive", address, PORT, **kw), self.server, lambda: by_name("podrun"),
                     self.errors("podrun"), self.env.environ)

    def podrun_local(self):
        """From a session to its gateway, and from there by a socket of the host's."""
        return self.podrun(HOST)

    def podrun_carrier(self):
        """From one session to another behind the same gateway."""
        known = by_name("ends")
        self.count += 1
        name = "server%d" % self.count
        p = subprocess.Popen(self.session(ENDS, "serve", "::", PORT, options=["--name", name]),
                             stdout=subprocess.PIPE, stderr=self.errors("podrun"), env=self.env.environ)
        if p.stdout.readline() != b"ready\n":
            raise RuntimeError("no server in a session")
        server = [pid for pid in by_name("ends") if pid not in known][0]
        setup = self.podrun(name + ".podrun.internal")
        setup.server = server
        return setup

    def tunnel(self, *options):
        """The same protocol, by podrun: what a gateway on another host is reached by."""
        wg = find("wg", "wireguard-tools")
        a, b = networks.Node("tunnel-a"), networks.Node("tunnel-b")
        networks.join(a, "eth0", b, "eth0")
        sides = [(a, "192.0.2.11", "10.88.0.1"), (b, "192.0.2.12", "10.88.0.2")]
        keys = [subprocess.run([wg, "genkey"], capture_output=True, text=True, check=True).stdout for _ in sides]
        public = [subprocess.run([wg, "pubkey"], input=k, capture_output=True, text=True, check=True).stdout
                  for k in keys]
        helpers = []
        for i, (node, under, inside) in enumerate(sides):
            node.addresses("eth0", under + "/24")
            config = self.place / ("tunnel%d%s.conf" % (i, "".join(options)))
            config.write_text("[Interface]\nPrivateKey = %sListenPort = 51820\nAddress = %s/32\n[Peer]\nPublicKey = %s"
                              "AllowedIPs = %s/32\nEndpoint = %s:51820\n" % (keys[i], inside, public[1 - i],
                                                                            sides[1 - i][2], sides[1 - i][1]))
            config.chmod(0o600)
            helper = subprocess.Popen(node.inside(BUILD / "tests" / "tunnel_join", *options, config, "wg0"),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors("tunnel"))
            if helper.stdout.readline() != b"ready\n":
                raise RuntimeError("no tunnel")
            helpers.append(inner(helper, "tunnel_join"))
            node.root("ip", "route", "add", sides[1 - i][2], "dev", "wg0")
        return Setup(a.user + [ENDS, "drive", "10.88.0.2", PORT], served(b, "10.88.0.2"), lambda: helpers, self.errors("client-tunnel"))

    def tunnel_single(self):
        """Datagram by datagram, as over a network card that can't cut and join them."""
        return self.tunnel("--no-runs")


SETUPS = {
    "loopback": Bench.loopback,
    "veth": Bench.veth,
    "slirp4netns": Bench.slirp4netns,
    "pasta": Bench.pasta,
    "wireguard-go": Bench.wireguard_go,
    "podrun-local": Bench.podrun_local,
    "podrun-carrier": Bench.podrun_carrier,
    "podrun-tunnel": Bench.tunnel,
    "podrun-tunnel-single": Bench.tunnel_single,
}
