#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""podrun view: real browsers look at a display that this script plays.

The display server is a thread here: it sends fixed messages of the protocol to whoever connects, keeps the picture
that must come of them, and hears what is typed.  Pixels of the page's canvas are compared with it, one by one.
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import resource
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys

os.environ.setdefault("PODRUN_TEST_PATIENCE", "180")  # browsers take their time on a busy machine
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsers  # noqa: E402
import websocket  # noqa: E402
from cli import one_line, ssh_to  # noqa: E402
from harness import BUILD, PODRUN, ROOT, main, needs, test, until  # noqa: E402
from looking import Screen, View, has_serial, place, same, shown  # noqa: E402
from played import (ACK, CLIPBOARD, CLIPBOARD_IN, CURSOR, FILE_IN, GRADIENT, H, HELLO, I420, JPEG, KEY,  # noqa: E402
                    LEFT_LZ4, LZ4, MARK, MJPEG, NONE, NOTICE, PALETTE, PALETTE_LZ4, POINTER, RAW, REFRESH, RESIZE,
                    RESIZE_IN, SFILL, UPDATED, VIDEO, VP8, W, WELCOME, Display, Picture, field, fields, message, rect, updated, welcome)


def closed_with(ws):
    """The code with which the server closes."""
    try:
        while True:
            ws.receive()
    except websocket.Closed as e:
        return e.code


def draws_exactly(env, kind):
    picture = Picture()
    display = Display(env, welcome() + picture.everything() + updated(7))
    view = View(env)
    tab = browsers.get(kind).open(view.url)
    has_serial(tab, 7)
    same(tab, picture)
    viewer = display.viewer()
    hello = fields(viewer.got[0][1])
    assert hello[4] & ~(1 << VP8) == 1 << I420 | 1 << MJPEG, hello
    assert hello[1] == 1 and hello[3] == 1 << NONE | 1 << LZ4 | 1 << LEFT_LZ4 | 1 << JPEG | 1 << PALETTE | 1 << PALETTE_LZ4, hello
    assert 5 not in hello and 2 not in hello, "exact on this machine; the token stays here: %s" % hello
    until("the update is acknowledged", lambda: viewer.updates() == [7])
    # in pieces of any size, and a new size
    other = Picture(40, 30)
    data = (message(RESIZE, struct.pack("<HH", 40, 30)) + other.raw(LEFT_LZ4, 0, 0, 40, 30, other.noise) +
            message(99, b"of the future") + message(MARK, struct.pack("<I", 8)) + updated(9))
    for i in range(0, len(data), 7):
        viewer.send(data[i:i + 7])
    has_serial(tab, 9)
    same(tab, other)
    until("both are acknowledged", lambda: viewer.updates() == [7, 8, 9])
    assert not getattr(tab, "complaints", None), tab.complaints
    tab.close()
    until("the viewer has gone", lambda: viewer.ended)
    view.close()


@test
def chromium_draws_exactly(env):
    draws_exactly(env, browsers.Chromium)


@test
def firefox_draws_exactly(env):
    draws_exactly(env, browsers.Firefox)


def blank_is_drawn_again(env, kind):
    """A canvas whose context was lost is black when it is there again; it may have kept nothing, either."""
    picture = Picture()
    display = Display(env, welcome() + picture.everything() + updated(1))
    view = View(env)
    tab = browsers.get(kind).open(view.url)
    has_serial(tab, 1)
    viewer = display.viewer()
    tab.evaluate("(() => { const c = document.getElementById('screen'); c.getContext('2d').reset();"
                 " c.dispatchEvent(new Event('contextrestored')); return 0; })()")
    until("it asks for all", lambda: (REFRESH, rect(0, 0, W, H)) in [tuple(m) for m in viewer.got])
    assert not tab.evaluate("document.getElementById('screen').getContext('2d').imageSmoothingEnabled")
    viewer.send(picture.raw(LEFT_LZ4, 0, 0, W, H, picture.noise) + updated(2))
    has_serial(tab, 2)
    same(tab, picture)
    tab.close()
    view.close()


@test
def chromium_draws_again_what_is_blank(env):
    blank_is_drawn_again(env, browsers.Chromium)


@test
def firefox_draws_again_what_is_blank(env):
    blank_is_drawn_again(env, browsers.Firefox)


