# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the command line share."""
import os
import pty
import select
import signal
import subprocess
import termios
import time

from harness import PATIENCE, PODRUN, Failed, until


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


def read_piece(master):
    """What comes within a moment: None if nothing does, no bytes when nobody has the terminal any more."""
    if not select.select([master], [], [], 0.2)[0]:
        return None
    try:
        return os.read(master, 4096)
    except OSError:
        return b""


def read_until(master, word, seconds=PATIENCE):
    out = b""
    end = time.monotonic() + seconds
    while word not in out:
        if time.monotonic() > end:
            raise Failed("%r not in %r" % (word, out))
        piece = read_piece(master)
        if piece == b"":
            raise Failed("end, and %r not in %r" % (word, out))
        out += piece or b""
    return out


def read_to_end(master, seconds=PATIENCE):
    """What comes until nobody has the terminal any more."""
    out = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        piece = read_piece(master)
        if piece == b"":
            return out
        out += piece or b""
    raise Failed("no end after %r" % out)


COUNT = ("sh", "-c", "echo ready; i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); sleep 0.01; done; "
                     "echo ok $$")


# A mapping of gigabytes of which only some pages are used, in a process that is large enough for its mappings to
# be looked at in a copy (ckpt/memory/outline.c).
SPARSE = ("python3", "-c", """
import mmap, os, random, time
size = 2 << 30
m = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
places = [(5 << 20, 4096), (700 << 20, 48 << 20), (size - 4096, 4096)]
for at, n in places: m[at:at + n] = random.Random(at).randbytes(n)
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(.02)
bad = [at for at, n in places if m[at:at + n] != random.Random(at).randbytes(n)]
bad += [at for at in (0, 1 << 30) if m[at:at + 4096] != bytes(4096)]
print("FAIL %r" % bad if bad else "ok")
""")


def finish(env, name):
    env.let_end(name)
    return env.wait(name)


def ssh_to(env, other, lines=None):
    """Makes `ssh` lead to another "host" of this machine.  Of what comes back only so many `lines` do; then the line
    breaks, as one between hosts does: for both, and what comes back after that is lost."""
    script = env.path("ssh")
    way = "sh -c \"$*\""
    if lines is not None:
        way = "{ %s <&3 & } 3<&0 | %s" % (way, "sed -u %dq" % lines if lines else "true")
    script.write_text("#!/bin/sh\nshift\n%s\nexport PATH=%s:$PATH\n%s\n" % (
        "\n".join("export %s=%s" % (k, v) for k, v in other.environ.items()
                  if k.startswith("XDG_")),
        os.path.dirname(PODRUN), way))
    script.chmod(0o755)
    env.environ["PODRUN_SSH"] = str(script)


def unheard(env, other):
    """The same, but that it has the session is not heard: READY is lost, and the line is there.  Where the process there
    is found: in the file "receiver"."""
    ssh_to(env, other)
    script = env.path("ssh")
    script.write_text(script.read_text().replace(
        'sh -c "$*"', "sh -c 'echo $$ > %s; exec '\"$*\" | grep -v --line-buffered READY" % env.path("receiver")))


def arrives(env, other, name="s"):
    """A move of which the other side hears no more when it has all: there it has arrived, here it runs."""
    unheard(env, other)
    p = env.start(PODRUN, "migrate", name, "there", stderr=subprocess.PIPE)
    until("it has arrived", lambda: [s["state"] for s in other.podrun("ps", "--json").json()] == ["arrived"])
    os.kill(int(env.path("receiver").read_text()), signal.SIGKILL)
    assert p.wait(PATIENCE) == 8, p.stderr.read()
    ssh_to(env, other)
