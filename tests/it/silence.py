#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A gateway on another host: what it says no to, and that it does not answer, and its line does not end either."""
import os
import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import PODRUN, main, needs_namespaces, test, until  # noqa: E402

# Says a number, and the next when that has come back.
ASKS = """
import socket, sys
s = socket.create_connection(("10.171.0.1", int(sys.argv[1])))
print("ready", flush=True)
n = 0
while True:
    n += 1
    s.sendall(b"%d\\n" % n)
    if s.makefile().readline() != "%d\\n" % n:
        sys.exit("that was not %d" % n)
"""


class Echo:
    """Says again what it hears, on this host's loopback."""

    def __init__(self):
        self.heard = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        s, _ = self.listener.accept()
        while data := s.recv(100):
            self.heard = int(data)
            s.sendall(data)

    def more(self):
        before = self.heard  # and what was on its way
        until("the session goes on", lambda: self.heard > before + 10)


def other_host(env):
    """Its podrun runs in a process whose number stands in the file."""
    there, ssh, pid = env.path("there"), env.path("ssh"), env.path("pid")
    there.mkdir(0o700)
    ssh.write_text("#!/bin/sh\nshift\necho $$ > %s\nXDG_RUNTIME_DIR=%s PATH=%s:$PATH exec sh -c \"exec $*\"\n" % (
        pid, there, pathlib.Path(PODRUN).parent))
    ssh.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(ssh)
    return pid


@test
@needs_namespaces("a network of its own")
def it_runs_on(env):
    """Who wants to suspend it is told, and a late answer is not taken for that to the next who does."""
    pid, echo = other_host(env), Echo()
    env.run_detached("s", sys.executable, "-c", ASKS, str(echo.port),
                     options=["--gateway", "there", "--host-loopback"])
    echo.more()
    line = int(pid.read_text())
    os.kill(line, signal.SIGSTOP)
    one_line(env.podrun("suspend", "s", code=1, timeout=120), "'s'", "its gateway on there does not answer", "runs on")
    assert env.podrun("ps", "--json").json()[0]["state"] == "running"
    os.kill(line, signal.SIGCONT)
    echo.more()
    for _ in range(2):
        env.podrun("suspend", "s")
        env.podrun("resume", "-d", "s")
        echo.more()
    env.podrun("kill", "s")


@test
@needs_namespaces("a network of its own")
def whose_port_it_is(env):
    """Another host's, which is named: what its gateway calls "this host" is not the one where that is read."""
    other_host(env)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        r = env.podrun("run", "--gateway", "there", "-p", "127.0.0.1:%d:80" % port, "true", code=125)
    one_line(r, "its gateway on there: port %d of this host is in use" % port)


if __name__ == "__main__":
    main()
