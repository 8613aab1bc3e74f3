#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files into a session with a display, and from there: in a browser's page, and by viewers that mean harm."""
import base64
import os
import pathlib
import sys

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")  # browsers take their time on a busy machine
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsers  # noqa: E402
from harness import main, needs, test, until  # noqa: E402
from listener import GREETING, Listener  # noqa: E402
from looking import View  # noqa: E402
from played import FILE_IN, field, fields  # noqa: E402

OFFER, ACCEPT, DATA, END, LIST = 0, 1, 2, 3, 5
# Drops a file of @n bytes, which depend on their places, into the page.
DROP = """(() => {
  const data = new Uint8Array(%d).map((_, i) => i * i >> 3), d = new DataTransfer();
  d.items.add(new File([data], %r));
  document.getElementById('screen').dispatchEvent(new DragEvent('drop', {dataTransfer: d, bubbles: true, cancelable: true}));
})()"""
# What the page gives to be saved.
SAVED = """window.saved = [];
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { window.saved.push(blob); return make.call(URL, blob); };"""
FIRST = """(async () => {
  const a = new Uint8Array(await window.saved[0].arrayBuffer());
  let out = '';
  for (const x of a)
    out += String.fromCharCode(x);
  return btoa(out);
})()"""


def begin(env):
    needs("Xvfb")
    env.podrun("run", "-d", "--name", "s", "--display=320x200", "--no-sound", "--", "sleep", "1000")


def there(env, name):
    r = env.podrun("exec", "s", "cat", "/tmp/files/" + name, check=False)
    return r.out if r.code == 0 else None


def names(env):
    return env.podrun("exec", "s", "ls", "-A", "/tmp/files", check=False).text.split("\n")[:-1]


def click(tab, what):
    tab.evaluate("document.%s.click()" % what)


def dropped(env, kind):
    begin(env)
    view = View(env, target="s")
    tab = browsers.get(kind).open(view.url, SAVED)
    until("the page may share files", lambda: tab.evaluate(
        "document.getElementById('share') && !document.getElementById('share').hidden"))
    for name, n in (("a file.bin", 700001), ("nothing", 0)):
        tab.evaluate(DROP % (n, name))
        until("it is in the session", lambda: there(env, name) == bytes((i * i >> 3) & 255 for i in range(n)))
    env.podrun("exec", "s", "sh", "-c", "head -c 3000000 /dev/urandom > /tmp/files/'from <b>inside'")
    click(tab, "getElementById('share')")
    until("it is listed: %r" % tab.evaluate("document.getElementById('list').textContent"), lambda: tab.evaluate(
        "[...document.querySelectorAll('#list button')].some(b => b.textContent.startsWith('from <b>inside (3000000'))"))
    tab.evaluate("[...document.querySelectorAll('#list button')].find(b => b.textContent.startsWith('from')).click()")
    until("it has come", lambda: tab.evaluate("window.saved.length") == 1)
    assert base64.b64decode(tab.evaluate(FIRST)) == there(env, "from <b>inside")
    assert not getattr(tab, "complaints", None), tab.complaints
    tab.close()
    view.close()
    env.podrun("kill", "s")


@test
def dropped_into_the_page(env):
    dropped(env, browsers.Chromium)


@test
def dropped_into_the_page_of_firefox(env):
    dropped(env, browsers.Firefox)


@test
def only_from_those_who_control(env):
    begin(env)
    socket = pathlib.Path(env.environ["XDG_RUNTIME_DIR"]) / "podrun" / "s" / "display"
    put = [field(1, OFFER) + field(2, 1) + field(3, "../../../tmp/x") + field(4, 3),
           field(1, DATA) + field(2, 1) + field(6, "abc"), field(1, END) + field(2, 1)]
    looks, controls = Listener(socket, GREETING + b"\x40\x01"), Listener(socket)
    for v in looks, controls:
        until("there is a picture", lambda: v.updated)
        for m in put:
            v.send(FILE_IN, m)
        v.send(FILE_IN, field(1, LIST))
        v.send(FILE_IN, b"\xff\xff\xff")
    until("one has come", lambda: there(env, "x") == b"abc")
    assert names(env) == ["x"], names(env)
    def accepted(n, offset):
        return any(f.get(1) == ACCEPT and f.get(2) == n and f.get(5, 0) == offset for f in map(fields, controls.files))

    # What is not whole is nowhere to be seen; a snapshot in between.
    controls.send(FILE_IN, field(1, OFFER) + field(2, 2) + field(3, "y") + field(4, 6))
    controls.send(FILE_IN, field(1, DATA) + field(2, 2) + field(6, "abc"))
    until("it has begun", lambda: accepted(2, 3))
    assert names(env) == ["x"], names(env)
    env.podrun("snapshot", "s", "-o", env.path("copy.podrun"))
    controls.send(FILE_IN, field(1, DATA) + field(2, 2) + field(5, 3) + field(6, "def"))
    controls.send(FILE_IN, field(1, END) + field(2, 2))
    until("it is whole", lambda: there(env, "y") == b"abcdef")
    # Half of one goes into no image.
    controls.send(FILE_IN, field(1, OFFER) + field(2, 3) + field(3, "z") + field(4, 6))
    controls.send(FILE_IN, field(1, DATA) + field(2, 3) + field(6, "abc"))
    until("another has begun", lambda: accepted(3, 3))
    env.podrun("suspend", "s")
    for v in controls, looks:
        v.close()
    env.podrun("resume", "-d", "s")
    assert names(env) == ["x", "y"], names(env)
    env.podrun("kill", "s")


main()