def jpeg_in_its_turn(env, kind):
    """What comes behind a JPEG is drawn behind it, though it is ready before."""
    picture = Picture()
    first = [picture.fill(0x808080, 0, 0, W, H)]
    for at in range(3):
        first += [picture.jpeg(at * 30, at * 10), picture.fill(0xff0000 >> 8 * at, at * 30 + 5, at * 10 + 5, 9, 9)]
    first += [picture.copy(0, 0, 60, 2, 20, 20)]
    first += [picture.mjpeg(5, 28), picture.fill(0x00ff80, 10, 33, 9, 9), picture.video(MJPEG, GRADIENT, 32, 32, 40, 40, 50, 20)]
    display = Display(env, welcome() + b"".join(first) + updated(1))
    view = View(env)
    tab = browsers.get(kind).open(view.url)
    has_serial(tab, 1)
    _, _, data = shown(tab)
    # the last is scaled: what is in its middle is known, and around it nothing has been touched
    middle = 3 * (50 * W + 65)
    assert all(abs(a - b) <= 12 for a, b in zip(data[middle:middle + 3], (4 * 16 + 60, 4 * 16 + 40, 2 * 32 + 30))), data[middle:middle + 3]
    data = bytearray(data)
    expected = picture.rgb()
    for y in range(40, 60):
        data[3 * (y * W + 40):3 * (y * W + 90)] = expected[3 * (y * W + 40):3 * (y * W + 90)]
    off = max(abs(a - b) for a, b in zip(data, expected))
    assert off <= 8, "a channel is off by %d" % off
    assert all(data[i] == expected[i] for x, y in ((6, 6), (36, 16), (66, 26), (11, 34)) for i in
               range(3 * (y * W + x), 3 * (y * W + x) + 3)), "a fill is not on top"
    # a viewer that stops in the middle of one that is no JPEG begins anew
    display.viewer().send(message(RAW, rect(0, 0, 8, 8) + bytes([JPEG, 0]) + b"no picture"))
    display.viewer(2)
    has_serial(tab, 1)
    tab.close()
    view.close()


@test
def chromium_draws_jpeg_in_its_turn(env):
    jpeg_in_its_turn(env, browsers.Chromium)


@test
def firefox_draws_jpeg_in_its_turn(env):
    jpeg_in_its_turn(env, browsers.Firefox)


