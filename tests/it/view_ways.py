#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""podrun view, where there is no display, another one, or one that says nothing."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsers  # noqa: E402
import websocket  # noqa: E402
from harness import PODRUN, main, needs, test, until  # noqa: E402
from looking import View, has_serial, place  # noqa: E402
from played import CLIPBOARD as CLIPBOARD_OUT  # noqa: E402
from played import CLIPBOARD_IN, HELLO, KEY, NOTICE, WELCOME, Display, field, message, updated, welcome  # noqa: E402

REFUSED = 5
CLIPBOARD = threading.Lock()  # a browser has one for all tabs


def hello():
    return message(HELLO, field(1, 1) + field(3, 1))


def enter(view, who):
    """What a page does: the websocket, and the server's answer."""
    ws = view.websocket()
    ws.send(who)
    return ws, json.loads(ws.receive())


def closed_with(ws):
    try:
        while True:
            ws.receive()
    except websocket.Closed as e:
        return e.code, e.reason


@test
def another_session_of_that_name(env):
    """Whoever was let in to a session is not to see the one that is called so after it."""
    needs("Xvfb")

    def begin(*options):
        return env.podrun("run", "-d", "--name", "s", "--display=300x200", "--no-sound", *options, "--", "sleep", "1000")

    port = int(re.search(r":(\d+) password", begin("--vnc").errors).group(1))
    view = View(env, target="s")
    ws, answer = enter(view, "token " + view.token)
    ws.send(hello())
    assert ws.receive()[0] == WELCOME
    ws.close()
    # Suspended and resumed it is what it was.
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    ws, _ = enter(view, "ticket " + answer["ticket"])
    ws.send(hello())
    assert ws.receive()[0] == WELCOME
    env.podrun("kill", "s")
    env.podrun("rm", "-f", "s")
    begin()
    ws, _ = enter(view, "ticket " + answer["ticket"])
    ws.send(hello())
    code, reason = closed_with(ws)
    assert code == 4401 and "another session" in reason, (code, reason)
    assert view.process.wait(60) != 0
    assert "another session" in view.process.stderr.read()

    def refused():
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return True
        return False

    until("VNC has ended, too", refused)
    env.podrun("kill", "s")


@test
def another_name(env):
    """Whoever was let in sees the session on under its new name, also when another one has the old one."""
    needs("Xvfb")
    begin = ["--display=300x200", "--no-sound", "--", "sleep", "1000"]
    vnc = int(re.search(r":(\d+) password", env.podrun("run", "-d", "--name", "s", "--vnc", *begin).errors).group(1))
    view = View(env, target="s")
    ws, answer = enter(view, "token " + view.token)
    ws.send(hello())
    assert ws.receive()[0] == WELCOME
    env.podrun("rename", "s", "t")
    env.podrun("run", "-d", "--name", "s", *begin)
    env.podrun("suspend", "t")
    env.podrun("resume", "-d", "--name", "u", "t")
    ws.close()
    ws, _ = enter(view, "ticket " + answer["ticket"])
    ws.send(hello())
    first = ws.receive()
    assert first[0] == WELCOME and b"u" in first, first
    ws.close()
    socket.create_connection(("127.0.0.1", vnc)).close()
    view.close()
    env.podrun("kill", "s")
    env.podrun("kill", "u")


@test
def a_recording_of_one_that_is_suspended(env):
    needs("Xvfb")

    def recording(name):
        file = env.path(name)
        p = env.start(PODRUN, "view", "--record", file, "s", stderr=subprocess.PIPE, text=True)
        until("there is a picture", lambda: file.exists() and file.stat().st_size > 100)
        return p

    env.podrun("run", "-d", "--name", "s", "--display=300x200", "--no-sound", "--", "sleep", "1000")
    p = recording("first")
    env.podrun("suspend", "s")
    said = p.communicate(timeout=60)[1]
    assert p.returncode == 10 and said == "podrun: the session was suspended: the recording ends there\n", said
    env.podrun("resume", "-d", "s")
    p = recording("other")
    env.podrun("kill", "s")
    assert p.communicate(timeout=60)[1] == "" and p.returncode == 0


