# SPDX-License-Identifier: GPL-2.0-or-later
"""Two sessions, "server" and "client", which have connections with each other and no others."""
import sys

from harness import Failed, until

# Sends back what it gets.
SERVER = r"""
import socket, sys, threading
l = socket.create_server(("", 80), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
def serve(s):
    while data := s.recv(1 << 16): s.sendall(data)
while True: threading.Thread(target=serve, args=l.accept()[:1]).start()
"""
# Of two connections: in the first each block is answered before the next is sent, the second is used at the end.
CLIENT = r"""
import os, socket, sys, time
family, size = int(sys.argv[1]), int(sys.argv[2])
family = socket.AF_INET6 if family == 6 else socket.AF_INET
at = socket.getaddrinfo("server.podrun.internal", 80, family, socket.SOCK_STREAM)[0][4]
def block(i): return (i.to_bytes(8, "big") * (size // 8 + 1))[:size]
def dial():
    s = socket.socket(family)
    s.connect(at)
    return s
def echo(s, data):
    s.sendall(data)
    got = b""
    while len(got) < len(data):
        more = s.recv(1 << 16)
        if not more: raise ConnectionResetError
        got += more
    if got != data:
        print("wrong", flush=True)
        sys.exit(1)
def retransmitted():
    names, values = (line.split() for line in open("/proc/net/snmp") if line.startswith("Tcp:"))
    return values[names.index("RetransSegs")]
busy, idle = dial(), dial()
echo(idle, b"x")
print("ready", flush=True)
i = 0
try:
    while not os.path.exists("/tmp/stop"):
        echo(busy, block(i))
        i += 1
        if not size: time.sleep(.01)
        with open("/tmp/count.new", "w") as f: f.write(str(i))
        os.rename("/tmp/count.new", "/tmp/count")
    echo(idle, b"y")
    print("retransmitted", retransmitted())
    print("intact", flush=True)
except ConnectionResetError:
    print("reset", flush=True)
"""


def start(env, family=4, size=64):
    """Blocks of SIZE bytes go to and fro, by IPv4 or IPv6; with 0 none do."""
    env.run_detached("server", sys.executable, "-c", SERVER, options=["--net", "vnat"])
    env.run_detached("client", sys.executable, "-c", CLIENT, str(family), str(size), options=["--net", "vnat"])
    goes_on(env)


def count(env):
    r = env.podrun("exec", "client", "cat", "/tmp/count", check=False)
    if "reset" in env.logs("client") or "wrong" in env.logs("client"):
        raise Failed(env.logs("client"))
    return int(r.text) if r.code == 0 and r.text.strip() else 0


def goes_on(env):
    """ENV is of the client's host."""
    before = count(env)
    until("the client hears of the server", lambda: count(env) > before + 3)


def stop(env):
    env.let_end("client", "/tmp/stop")
    assert env.wait("client").split()[-1] == "intact"
    env.podrun("kill", "server")
    until("both have ended", lambda: not env.sessions())
