# SPDX-License-Identifier: GPL-2.0-or-later
"""A network as sessions have it at a gateway, without a session, and servers outside.

What is outside is the script itself (192.0.2.1, 2001:db8::1, the loopback), in a network of its own that begin()
makes; a session is a network namespace that `netsession` makes and attaches, and programs are run in it by nsenter.
"""
import hashlib
import socket
import subprocess
import sys
import threading

import networks
from harness import BUILD, main, until

NETSESSION = BUILD / "tests" / "it" / "netsession"
OUT4, OUT6 = "192.0.2.1", "2001:db8::1"
BLOCK = 1 << 16


class Session:
    """A session's network, attached to the gateway of `runtime`."""

    def __init__(self, env, name="s", ports=()):
        self.name = name
        self.process = env.start(NETSESSION, env.dir / "run", name, *ports, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.pid = self._answer().split()[1]
        self.attached = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        assert line, "netsession has ended"
        return line.strip()

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def list(self):
        """What the gateway says of this session, and of itself."""
        words = self.say("list").split()
        general, found = dict(zip(words[:6:2], words[1:6:2])), {}
        for i in range(6, len(words), 2):
            if words[i] == "session":
                found = {}
                if words[i + 1] == self.name:
                    general["mine"] = found
            found[words[i]] = words[i + 1]
        return general

    def argv(self, *argv):
        return ["nsenter", "-t", self.pid, "-U", "-n", "--preserve-credentials", *argv]

    def python(self, code, *args):
        """Starts a program inside, with pipes for stdin and stdout."""
        return subprocess.Popen(self.argv(sys.executable, "-c", COMMON + code, *map(str, args)),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, code, *args):
        p = self.python(code, *args)
        out, _ = p.communicate(timeout=120)
        assert p.returncode == 0, "exit %d: %s" % (p.returncode, out)
        return out.strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


COMMON = r"""
import hashlib, os, socket, struct, sys
def connect(host, port):
    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
    s.connect((host, int(port)))
    return s
def digest(s):
    h = hashlib.sha256()
    while True:
        b = s.recv(1 << 16)
        if not b:
            return h.hexdigest()
        h.update(b)
def blocks(n, seed):
    block = hashlib.sha256(seed.encode()).digest() * 2048
    for i in range(n):
        yield i.to_bytes(8, 'big') + block[8:]
def say(*what):
    print(*what, flush=True)
"""
exec(COMMON)  # the outside does the same  # pylint: disable=exec-used


def expect(n, seed):
    h = hashlib.sha256()
    for b in blocks(n, seed):  # noqa: F821
        h.update(b)
    return h.hexdigest()


class Server:
    """Listens outside; each connection is served by `serve` in a thread."""

    def __init__(self, serve, host=OUT4):
        self.sock = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.host, self.port = host, self.sock.getsockname()[1]
        self.serve, self.results, self.threads = serve, [], []
        t = threading.Thread(target=self._accept, daemon=True)
        t.start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            t = threading.Thread(target=self._one, args=(conn,), daemon=True)
            t.start()
            self.threads.append(t)

    def _one(self, conn):
        with conn:
            self.results.append(self.serve(conn))

    def result(self):
        until("the server has a result", lambda: self.results)
        return self.results[0]


def send(n, seed):
    def serve(conn):
        for b in blocks(n, seed):  # noqa: F821
            conn.sendall(b)
        conn.shutdown(socket.SHUT_WR)
        return digest(conn)  # noqa: F821
    return serve


# In a session: why there is no connection; and one that only listens.
REASON = r"""
import errno
try:
    connect(sys.argv[1], sys.argv[2])
    say('connected')
except OSError as e:
    say(errno.errorcode[e.errno])
"""
DOWNLOAD = "s = connect(sys.argv[1], sys.argv[2])\nsay('connected')\nsay(digest(s))"


def gateway_gone(env):
    return not (env.dir / "run" / ".gateway" / "socket").exists()


def begin():
    networks.enter()
    for address in (OUT4 + "/32", OUT6 + "/128"):
        subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)
    main()