@test
def a_recording_on_stdout(env):
    """It is as one in a file, and ends when nobody reads it any more, also where nothing is drawn."""
    sent = welcome() + updated(7)
    Display(env, sent)
    p = env.start(PODRUN, "view", "--record", "-", "fake", stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=env.dir)
    got = b""
    while sent[-8:] not in got:
        piece = os.read(p.stdout.fileno(), 1 << 16)
        assert piece, got
        got += piece
    assert got.startswith(b"podrun display\n\1") and welcome() in got and not env.path("-").exists(), got
    p.stdout.close()
    assert (p.wait(60), p.stderr.read()) == (0, b"")
    p.stderr.close()
    terminal = subprocess.run(["script", "-qec", "%s view --record - fake" % PODRUN, "/dev/null"], env=env.environ,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert terminal.returncode == 2 and b"nothing for a terminal" in terminal.stdout, terminal


@test
def no_other_http(env):
    """An upgrade to HTTP/2, which a client may offer, is not taken."""
    Display(env, welcome() + updated(1))
    view = View(env)
    for settings in {}, {"HTTP2-Settings": "AAMAAABkAAQCAAAAAAIAAAAA"}:
        offer = {"Host": "%s:%d" % (view.host, view.port), "Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", **settings}
        with socket.create_connection((view.host, view.port)) as s:
            got, _, _ = websocket.request(s, "GET", "/", offer)
        assert got.split()[:2] == ["HTTP/1.1", "200"], got
    view.close()


class Refuses(Display):
    """Says why and is gone, as a display server with too many viewers."""

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.sendall(message(NOTICE, field(1, REFUSED) + field(2, "there are too many viewers")))


class Stands(Display):
    """Takes nobody, and has no room for those who wait: the kernel keeps one more than listen() says."""

    def open(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.directory / "display"))
        self.listener.listen(0)

    def fill(self):
        self.waits = socket.socket(socket.AF_UNIX)
        self.waits.connect(str(self.directory / "display"))

    def empty(self):
        self.listener.accept()[0].close()


def one_line(r, *words):
    assert re.fullmatch("podrun: [^\n]*\n(hint: [^\n]*\n)?", r.errors) and all(w in r.errors for w in words), r


@test
def a_display_server_that_takes_a_part(env):
    """What it has not taken at once comes when it takes more, and not with what is typed next."""
    display = Display(env, welcome() + updated(1))
    view = View(env)
    ws, _ = enter(view, "token " + view.token)
    ws.send(hello())
    viewer = display.viewer()
    for size in (1 << 20, 300000) * 30:
        viewer.got.clear()
        ws.send(message(CLIPBOARD_IN, bytes(size)))
        ws.send(message(KEY, bytes(8)))
        until("all of it has come", lambda: viewer.of(KEY))
        assert [(k, len(body)) for k, body in viewer.got] == [(CLIPBOARD_IN, size), (KEY, 8)], len(viewer.got)
    ws.close()
    view.close()


@test
def who_is_refused_hears_why(env):
    Refuses(env, b"")
    one_line(env.podrun("view", "--screenshot", env.path("a.png"), "fake", code=6), "too many viewers")
    kept, fresh = env.path("kept"), env.path("fresh")
    kept.write_text("kept")
    for file in kept, fresh:
        one_line(env.podrun("view", "--record", file, "fake", code=6), "too many viewers")
    assert kept.read_text() == "kept" and not fresh.exists()
    assert not env.path("a.png").exists()


@test
def a_screenshot_of_nothing_ends(env):
    Display(env, b"")
    one_line(env.podrun("view", "--screenshot", env.path("a.png"), "fake", code=6), "no picture")


@test
def one_that_stands_still_stops_nobody_else(env):
    """The page is served while a display server takes nobody; its browser is told, and comes again."""
    display = Stands(env, b"")
    view = View(env)
    display.empty()
    display.fill()
    ws, answer = enter(view, "token " + view.token)
    code, reason = closed_with(ws)
    assert code == 4404 and "does not answer" in reason, (code, reason)
    with socket.create_connection((view.host, view.port), timeout=60) as s:
        status, _, _ = websocket.request(s, "GET", "/", {"Host": "127.0.0.1:%d" % view.port})
    assert " 200 " in status, status
    display.empty()
    ws, _ = enter(view, "ticket " + answer["ticket"])
    ws.close()
    view.close()


@test
def a_quality_of_none(env):
    Display(env, b"")
    for wrong in "0", "101", "-1", "x", "":
        r = env.podrun("view", "--quality", wrong, "--screenshot", env.path("a.png"), "fake", code=2)
        assert "--quality" in r.errors, r


def press_paste(tab):
    tab.key("Control", True)
    for down in True, False:
        tab.key("v", down)
    tab.key("Control", False)


