#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""VNC viewers: TigerVNC's, on a screen of its own, looks at a display that this script plays, and at a session's."""
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PODRUN, main, needs, test, until  # noqa: E402
from looking import Screen  # noqa: E402
from played import H, RESIZE_IN, SFILL, W, Display, Picture, fields, message, rect, updated, welcome  # noqa: E402

WHERE = re.compile(r"(?:vnc )?127\.0\.0\.1:(\d+) password ([a-z2-9]{8})\n")


class Tiger:
    """TigerVNC's viewer, which takes exact pictures."""

    def __init__(self, env, where, *options):
        needs("Xvfb", "xdotool", "xtigervncviewer")
        port, password = WHERE.fullmatch(where).groups()
        self.env = env
        self.screen = Screen(env)
        env.environ.update(VNC_PASSWORD=password, HOME=str(env.dir))
        env.call("xdotool", "mousemove", "1300", "800")  # the pointer is painted into the picture
        self.process = env.start("xtigervncviewer", "-AutoSelect=0", "-PreferredEncoding=ZRLE", "-FullColour=1", "-NoJPEG=1",
                                 "-Shared=1", *options, "127.0.0.1::" + port, stderr=subprocess.DEVNULL)

    def place(self):
        found = self.env.call("xdotool", "search", "--name", "podrun - TigerVNC", "getwindowgeometry", "--shell", check=False).text
        return {k: int(v) for k, _, v in (line.partition("=") for line in found.split()) if v.lstrip("-").isdigit()}

    def pixels(self, w, h):
        at = self.place()
        return self.screen.pixels(at["X"], at["Y"], w, h) if "X" in at else b""

    def shows(self, picture):
        until("it shows the picture", lambda: self.pixels(picture.w, picture.h) == picture.rgb())

    def focus(self, x, y):
        window = str(self.place()["WINDOW"])
        self.env.call("xdotool", "windowfocus", "--sync", window, "mousemove", "--window", window, str(x), str(y))

    def close(self):
        for p in (self.process, self.screen.server):
            p.terminate()
            p.wait()


@test
def tigervnc_shows_and_types(env):
    picture = Picture()
    display = Display(env, welcome() + picture.everything() + updated(7))
    vnc = env.start(PODRUN, "view", "--vnc", "0", "fake", stdout=subprocess.PIPE, text=True)
    tiger = Tiger(env, vnc.stdout.readline(), "-RemoteResize=0")
    tiger.shows(picture)
    there = display.viewer()
    assert fields(there.got[0][1])[11] == b"vnc", there.got[0]
    until("the update is acknowledged", lambda: 7 in there.updates())
    tiger.focus(10, 20)
    env.call("xdotool", "click", "1")
    until("the click is heard", lambda: (10, 20, 1, 0, 0) in there.input() and there.input()[-1] == (10, 20, 0, 0, 0))
    env.call("xdotool", "click", "5")
    until("the wheel is heard", lambda: (10, 20, 0, 0, 1) in there.input())
    env.call("xdotool", "key", "a", "Return")
    expected = [(0x61, 1), (0x61, 0), (0xff0d, 1), (0xff0d, 0)]
    until("keys are heard", lambda: [(m[0], m[2]) for m in there.input() if len(m) == 3][:4] == expected)
    # the display server dies: what was shown stays, darker; another one has another size
    display.close()
    half = bytes(c >> 1 for c in picture.rgb())
    until("it is darker", lambda: tiger.pixels(W, H) == half)
    other = Picture(W + 40, H + 30)
    other.fill(0x112233, 0, 0, other.w, other.h)
    display.first = welcome(other.w, other.h) + message(SFILL, rect(0, 0, other.w, other.h) + struct.pack("<I", 0x112233)) + updated(8)
    display.open()
    tiger.shows(other)
    tiger.close()
    vnc.terminate()
    vnc.wait()


@test
def tigervnc_resizes(env):
    """The viewer's window is what the session's screen shall be."""
    display = Display(env, welcome() + Picture().everything() + updated(7))
    vnc = env.start(PODRUN, "view", "--vnc", "0", "fake", stdout=subprocess.PIPE, text=True)
    tiger = Tiger(env, vnc.stdout.readline(), "-RemoteResize=1", "-DesktopSize=333x222")
    there = display.viewer()
    until("a size is wished for", lambda: (RESIZE_IN, struct.pack("<HH", 333, 222)) in there.got)
    tiger.close()
    vnc.terminate()
    vnc.wait()


@test
def vnc_viewers_need_the_password(env):
    Display(env, welcome() + Picture().everything() + updated(7))
    vnc = env.start(PODRUN, "view", "--vnc", "127.0.0.1:0", "fake", stdout=subprocess.PIPE, text=True)
    line = vnc.stdout.readline()
    port = re.fullmatch(r"127\.0\.0\.1:(\d+) password [a-z2-9]{8}\n", line).group(1)
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as s:
        banner = s.recv(12, socket.MSG_WAITALL)
        assert banner.startswith(b"RFB 003."), banner
        s.sendall(b"RFB 003.008\n")
        # one kind of security, the password's (RFC 6143, 7.1.2)
        assert s.recv(2, socket.MSG_WAITALL) == b"\1\2"
    vnc.terminate()
    vnc.wait(60)
    env.podrun("view", "--vnc", "nowhere", "fake", code=2)


@test
def run_serves_vnc(env):
    """In the background, for as long as there is the session."""
    started = env.podrun("run", "-d", "--name", "s", "--display=400x200", "--vnc", "--", "xterm", "-bg", "#00ff00", "-b", "0",
                         "-geometry", "100x50+0+0", "-e", "sh", "-c", "while read x; do echo $x > /tmp/said; done")
    assert started.text == "s\n", started
    tiger = Tiger(env, started.errors, "-RemoteResize=0")

    def corner(*colour):
        return tiger.pixels(400, 200)[-3:] == bytes(colour)

    until("it shows the terminal", lambda: corner(0, 255, 0))
    tiger.focus(50, 50)
    env.call("xdotool", "type", "typed\n")
    until("what is typed comes in", lambda: env.podrun("exec", "s", "cat", "/tmp/said", check=False).text == "typed\n")
    env.podrun("suspend", "s")
    until("it is darker", lambda: corner(0, 127, 0))
    env.podrun("resume", "-d", "s")
    until("it is there again", lambda: corner(0, 255, 0))
    env.call("xdotool", "type", "again\n")
    until("what is typed comes in", lambda: env.podrun("exec", "s", "cat", "/tmp/said", check=False).text == "again\n")
    # a port that is taken is told before anything begins
    taken = WHERE.fullmatch(started.errors).group(1)
    r = env.podrun("run", "-d", "--name", "other", "--vnc=" + taken, "--", "true", code=125)
    assert "vnc" in r.errors and taken in r.errors, r
    env.podrun("inspect", "other", code=5)
    env.podrun("run", "--vnc=nowhere", "--", "true", code=2)
    env.podrun("kill", "s")
    until("the viewer's connection ends", lambda: not tiger.place())
    tiger.close()


if __name__ == "__main__":
    main()
