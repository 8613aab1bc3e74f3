#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sound of sessions with a display: a tone that is played inside is what a viewer gets."""
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import Skip, main, needs, test, until  # noqa: E402
from listener import RATE, Listener, has_tone, opus, share, tone  # noqa: E402

TONE = "/tmp/tone.raw"


def needs_sound(env):
    needs("Xvfb", "pulseaudio", "pacat")
    checks = env.podrun("check", "--json", check=False).json()["checks"]
    if not opus() or not next(c for c in checks if c["name"] == "sound")["ok"]:
        raise Skip("no Opus")


def write_tone(path, hz, seconds):
    path.write_bytes(b"".join(struct.pack("<hh", *[int(32767 * x)] * 2) for x in tone(hz, seconds)))


def begin(env, *options, hz=440):
    env.podrun("run", "-d", "--name", "s", "--display=320x200", *options, "--", "sleep", "1000")
    write_tone(env.path("tone"), hz, 1)
    env.podrun("exec", "-i", "s", "sh", "-c", "cat > " + TONE, stdin=env.path("tone").read_bytes())


def listen(env, host=None):
    v = Listener(pathlib.Path((host or env).environ["XDG_RUNTIME_DIR"]) / "podrun" / "s" / "display")
    until("the viewer has a picture", lambda: v.updated)
    return v


def play(env):
    """All the time, so that it does not matter when who begins."""
    return env.podrun("exec", "s", "sh", "-c", "pacat --raw --rate=48000 --channels=2 --format=s16le " + TONE)


def hears(env, v, hz):
    """Plays until @v has the tone."""
    since = len(v.packets)

    def once():
        play(env)
        return has_tone(v.heard(since), hz)
    until("the tone is heard: %d packets" % (len(v.packets) - since), once)


def server(env):
    return env.podrun("inspect", "s").json()["display"]["sound_server"]


@test
def tone_is_heard(env):
    """By each viewer that wants it, and by no other."""
    needs_sound(env)
    begin(env, "--sound")
    v, deaf = listen(env), Listener(pathlib.Path(env.environ["XDG_RUNTIME_DIR"]) / "podrun/s/display", b"\x08\x01\x18\x01")
    hears(env, v, 440)
    second = listen(env)
    hears(env, second, 440)
    assert share(v.heard()[:RATE // 10], 1000) < 0.1
    assert v.times == sorted(v.times) and not deaf.packets
    # Silence is not sent.
    env.podrun("exec", "s", "sh", "-c", "head -c 400000 /dev/zero | pacat --raw --rate=48000 --channels=2")
    n = len(v.packets)
    env.podrun("exec", "s", "sh", "-c", "head -c 400000 /dev/zero | pacat --raw --rate=48000 --channels=2")
    assert len(v.packets) - n < 20, len(v.packets) - n
    env.podrun("kill", "s")


@test
def heard_again_after_resume(env):
    needs_sound(env)
    begin(env, "--sound")
    v = listen(env)
    hears(env, v, 440)
    env.podrun("snapshot", "s", "-o", env.path("copy.podrun"))
    hears(env, v, 440)
    # In the middle of a tone, too.
    before = server(env)
    env.podrun("exec", "s", "sh", "-c", "(while :; do pacat --raw --rate=48000 --channels=2 %s; done) > /dev/null 2>&1 &" % TONE)
    at = len(v.packets)
    until("it plays", lambda: len(v.packets) > at + 10)
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    assert server(env) == before
    v = listen(env)
    until("it plays on", lambda: has_tone(v.heard(), 440))
    env.podrun("kill", "s")


@test
def heard_where_names_are_rewritten(env):
    needs_sound(env)
    begin(env, "--sound", "--names", "rewrite", "--net", "host")
    v = listen(env)
    hears(env, v, 440)
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    hears(env, listen(env), 440)
    env.podrun("kill", "s")


@test
def sound_server_is_started_again(env):
    needs_sound(env)
    begin(env)
    v, old = listen(env), server(env)
    assert old
    env.podrun("exec", "s", "kill", "-9", str(old))
    until("another", lambda: server(env) not in (0, old))
    until("it takes clients", lambda: env.podrun("exec", "s", "pactl", "info", check=False).code == 0)
    hears(env, v, 440)
    env.podrun("kill", "s")


@test
def started_again_after_a_freeze(env):
    """It ends, and the session is frozen before another one is there."""
    needs_sound(env)
    begin(env)
    env.podrun("exec", "s", "kill", "-9", str(server(env)))
    env.podrun("suspend", "s")
    env.podrun("resume", "-d", "s")
    until("another", lambda: env.podrun("exec", "s", "pactl", "info", check=False).code == 0)
    hears(env, listen(env), 440)
    env.podrun("kill", "s")


@test
def none_without_pulseaudio(env):
    """The display works; --sound insists."""
    needs("Xvfb", "xdpyinfo")
    bin_ = env.path("bin")
    bin_.mkdir()
    for program in ("sh", "rm", "mkdir", "Xvfb", "xkbcomp", "xdpyinfo", "sleep"):
        for place in ("/usr/bin", "/bin"):
            if os.path.exists("%s/%s" % (place, program)) and not (bin_ / program).is_symlink():
                (bin_ / program).symlink_to("%s/%s" % (place, program))
    options = ("--display", "-v", "%s:/mnt" % bin_, "-e", "PATH=/mnt")
    r = env.podrun("run", *options, "--", "xdpyinfo")
    assert "DAMAGE" in r.text and r.errors == "", r
    one_line(env.podrun("run", "--sound", *options, "--", "xdpyinfo", check=False), "there is no pulseaudio")
    assert env.sessions() == []


@test
def none_if_not_wanted(env):
    needs("Xvfb")
    r = env.podrun("run", "--display", "--no-sound", "--", "sh", "-c", "echo ${PULSE_SERVER-none}; ps -e")
    assert r.text.startswith("none") and "pulseaudio" not in r.text, r
    for wrong in (("--sound",), ("--no-sound",), ("--display", "--sound", "--no-sound")):
        one_line(env.podrun("run", *wrong, "--", "true", code=2), "sound")


main()
