# SPDX-License-Identifier: GPL-2.0-or-later
"""The setups that are measured: how a client and a server reach each other, and by whose help.

A setup has a client that has said "ready" (ends.c), the process of its server, and `helpers()`: the
processes that stand between the two and whose CPU time counts.  Everything is started as the user of a
node (tests/lib/networks.py); the server of most is in `host`, and a setup begins with a network of its own,
as a session does.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import networks  # noqa: E402
from harness import BUILD, until  # noqa: E402

ENDS = str(BUILD / "tests" / "bench" / "net" / "ends")
PORT = 7700
HOST, OUTSIDE = "192.0.2.2", "192.0.2.1"


class Missing(Exception):
    """A program that is not installed; nobody leaves its figures out in silence."""


def find(program, package):
    path = shutil.which(program)
    if not path:
        raise Missing("%s is not installed (package %s)" % (program, package))
    return path


def cpu(pids):
    """Seconds of CPU that these have taken, with all their threads."""
    total = 0
    for pid in pids:
        fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def by_name(*begin):
    """Processes whose names begin so (some don't say which program they run); there are no others' here."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        if p.name.isdigit():
            with contextlib.suppress(OSError):
                if (p / "comm").read_text().startswith(begin):
                    found.append(int(p.name))
    return found


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

    def __init__(self, argv, server, helpers=lambda: [], errors=None):
        self.server, self.helpers = server, helpers
        self.process = subprocess.Popen(list(map(str, argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=errors)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("no client: " + " ".join(map(str, argv)))
        self.client = inner(self.process, "ends")

    def ask(self, *words):
        """What the client says, with CPU seconds: `helper`, and `path`, which is everybody's."""
        own = [self.client, self.server]
        helpers = self.helpers()
        before = cpu(helpers), cpu(own)
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("%s: the client ended" % " ".join(map(str, words)))
        got = json.loads(line)
        got["helper"] = cpu(helpers) - before[0]
        got["path"] = got["helper"] + cpu(own) - before[1]
        return got


class Bench:
    """The networks that all have in common, and what makes each setup."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.host = networks.Node("host")
        outside = networks.Node("outside")
        networks.join(self.host, "eth0", outside, "eth0")
        self.host.addresses("eth0", HOST + "/24")
        outside.addresses("eth0", OUTSIDE + "/24")
        self.host.default(OUTSIDE)
        self.server = served(self.host, "0.0.0.0")

    def errors(self, name):
        return open(self.place / (name + ".log"), "ab")

    def loopback(self):
        return Setup(self.host.user + [ENDS, "drive", "127.0.0.1", PORT], self.server)

    def veth(self):
        session = networks.Node("veth")
        networks.join(session, "eth0", self.host, "veth0")
        session.addresses("eth0", "198.51.100.2/24")
        self.host.addresses("veth0", "198.51.100.1/24")
        return Setup(session.user + [ENDS, "drive", "198.51.100.1", PORT], self.server)

    def slirp4netns(self):
        slirp = find("slirp4netns", "slirp4netns")
        session = self.host.start("unshare", "--user", "--map-root-user", "--net", "sh", "-c",
                                  "echo ready; exec sleep infinity", stdout=subprocess.PIPE)
        session.stdout.readline()
        pid = inner(session, "sleep")
        reader, writer = os.pipe()
        helper = self.host.start(slirp, "--configure", "--mtu=65520", "--ready-fd=%d" % writer, pid, "tap0",
                                 pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=self.errors("slirp4netns"))
        os.close(writer)
        if os.read(reader, 1) != b"1":
            raise RuntimeError("slirp4netns did not begin")
        os.close(reader)
        helper = inner(helper, "slirp4netns")
        return Setup(self.host.user + ["nsenter", "-t", pid, "-U", "-n", "--preserve-credentials", ENDS, "drive",
                                       "10.0.2.2", PORT], self.server, lambda: [helper])

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
        for node, name, under, inside in ((a, "wg0", "192.0.2.11", "10.88.0.1"), (b, "wg1", "192.0.2.12", "10.88.0.2")):
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
        return Setup(a.user + [ENDS, "drive", "10.88.0.2", PORT], served(b, "10.88.0.2"), lambda: helpers)


SETUPS = {
    "loopback": Bench.loopback,
    "veth": Bench.veth,
    "slirp4netns": Bench.slirp4netns,
    "pasta": Bench.pasta,
    "wireguard-go": Bench.wireguard_go,
}
