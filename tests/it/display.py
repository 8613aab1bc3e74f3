#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Displays of sessions: what a viewer sees is what the X server has, typing, the clipboard, sizes, and all that
a freeze must not disturb.  The viewer is display_viewer.c, which decodes as any viewer does."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line, ssh_to  # noqa: E402
from harness import BUILD, main, needs, needs_namespaces, test, until  # noqa: E402
from screens import NOTICE, Viewer, begin, begin_terminal, inside, keys, photograph, processes, screenshot, sees_all, types  # noqa: E402

FILM = BUILD / "tests" / "it" / "film"


# ---- run -------------------------------------------------------------------------------------

@test
def display_is_there_before_the_command(env):
    needs("Xvfb", "xdpyinfo")
    r = env.podrun("run", "--display=800x600", "--", "sh", "-c", "xdpyinfo && echo $DISPLAY $XAUTHORITY")
    assert re.search(r"dimensions: *800x600 pixels", r.text), r
    assert "DAMAGE" in r.text and "/Xauthority" in r.text.splitlines()[-1], r


@test
def another_display_of_that_number(env):
    """On the host's network, where clients look for it first."""
    needs("xdpyinfo")
    begin(env, "sleep", "1000")
    number = inside(env, "sh", "-c", "echo $DISPLAY").text.strip().lstrip(":")
    with socket.socket(socket.AF_UNIX) as other:
        with contextlib.suppress(OSError):  # there is one already
            other.bind("\0/tmp/.X11-unix/X" + number)
            other.listen()
        assert "640x480 pixels" in inside(env, "xdpyinfo").text
    env.podrun("kill", "s")


@test
def session_ends_with_its_command(env):
    """The X server alone is nobody."""
    needs("Xvfb")
    r = env.podrun("run", "--display", "--", "sh", "-c", "exit 3", code=3)
    assert r.text == "" and "processes" not in r.errors, r
    until("nothing is left", lambda: not processes(env, "Xvfb", "podrun"))


@test
def nothing_is_left_after_kill(env):
    begin(env, "sleep", "1000")
    Viewer(env)
    assert len(processes(env, "Xvfb")) >= 1 and len(processes(env, "display --serve")) == 1
    env.podrun("kill", "s")
    until("nothing is left: %s" % processes(env, "Xvfb", "podrun"), lambda: not processes(env, "Xvfb", "podrun"))
    env.podrun("rm", "s")


@test
def display_is_told(env):
    begin(env, "sleep", "1000", size="=800x600")
    (s,) = env.podrun("ps", "--json").json()
    assert s["display"]["width"] == 800 and s["display"]["height"] == 600, s
    whole = env.podrun("inspect", "s").json()
    assert whole["display"]["server"] in [p["pid"] for p in whole["processes"]], whole
    assert any(c["name"] == "display" for c in env.podrun("check", "--json", check=False).json()["checks"])
    env.podrun("kill", "s")


@test
def sizes_that_are_none(env):
    for size in ("=0x5", "=5", "=10000x10000", "=5x5x", "=x"):
        one_line(env.podrun("run", "--display" + size, "--", "true", code=2), "--display")


@test
def a_session_without_xvfb_says_so(env):
    empty = env.path("bin")
    empty.mkdir()
    for program in ("sh", "rm", "mkdir"):
        (empty / program).symlink_to("/bin/" + program)
    r = env.podrun("run", "--display", "-e", "PATH=%s" % empty, "--", "/bin/true", check=False)
    assert r.code not in (0, 125 + 128), r
    one_line(r, "display", "Xvfb")
    assert env.sessions() == []


# ---- what is seen ------------------------------------------------------------------------------

@test
def viewer_sees_what_is_drawn(env):
    begin_terminal(env)
    v = Viewer(env)
    sees_all(env, v)
    inside(env, "sh", "-c", "for i in 1 2 3; do xterm -geometry 40x10+$((i*60))+$((i*50)) +bc -e 'seq 100; cat' & done")
    until("windows", lambda: len(inside(env, "xdotool", "search", "--class", "xterm").text.split()) >= 4)
    sees_all(env, v)
    second = Viewer(env)
    sees_all(env, second)
    env.podrun("kill", "s")
    v.said("notice " + NOTICE["ended"])
    v.said("closed")


