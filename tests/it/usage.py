#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what is said of wrong words on the command line and in files, of files of
podrun's own that are damaged, and how JSON is told."""
import fcntl
import json
import os
import pathlib
import pwd
import signal
import struct
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line, read_to_end, read_until, terminal  # noqa: E402
from harness import PODRUN, main, needs_device, needs_namespaces, test, until  # noqa: E402


@test
@needs_namespaces("the harness has a configuration of its own there")
def a_bad_value_of_a_file_is_said_with_its_line(env):
    bad = {
        "net": "bogus", "every": "soon", "display": "5x", "name": "a b", "volume": "here", "publish": "x:80",
        "address": "1.2", "root": "/nowhere", "gateway": "-x", "env-file": "/nowhere", "env": "=x", "keep": "3",
        "memory": "much", "user": "nobody", "host-loopback": "a", "allow": "no-such-user",
    }
    for name, value in bad.items():
        env.configure("# mine\n\nenv = A=1\n%s = %s\n" % (name, value))
        r = env.podrun("run", "--", "true", check=False)
        one_line(r, "/podrun/config:4: ", name)
        assert r.code, r
    env.configure("volume = /usr:/u\nvolume = /usr:u\nvolume = /usr:/w\nnet = bogus\n")
    one_line(env.podrun("run", "--net", "none", "--", "true", code=2), "config:2: --volume: '/usr:u'")
    one_line(env.podrun("run", "--net", "none", "-v", "/usr:z", "--", "true", code=2), "config:2: --volume")
    env.configure("net = bogus\ntty = yes\n")
    one_line(env.podrun("run", "--net", "none", "--", "true", code=2), "config:2: -t needs a terminal")
    env.configure("net = none\n")
    assert env.podrun("run", "--net", "bogus", "--", "true", code=2).errors.startswith("podrun: --net: 'bogus'")
    described = env.path("a.session")
    described.write_text("command = true\nevery = soon\n")
    one_line(env.podrun("run", "--file", described, code=2), "a.session:2: --every")


@test
@needs_namespaces("the harness has a configuration of its own there")
def a_file_with_a_nul_byte_is_refused(env):
    """What stands behind it would not be read."""
    text = "env = A=1\nenv = B=\0\nnet = bogus\n"
    env.configure(text)
    one_line(env.podrun("run", "--", "true", code=2), "/podrun/config:2: a NUL byte")
    env.configure()
    env.path("f").write_text(text)
    one_line(env.podrun("run", "--file", env.path("f"), "--", "true", code=2), "/f:2: a NUL byte")
    one_line(env.podrun("run", "--env-file", env.path("f"), "--", "true", code=2), "--env-file: ", "/f:2: a NUL byte")


@test
def as_many_snapshots_as_there_are(env):
    """--keep 0 is all of them, not the ten that stay where nothing is said."""
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=["--every", "1", "--keep", "0"])
    images = env.path("state") / "podrun" / "images"
    until("the eleventh is there", lambda: (images / "s.img@11").exists())
    assert (images / "s.img@1").exists()
    env.podrun("kill", "s")
    env.podrun("rm", "s")
    one_line(env.podrun("run", "--every", "1", "--keep", "some", "--", "true", code=2), "--keep: 'some'", "N")


def redirected(env, words, code):
    """podrun by a shell, with its redirections."""
    return env.call("sh", "-c", '"$0" ' + words, PODRUN, code=code)


@test
def a_name_that_can_not_be_told(env):
    """The session runs all the same; who has closed stdout has not asked for its name."""
    def one(words, full, ended):
        redirected(env, words + " >&-", 0)
        assert len(env.sessions()) == 1, env.sessions()
        ended()
        said = redirected(env, words + " >/dev/full", full).errors.splitlines()
        assert said[-1].startswith("podrun: 's' is running, but its name can't be written: No space"), said
        ended()
    one("run -d --name s sleep 1000", 125, lambda: (env.podrun("kill", "s"), env.podrun("rm", "s")))
    env.podrun("run", "-d", "--name", "s", "sleep", "1000")
    env.podrun("suspend", "s")
    one("resume -d s", 1, lambda: env.podrun("suspend", "s"))
    env.podrun("rm", "s")


