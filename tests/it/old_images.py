#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: images that older versions of podrun have written are read for ever.

They are in tests/images, made by `make` there, each of a program without a C library that is in the image itself
(old.c): processes with some of everything, which look at it when they are told to.
"""
import gzip
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
from cli import finish, one_line  # noqa: E402
from harness import REWRITE, Skip, add, main  # noqa: E402

IMAGES = TESTS / "images"
KEY = "ed25519:A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="  # of the test vectors: proto/SPEC.md
# Of each version's images, by thread.
THREADS = {
    "1": lambda name: ["old", "old"],
    "2": lambda name: ["first", "other"] + ["first"] * ("root" in name) + ["old"] * 3,
}
THREADS["3"] = THREADS["2"]  # of the second version of the format
PATTERN = b"an old image is read for ever\0"


def unpacked(env, name):
    image = env.path("image")
    image.write_bytes(gzip.decompress((IMAGES / (name + ".img.gz")).read_bytes()))
    return image


def trusted(env, name):
    image = unpacked(env, name)
    env.podrun("key", "trust", KEY)
    return image


def is_told_of(env, name):
    """All that looks into it."""
    image = unpacked(env, name)
    one_line(env.podrun("image", "verify", image, code=7), "key")
    env.podrun("key", "trust", KEY)
    assert "whole and trusted" in env.podrun("image", "verify", image).text
    text = env.podrun("image", "show", image).text
    for word in ("config 0: old: ", "datagram", r"eventfd \d+: count 7", "memfd 'memfd'", "/tmp/file"):
        assert re.search(word, text), text
    threads = env.podrun("image", "stacks", "--json", image).json()
    assert [t["comm"] for t in threads] == THREADS[name.partition("-")[0]](name), threads
    assert all(t["frames"] for t in threads), threads
    assert not any(env.podrun("image", "diff", "--json", image, image).json().values())
    if "32-bit" in name:
        return
    cores = env.podrun("image", "core", image, "-o", env.path("core")).text.split()
    assert len(cores) == (2 if name.startswith("1-") else 4) and all(PATTERN in pathlib.Path(c).read_bytes() for c in cores), cores


def goes_on(env, name):
    image = trusted(env, name)
    r = env.podrun("resume", "-d", "--trust-network", image, check=False)  # one had its host's
    if r.code == 4 and "32-bit" in r.errors:
        raise Skip(r.errors.strip())  # a kernel that runs no such programs
    assert r.code == 0, r
    assert "ok" in finish(env, "old").split()
    one_line(env.podrun("resume", "-d", "--name", "again", image, code=6))


def goes_on_rewritten(env, name):
    """On a host that allows no namespaces, made on one that does, and the other way round."""
    image = trusted(env, name)
    env.podrun("resume", "-d", "--names", "rewrite", image)
    assert "ok" in finish(env, "old").split()


for _image in sorted(IMAGES.glob("*.img.gz")):
    _name = _image.name.removesuffix(".img.gz")
    # Ports of the host may be somebody else's, and settings of its network are not theirs to make.
    _anywhere = "network" not in _name and "root" not in _name
    add(_name + "/is_told_of", lambda env, n=_name: is_told_of(env, n))
    if _anywhere or not REWRITE:
        add(_name + "/goes_on", lambda env, n=_name: goes_on(env, n))
    if _anywhere and not REWRITE:
        add(_name + "/goes_on_rewritten", lambda env, n=_name: goes_on_rewritten(env, n))

if __name__ == "__main__":
    main()
