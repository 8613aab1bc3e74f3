# SPDX-License-Identifier: GPL-2.0-or-later
"""Those who look at a display: podrun view with its page, and a screen for a window of its own."""
import base64
import os
import re
import signal
import struct
import subprocess

import websocket
from harness import PODRUN, until


class View:
    """podrun view, and the address it has printed."""

    def __init__(self, env, *args, target="fake"):
        args = [*args, target] if target else args
        self.process = env.start(PODRUN, "view", "--no-open", *args, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.url = self.next_url()
        self.host, self.port, self.token = re.fullmatch(r"https?://([\d.]+):(\d+)/#([0-9a-f]{64})", self.url).groups()
        self.port = int(self.port)

    def next_url(self):
        line = self.process.stdout.readline().strip()
        assert line, self.process.stderr.read()
        return line

    def websocket(self, **headers):
        scheme = self.url.split("/", 1)[0]
        headers.setdefault("Origin", "%s//%s:%d" % (scheme, self.host, self.port))
        return websocket.Websocket(self.host, self.port, headers.pop("path", "/stream"),
                                   headers.pop("protocol", "podrun-display"), tls=scheme == "https:", **headers)

    def refuses(self, **headers):
        try:
            self.websocket(**headers).close()
        except (websocket.Refused, websocket.Closed, ConnectionResetError):
            return True
        return False

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.process.stderr.read()


def has_serial(tab, serial):
    until("the page shows update %d" % serial, lambda: tab.evaluate(
        "document.getElementById('screen') && document.getElementById('screen').dataset.updated") == str(serial))


CANVAS = """(() => {
  const c = document.getElementById('screen');
  if (!c)
    return [0, 0, ''];
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let out = '';
  for (let i = 0; i < d.length; i += 4)
    out += String.fromCharCode(d[i], d[i + 1], d[i + 2]);
  return [c.width, c.height, btoa(out)];
})()"""


def shown(tab):
    """The page's picture: width, height, and three bytes for each pixel."""
    w, h, data = tab.evaluate(CANVAS)
    return w, h, base64.b64decode(data)


def same(tab, picture):
    """Each pixel of the page is the picture's."""
    w, h, data = shown(tab)
    assert (w, h) == (picture.w, picture.h), (w, h)
    expected = picture.rgb()
    wrong = [i // 3 for i in range(0, len(data), 3) if data[i:i + 3] != expected[i:i + 3]]
    assert not wrong, "%d wrong pixels, the first at %d, %d" % (len(wrong), wrong[0] % w, wrong[0] // w)


def place(tab):
    """Where the canvas is in the window, and how much larger than its pixels."""
    return tab.evaluate("(() => { const b = document.getElementById('screen').getBoundingClientRect();"
                        " return [b.left, b.top, b.width / document.getElementById('screen').width]; })()")


class Screen:
    """An X server whose picture is a file."""

    def __init__(self, env):
        r, w = os.pipe()
        self.server = env.start("Xvfb", "-displayfd", w, "-screen", "0", "1400x900x24", "-nolisten", "tcp", "-noreset", "-fbdir", env.dir,
                                pass_fds=[w], stderr=subprocess.DEVNULL)
        os.close(w)
        with os.fdopen(r) as f:
            env.environ["DISPLAY"] = ":" + f.readline().strip()
        self.file = env.dir / "Xvfb_screen0"

    def pixels(self, x, y, w, h):
        data = self.file.read_bytes()
        head = struct.unpack(">20I", data[:80])
        stride, begin = head[12], head[0] + head[19] * 12
        return b"".join(bytes((data[at + 2], data[at + 1], data[at])) for row in range(y, y + h) for at in
                        range(begin + row * stride + x * 4, begin + row * stride + (x + w) * 4, 4))
