#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: a host name and a root directory of the session's own where names are rewritten."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import finish, one_line  # noqa: E402
from harness import main, test  # noqa: E402

HERE = ("--names", "rewrite", "--net", "host")


def run(env, *argv, **kw):
    return env.podrun("run", *HERE, *argv, **kw)


# ---- host name ------------------------------------------------------------------------------------

NAMES = ("import os, socket\n"
         "print(os.uname().nodename, socket.gethostname(), *open('/proc/sys/kernel/hostname'),\n"
         "      *open('/proc/sys/kernel/domainname'), sep='|', end='')\n")


def domain():
    return pathlib.Path("/proc/sys/kernel/domainname").read_text()


@test
def host_name_is_said_everywhere(env):
    r = run(env, "--hostname", "here.example", "--", sys.executable, "-c", NAMES)
    assert r.text == "here.example|here.example|here.example\n|" + domain(), r
    one_line(run(env, "--hostname", "x" * 65, "--", "true", check=False), "host name")


@test
def all_else_of_uname_is_the_kernel_s(env):
    argv = ("setarch", "i686", "uname", "-srvm")
    assert run(env, "--hostname", "here", "--", *argv).text == env.call(*argv).text


@test
def an_ordinary_user_does_not_set_it(env):
    r = run(env, "--", sys.executable, "-c", "import socket\nsocket.sethostname('x')", code=1)
    assert "PermissionError" in r.errors, r


WAITS = ("sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; uname -n")


def moved(env, name, way, back, *options):
    """What a session says of its host when it has been resumed the other way."""
    env.run_detached(name, *WAITS, options=("--names", way, "--net", "host", *options))
    env.podrun("suspend", name, "-o", env.path(name))
    env.podrun("rm", name)
    env.podrun("resume", env.path(name), "--names", back, "-d")
    return finish(env, name).split()[-1]


@test
def host_name_comes_along(env):
    """The host's own is one that stays, too."""
    assert moved(env, "a", "kernel", "rewrite") == "a"
    assert moved(env, "b", "kernel", "rewrite", "--hostname", "here") == "here"
    assert moved(env, "c", "rewrite", "kernel", "--hostname", "here") == "here"
    assert moved(env, "d", "rewrite", "kernel") == os.uname().nodename


if __name__ == "__main__":
    main()