def vp8(env, kind):
    """
    A film's frames, the last of them as in the test vector; then one that needs what did not come.  A browser
    that decodes them to colours of its own (Firefox) is not to ask for any.
    """
    vectors = ROOT / "proto" / "vectors" / "display"
    stream, drawn = (vectors / "vp8.bin").read_bytes(), (vectors / "vp8-picture.bin").read_bytes()
    display = Display(env, stream + updated(1))
    view = View(env)
    tab = browsers.get(kind).open(view.url)
    viewer = display.viewer()
    if not fields(viewer.got[0][1])[4] & 1 << VP8:
        assert kind is browsers.Firefox, "it has given what VP8 decodes to"
        tab.close()
        view.close()
        return
    has_serial(tab, 1)
    w, h, data = shown(tab)
    expected = b"".join(drawn[i:i + 3][::-1] for i in range(0, len(drawn), 3))
    wrong = [i // 3 for i in range(0, len(data), 3) if data[i:i + 3] != expected[i:i + 3]]
    assert (w, h) == (32, 16) and not wrong, "%d wrong pixels, the first: %s" % (len(wrong), wrong[:1])
    # the same once more, scaled: what is around it stays black, and its middle is about that colour
    films, at = [], 0
    while at < len(stream):
        n = 8 + struct.unpack_from("<I", stream, at + 4)[0]
        films += [stream[at:at + n]] if stream[at] == VIDEO else []
        at += n
    larger = [f[:12] + rect(2, 1, 60, 30) + f[20:] for f in films]
    viewer.send(message(RESIZE, struct.pack("<HH", 64, 32)) + b"".join(larger) + updated(2))
    has_serial(tab, 2)
    _, _, data = shown(tab)
    middle, was = 3 * (16 * 64 + 32), 3 * (8 * 32 + 16)
    assert all(abs(a - b) <= 12 for a, b in zip(data[middle:middle + 3], expected[was:was + 3])), data[middle:middle + 3]
    assert not any(data[:3 * 64]) and not any(data[3 * 31 * 64:])
    # a new picture ends the stream: the page begins anew
    viewer.send(message(RESIZE, struct.pack("<HH", 64, 32)) + larger[1])
    again = display.viewer(2)
    assert fields(again.got[0][1])[4] == 1 << I420 | 1 << MJPEG | 1 << VP8
    has_serial(tab, 1)
    # a frame that the browser can't decode: it is not sent such again
    again.send(films[0][:36] + b"\xff" + films[0][37:] + updated(3))
    assert fields(display.viewer(3).got[0][1])[4] == 1 << I420 | 1 << MJPEG
    tab.close()
    view.close()


@test
def chromium_draws_vp8(env):
    vp8(env, browsers.Chromium)


@test
def firefox_draws_vp8(env):
    vp8(env, browsers.Firefox)


def keys_and_pointer(env, kind):
    display = Display(env, welcome(400, 300) + updated(1))
    view = View(env)
    tab = browsers.get(kind).open(view.url)
    has_serial(tab, 1)
    viewer = display.viewer()
    left, top, scale = place(tab)

    def at(x, y):
        return int(left + (x + 0.5) * scale), int(top + (y + 0.5) * scale)

    def heard(*expected):
        until("%s is heard" % (expected,), lambda: viewer.input()[-len(expected):] == list(expected))

    tab.mouse("mouseMoved", *at(10, 20))
    tab.mouse("mousePressed", *at(10, 20), button="left", buttons=1)
    tab.mouse("mouseMoved", *at(50, 60), button="left", buttons=1)
    tab.mouse("mouseReleased", *at(50, 60), button="left")
    until("the end of the drag is heard", lambda: viewer.input()[-1:] == [(50, 60, 0, 0, 0)])
    found = [m for i, m in enumerate(viewer.input()) if i == 0 or m != viewer.input()[i - 1]]
    assert found == [(10, 20, 0, 0, 0), (10, 20, 1, 0, 0), (50, 60, 1, 0, 0), (50, 60, 0, 0, 0)], found
    tab.mouse("mousePressed", *at(50, 60), button="right", buttons=2)
    tab.mouse("mouseReleased", *at(50, 60), button="right")
    until("the right button is heard", lambda: (50, 60, 4, 0, 0) in viewer.input())
    tab.mouse("mouseWheel", *at(50, 60), deltaX=0, deltaY=300)
    until("the wheel is heard", lambda: sum(m[4] for m in viewer.input() if len(m) == 5) == 3)
    viewer.got.clear()
    for name, keysym, scancode in (("a", 0x61, 30), ("Enter", 0xff0d, 28), ("ArrowLeft", 0xff51, 105), ("F5", 0xffc2, 63)):
        tab.key(name, True)
        tab.key(name, False)
        heard((keysym, scancode, 1), (keysym, scancode, 0))
    tab.key("Shift", True)
    tab.key("A", True)
    heard((0xffe1, 42, 1), (0x41, 30, 1))
    # the page loses the keyboard while keys are down
    tab.evaluate("document.getElementById('keys').blur()")
    heard((0xffe1, 42, 0), (0x41, 30, 0))
    tab.key("A", False)
    tab.key("Shift", False)
    tab.close()
    view.close()


@test
def chromium_types_and_points(env):
    keys_and_pointer(env, browsers.Chromium)


@test
def firefox_types_and_points(env):
    keys_and_pointer(env, browsers.Firefox)


@test
def fingers(env):
    """A tap clicks, a drag drags, two fingers turn the wheel."""
    display = Display(env, welcome(400, 300) + updated(1))
    view = View(env)
    # However long this takes, no finger is held still for as long as a right click wants.
    tab = browsers.get(browsers.Chromium).open(view.url, before=(
        "{ const real = setTimeout; window.setTimeout = (f, ms, ...a) => real(f, ms === 600 ? 1e6 : ms, ...a); }"))
    tab.command("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    has_serial(tab, 1)
    viewer = display.viewer()
    left, top, scale = place(tab)

    def at(x, y):
        return int(left + (x + 0.5) * scale), int(top + (y + 0.5) * scale)

    tab.touch("touchStart", at(30, 40))
    tab.touch("touchEnd")
    until("the tap is heard", lambda: viewer.input() == [(30, 40, 1, 0, 0), (30, 40, 0, 0, 0)])
    viewer.got.clear()
    tab.touch("touchStart", at(30, 40))
    tab.touch("touchMove", at(100, 90))
    tab.touch("touchEnd")
    until("the drag is heard", lambda: viewer.input()[-1:] == [(100, 90, 0, 0, 0)])
    assert viewer.input()[0] == (30, 40, 1, 0, 0), viewer.input()
    viewer.got.clear()
    tab.touch("touchStart", at(30, 40), at(60, 40))
    tab.touch("touchMove", at(30, 200), at(60, 200))
    tab.touch("touchEnd")
    until("the wheel is heard", lambda: any(m[4] < 0 for m in viewer.input()))
    assert all(m[2] == 0 for m in viewer.input()), viewer.input()
    tab.close()
    view.close()


@test
def clipboard_both_ways(env):
    display = Display(env, welcome() + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    tab.allow("clipboardReadWrite", "clipboardSanitizedWrite")
    has_serial(tab, 1)
    viewer = display.viewer()
    viewer.send(message(CLIPBOARD, "from the session: \u00e4\u20ac".encode()))
    until("the clipboard has it", lambda: tab.evaluate("navigator.clipboard.readText()") == "from the session: \u00e4\u20ac")
    tab.evaluate("navigator.clipboard.writeText('from here: \u00fc\u20ac')")
    tab.key("Control", True)
    tab.key("v", True)
    until("v is heard", lambda: (0x76, 47, 1) in viewer.input())
    assert viewer.input() == [(0xffe3, 29, 1), "from here: \u00fc\u20ac", (0x76, 47, 1)], viewer.input()
    tab.key("v", False)
    tab.key("Control", False)
    until("all keys are up", lambda: viewer.input()[-2:] == [(0x76, 47, 0), (0xffe3, 29, 0)])
    tab.close()
    view.close()


@test
def cursor_and_notices(env):
    display = Display(env, welcome() + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    has_serial(tab, 1)
    viewer = display.viewer()
    viewer.send(message(CURSOR, rect(2, 1, 3, 2) + bytes(range(24))))
    until("the cursor is a picture", lambda: re.fullmatch(
        r'url\("data:image/png;base64,[^"]*"\) 2 1, default', tab.evaluate("document.getElementById('screen').style.cursor")))
    viewer.send(message(CURSOR, rect(0, 0, 0, 0)[:8]))
    until("it is hidden", lambda: tab.evaluate("document.getElementById('screen').style.cursor") == "none")

    def notice():
        return tab.evaluate("(() => { const n = document.getElementById('notice'); return n.hidden ? '' : n.textContent; })()")

    viewer.send(message(NOTICE, field(1, 1)))
    until("it is paused", lambda: "paused" in notice())
    viewer.send(message(NOTICE, b""))
    until("it runs", lambda: notice() == "")
    viewer.send(message(NOTICE, field(2, "too long") + field(4, "other")))
    until("it is called so now", lambda: notice() == "too long" and tab.evaluate("document.title") == "other - podrun")
    until("that need not be read twice", lambda: notice() == "")
    viewer.send(message(NOTICE, field(1, 4) + field(2, "<b>exit code 3</b>")))
    until("it has ended", lambda: "ended" in notice() and "<b>exit code 3</b>" in notice())
    assert not tab.complaints, tab.complaints
    tab.close()
    view.close()


@test
def comes_back_by_itself(env):
    """The display server dies, is not there for a while, and another one shows something else."""
    picture = Picture()
    display = Display(env, welcome() + picture.raw(LZ4, 0, 0, W, H, picture.noise) + updated(1))
    view = View(env)
    tab = browsers.get(browsers.Chromium).open(view.url)
    has_serial(tab, 1)
    display.close()
    until("the page says so", lambda: "Trying again" in tab.evaluate("document.getElementById('notice').textContent"))
    other = Picture(50, 20)
    display.first = welcome(50, 20) + other.raw(LZ4, 0, 0, 30, 20, other.noise) + updated(2)
    display.open()
    has_serial(tab, 2)
    same(tab, other)
    # as does a tab that is loaded anew, with its ticket
    tab.reload()
    display.viewer(3)
    has_serial(tab, 2)
    until("the notice has gone", lambda: tab.evaluate("document.getElementById('notice').hidden"))
    tab.close()
    view.close()


# ---- who may come in ----------------------------------------------------------------------------

def hello(**more):
    return message(HELLO, field(1, 1) + field(3, 1) + b"".join(field(k, v) for k, v in more.items()))


@test
def a_token_works_once(env):
    display = Display(env, welcome() + updated(1))
    view = View(env)
    for first in ("token " + "0" * 64, "token " + view.token[:-1], "token", "ticket ", "ticket " + "0" * 64, "x" * 5000,
                  "token " + view.token + "0", "ticket " + view.token, b"token " + view.token.encode()):
        ws = view.websocket()
        ws.send(first)
        assert closed_with(ws) == 4401, first
    ws = view.websocket()
    ws.send("token " + view.token)
    answer = json.loads(ws.receive())
    assert re.fullmatch("[0-9a-f]{64}", answer["ticket"]) and answer["ticket"] != view.token, answer
    ws.send(hello())
    assert ws.receive()[0] == WELCOME
    again = view.websocket()
    again.send("token " + view.token)
    assert closed_with(again) == 4401, "the token has been used"
    # with the ticket its owner comes back, and takes his place from whoever is there
    back = view.websocket()
    back.send("ticket " + answer["ticket"])
    assert json.loads(back.receive())["ticket"] == answer["ticket"]
    assert closed_with(ws) == 4403
    back.send(hello())
    assert back.receive()[0] == WELCOME
    assert len(display.viewers) == 2
    view.close()


@test
def who_reads_nothing_is_replaced_all_the_same(env):
    """A line that died takes no place among the display server's viewers when its page is back by another one."""
    display = Display(env, welcome() + updated(1))
    view = View(env)
    ws = view.websocket()
    ws.send("token " + view.token)
    ticket = json.loads(ws.receive())["ticket"]
    ws.send(hello())
    dead = display.viewer()
    while select.select([], [dead.sock], [], 1)[1]:
        dead.sock.send(message(99, bytes(1 << 16)), socket.MSG_DONTWAIT)
    back = view.websocket()
    back.send("ticket " + ticket)
    assert json.loads(back.receive())["ticket"] == ticket
    back.send(hello())
    until("the first one's stream has ended", lambda: dead.ended)
    assert not display.viewer(2).ended
    ws.close()
    view.close()


@test
def other_pages_are_refused(env):
    """A page of the web may ask servers on this machine, and give them names of its own."""
    display = Display(env, welcome() + updated(1))
    view = View(env)
    ours = "http://127.0.0.1:%d" % view.port
    for wrong in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": None},
                  {"Origin": ours.replace("http", "https")}, {"Origin": "http://127.0.0.1:1"}, {"Origin": ours + ".evil.example"},
                  {"Host": "evil.example:%d" % view.port}, {"Host": "127.0.0.1"}, {"Host": None},
                  {"Host": "evil.example:%d" % view.port, "Origin": "http://evil.example:%d" % view.port},
                  {"path": "/other"}, {"protocol": "chat"}, {"protocol": None},
                  *({"protocol": p, "Origin": "http://evil.example"} for p in
                    ("http-only", "listener", "signals", "podrun-stream"))):
        assert view.refuses(**wrong), wrong
    local = "localhost:%d" % view.port
    assert not view.refuses(Host=local, Origin="http://" + local)
    for method, path, host, status in (("GET", "/", "127.0.0.1:%d" % view.port, "200"), ("GET", "/", local, "200"),
                                       ("GET", "/main.js", local, "200"), ("GET", "/", "evil.example", "403"),
                                       ("GET", "/main.js", "evil.example:%d" % view.port, "403"), ("GET", "/none", local, "404"),
                                       ("GET", "/../main.c", local, "404"), ("POST", "/", local, "405")):
        with socket.create_connection((view.host, view.port)) as s:
            got, fields_, _ = websocket.request(s, method, path, {"Host": host, "Content-Length": "0"})
        assert got.split()[1] == status, (method, path, host, got)
        if status == "200":
            policy = fields_["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy, policy
            assert fields_["x-content-type-options"] == "nosniff" and fields_["cache-control"] == "no-store"
    assert not display.viewers
    view.close()


@test
def who_only_looks_sends_no_input(env):
    """Also if the page is not ours: it is the relay that sees to it."""
    display = Display(env, welcome(role=1) + updated(1))
    view = View(env, "--view-only")
    ws = view.websocket()
    ws.send("token " + view.token)
    assert json.loads(ws.receive())["viewOnly"] is True
    key = message(KEY, struct.pack("<IHBx", 0x61, 30, 1))
    data = hello() + key + message(POINTER, bytes(8)) + message(ACK, bytes(4)) + message(CLIPBOARD_IN, b"x" * 3000) + \
        message(RESIZE_IN, bytes(4)) + message(FILE_IN, b"") + message(99, b"") + message(REFRESH, rect(0, 0, 1, 1)) + key
    for i in range(0, len(data), 11):
        ws.send(data[i:i + 11])
    ws.send(message(ACK, b"last"))
    viewer = display.viewer()
    until("the last one has come", lambda: (ACK, b"last") in viewer.got)
    assert [kind for kind, _ in viewer.got] == [HELLO, ACK, REFRESH, ACK], viewer.got
    assert fields(viewer.got[0][1])[8] == 1, "the display server knows, too"
    view.close()


@test
def no_protocol_no_way(env):
    """What is not the protocol ends the connection, not the server."""
    display = Display(env, welcome() + updated(1))
    view = View(env)
    ws = view.websocket()
    ws.send("token " + view.token)
    ticket = "ticket " + json.loads(ws.receive())["ticket"]
    for broken in (message(KEY, bytes(8)), hello() + hello(), message(HELLO, b"\xff" * 9), struct.pack("<BBHI", HELLO, 0, 0, 5000),
                   hello() + struct.pack("<BBHI", CLIPBOARD_IN, 0, 0, (1 << 20) + 1), "text"):
        ws = view.websocket()
        ws.send(ticket)
        ws.receive()
        ws.send(broken)
        assert closed_with(ws) == 4400, broken
    view.close()


@test
def https_for_others(env):
    picture = Picture()
    display = Display(env, welcome() + picture.raw(LZ4, 0, 0, W, H, picture.noise) + updated(3))
    view = View(env, "--listen", "127.0.0.1:0")
    assert view.url.startswith("https://127.0.0.1:")
    line = view.process.stderr.readline()
    sock, certificate = websocket.connect_tls((view.host, view.port))
    sock.close()
    digest = hashlib.sha256(certificate).hexdigest().upper()
    assert line.strip().endswith(":".join(digest[i:i + 2] for i in range(0, 64, 2))), line
    for name in ("display.key", "display.crt"):
        assert (env.dir / "config" / "podrun" / name).stat().st_mode & 0o77 == 0, name
    tab = browsers.get(browsers.Chromium).open(view.url)
    has_serial(tab, 3)
    same(tab, picture)
    assert fields(display.viewer().got[0][1])[5] == 85, "a line may be slow"
    # the next browser has an address of its own
    another = view.next_url()
    assert another != view.url
    ws = view.websocket()
    ws.send("token " + another.split("#")[1])
    assert "ticket" in json.loads(ws.receive())
    assert view.refuses(Origin="https://evil.example")
    tab.close()
    view.close()
    # the key stays
    view = View(env, "--listen", "127.0.0.1:0")
    assert view.process.stderr.readline() == line
    view.close()


# ---- without a browser --------------------------------------------------------------------------

def ppm(path, w, h):
    data = path.read_bytes()
    head = b"P6\n%d %d\n255\n" % (w, h)
    assert data.startswith(head), data[:20]
    return data[len(head):]


@test
def who_says_nothing_keeps_nobody_out(env):
    """Neither by connecting and being silent, nor by taking all descriptors there are."""
    display = Display(env, welcome() + updated(1))
    for i, most in enumerate((1024, 32)):
        view = View(env, "--listen", "127.0.0.1:0")
        resource.prlimit(view.process.pid, resource.RLIMIT_NOFILE, (most, most))
        silent = [socket.create_connection((view.host, view.port), source_address=("127.0.0.2", 0)) for _ in range(300)]
        ws = view.websocket()
        ws.send("token " + view.token)
        ws.receive()
        ws.send(hello())
        assert ws.receive()[0] == WELCOME
        # Others come still; who has been admitted stays.
        silent += [socket.create_connection((view.host, view.port), source_address=("127.0.0.2", 0)) for _ in range(300)]
        other = view.websocket()
        other.send("token " + view.next_url().split("#")[1])
        other.receive()
        other.send(hello())
        assert other.receive()[0] == WELCOME
        display.viewer(1 + 2 * i).sock.sendall(updated(2))
        assert ws.receive()[0] == UPDATED
        for s in silent:
            s.close()
        view.close()


@test
def screenshot_is_exact(env):
    picture = Picture()
    Display(env, welcome() + picture.everything() + updated(7))
    env.podrun("view", "--screenshot", env.path("shot.ppm"), "fake")
    assert ppm(env.path("shot.ppm"), W, H) == picture.rgb()
    env.podrun("view", "--screenshot", env.path("shot.png"), "fake")
    data = base64.b64encode(env.path("shot.png").read_bytes()).decode()
    tab = browsers.get(browsers.Chromium).open("about:blank")
    w, h, pixels = tab.evaluate("""(async () => {
      const blob = new Blob([Uint8Array.from(atob('%s'), (c) => c.charCodeAt(0))], {type: 'image/png'});
      const bitmap = await createImageBitmap(blob);
      const c = new OffscreenCanvas(bitmap.width, bitmap.height), pen = c.getContext('2d');
      pen.drawImage(bitmap, 0, 0);
      const d = pen.getImageData(0, 0, c.width, c.height).data;
      let out = '';
      for (let i = 0; i < d.length; i += 4)
        out += String.fromCharCode(d[i], d[i + 1], d[i + 2]);
      return [c.width, c.height, btoa(out)];
    })()""" % data)
    assert (w, h) == (W, H) and base64.b64decode(pixels) == picture.rgb()
    tab.close()
    r = env.podrun("view", "--screenshot", env.path("shot.gif"), "fake", code=2)
    assert ".png or .ppm" in r.errors


@test
def a_screenshot_is_of_something(env):
    """A server that calls nothing complete has shown nothing yet."""
    picture = Picture()
    between = message(99, bytes(1 << 17))  # more than is read at once
    Display(env, updated(1) + between + welcome() + picture.everything() + updated(7))
    env.podrun("view", "--screenshot", env.path("shot.ppm"), "fake")
    assert ppm(env.path("shot.ppm"), W, H) == picture.rgb()


@test
def a_window_of_its_own(env):
    needs("Xvfb", "xdotool")
    picture = Picture()
    display = Display(env, welcome() + picture.everything() + updated(7))
    screen = Screen(env)
    env.environ.update(SDL_RENDER_DRIVER="software", SDL_VIDEODRIVER="x11", HOME=str(env.dir))
    viewer = env.start(PODRUN, "view", "--native", "--quality", "70", "fake")

    def place():
        found = env.call("xdotool", "search", "--name", "^fake$", "getwindowgeometry", "--shell", check=False).text
        return {k: int(v) for k, _, v in (line.partition("=") for line in found.split()) if v.isdigit()}

    env.call("xdotool", "mousemove", "0", "0")  # the X server draws the pointer into its picture
    until("the window is there", lambda: place().get("WIDTH") == W)
    until("it shows the picture", lambda: screen.pixels(place()["X"], place()["Y"], W, H) == picture.rgb())
    there = display.viewer()
    wishes = fields(there.got[0][1])
    assert wishes[4] == 1 << I420 | 1 << MJPEG | 1 << VP8 and wishes[5] == 70, wishes
    until("the update is acknowledged", lambda: there.updates() == [7])
    window = str(place()["WINDOW"])
    env.call("xdotool", "windowfocus", "--sync", window, "mousemove", "--window", window, "10", "20", "click", "1")
    until("the click is heard", lambda: (10, 20, 1, 0, 0) in there.input() and there.input()[-1] == (10, 20, 0, 0, 0))
    env.call("xdotool", "click", "5")
    until("the wheel is heard", lambda: (10, 20, 0, 0, 1) in there.input())
    there.got.clear()
    env.call("xdotool", "key", "a", "Return", "shift+b")
    expected = [(0x61, 30, 1), (0x61, 30, 0), (0xff0d, 28, 1), (0xff0d, 28, 0), (0xffe1, 42, 1), (0x42, 48, 1)]
    until("keys are heard", lambda: [m for m in there.input() if len(m) == 3][:6] == expected)
    # the display server dies and another one shows something else
    display.close()
    picture.fill(0x112233, 0, 0, W, H)
    display.first = welcome() + message(SFILL, rect(0, 0, W, H) + struct.pack("<I", 0x112233)) + updated(8)
    display.open()
    until("it shows the other", lambda: (at := place()) and screen.pixels(at["X"], at["Y"], W, H) == picture.rgb())
    viewer.terminate()
    viewer.wait()
    screen.server.terminate()
    screen.server.wait()


@test
def a_window_needs_a_screen(env):
    Display(env, welcome() + Picture().everything() + updated(7))
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        env.environ.pop(name, None)
    for display in (None, ":4711"):
        if display:
            env.environ["DISPLAY"] = display
        r = env.podrun("view", "--native", "fake", code=1)
        assert re.fullmatch("podrun-viewer: no screen: neither DISPLAY nor WAYLAND_DISPLAY leads to one\n", r.errors), r


@test
def as_installed(env):
    """What screens need is a program of its own, which is found wherever all of it is moved to; sessions are there without it."""
    usr, picture = env.path("usr"), Picture()
    podrun, libexec = usr / "bin" / "podrun", usr / "libexec" / "podrun"
    podrun.parent.mkdir(parents=True)
    libexec.mkdir(parents=True)
    shutil.copy(PODRUN, podrun)
    Display(env, welcome() + picture.everything() + updated(7))
    if not os.path.exists("/usr/local/libexec/podrun/podrun-display"):
        for words in (["view", "--screenshot", "x.ppm", "fake"], ["run", "--display", "true"], ["run", "--vnc", "true"]):
            one_line(env.call(podrun, *words, code=4), "podrun-display", "not installed")
    env.call(podrun, "run", "true")
    shutil.copy(BUILD / "podrun-display", libexec)
    env.call(podrun, "view", "--screenshot", env.path("shot.ppm"), "fake")
    assert ppm(env.path("shot.ppm"), W, H) == picture.rgb()


@test
def through_ssh(env):
    """What stands for ssh runs the command on this host; its environment is that host's."""
    picture = Picture()
    there = env.host("there")
    display = Display(there, welcome() + picture.everything() + updated(7))
    words = ["sh", "-c", 'test "$1" = me@there || exit 1; shift; exec env %s sh -c "$*"' % " ".join(
        shlex.quote("%s=%s" % (k, there.environ[k])) for k in
        ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")), "ssh"]
    # its login shell has something to say first
    words[2] = words[2].replace("exec", "printf 'Welcome to there\\n\\033]0;there\\007'; exec")
    env.environ["PODRUN_SSH"] = shlex.join(words)
    env.podrun("view", "--podrun", PODRUN, "--screenshot", env.path("shot.ppm"), "me@there:fake")
    assert ppm(env.path("shot.ppm"), W, H) == picture.rgb()
    view = View(env, "--podrun", PODRUN, "--lossless", target="me@there:fake")
    tab = browsers.get(browsers.Chromium).open(view.url)
    has_serial(tab, 7)
    same(tab, picture)
    tab.key("a", True)
    viewer = display.viewer(3)  # the second looked whether there is a display
    until("a is heard there", lambda: (0x61, 30, 1) in viewer.input())
    tab.close()
    until("the viewer has gone there, too", lambda: viewer.ended)
    view.close()


@test
def another_host_is_tried_first(env):
    """Before there is an address: whoever can't reach it is told why."""
    words = "echo Warning: something; echo ssh: Could not resolve hostname nohost.invalid; exit 255"
    env.environ["PODRUN_SSH"] = shlex.join(["sh", "-c", "{ %s; } >&2" % words, "ssh"])
    for way in ((), ("--native",), ("--listen", "127.0.0.1:0")):
        r = env.podrun("view", *way, "nohost.invalid:d", code=1)
        one_line(r, "'d' on nohost.invalid", "Could not resolve")
        assert r.text == "", r
    env.environ["PODRUN_SSH"] = "sh -c 'exec sleep 0' ssh"
    one_line(env.podrun("view", "nohost.invalid:d", code=1), "'d' on nohost.invalid", "nothing is heard")
    there = env.host("there")
    env.environ["PODRUN_SSH"] = shlex.join(["env", "XDG_RUNTIME_DIR=" + there.environ["XDG_RUNTIME_DIR"], "sh", "-c", 'eval "$2"', "ssh"])
    one_line(env.podrun("view", "--podrun", PODRUN, "there:d", code=1), "'d' on there", "no session")


def ends(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@test
def recorded_and_shown_again(env):
    sent = welcome() + Picture().everything() + updated(7)
    display = Display(env, sent)
    file = env.path("screen.rec")
    recorder = env.start(PODRUN, "view", "--record", file, "fake")
    until("all is there", lambda: display.viewers and display.viewers[0].updates() == [7])
    agreed = fields(display.viewers[0].got[0][1])[3]
    assert agreed == 1 << NONE | 1 << LZ4 | 1 << LEFT_LZ4 | 1 << PALETTE | 1 << PALETTE_LZ4, "what a page can draw: %d" % agreed
    later = message(MARK, struct.pack("<I", 8)) + updated(9)
    display.viewers[0].send(later)
    until("it is acknowledged", lambda: display.viewers[0].updates() == [7, 8, 9])
    ends(recorder)
    view = View(env, "--replay", file, target=None)
    for first in ("token " + view.token, None):
        ws = view.websocket()
        if first:
            ws.send(first)
            ticket = "ticket " + json.loads(ws.receive())["ticket"]
        else:
            ws.send(ticket)
            ws.receive()
        ws.send(hello())
        got = b""
        while len(got) < len(sent + later):
            got += ws.receive()
        assert got == sent + later
        ws.close()
    view.close()
    env.path("other").write_bytes(b"x" * 1000)
    r = env.podrun("view", "--replay", env.path("other"), code=1)
    assert "recording" in r.errors, r.errors
    env.podrun("view", "--replay", file, "fake", code=2)


@test
def follows_a_session_that_moves(env):
    """A page on this host goes on when the session is on another one, by ssh."""
    other = env.host("there")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    ssh_to(env, other)
    env.podrun("run", "-d", "--name", "s", "--display=400x200", "--", "xterm")
    view = View(env, target="s")
    tab = browsers.get(browsers.Chromium).open(view.url)
    until("the page shows the terminal", lambda: b"\xff" in shown(tab)[2])
    env.podrun("migrate", "s", "me@there")

    def shows_it_there():
        w, h, data = shown(tab)
        other.podrun("view", "--screenshot", env.path("shot.ppm"), "s")
        return (w, h) == (400, 200) and ppm(env.path("shot.ppm"), w, h) == data and \
            tab.evaluate("document.getElementById('notice').hidden")

    until("the page shows it there", shows_it_there)
    for c in "exit":
        tab.key(c, True)
        tab.key(c, False)
    tab.key("Enter", True)
    tab.key("Enter", False)
    until("the terminal has ended there", lambda: not other.sessions())
    tab.close()
    view.close()


@test
def what_is_wrong_is_said(env):
    r = env.podrun("view", "none", code=5)
    assert "'none'" in r.errors, r.errors
    Display(env, b"")
    for args, word in ((["--listen", "here"], "address"), (["--quality", "101"], "--quality"),
                       (["--lossless", "--quality", "3"], "--lossless"), (["--stdio", "--screenshot", "x.png"], "--stdio")):
        r = env.podrun("view", *args, "fake", code=2)
        assert word in r.errors, r.errors


if __name__ == "__main__":
    main()
