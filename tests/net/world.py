# SPDX-License-Identifier: GPL-2.0-or-later
"""Some hosts, an internet between them, and an outside server which knows nothing of podrun.

    with World(env) as w:
        w.a, w.b, w.c            hosts: an Env each (tests/lib/harness.py), with directories, a network and an sshd
        w.outside                a host with servers; no podrun
        w.lines["a"]             with World(env, relays=["a"]): what host a's packets go through (relay.c)

              a --- line --- internet --- line --- outside
              b --- line ---'

A host's network is a namespace, so is that of the internet, which routes.  Everybody is an ordinary
user in his (tests/lib/networks.py).  `w.migrate` goes through a real ssh from one host to the
other.  At the end no process of podrun's may be left on any host.
"""
import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import networks  # noqa: E402
from harness import BUILD, PODRUN, Failed, until  # noqa: E402

RELAY = str(BUILD / "tests" / "net" / "relay")
SSH_PORT = 2222
OUTSIDE, OUTSIDE6 = "203.0.113.2", "2001:db8:ff::2"
SSHD = """Port %d
ListenAddress 0.0.0.0
HostKey %s
AuthorizedKeysFile %s
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
Subsystem sftp internal-sftp
SetEnv %s
"""
SSH = """Host *
  Port %d
  IdentityFile %s
  UserKnownHostsFile %s
  StrictHostKeyChecking yes
  BatchMode yes
  LogLevel ERROR
"""


