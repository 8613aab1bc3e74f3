#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Viewers play sound: a tone that this script sends is what they give to the loudspeaker."""
import os
import pathlib
import struct
import subprocess
import sys

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")  # browsers take their time on a busy machine
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsers  # noqa: E402
from harness import BUILD, PODRUN, Skip, main, needs, test, until  # noqa: E402
from listener import AUDIO, encode, has_tone, opus, tone  # noqa: E402
from looking import Screen, View, has_serial  # noqa: E402
from played import Display, Picture, fields, message, updated, welcome  # noqa: E402

# Whatever the page plays is written down, too.
HEARD = """window.heard = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function(...when) {
	window.heard.push(...this.buffer.getChannelData(0));
	return start.apply(this, when);
};"""


def spoken(hz):
    """AUDIO messages of two seconds."""
    if not opus():
        raise Skip("libopus is not installed")
    return [message(AUDIO, struct.pack("<Q", i * 20000) + p) for i, p in enumerate(encode(tone(hz, 2)))]


def say_until(viewer, messages, heard):
    """In pieces of 200 ms, of which a viewer that has enough throws away what it likes."""
    at = 0

    def once():
        nonlocal at
        viewer.send(b"".join(messages[at:at + 10]))
        at = (at + 10) % len(messages)
        return heard()
    until("the tone is heard", once)


def plays_sound(env, kind):
    display = Display(env, welcome() + Picture().everything() + updated(7))
    words = spoken(440)
    view = View(env)
    tab = browsers.get(kind).open(view.url, HEARD)
    has_serial(tab, 7)
    viewer = display.viewer()
    assert fields(viewer.got[0][1])[10] == 1
    # Nothing is heard before a click; what makes no sense does no harm.
    viewer.send(b"".join(words) + message(AUDIO, struct.pack("<Q", 0) + b"\xff" * 99))
    assert tab.evaluate("window.heard.length") == 0
    for kind in "mousePressed", "mouseReleased":
        tab.mouse(kind, 5, 5, "left", 1)
    viewer.send(message(AUDIO, struct.pack("<Q", 0) + b"\xff" * 99) + message(AUDIO, struct.pack("<Q", 0)))
    say_until(viewer, words, lambda: has_tone(tab.evaluate("window.heard.slice(-96000)"), 440))
    viewer.send(updated(8))
    has_serial(tab, 8)
    assert tab.evaluate("document.getElementById('notice').hidden")
    tab.close()
    view.close()


@test
def chromium_plays_sound(env):
    plays_sound(env, browsers.Chromium)


@test
def firefox_plays_sound(env):
    """It begins with a page's sound when there is something that plays it."""
    needs("pulseaudio")
    socket = env.path("loudspeaker")
    server = env.start("pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--disable-shm=yes",
                       "--log-level=error", "-L", "module-native-protocol-unix auth-anonymous=1 socket=%s" % socket,
                       "-L", "module-null-sink", stderr=subprocess.DEVNULL)
    until("the loudspeaker is there", socket.exists)
    browsers.Firefox.environ = {"PULSE_SERVER": "unix:%s" % socket}
    plays_sound(env, browsers.Firefox)
    server.terminate()
    server.wait()


@test
def a_window_of_its_own_plays_sound(env):
    """SDL plays into a file."""
    needs("Xvfb")
    words = spoken(440)
    if not (BUILD / "display" / "viewer" / "podrun-viewer").exists():
        raise Skip("podrun-viewer is not built")
    display = Display(env, welcome() + Picture().everything() + updated(7))
    screen, file = Screen(env), env.path("played")
    env.environ.update(SDL_RENDER_DRIVER="software", SDL_VIDEODRIVER="x11", HOME=str(env.dir), SDL_AUDIODRIVER="disk",
                       SDL_DISKAUDIOFILE=str(file))
    native = env.start(PODRUN, "view", "--native", "fake")
    viewer = display.viewer()
    until("the update is acknowledged", lambda: viewer.updates() == [7])
    assert fields(viewer.got[0][1])[10] == 1

    def heard():
        data = file.read_bytes() if file.exists() else b""
        return has_tone([x / 32768 for (x,) in struct.iter_unpack("<hxx", data[:len(data) // 4 * 4])], 440)

    viewer.send(message(AUDIO, struct.pack("<Q", 0) + b"\xff" * 99) + message(AUDIO, struct.pack("<Q", 0)))
    say_until(viewer, words, heard)
    native.terminate()
    native.wait()
    screen.server.terminate()
    screen.server.wait()


main()