@test
def a_picture_is_of_this_moment(env):
    """Nobody looks, and what is drawn is drawn in several places: a picture has all of them."""
    begin_terminal(env)
    until("all is seen", lambda: photograph(env) == screenshot(env))
    for n in range(1, 4):
        for i in range(n):
            at = 40 + 150 * i, 20 + 130 * n
            inside(env, "sh", "-c", "xterm -geometry 20x4+%d+%d +bc -e cat &" % at)
            until("a window", lambda: len(inside(env, "xdotool", "search", "--onlyvisible", "--class", "xterm").text.split())
                  == 1 + n * (n - 1) // 2 + i + 1)
        seen = photograph(env)
        assert seen == screenshot(env), n
    env.podrun("kill", "s")


@test
def viewer_sees_another_size(env):
    begin_terminal(env)
    v = Viewer(env)
    for width, height in ((1000, 700), (500, 300), (1280, 1024)):
        at = len(v.lines)
        v.do("resize %d %d" % (width, height))
        v.said("resized %d %d" % (width, height), at)
        sees_all(env, v)
    assert "1280x1024" in inside(env, "xdpyinfo").text
    env.podrun("kill", "s")


@test
def programs_choose_among_sizes(env):
    """Usual ones are offered, and stay so whatever viewers had meanwhile."""
    begin_terminal(env)
    v = Viewer(env)
    for width, height in ((1024, 768), (800, 600), (1920, 1080), (1024, 768)):
        at = len(v.lines)
        inside(env, "xrandr", "--size", "%dx%d" % (width, height))
        v.said("resized %d %d" % (width, height), at)
        sees_all(env, v)
        at = len(v.lines)
        v.do("resize %d %d" % (width - 96, height))
        v.said("resized %d %d" % (width - 96, height), at)
        v.do("resize 640 480")
        v.said("resized 640 480", at)
    env.podrun("kill", "s")


@test
def films_are_shown_as_such(env):
    """What plays is sent as VIDEO to who agrees to that; everybody has exactly the picture when it rests."""
    begin(env, FILM, "40", "30", "352", "240", "/tmp/stop", size="=640x480")
    exact, viewer = Viewer(env), Viewer(env, quality=75)
    until("films come", lambda: sum(x.startswith("film ") for x in viewer.lines) > 20)
    assert "film 40 30 352 240" in viewer.lines, viewer.lines[-3:]
    inside(env, "touch", "/tmp/stop")
    sees_all(env, viewer)
    sees_all(env, exact)
    assert not exact.find("film"), "one who wants it exact is sent a film"
    env.podrun("kill", "s")


# ---- input -------------------------------------------------------------------------------------

@test
def keys_arrive(env):
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "hello 123")
    # Shift held, as a keyboard has it; and a capital without it, as a telephone has it.
    v.do("key 0xffe1 1")
    types(env, v, "AB!", ord("A"), ord("B"), ord("!"))
    v.do("key 0xffe1 0")
    types(env, v, "Q")
    # What the session's layout does not have: typed with AltGr elsewhere.
    v.do("key 0xfe03 1")
    types(env, v, "@\u20ac", ord("@"), 0x20ac)
    v.do("key 0xfe03 0")
    types(env, v, "\u00e9\u00df\u0436", 0xe9, 0xdf, 0x01000436)
    v.do("key 0xffe3 1")
    types(env, v, "\x03", ord("c"))
    v.do("key 0xffe3 0")
    types(env, v, "c")
    env.podrun("kill", "s")


@test
def keys_come_up_with_the_viewer(env):
    begin_terminal(env)
    v = Viewer(env)
    v.do("key 0xffe1 1")
    types(env, v, "X", ord("X"))
    v.p.kill()
    v.p.wait()
    types(env, Viewer(env), "y1")
    env.podrun("kill", "s")


