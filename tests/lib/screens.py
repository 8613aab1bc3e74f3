# SPDX-License-Identifier: GPL-2.0-or-later
"""A viewer of sessions' displays (display_viewer.c), and what is seen and typed there."""
import contextlib
import os
import pathlib
import re
import struct
import subprocess
import threading

from harness import BUILD, needs, until

VIEWER = BUILD / "tests" / "it" / "display_viewer"
# Reads keys of a terminal one by one and says their numbers.
KEYS = "stty raw -echo; echo ready > /tmp/ready; while :; do dd bs=1 count=1 2>/dev/null | od -An -tu1 >> /tmp/keys; done"
NOTICE = {"paused": "1", "suspended": "2", "moved": "3", "ended": "4", "running": "0"}


class Viewer:
    """Connected to a session's display server; `lines` is all that it has said."""

    def __init__(self, env, name="s", host=None, quality=None):
        host = host or env
        socket = pathlib.Path(host.environ["XDG_RUNTIME_DIR"]) / "podrun" / name / "display"
        self.env = env
        self.p = subprocess.Popen([VIEWER, socket, *([str(quality)] if quality else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        env.background.append(self.p)
        self.lines, self.n = [], 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.said("welcome")

    def _read(self):
        with contextlib.suppress(ValueError, OSError):
            for line in self.p.stdout:
                self.lines.append(line.rstrip("\n"))

    def do(self, text):
        self.p.stdin.write(text + "\n")
        self.p.stdin.flush()

    def find(self, text, since=0):
        return next((x for x in self.lines[since:] if x.startswith(text)), None)

    def said(self, text, since=0):
        return until("the viewer says %r: %s" % (text, self.lines[-5:]), lambda: self.find(text, since))

    def picture(self):
        """(width, height, RGB)"""
        self.n += 1
        path = self.env.path("picture%d-%d.ppm" % (id(self), self.n))
        self.do("picture %s" % path)
        self.said("picture %s" % path)
        return take(path)

    def type(self, *keysyms):
        for k in keysyms:
            self.do("key %#x 1" % k)
            self.do("key %#x 0" % k)


def take(path):
    """(width, height, RGB) of a picture, which is gone then."""
    data = path.read_bytes()
    path.unlink()
    head = re.match(rb"P6\n(\d+) (\d+)\n255\n", data)
    return int(head[1]), int(head[2]), data[head.end():]


def photograph(env, name="s"):
    """As podrun view does it."""
    env.podrun("view", "--screenshot", env.path("photograph.ppm"), name)
    return take(env.path("photograph.ppm"))


def screenshot(env, name="s"):
    """The same as the X server tells it: xwd(1) in the session."""
    data = env.podrun("exec", name, "xwd", "-root", "-silent").out
    word = struct.unpack(">25I", data[:100])
    width, height, stride = word[4], word[5], word[12]
    at = word[0] + word[19] * 12
    rows = []
    for y in range(height):
        row = data[at + y * stride:at + y * stride + width * 4]
        rgb = bytearray(width * 3)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        rows.append(bytes(rgb))
    return width, height, b"".join(rows)


def sees_all(env, viewer, name="s"):
    """Until the viewer has what the X server has; nothing may be drawing."""
    until("the viewer's picture is the X server's", lambda: viewer.picture() == screenshot(env, name))


def begin(env, *command, options=(), name="s", size="=640x480"):
    needs("Xvfb", "xterm", "xwd", "xdotool", "xclip")
    env.podrun("run", "-d", "--name", name, "--display" + size, *options, "--", *command)


def begin_terminal(env, **kw):
    """A terminal that writes down each key it gets, on all of the screen."""
    begin(env, "xterm", "+bc", "-b", "0", "-geometry", "120x50+0+0", "-xrm", "*cursorBlink: false", "-e", "sh", "-c", KEYS, **kw)
    until("the terminal is there", lambda: inside(env, "cat", "/tmp/ready").code == 0)


def inside(env, *command, name="s"):
    return env.podrun("exec", name, *command, check=False)


def keys(env, name="s"):
    return bytes(int(x) for x in inside(env, "cat", "/tmp/keys", name=name).text.split()).decode(errors="replace")


def types(env, viewer, text, *keysyms, name="s"):
    before = keys(env, name)
    viewer.do("pointer 50 50 0")
    viewer.type(*(keysyms or map(ord, text)))
    until("the terminal gets %r: %r" % (before + text, keys(env, name)), lambda: keys(env, name) == before + text)


def processes(env, *names):
    """Of this test: whose environment has its directories."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            argv = pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
            mine = str(env.dir).encode() in pathlib.Path("/proc", pid, "environ").read_bytes()
            line = b" ".join(argv)
            if mine and any(n.encode() in line for n in names):
                found.append(int(pid))
    return found
