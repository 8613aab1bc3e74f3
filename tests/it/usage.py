#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: what is said of wrong words on the command line and in files, of files of
podrun's own that are damaged, and how JSON is told."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line, read_until, terminal  # noqa: E402
from harness import main, needs_namespaces, test, until  # noqa: E402


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
def json_keeps_what_is_utf8(env):
    """Of a name with one byte that is none the others stay, and nothing is left in it that a terminal would obey."""
    env.run_detached("s", "bash", "-c", "echo ready; exec -a \"$(printf 'h\\303\\244\\377\\302\\233\\033x')\" sleep 1000")

    def command():
        r = env.podrun("inspect", "s", "--json")
        assert not [c for c in r.text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"], r
        return r.json()["processes"][-1]["command"]
    until("it is sleep", lambda: "sleep" not in command())
    assert command() == "h\xe4\ufffd\x9b?x 1000", command()
    env.podrun("kill", "s")


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


if __name__ == "__main__":
    main()