@test
def pointer_clicks(env):
    begin(env, "sh", "-c", "xev -root -event button > /tmp/events")
    needs("xev")
    v = Viewer(env)
    until("xev", lambda: processes(env, "xev"))

    def clicked():
        for b in (0, 1, 0, 4, 0):
            v.do("pointer 123 45 %d" % b)
        events = inside(env, "cat", "/tmp/events").text
        return "button 1" in events and "button 3" in events and "(123,45)" in events
    until("clicks arrive", clicked)
    env.podrun("kill", "s")


@test
def volumes_hide_nothing_of_the_display(env):
    for target in "/tmp", "/tmp/.X11-unix", "/run", "/dev/shm":
        r = env.podrun("run", "--display", "-v", "%s:%s" % (env.path("."), target), "--", "true", check=False)
        one_line(r, "a %s of its own" % target)
    assert not env.sessions()


# ---- clipboard -----------------------------------------------------------------------------------

def paste(env, name="s", selection="clipboard"):
    return inside(env, "timeout", "10", "xclip", "-selection", selection, "-o", name=name).text


def copy(env, text, name="s"):
    inside(env, "sh", "-c", "printf '%s' \"$1\" | xclip -selection clipboard -i > /dev/null 2>&1", "sh", text, name=name)


@test
def clipboard_both_ways(env):
    begin(env, "sleep", "1000")
    v = Viewer(env)
    copy(env, "from inside \u00e9")
    v.said("clipboard 14 from inside \u00e9")
    v.do("clipboard from outside \u20ac")
    until("the session has it", lambda: paste(env) == "from outside \u20ac")
    assert paste(env, selection="primary") == "from outside \u20ac"
    # What is selected in the session is its own, and what was copied stays what it is.
    inside(env, "sh", "-c", "printf selected | xclip -selection primary -i > /dev/null 2>&1")
    assert paste(env, selection="primary") == "selected" and paste(env) == "from outside \u20ac"
    v.do("fill 700000")
    until("a long one: %d" % len(paste(env)), lambda: len(paste(env)) == 700000)
    inside(env, "sh", "-c", "head -c 900000 /dev/zero | tr '\\0' x | xclip -selection clipboard -i > /dev/null 2>&1")
    v.said("clipboard 900000 xxx")
    # of what is too long each viewer is told so, once
    at = len(v.lines)
    for size in (1100000, 30000000):
        inside(env, "sh", "-c", "head -c %d /dev/zero | tr '\\0' y | xclip -selection clipboard -i > /dev/null 2>&1" % size)
        v.said("notice %s What was copied in the session is longer" % NOTICE["running"], at)
        at = len(v.lines)
    Viewer(env).said("notice %s What was copied" % NOTICE["running"])
    env.podrun("snapshot", "s", "-o", env.path("image"))
    copy(env, "short")
    v.said("clipboard 5 short")
    assert not v.find("notice %s What" % NOTICE["running"], at), v.lines
    env.podrun("kill", "s")


@test
def long_texts_for_programs_that_leave(env):
    """What comes in pieces is asked for again in the middle, and by programs that go before it has come."""
    paster = BUILD / "tests/it/paster"
    begin(env, "sleep", "1000")
    v = Viewer(env)
    v.do("fill 300000")
    until("the session has it", lambda: len(paste(env)) == 300000)
    assert inside(env, paster, "again").text == "300000\n"
    for _ in range(10):
        inside(env, paster, "leave")
    assert len(paste(env)) == 300000
    # STRING is Latin-1, whatever the viewer's text is
    v.do("clipboard \u00fc\u20ac")
    until("the session has it", lambda: paste(env) == "\u00fc\u20ac")
    assert inside(env, paster, "as", "STRING").text == "fc3f\n"
    assert inside(env, paster, "as", "UTF8_STRING").text == "c3bce282ac\n"
    v.do("fill 70000")
    until("the session has that", lambda: len(paste(env)) == 70000)
    env.podrun("kill", "s")


