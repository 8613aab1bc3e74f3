#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests of images: what is told of them, cores, stacks."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, main, needs, test  # noqa: E402

STATE = BUILD / "tests" / "state"
STACKED = STATE / "stacked"


def stacked(env, *options):
    env.run_detached("s", STACKED, "/tmp/go")
    env.podrun("suspend", "s", "-o", env.path("i"), *options)
    return env.path("i")


@test
def show_lets_no_control_character_through(env):
    env.run_detached("s", "sh", "-c", "d=$(printf '/tmp/a\\033[31m\\302\\233b'); mkdir \"$d\"; cd \"$d\"; "
                     "echo ready; exec sleep 1000")
    env.podrun("suspend", "s", "-o", env.path("i"))
    for args in ((), ("--json",)):
        text = env.podrun("image", "show", *args, env.path("i")).text
        bad = [c for c in text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"]
        assert not bad and "tmp/a" in text, text
    env.podrun("rm", "s")


@test
def stacks_of_an_image(env):
    image = stacked(env)
    text = env.podrun("image", "stacks", image).text
    for word in ("task 2 (stacked)", "main+", "stacked_inner+", "handler+", "libc.so.6+"):
        assert word in text, text
    threads = env.podrun("image", "stacks", "--json", image).json()
    assert len(threads) == 3, threads
    for t in threads:
        names = [f.get("function") for f in t["frames"]]
        assert t["comm"] == "stacked" and any(n in names for n in ("main", "thread")), t
    deep = [f.get("function") for f in threads[-1]["frames"]]
    assert deep.count("stacked_inner") in (2, 4), deep
    with open(image, "rb") as f:
        assert env.podrun("image", "stacks", "-", stdin=f.read()).text == text


@test
def cores_for_gdb(env):
    needs("gdb")
    image = stacked(env, "--compress")
    out = env.podrun("image", "core", image, "-o", env.path("core")).text.split()
    assert [pathlib.Path(p).name for p in out] == ["core.2", "core.3"], out
    text = ""
    for core in out:
        text += env.call("gdb", "-batch", "-nx", "-ex", "info threads", "-ex", "thread apply all bt",
                         "-ex", "p stacked_data", "-ex", "p stacked_heap[5242879]",
                         "-ex", "p stacked_shared[1024]", "-ex", "p $ymm0.v4_int64[0] * 0 + 77",
                         "-ex", "info auxv", STACKED, core).text
    for word in ("(LWP 2)", "(LWP 3)", "stacked_inner (depth=", "in main (", "in handler (sig=",
                 "<signal handler called>", '"changed since"', "104 'h'", "= 4242", "= 77", "AT_ENTRY"):
        assert word in text, "%s not in\n%s" % (word, text)


@test
def a_damaged_image_leaves_no_core(env):
    image = stacked(env)
    data = bytearray(image.read_bytes())
    data[len(data) // 2] ^= 1
    image.write_bytes(data)
    env.podrun("image", "core", image, "-o", env.path("core"), code=7)
    env.podrun("image", "stacks", image, code=7)
    assert not list(env.dir.glob("core*")), list(env.dir.iterdir())


if __name__ == "__main__":
    main()
