#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is typed into sessions, with whatever layout either side has: which key is pressed, and what comes of it."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import main, needs, test, until  # noqa: E402
from screens import Viewer, begin, begin_terminal, inside, keys, processes, sees_all, types  # noqa: E402

SHIFT, SHIFT_R, CONTROL, ALT_GR, KP_HOME, KP_7 = 0xffe1, 0xffe2, 0xffe3, 0xfe03, 0xff95, 0xffb7
SHORT_I = "\u0439"  # Cyrillic, on the key of q


def sym(c):
    """As the page says it."""
    return ord(c) if ord(c) < 0x100 else 0x1000000 + ord(c)


def burst(viewer, text):
    """As an input method has it: all at once."""
    viewer.p.stdin.write("".join("key %#x %d\n" % (sym(c), down) for c in text for down in (1, 0)))
    viewer.p.stdin.flush()


def gets(env, text):
    until("the terminal gets %r: %r" % (text, keys(env)), lambda: keys(env) == text)


def terminal(env):
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "a")
    inside(env, "sh", "-c", ": > /tmp/keys")
    return v


def begin_window(env):
    """A window that tells of keys."""
    needs("xev", "setxkbmap")
    begin(env, "sh", "-c", "xev -geometry 300x300+0+0 -event keyboard > /tmp/events")
    v = Viewer(env)
    v.do("pointer 100 100 0")
    until("the window gets keys", lambda: pressed(env, v, "a"))
    return v


def events(env, what):
    return re.findall(what + r" event.*?keycode (\d+) \(keysym (0x[0-9a-f]+)", inside(env, "cat", "/tmp/events").text, re.S)


def pressed(env, viewer, c):
    """Which key is for one that is typed."""
    before = len(events(env, "KeyRelease"))
    viewer.type(sym(c))
    if before:
        until("%r comes up" % c, lambda: len(events(env, "KeyRelease")) > before)
    found = events(env, "KeyPress")
    return int(found[-1][0]) if found else None


def switch_layout(viewer):
    """With grp:shifts_toggle."""
    for key in ((SHIFT, 1), (SHIFT_R, 1), (SHIFT_R, 0), (SHIFT, 0)):
        viewer.do("key %#x %d" % key)


@test
def text_in_a_burst(env):
    """More symbols than there are keys for them, faster than a terminal can look what they are."""
    v = terminal(env)
    text = ""
    for more in ("\u8fd9\u662f\u4e00\u4e2a\u7528\u6765\u6d4b\u8bd5\u8f93\u5165\u6cd5\u7684\u53e5\u5b50"
                 "\u56e0\u4e3a\u5b83\u6709\u5f88\u591a\u4e0d\u540c\u5b57\u7b26\u6240\u4ee5\u4f1a\u95ee\u9898",
                 "\u0164\u011b\u017ek\u00fd \u00fakol: \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148 p\u011bl \u010f\u00e1belsk\u00e9 \u00f3dy"):
        burst(v, more)
        text += more
    gets(env, text)
    env.podrun("kill", "s")


@test
def text_in_a_burst_before_a_suspend(env):
    """What has been taken from the viewer is typed before; and keys that have symbols by then are used again."""
    v = terminal(env)
    text, more = ("".join(chr(first + i) for i in range(30)) for first in (0x4e00, 0x5e00))
    burst(v, text)
    v.do("resize 600 400")
    v.said("resized 600 400")
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    gets(env, text)
    v = Viewer(env)
    v.do("pointer 50 50 0")
    burst(v, more)
    gets(env, text + more)
    env.podrun("kill", "s")


@test
def symbols_that_the_layout_has(env):
    """Their own keys are pressed, whatever X calls what is on them."""
    v = begin_window(env)
    for layout, c, keycode, with_alt_gr in (("ru", "\u0439", 24, False), ("ru", "\u0419", 24, True), ("gr", "\u03b1", 38, False), ("pl", "\u0105", 38, True),
                                            ("de", "\u20ac", 26, True), ("de", "\u00e4", 48, False), ("il", "\u05e9", 38, False),
                                            ("th", "\u0e1f", 38, False), ("ara", "\u0634", 38, False), ("cz", "\u011b", 11, False),
                                            ("tr", "\u0131", 31, False)):
        inside(env, "setxkbmap", layout)
        held = (SHIFT if c.isupper() else ALT_GR) if with_alt_gr else 0
        v.do("key %#x %d" % (held, 1))
        until("%r of %s is key %d" % (c, layout, keycode), lambda: pressed(env, v, c) == keycode)
        v.do("key %#x %d" % (held, 0))
    env.podrun("kill", "s")