class Line:
    """What a relay does to the packets of a host."""

    def __init__(self, node, device, internet, peer):
        self.process = subprocess.Popen([RELAY, node.pid, device, internet.pid, peer], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self._expect(b"ready\n")

    def _expect(self, word):
        if self.process.stdout.readline() != word:
            raise Failed("the relay ended")

    def say(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        self._expect(b"ok\n")

    def close(self):
        self.process.kill()
        self.process.communicate()


class World:
    def __init__(self, env, hosts=("a", "b"), relays=()):
        self.env, self.nodes, self.lines, self.names = env, {}, {}, hosts
        self.places = {}
        self.internet = networks.Node("internet")
        self.internet.sysctl("net/ipv4/ip_forward", 1)
        self.internet.sysctl("net/ipv6/conf/all/forwarding", 1)
        self.keys = self._make_keys()
        self.resolv = env.path("resolv.conf")
        self.resolv.write_text("nameserver %s\noptions timeout:2\n" % OUTSIDE)
        for k, name in enumerate(hosts):
            self._connect(name, "198.51.100.%d" % (4 * k), "2001:db8:%d::" % k, name in relays)
            host = env.host(name)
            host.prefix = self.nodes[name].user
            host.node, host.address = self.nodes[name], "198.51.100.%d" % (4 * k + 2)
            setattr(self, name, host)
            host.environ["PODRUN_SSH"] = str(self._client(name))
            self._sshd(name, host.address, ["%s=%s" % (v, host.environ[v]) for v in host.environ
                                            if v.startswith("XDG_") or v == "PODRUN_SSH"])
        self._connect("outside", "203.0.113.0", "2001:db8:ff::", "outside" in relays)
        self.outside = self.nodes["outside"]
        self._terminals(self.outside)
        self._sshd("outside", OUTSIDE, [])
        self.know()

    def _connect(self, name, net, net6, relay):
        first, last = net.rsplit(".", 1)
        at = ["%s.%d" % (first, int(last) + i) for i in range(3)]
        node = self.nodes[name] = networks.Node(name, str(self.resolv) if name != "outside" else None)
        if relay:
            self.lines[name] = Line(node, "eth0", self.internet, name)
        else:
            networks.join(node, "eth0", self.internet, name)
        node.addresses("eth0", at[2] + "/30", net6 + "2/64")
        self.internet.addresses(name, at[1] + "/30", net6 + "1/64")
        if relay:  # a TUN has no neighbours whom one could ask for
            node.root("ip", "route", "add", "default", "dev", "eth0")
            node.root("ip", "-6", "route", "add", "default", "dev", "eth0")
        else:
            node.default(at[1], net6 + "1")

    def _terminals(self, node):
        """A server's shells get terminals: in a user namespace of one user there is no group for them."""
        group = self.env.path("group")
        group.write_text("".join(line for line in open("/etc/group") if not line.startswith("tty:")))
        node.root("mount", "--bind", group, "/etc/group")
        node.root("mount", "-t", "devpts", "none", "/dev/pts", "-o", "newinstance,ptmxmode=666")
        node.root("mount", "--bind", "/dev/pts/ptmx", "/dev/ptmx")

    def _make_keys(self):
        """What a client has to carry: a key, whom it knows, and where both are, below /ssh inside a session."""
        d = self.env.path("keys")
        d.mkdir(mode=0o700)
        for key in ("client", "host"):
            self.env.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", d / key)
        (d / "config").write_text(SSH % (SSH_PORT, d / "client", d / "known"))
        session = self.env.path("ssh")
        session.mkdir(mode=0o700)
        (session / "config").write_text(SSH % (SSH_PORT, "/ssh/client", "/ssh/known"))
        (session / "client").write_bytes((d / "client").read_bytes())
        (session / "client").chmod(0o600)
        return d

    def know(self):
        """The clients know all hosts' key, which is the same."""
        key = (self.keys / "host.pub").read_text()
        line = "".join("[%s]:%d %s" % (a, SSH_PORT, key) for a in [OUTSIDE] + [getattr(self, n).address for n in self.names])
        for place in (self.keys / "known", self.env.path("ssh") / "known"):
            place.write_text(line)

    def _sshd(self, name, address, variables):
        config = self.keys / ("sshd-" + name)
        path = "PATH=%s:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" % os.path.dirname(PODRUN)
        config.write_text(SSHD % (SSH_PORT, self.keys / "host", self.keys / "client.pub", " ".join([path, *variables])))
        self.serve(name, "/usr/sbin/sshd", "-D", "-e", "-f", config)
        self.answers(name, address, SSH_PORT)

    def _client(self, name):
        """The `ssh` of a host: others are known by their names."""
        script = self.env.path("ssh-" + name)
        names = "".join("%s) host=198.51.100.%d ;;\n" % (n, 4 * k + 2) for k, n in enumerate(self.names))
        script.write_text("#!/bin/sh\ncase $1 in\n%s*) echo \"no host $1\" >&2; exit 255 ;;\nesac\nshift\n"
                          "exec ssh -F %s $host \"$@\"\n" % (names, self.keys / "config"))
        script.chmod(0o755)
        return script

    def serve(self, name, *argv, **kw):
        """Starts a server on a node, which the end of the world ends."""
        log = open(self.env.path("%s-%s.log" % (name, os.path.basename(str(argv[0])))), "ab")
        p = self.nodes[name].start(*argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **kw)
        self.env.background.append(p)
        return p

    def answers(self, name, address, port):
        probe = "import socket; socket.create_connection(('%s', %d), 5)" % (address, port)
        until("%s answers at port %d" % (name, port), lambda: subprocess.run(
            self.nodes[name].user + [sys.executable, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0)

    def run(self, host, name, *argv, net="vnat", options=()):
        """A session with a virtual network; what ssh to the outside needs is at /ssh in it."""
        host.run_detached(name, *argv, options=["--net", net, "-v", "%s:/ssh:ro" % self.env.path("ssh"), *options])

    def again(self, host, name):
        """Suspends it into a file and resumes it from there."""
        image = host.path("image-" + name)
        host.podrun("suspend", name, "-o", image, timeout=120)
        host.podrun("resume", "-d", image, timeout=120)
        image.unlink()

    def migrate(self, name, here, there):
        here.podrun("migrate", name, there.dir.name, timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        left = []
        for name in self.names:
            host = getattr(self, name)
            for s in host.sessions():
                left.append("%s on %s" % (s["name"], name))
                host.podrun("kill", s["name"], check=False)
        try:
            if not kind:
                until("nothing of podrun's is left", lambda: not self.processes())
        finally:
            for p in self.env.background:
                with contextlib.suppress(OSError):
                    p.kill()
                p.wait()
            for closing in [*self.lines.values(), *self.nodes.values(), self.internet]:
                closing.close()
        if left and not kind:
            raise Failed("left running: " + ", ".join(left))

    def processes(self):
        """Those of podrun's on the hosts of this world."""
        mine = {os.stat("/proc/%s/ns/net" % n.pid).st_ino for n in self.nodes.values()}
        found = []
        for p in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if p.name.isdigit() and any(n.startswith("podrun") for n in networks.names_of(p.name)) and \
                        os.stat(p / "ns" / "net").st_ino in mine:
                    found.append(p.name)
        return found