@test
def a_scale_is_told_to_programs(env):
    """XSETTINGS and resources, at once and at each change; a freeze is not noticed, and a resume keeps it."""
    needs("xrdb")
    begin(env, "sh", "-c", "exec %s > /tmp/settings" % (BUILD / "tests/it/settings"))
    inside(env, "sh", "-c", "printf 'XTerm*a: b\nXft.dpi: 77\n' | xrdb -nocpp -load -")

    def told():
        return inside(env, "cat", "/tmp/settings").text.splitlines()

    def says(scale, windows):
        return ["Gdk/UnscaledDPI %d" % (98304 * scale // 100 // windows), "Gdk/WindowScalingFactor %d" % windows,
                "Gtk/CursorThemeSize %d" % (24 * scale // 100), "Xft/DPI %d" % (98304 * scale // 100), "done"]

    def resources():
        return sorted(" ".join(x.split()) for x in inside(env, "xrdb", "-query").text.splitlines() if x)

    v = Viewer(env)
    until("the client is there", lambda: told() == ["ready"])
    v.do("scale 100")
    v.do("scale 200")
    # where 100 was all that was ever said nobody is a manager
    until("it is told: %s" % told(), lambda: told()[1:] == ["manager"] + says(200, 2))
    until("resources are told: %s" % resources(), lambda: "Xft.dpi: 192" in resources() and "Xcursor.size: 48" in resources())
    assert "XTerm*a: b" in resources() and len([x for x in resources() if x.startswith("Xft.dpi")]) == 1, resources()
    v.do("scale 150")
    until("the change is told", lambda: told()[-5:] == says(150, 1))
    assert told().count("manager") == 1, told()
    v.do("scale 65535")
    until("one that can't be is cut", lambda: told()[-5:] == says(400, 4))
    env.podrun("snapshot", "s", "-o", env.path("copy"))
    until("another manager has the same", lambda: told().count("manager") == 2 and told()[-5:] == says(400, 4))
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    until("the next one as well", lambda: told().count("manager") == 3 and told()[-5:] == says(400, 4))
    v = Viewer(env)
    v.do("scale 1")
    until("one that can't be is cut", lambda: told()[-5:] == says(100, 1))
    assert "gone" not in told(), told()
    env.podrun("kill", "s")


@test
def a_desktop_has_settings_of_its_own(env):
    """Who owns them already keeps them."""
    needs("xrdb", "xwininfo")
    begin(env, "sh", "-c", "exec %s own > /tmp/settings" % (BUILD / "tests/it/settings"))
    until("it owns them", lambda: inside(env, "cat", "/tmp/settings").text == "own\n")
    v = Viewer(env)
    v.do("scale 200")
    until("resources are told", lambda: "Xft.dpi:\t192" in inside(env, "xrdb", "-query").text)
    v.do("scale 300")
    until("resources are told", lambda: "Xft.dpi:\t288" in inside(env, "xrdb", "-query").text)
    assert inside(env, "cat", "/tmp/settings").text == "own\n"

    def windows():
        return inside(env, "xwininfo", "-root", "-children").text.count(" 1x1+")

    before = windows()
    for i in range(3):
        env.podrun("snapshot", "s", "-o", env.path("copy%d" % i))
    assert windows() <= before, "a connection is left behind by each freeze"
    env.podrun("kill", "s")


# ---- freezes -------------------------------------------------------------------------------------

@test
def snapshot_is_not_noticed(env):
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "a")
    v.do("clipboard kept")
    until("the session has it", lambda: paste(env) == "kept")
    at = len(v.lines)
    for i in range(3):
        env.podrun("snapshot", "s", "-o", env.path("copy%d" % i))
        types(env, v, "b")
    assert paste(env) == "kept"
    sees_all(env, v)
    said = [x for x in v.lines[at:] if x.startswith(("notice", "closed", "welcome", "resized", "clipboard"))]
    assert not said, said
    env.podrun("kill", "s")
    env.podrun("rm", "s")
    env.podrun("resume", "-d", env.path("copy2"))
    v = Viewer(env)
    sees_all(env, v)
    types(env, v, "c")
    env.podrun("kill", "s")


@test
def suspended_and_resumed(env):
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "one")
    v.do("key 0xffe1 1")  # stays down
    sees_all(env, v)
    env.podrun("suspend", "s")
    v.said("notice " + NOTICE["suspended"])
    v.said("closed")
    until("nothing is left", lambda: not processes(env, "Xvfb", "podrun"))
    env.podrun("resume", "-d", "s")
    v = Viewer(env)
    sees_all(env, v)
    assert len(set(v.picture()[2])) > 1, "nothing is seen"
    types(env, v, "two")
    sees_all(env, v)
    env.podrun("kill", "s")


@test
def paused(env):
    begin_terminal(env)
    v = Viewer(env)
    sees_all(env, v)
    env.podrun("pause", "s")
    v.said("notice " + NOTICE["paused"])
    second = Viewer(env)
    until("the picture of a paused session", lambda: second.picture() == v.picture())
    at = len(v.lines)
    env.podrun("unpause", "s")
    v.said("notice " + NOTICE["running"], at)
    types(env, v, "on")
    env.podrun("kill", "s")


@test
@needs_namespaces("a copy's display at the same number, on a network of its own")
def cloned(env):
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "both")
    env.podrun("clone", "s", "2")
    names = sorted(s["name"] for s in env.sessions())
    assert len(names) == 3, names
    for i, name in enumerate(n for n in names if n != "s"):
        other = Viewer(env, name)
        types(env, other, str(i), name=name)
        assert keys(env, name) == "both%d" % i
    types(env, v, "!")
    assert keys(env) == "both!"
    for name in names:
        env.podrun("kill", name)