def _what_was_copied_without_a_connection(env):
    display = Display(env, welcome() + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    tab.allow("clipboardReadWrite", "clipboardSanitizedWrite")
    has_serial(tab, 1)

    def texts(viewer):
        return [x for x in viewer.input() if isinstance(x, str)]

    def heard(viewer):
        return viewer.input()[-1:] == [(0xffe3, 29, 0)]

    tab.evaluate("navigator.clipboard.writeText('before')")
    press_paste(tab)
    press_paste(tab)
    first = display.viewer()
    until("it is pasted", lambda: heard(first) and len(first.input()) == 9)
    assert texts(first) == ["before"], first.input()
    display.close()
    until("the page says so", lambda: "Trying again" in tab.evaluate("document.getElementById('notice').textContent"))
    tab.evaluate("navigator.clipboard.writeText('meanwhile')")
    press_paste(tab)
    display.first = welcome() + updated(2)
    display.open()
    has_serial(tab, 2)
    second = display.viewer(2)
    press_paste(tab)
    until("it is pasted again", lambda: heard(second))
    assert texts(second) == ["meanwhile"], second.input()
    tab.close()
    view.close()


@test
def what_was_copied_without_a_connection(env):
    """What is pasted while there is no display reaches the next one, when it is pasted again; what was there before is not taken for known."""
    with CLIPBOARD:
        _what_was_copied_without_a_connection(env)


def chords(env, kind):
    """The keyboard stays the session's when several buttons are down at a time."""
    display = Display(env, welcome(400, 300) + updated(1))
    view = View(env)
    tab = browsers.get(kind).open(view.url)
    has_serial(tab, 1)
    viewer = display.viewer()
    left, top, _ = place(tab)
    for what, button, buttons in (("mousePressed", "left", 1), ("mousePressed", "middle", 5), ("mouseReleased", "left", 4),
                                  ("mouseReleased", "middle", 0)):
        tab.mouse(what, int(left + 5), int(top + 5), button, buttons)
    until("they are heard", lambda: [m[2] for m in viewer.input()][-4:] == [1, 3, 2, 0])
    for down in True, False:
        tab.key("a", down)
    until("a key is heard: %s" % viewer.input(), lambda: viewer.input()[-2:] == [(0x61, 30, 1), (0x61, 30, 0)])
    tab.close()
    view.close()


@test
def several_buttons_in_chromium(env):
    chords(env, browsers.Chromium)


@test
def several_buttons_in_firefox(env):
    chords(env, browsers.Firefox)


PASTED = """(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "selected here");
    document.getElementById("keys").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, cancelable: true }));
})()"""


@test
def the_middle_button_is_the_sessions(env):
    """What a browser pastes when it comes up is not what was copied, and is not taken to the session for that."""
    display = Display(env, welcome(400, 300) + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    has_serial(tab, 1)
    viewer = display.viewer()
    left, top, _ = place(tab)

    def mouse(kind, button, buttons):
        tab.mouse(kind, left + 5, top + 5, button, buttons, clickCount=1)

    mouse("mousePressed", "middle", 4)
    mouse("mouseReleased", "middle", 0)
    tab.evaluate(PASTED)
    mouse("mousePressed", "left", 1)
    mouse("mousePressed", "middle", 5)
    mouse("mouseReleased", "left", 4)
    mouse("mouseReleased", "middle", 0)
    tab.evaluate(PASTED)
    tab.type("a")
    until("a is heard", lambda: (0x61, 0, 0) in viewer.input())
    assert not [m for m in viewer.input() if isinstance(m, str)], viewer.input()
    tab.evaluate(PASTED)
    until("what a menu pastes is heard", lambda: "selected here" in viewer.input())
    tab.close()
    view.close()


@test
def nobody_is_asked(env):
    """A page that writes to the clipboard behind no key or click has Chromium ask whether it may read it."""
    display = Display(env, welcome() + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url, """
        window.written = [];
        navigator.clipboard.writeText = async (text) => written.push(text + " " + navigator.userActivation.isActive);""")
    has_serial(tab, 1)
    display.viewer().send(message(CLIPBOARD_OUT, b"copied") + updated(2))
    has_serial(tab, 2)
    tab.evaluate("navigator.permissions.query({ name: 'clipboard-read' }).then(() => 0)")  # which the page asks, too
    assert tab.evaluate("written") == []
    for down in True, False:
        tab.key("a", down)
    until("it is written then: %s" % tab.evaluate("written"), lambda: tab.evaluate("written") == ["copied true"])
    tab.close()
    view.close()


def _too_much_to_be_pasted(env):
    display = Display(env, welcome() + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    tab.allow("clipboardReadWrite", "clipboardSanitizedWrite")
    has_serial(tab, 1)
    viewer = display.viewer()

    def paste(text):
        viewer.got.clear()
        tab.evaluate("navigator.clipboard.writeText(%s)" % text)
        press_paste(tab)
        until("it is over", lambda: viewer.input()[-1:] == [(0xffe3, 29, 0)])
        return viewer.input()[1:-1]

    assert paste("'\u00e4'.repeat((1 << 19) + 1)") == []
    until("the page says so", lambda: "too long" in tab.evaluate("document.getElementById('notice').textContent"))
    most, *keys = paste("'\u00e4'.repeat(1 << 19)")
    assert most == "\u00e4" * (1 << 19) and keys == [(0x76, 47, 1), (0x76, 47, 0)], keys
    tab.close()
    view.close()


@test
def too_much_to_be_pasted(env):
    """Then the page says so, and the session does not paste what it had before."""
    with CLIPBOARD:
        _too_much_to_be_pasted(env)


main()