@test
def an_image_that_is_shown_to_a_full_disk(env):
    env.run_detached("s", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo ready; wait")
    env.podrun("suspend", "s")
    assert len(env.podrun("image", "show", "s").text) > 4096  # more than is kept back
    for how in "", "--json ":
        one_line(redirected(env, "image show %ss >/dev/full" % how, 1), "cannot write the output: No space left on device")
    env.podrun("rm", "s")


@test
def help_has_columns(env):
    """An option that is too long for its own has a line for itself."""
    lines = env.podrun("help", "run").text.splitlines()[2:]
    at = lines.index("      --net none|host|vnat|passthrough:IF[@NETNS]")
    assert lines[at + 1].startswith(33 * " " + "network: "), lines


@test
def json_keeps_what_is_utf8(env):
    """Of a name with one byte that is none the others stay, and nothing is left in it that a terminal would obey."""
    env.run_detached("s", "bash", "-c", "echo ready; exec -a \"$(printf 'h\\303\\244\\377\\302\\233\\033x')\" sleep 1000")

    def command():
        r = env.podrun("inspect", "s", "--json")
        assert not [c for c in r.text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"], r
        return r.json()["processes"][-1]["command"]
    until("it is sleep", lambda: command().startswith("h"))  # in between it has no command line
    assert command() == "h\xe4\ufffd\x9b?x 1000", command()
    env.podrun("kill", "s")


@test
def json_tells_what_the_table_does(env):
    """Which network it has; and inspect what run was told."""
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000",
                     options=["--net", "host", "--every", "2m", "--keep", "0", "--allow", "nobody"])
    assert [s["net"] for s in env.sessions()] == ["host"]
    config = env.podrun("inspect", "s").json()["config"]
    assert (config["net"], config["every"], config["keep"]) == ("host", 120, 0), config
    assert config["allow"] == [pwd.getpwnam("nobody").pw_uid], config
    env.podrun("kill", "s")
    env.podrun("rm", "s")


@test
def show_tells_one_object_a_line(env):
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000")
    env.podrun("suspend", "s")
    lines = [json.loads(line) for line in env.podrun("image", "show", "--json", "s").text.splitlines()]
    assert lines[0]["kind"] == "suspend" and len(lines) > 10 and all(isinstance(x, dict) for x in lines), lines
    env.podrun("rm", "s")


@test
def what_is_said_does_not_stand_behind_a_prompt(env):
    pid, master = terminal(env, "run", "-it", "--name", "s", "--", "sh", "-c", "printf prompt; exec sleep 1000")
    read_until(master, b"prompt")
    env.podrun("suspend", "s")
    read_until(master, b"\r\npodrun: 's' was suspended to ")
    os.waitpid(pid, 0)
    os.close(master)
    env.podrun("rm", "s")


ON, OFF = b"\x1b[?1049h\x1b[?25l\x1b[?1002h\x1b[?2004h", b"\x1b[?2004l\x1b[?1002l\x1b[?25h\x1b[?1049l"
FULL_SCREEN = "printf '%s'; echo drawn; exec sleep 1000" % ON.decode().replace("\x1b", "\\033")


@test
def a_terminal_is_put_back(env):
    """Of a full-screen program that goes on, or is killed; and is as the program has it again for who comes back."""
    def ends(how, code):
        how()
        out = read_to_end(master)
        assert OFF in out and b"podrun: " not in out.split(OFF)[0], out
        assert termios.tcgetattr(master)[3] & termios.ECHO
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        os.close(master)

    def comes(*words, after=ON):
        pid, master = terminal(env, *words)
        read_until(master, after)
        return pid, master

    pid, master = comes("run", "-it", "--name", "s", "--", "sh", "-c", FULL_SCREEN, after=b"drawn")
    ends(lambda: env.podrun("suspend", "s"), 10)
    pid, master = comes("resume", "-it", "s")
    ends(lambda: os.write(master, b"\x10\x11"), 0)
    for number in signal.SIGTERM, signal.SIGHUP:
        pid, master = comes("attach", "s")
        ends(lambda: os.kill(pid, number), -number)
    pid, master = comes("attach", "s")
    ends(lambda: env.podrun("kill", "s"), 128 + 9)
    env.podrun("rm", "s")
    # One that ends by itself leaves it as it likes, and one that has changed nothing finds nothing changed.
    for text, code in (FULL_SCREEN.replace("exec sleep 1000", "exit 3"), 3), ("echo drawn; kill -9 $$", 128 + 9):
        pid, master = terminal(env, "run", "-it", "--", "sh", "-c", text)
        out = read_to_end(master)
        assert out.endswith(b"drawn\r\n"), out
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        os.close(master)


@test
def a_terminal_that_takes_nothing(env):
    """Who is attached to it can be ended all the same."""
    pid, master = terminal(env, "run", "-it", "--name", "s", "--", "sh", "-c", "sleep .3; exec yes")
    until("it waits for the terminal", lambda: struct.unpack("i", fcntl.ioctl(master, termios.FIONREAD, b"\0" * 4))[0] >= 4095)
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    os.close(master)
    env.podrun("kill", "s")
    env.podrun("rm", "s")


LOOKS = """
import os, signal
known = os.get_terminal_size()
print("ready", flush=True)
while True:
    signal.sigwait([signal.SIGWINCH])
    size = os.get_terminal_size()
    if size != known: print("drawn", *size, flush=True)
    known = size
"""


@test
def a_screen_is_drawn_again(env):
    """Also by a program that looks whether the size is another, as those of ncurses do."""
    program = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])" + LOOKS
    pid, master = terminal(env, "run", "-it", "--name", "s", "--", "python3", "-c", program)
    read_until(master, b"ready")
    for come in ("attach", "s"), ("resume", "-it", "s"):
        if come[0] == "attach":
            os.write(master, b"\x10\x11")
        else:
            env.podrun("suspend", "s")
        os.waitpid(pid, 0)
        os.close(master)
        pid, master = terminal(env, *come)
        read_until(master, b"drawn 80 24")
    env.podrun("kill", "s")
    os.waitpid(pid, 0)
    os.close(master)
    env.podrun("rm", "s")


