#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""podrun view's page, whatever a server sends: its queue, looked at in a real browser."""
import os
import pathlib
import sys

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")  # browsers take their time on a busy machine
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsers  # noqa: E402
from harness import main, test  # noqa: E402
from looking import View, has_serial  # noqa: E402
from played import Display, Picture, updated, welcome  # noqa: E402

WAITING = """
import("/screen.js").then(async ({ Screen }) => {
    const { TYPE } = await import("/wire.js"), told = [], done = [];
    const screen = new Screen(document.createElement("canvas"), {
        resized() {}, failed: (e) => told.push(e.message), other: (type) => told.push(type) });
    let asked = 0;
    screen.decode = () => new Promise((resolve) => { asked++; done.push(resolve); });
    screen.draw = () => told.push("drawn");
    for (let i = 0; i < 100; i++)
        screen.take(TYPE.RAW, new Uint8Array(1000));
    const ahead = asked;
    screen.take(TYPE.FILE, new Uint8Array(10));
    for (let i = 0; i < 100; i++) {
        done[i](null);
        await new Promise((resolve) => setTimeout(resolve));
    }
    const drawn = told.filter((x) => x === "drawn").length, first = told[0];
    let taken = 0;
    try {
        for (screen.take(TYPE.RAW, new Uint8Array(1000)); taken < 1000; taken++)
            screen.take(TYPE.SFILL, new Uint8Array(1 << 20));
    } catch (e) {
        return [ahead, first, drawn, taken, e.message];
    }
    return "it takes whatever comes";
})
"""


@test
def what_waits_in_a_page_is_bounded(env):
    """Whatever a server sends: so many pictures are decoded ahead, and so many bytes wait for one of them."""
    Display(env, welcome() + Picture().everything() + updated(7))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    has_serial(tab, 7)
    ahead, first, drawn, taken, why = tab.evaluate(WAITING)
    file = tab.evaluate("import('/wire.js').then((m) => m.TYPE.FILE)")
    assert (ahead, first, drawn, taken, why) == (16, file, 100, 63, "more is sent than can be shown"), (ahead, first, drawn, taken, why)
    tab.close()
    view.close()


if __name__ == "__main__":
    main()
