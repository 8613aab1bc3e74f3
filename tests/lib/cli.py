# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the command line share."""
import os
import pty
import select
import termios
import time

from harness import PATIENCE, PODRUN, Failed


def one_line(result, *words):
    """An error is one line that names things, perhaps with a hint line behind it."""
    lines = result.errors.strip().split("\n")
    assert lines[0].startswith("podrun: "), result
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: ")), result
    for w in words:
        assert w in result.errors, "%r not in: %s" % (w, result.errors)


def terminal(env, *argv):
    pid, master = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(0, (24, 80))
        command = env.prefix + [str(PODRUN)] + list(argv)
        os.execve(command[0], command, env.environ)
    return pid, master


def read_until(master, word, seconds=PATIENCE):
    out = b""
    end = time.monotonic() + seconds
    while word not in out:
        if time.monotonic() > end:
            raise Failed("%r not in %r" % (word, out))
        if select.select([master], [], [], 0.2)[0]:
            try:
                piece = os.read(master, 4096)
            except OSError:
                piece = b""
            if not piece:
                raise Failed("end, and %r not in %r" % (word, out))
            out += piece
    return out


COUNT = ("sh", "-c", "echo ready; i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); sleep 0.01; done; "
                     "echo ok $$")


def finish(env, name):
    env.podrun("exec", name, "touch", "/tmp/go")
    return env.wait(name)


def ssh_to(env, other, cut=""):
    """Makes `ssh` lead to another "host" of this machine; `cut` is a filter on the way back."""
    script = env.path("ssh")
    script.write_text("#!/bin/sh\nshift\n%s\nexport PATH=%s:$PATH\n%s%s\n" % (
        "\n".join("export %s=%s" % (k, v) for k, v in other.environ.items()
                  if k.startswith("XDG_")),
        os.path.dirname(PODRUN), "sh -c \"$*\"", cut))
    script.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(script)