@test
def migrated(env):
    other = env.host("there")
    ssh_to(env, other)
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "here")
    env.podrun("migrate", "s", "there")
    v.said("notice " + NOTICE["moved"])
    v.said("closed")
    v = Viewer(env, host=other)
    types(other, v, "there")
    assert keys(other) == "herethere"
    sees_all(other, v)
    other.podrun("kill", "s")


@test
def a_suspend_that_fails_leaves_the_viewer(env):
    begin_terminal(env)
    v = Viewer(env)
    types(env, v, "a")
    env.podrun("suspend", "s", "-o", "/no/such/directory/image", check=False)
    types(env, v, "b")
    env.podrun("kill", "s")


@test
def renamed(env):
    begin(env, "sleep", "1000")
    first = Viewer(env)
    assert first.find("welcome").endswith(" s")
    env.podrun("rename", "s", "other")
    first.said("notice %s  of other" % NOTICE["running"])
    assert Viewer(env, "other").find("welcome").endswith(" other")
    assert not first.find("closed")
    (server,) = processes(env, "display --serve")
    os.kill(server, signal.SIGKILL)
    first.said("closed")
    assert Viewer(env, "other").find("welcome").endswith(" other")
    env.podrun("kill", "other")


# ---- who dies -------------------------------------------------------------------------------------

@test
def display_server_is_started_again(env):
    begin_terminal(env)
    v = Viewer(env)
    (old,) = processes(env, "display --serve")
    os.kill(old, signal.SIGKILL)
    v.said("closed")
    v = Viewer(env)
    types(env, v, "again")
    sees_all(env, v)
    assert processes(env, "display --serve") not in ([], [old])
    env.podrun("kill", "s")


@test
def display_server_has_bounds(env):
    begin(env, "sleep", "1000")
    (server,) = processes(env, "display --serve")
    limit = re.search(r"^Max data size +(\S+) +(\S+)", pathlib.Path("/proc/%d/limits" % server).read_text(), re.M)
    # The address sanitizer has terabytes of addresses, and can't be held to that.
    assert "ASAN_OPTIONS" in os.environ or all(int(x) <= 1 << 30 for x in limit.groups()), limit
    env.podrun("kill", "s")


@test
def x_server_is_started_again(env):
    begin(env, "sleep", "1000")
    v = Viewer(env)
    old = env.podrun("inspect", "s").json()["display"]["server"]
    env.podrun("kill", "-s", "KILL", "s", str(old))
    until("another", lambda: env.podrun("inspect", "s").json()["display"]["server"] not in (0, old))
    until("a client", lambda: inside(env, "xdpyinfo").code == 0)
    inside(env, "sh", "-c", "xterm +bc -e cat & until xdotool search --class xterm; do sleep 0.1; done")
    sees_all(env, v)
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    sees_all(env, Viewer(env))
    env.podrun("kill", "s")


