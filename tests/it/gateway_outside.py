#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The gateway's outside: what hosts, name servers and lines there do that connections have to bear."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from gateways import OUT4, REASON, Server, Session, begin, expect, send  # noqa: E402
from harness import test  # noqa: E402


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


if __name__ == "__main__":
    begin()
