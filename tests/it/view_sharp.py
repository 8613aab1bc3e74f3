#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""podrun view on a screen with small pixels: a real browser looks at a display that this script plays."""
import os
import pathlib
import struct
import sys

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")  # browsers take their time on a busy machine
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsers  # noqa: E402
from harness import main, test, until  # noqa: E402
from looking import View, has_serial  # noqa: E402
from played import H, RESIZE, RESIZE_IN, SCALE_IN, W, Display, Picture, message, updated, welcome  # noqa: E402


@test
def chromium_is_sharp(env):
    """Where the session has the window's size, its pixels are the screen's, which are smaller than those of CSS."""
    picture = Picture()
    display = Display(env, welcome() + picture.everything() + updated(7))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)

    def density(factor, width=400):
        tab.command("Emulation.setDeviceMetricsOverride", width=width, height=300, deviceScaleFactor=factor, mobile=False)

    def wants(w, h, scale):
        until("the window's size is wished for, and how dense it is: %s" % there.got[-3:], lambda: [m for m in there.got if m[0] in (
            RESIZE_IN, SCALE_IN)][-2:] == [(RESIZE_IN, struct.pack("<HH", w, h)), (SCALE_IN, struct.pack("<HH", scale, 0))])

    def size():
        return tab.evaluate("(r => [r.width * devicePixelRatio, r.height * devicePixelRatio])("
                            "document.getElementById('screen').getBoundingClientRect())")

    density(2)
    has_serial(tab, 7)
    there = display.viewer()
    assert not any(m[0] == SCALE_IN for m in there.got), there.got
    assert size() == [2 * W, 2 * H], size()
    tab.evaluate("document.getElementById('resize').click()")
    wants(800, 600, 200)
    other = Picture(800, 600)
    there.send(message(RESIZE, struct.pack("<HH", 800, 600)) + other.fill(0x102030, 0, 0, 800, 600) + updated(8))
    has_serial(tab, 8)
    assert tab.evaluate("(c => [c.width, c.height, ...c.getContext('2d').getImageData(799, 599, 1, 1).data])("
                        "document.getElementById('screen'))") == [800, 600, 0x10, 0x20, 0x30, 255]
    assert size() == [800, 600], size()
    tab.mouse("mouseMoved", 101, 51)
    until("the pointer is where it is: %s" % there.input()[-1:], lambda: there.input()[-1:] == [(202, 102, 0, 0, 0)])
    density(1, 420)
    wants(420, 300, 100)
    tab.evaluate("document.getElementById('resize').click()")
    tab.close()
    view.close()


if __name__ == "__main__":
    main()