@test
def another_x_server_has_the_scale(env):
    needs("xrdb")
    begin(env, "sleep", "1000")
    v = Viewer(env)

    def resources():
        return inside(env, "xrdb", "-query").text

    v.do("scale 200")
    until("resources are told: %s" % resources(), lambda: "Xft.dpi:\t192" in resources())
    old = env.podrun("inspect", "s").json()["display"]["server"]
    env.podrun("kill", "-s", "KILL", "s", str(old))
    until("another", lambda: env.podrun("inspect", "s").json()["display"]["server"] not in (0, old))
    until("it is told, too: %s" % resources(), lambda: "Xft.dpi:\t192" in resources())
    env.podrun("kill", "s")


@test
def a_scale_that_the_x_server_has_no_time_for(env):
    needs("xrdb")
    begin_terminal(env)
    v = Viewer(env)
    sees_all(env, v)
    x = str(env.podrun("inspect", "s").json()["display"]["server"])
    env.podrun("kill", "-s", "STOP", "s", x)
    v.do("scale 200")
    v.type(0xffe1)
    v.said("notice %s its X server" % NOTICE["paused"])
    env.podrun("kill", "-s", "CONT", "s", x)
    until("it is told later", lambda: "Xft.dpi:\t192" in inside(env, "xrdb", "-query").text)
    env.podrun("kill", "s")


@test
def an_x_server_that_stands_still(env):
    """Viewers are told, and the session can be frozen as ever, again and again."""
    begin_terminal(env)
    v = Viewer(env)
    sees_all(env, v)
    x = str(env.podrun("inspect", "s").json()["display"]["server"])
    env.podrun("kill", "-s", "STOP", "s", x)
    v.type(0xffe1)
    v.said("notice %s its X server" % NOTICE["paused"])
    at = len(v.lines)
    env.podrun("kill", "-s", "CONT", "s", x)
    v.said("notice " + NOTICE["running"], at)
    types(env, v, "on")
    env.podrun("kill", "-s", "STOP", "s", x)
    at = len(v.lines)
    env.podrun("snapshot", "s", "-o", env.path("copy"))
    # So it has been connected to in vain, and those connections are there.
    v.said("notice %s its X server" % NOTICE["paused"], at)
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    env.podrun("kill", "-s", "CONT", "s", x)
    v = Viewer(env)
    types(env, v, "again")
    sees_all(env, v)
    env.podrun("kill", "s")


@test
def an_x_server_that_says_nothing(env):
    """It listens, and that is all: run tells, and ends."""
    place = env.path("bin")
    place.mkdir()
    for program in ("sh", "rm", "mkdir"):
        (place / program).symlink_to("/bin/" + program)
    (place / "Xvfb").write_text(
        "#!/usr/bin/python3 -S\n"
        "import os, socket, sys\n"
        "os.makedirs('/tmp/.X11-unix', exist_ok=True)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.bind('/tmp/.X11-unix/X' + sys.argv[1][1:])\n"
        "s.listen()\n"
        "open('/dev/shm/.podrun-display/there', 'w')\n"
        "c = [s.accept() for i in range(1000)]\n")
    (place / "Xvfb").chmod(0o755)
    r = env.podrun("run", "--display", "-v", "%s:/mnt" % place, "-e", "PATH=/mnt", "--", "/bin/true", check=False)
    one_line(r, "display", "does not answer")
    assert env.sessions() == []


@test
def a_stopped_display_server_does_not_hold_a_freeze_up(env):
    begin_terminal(env)
    Viewer(env)
    (old,) = processes(env, "display --serve")
    os.kill(old, signal.SIGSTOP)
    env.podrun("snapshot", "s", "-o", env.path("copy"))
    types(env, Viewer(env), "x")
    assert processes(env, "display --serve") not in ([], [old])
    env.podrun("kill", "s")


if __name__ == "__main__":
    main()