@test
def the_other_layout_of_two(env):
    """The session is switched by keys of its own; whatever it is switched to, what is typed comes."""
    v = terminal(env)
    inside(env, "setxkbmap", "-layout", "us,ru", "-option", "grp:shifts_toggle")

    def group():
        return re.search(r"Group 2: +(on|off)", inside(env, "xset", "-q").text).group(1)

    needs("xset")
    types(env, v, "q" + SHORT_I, ord("q"), sym(SHORT_I))
    switch_layout(v)
    until("the layout is switched", lambda: group() == "on")
    types(env, v, "q" + SHORT_I + "Q1", ord("q"), sym(SHORT_I), ord("Q"), ord("1"))
    # without a pause between the keys that switch and what is typed
    before = keys(env)
    switch_layout(v)
    burst(v, "q" + SHORT_I)
    gets(env, before + "q" + SHORT_I)
    assert group() == "off"
    env.podrun("kill", "s")


@test
def the_key_of_the_other_layout(env):
    """What both layouts have is typed by the one that the session is switched to."""
    v = begin_window(env)
    inside(env, "setxkbmap", "-layout", "us,ru", "-option", "grp:shifts_toggle")
    switch_layout(v)
    until("the key of the other layout", lambda: pressed(env, v, SHORT_I) == 24)
    assert pressed(env, v, "q") != 24
    # a shortcut is a key's, whichever layout it is of
    for layout in (1, 0):
        v.do("key %#x 1" % CONTROL)
        assert (pressed(env, v, "q"), pressed(env, v, SHORT_I)) == (24, 24), layout
        v.do("key %#x 0" % CONTROL)
        switch_layout(v)
    env.podrun("kill", "s")


@test
def locks_that_a_program_switched(env):
    v = terminal(env)
    for lock in ("Caps_Lock", "Num_Lock"):
        inside(env, "xdotool", "key", lock)
        # what the keypad has is Home in a terminal, and a digit
        types(env, v, "xX\u00e9\x1b[H7", ord("x"), ord("X"), 0xe9, KP_HOME, KP_7)
    inside(env, "xdotool", "key", "Caps_Lock")
    types(env, v, "xX", ord("x"), ord("X"))
    env.podrun("kill", "s")


@test
def a_key_that_a_program_takes(env):
    """One that had a symbol because a viewer typed it."""
    needs("xmodmap")
    v = terminal(env)
    types(env, v, SHORT_I, sym(SHORT_I))
    found = re.findall(r"keycode +(\d+) = U0439|keycode +(\d+) = Cyrillic_shorti", inside(env, "xmodmap", "-pke").text)
    assert len(found) == 1, found
    inside(env, "xmodmap", "-e", "keycode %s = z z z z" % "".join(found[0]))
    types(env, v, SHORT_I, sym(SHORT_I))
    types(env, v, "z" + SHORT_I, ord("z"), sym(SHORT_I))
    env.podrun("kill", "s")


@test
def buttons_stay_down_over_a_snapshot(env):
    """What is dragged is not dropped; by a resume it is, for whoever held it is gone."""
    needs("xev")
    begin(env, "sh", "-c", "xev -root -event button > /tmp/events")
    v = Viewer(env)
    until("xev", lambda: processes(env, "xev"))

    def told():
        return [x for x in re.findall(r"^Button(Press|Release)", inside(env, "cat", "/tmp/events").text, re.M)]

    def press():
        v.do("pointer 10 10 0")
        v.do("pointer 10 10 1")
        return told()[-1:] == ["Press"]

    until("a button is down", press)
    before = told()
    env.podrun("snapshot", "s", "-o", env.path("copy"))
    v.do("pointer 30 30 1")
    v.do("resize 600 400")
    v.said("resized 600 400")
    assert told() == before, told()
    v.do("pointer 40 40 0")
    until("it comes up", lambda: told() == before + ["Release"])
    v.do("pointer 40 40 1")
    until("it is down again", lambda: told() == before + ["Release", "Press"])
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    until("it comes up", lambda: told() == before + ["Release", "Press", "Release"])
    sees_all(env, Viewer(env))
    env.podrun("kill", "s")


if __name__ == "__main__":
    main()