@test
def a_session_whose_record_is_damaged(env):
    """It is not passed over, and its image is not lost with it."""
    state = env.path("state") / "podrun"
    record, image = state / "sessions" / "s" / "record", state / "images" / "s.img"
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s")
    record.write_text("")
    for words, code in ((("ps", "-a"), 0), (("resume", "s"), 1), (("rm", "s"), 1)):
        one_line(env.podrun(*words, code=code), "%s is damaged" % record, "hint: podrun resume --replace %s" % image)
    env.podrun("resume", "-d", "--replace", image)
    assert "ok" in finish(env, "s")
    image.unlink()
    record.write_text("")
    one_line(env.podrun("resume", "s", code=1), "%s is damaged" % record, "hint: podrun rm -f s")
    env.podrun("rm", "-f", "s")
    assert not record.exists() and not env.podrun("ps", "-a").errors


@test
def places_that_can_not_be_written_to(env):
    """check tells it before run does; a configuration that may only be read is enough where its key is there."""
    def writable():
        return {x["name"]: x["ok"] for x in env.podrun("check", "--json", check=False).json()["checks"]}["state-writable"]
    env.podrun("ps")
    assert writable()
    state, config = env.path("state") / "podrun", pathlib.Path(env.environ["XDG_CONFIG_HOME"]) / "podrun"
    for place in state, state / "images", state / "sessions":
        place.chmod(0o500)
        assert not writable(), place
        place.chmod(0o700)
    state.rename(env.path("elsewhere"))
    state.symlink_to(env.path("elsewhere"))
    assert not writable() and "not a directory of yours" in env.podrun("ps", code=1).errors
    state.unlink()
    assert writable()
    env.path("elsewhere").rename(state)
    config.chmod(0o500)
    assert not writable()
    config.chmod(0o700)
    (config / "key").touch(0o600)
    config.chmod(0o500)
    assert writable()
    config.chmod(0o700)


@test
@needs_namespaces("a network of its own")
@needs_device("/dev/net/tun")
def ps_shows_a_gateway_whose_name_a_terminal_would_obey(env):
    """It may come out of an image.  Neither C1 controls nor what turns a line around get through."""
    file = env.path("wg\u00e4\u009b1m\u202e.conf")
    file.write_text("[Interface]\nPrivateKey = %s=\nAddress = 10.9.0.2/32\n[Peer]\nPublicKey = %s=\n"
                    "AllowedIPs = 0.0.0.0/0\nEndpoint = 127.0.0.1:9\n" % ("E" * 42 + "A", "I" * 42 + "A"))
    file.chmod(0o600)
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=["--gateway", "wg:%s" % file])
    shown = env.podrun("ps").text
    assert shown.count("wg\u00e4?1m?.conf") == 2 and "\x9b" not in shown and "\u202e" not in shown, ascii(shown)
    env.podrun("rm", "-f", "s")


@test
def rm_of_several_names(env):
    """One that is not there, or runs, does not keep the others."""
    for name in "abc":
        env.run_detached(name, "sh", "-c", "echo ready; exec sleep 1000")
    env.podrun("kill", "a")
    env.podrun("kill", "c")
    r = env.podrun("rm", "none", "a", "b", "c", code=6)
    said = [line for line in r.errors.splitlines() if not line.startswith("hint: ")]
    assert len(said) == 2 and "no session 'none'" in said[0] and "cannot remove 'b'" in said[1], r
    assert [x["name"] for x in env.podrun("ps", "-a", "--json").json()] == ["b"]
    env.podrun("rm", "-a", "b", code=2)
    env.podrun("rm", "b", "none", "-f", code=5)
    assert not env.podrun("ps", "-a", "--json").json()


if __name__ == "__main__":
    main()
