# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts and networks of one ordinary user: namespaces, joined by veths.

    networks.enter()                 at the top of a script: it goes on in namespaces of its own
    h = networks.Node("a")           a network namespace with its own mounts
    networks.join(h, "up", other, "down")   a veth between two
    h.root("ip", "route", ...)       as the owner of the network
    h.user + ["curl", ...]           the command of somebody there who owns nothing of it

Two user namespaces lie inside each other. In the outer one the script itself is root: it owns all
networks and processes, and when it ends the kernel ends and removes all that is left of them. In the inner one, which
each node has for itself, its user has his own number again, and no more rights in the network than any
user of a host. The machine's own network is neither used nor seen.
"""
import os
import subprocess
import sys

MARK = "PODRUN_TEST_NETWORK"


def enter():
    """Begins the script again where it is root of a network, processes and mounts of its own."""
    if os.environ.get(MARK) is None:
        os.environ[MARK] = "%d:%d" % (os.getuid(), os.getgid())
        command = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child",
                   "--mount-proc", sys.executable, *sys.argv]
        os.execvp(command[0], command)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    for d in ("/run/lock", "/run/wireguard"):
        os.makedirs(d, exist_ok=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def numbers():
    """The user and group that the script was begun as."""
    return os.environ[MARK].split(":")


class Node:
    """A network namespace, its mounts, and a user in it."""

    def __init__(self, name, resolv=None):
        self.name = name
        uid, gid = numbers()
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "unshare", "--user", "--map-user=" + uid, "--map-group=" + gid,
             "sh", "-c", "echo ready; exec sleep infinity"], stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            raise RuntimeError("no namespaces for " + name)
        self.pid = str(self.holder.pid)
        self.user = ["nsenter", "-t", self.pid, "-U", "-n", "-m", "--preserve-credentials"]
        self.root("ip", "link", "set", "lo", "up")
        # A user may ping there, as on most machines.
        self.sysctl("net/ipv4/ping_group_range", "0 0")
        if resolv:
            self.root("mount", "--bind", resolv, os.path.realpath("/etc/resolv.conf"))

    def inside(self, *argv):
        """A command as the owner of the network."""
        return ["nsenter", "-t", self.pid, "-n", "-m", *map(str, argv)]

    def root(self, *argv, **kw):
        r = subprocess.run(self.inside(*argv), capture_output=True, text=True, **kw)
        if r.returncode:
            raise RuntimeError("%s: %s: %s%s" % (self.name, " ".join(map(str, argv)), r.stdout, r.stderr))
        return r.stdout

    def sysctl(self, name, value):
        self.root("sh", "-c", "echo '%s' > /proc/sys/%s" % (value, name))

    def addresses(self, device, *addresses):
        for a in addresses:
            self.root("ip", "address", "add", a, "dev", device, *(["nodad"] if ":" in a else []))
        self.root("ip", "link", "set", "dev", device, "up")

    def default(self, *gateways):
        for g in gateways:
            self.root("ip", "route", "add", "default", "via", g)

    def start(self, *argv, **kw):
        """Somebody's program there; the caller ends it, or the end of the script does."""
        return subprocess.Popen(self.user + [str(a) for a in argv], **kw)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


def names_of(pid):
    """What a process is called: by itself, and by whoever started it (a program that starts itself again is "exe")."""
    proc = "/proc/%s/" % pid
    try:
        with open(proc + "comm") as comm, open(proc + "cmdline", "rb") as line:
            return comm.read().strip(), os.path.basename(line.read().split(b"\0")[0]).decode(errors="replace")
    except OSError:
        return ()


def join(a, at_a, b, at_b):
    """A veth: `at_a` in one, `at_b` in the other."""
    a.root("ip", "link", "add", at_a, "type", "veth", "peer", "name", at_b, "netns", b.pid)
