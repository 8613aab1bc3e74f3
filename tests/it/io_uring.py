#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`run --io-uring`: programs have it, and who has a ring stays where it is until it has none.

Without it io_uring is not there: tests/it/refused.py.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import BUILD, Failed, Skip, main, needs, needs_namespaces, test, until  # noqa: E402

RING = BUILD / "tests" / "it" / "ring"
RING32 = RING.with_name("ring32")
SQPOLL = "2"  # a thread of the kernel's for the ring
ONLY_REGISTERED = "0xc000"  # IORING_SETUP_REGISTERED_FD_ONLY, and the NO_MMAP that goes with it
NOT_THERE = ("make -1\n", "make -38\n")  # by a container's profile or kernel.io_uring_disabled; by the kernel


def does(env, *words, program=RING):
    """What each of @words gave, in a session that may use io_uring."""
    text = env.podrun("run", "--io-uring", "--", program, *words).text
    if text in NOT_THERE:
        raise Skip("this host has no io_uring for ordinary users")
    return text.split("\n")[:-1]


def begin(env, *words):
    does(env, "make", "0")
    env.run_detached("s", RING, *words, options=["--io-uring"])


def stays(env, *words):
    """Nothing takes it away, and it is told by what."""
    for command in (["suspend", "s", "-o", env.path("i")], ["snapshot", "s", "-o", env.path("i")], ["clone", "s"]):
        one_line(env.podrun(*command, code=3), "(ring)", "io_uring is not supported", *words)
        if env.path("i").exists():
            raise Failed("an image is left")


def go_on(env, name, session="s"):
    env.podrun("exec", session, "touch", name)


def said(env, text, session="s"):
    until("%r of %s" % (text, session), lambda: text in env.logs(session))


@test
@needs_namespaces("a ring does what nobody rewrites: --io-uring is refused")
def it_is_there(env):
    for program, flags in [(p, f) for p in (RING, RING32) if p.exists() for f in ("0", SQPOLL)]:
        expected = ["make 0", "map 0", "nop 0", "read 0", "feed 1", "close 0"]
        got = does(env, "make", flags, "map", "nop", "read", "feed", "close", program=program)
        if got != expected:
            raise Failed("%s, flags %s: %s" % (program.name, flags, got))


@test
@needs_namespaces("a ring does what nobody rewrites: --io-uring is refused")
def who_has_a_ring_stays(env):
    begin(env, "make", "0", "map", "nop", "wait", "/tmp/1", "nop", "close", "wait", "/tmp/2", "unmap",
          "wait", "/tmp/3", "make", "0", "map", "nop")
    stays(env, " fd ")
    go_on(env, "/tmp/1")
    said(env, "close 0\nready\n")
    stays(env, "mapping")
    go_on(env, "/tmp/2")
    said(env, "unmap 0\nready\n")
    env.podrun("snapshot", "s", "-o", env.path("copy"))
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    env.podrun("resume", "-d", "--name", "copy", env.path("copy"))
    for session in "s", "copy":
        go_on(env, "/tmp/3", session)
        if not env.wait(session).endswith("make 0\nmap 0\nnop 0\n"):
            raise Failed("%s has no ring afterwards: %s" % (session, env.logs(session)))


@test
@needs_namespaces("a ring does what nobody rewrites: --io-uring is refused")
def threads_of_the_kernel_run_on(env):
    """What waits for the ring and its poller are among the process' threads, and no tasks of a session's."""
    for flags in "0", SQPOLL:
        begin(env, "make", flags, "map", "read", "wait", "/tmp/1", "feed", "unmap", "close", "wait", "/tmp/2")
        stays(env)
        stacks = env.podrun("stacks", "s").text
        if "main" not in stacks or "iou-" in stacks:
            raise Failed(stacks)
        go_on(env, "/tmp/1")
        said(env, "feed 1\nunmap 0\nclose 0\nready\n")
        # The kernel keeps them for the next one.
        env.podrun("suspend", "s", "-o", env.path("by" + flags))
        env.podrun("resume", "-d", env.path("by" + flags))
        go_on(env, "/tmp/2")
        env.wait("s")
        env.podrun("rm", "s")


@test
@needs_namespaces("a ring does what nobody rewrites: --io-uring is refused")
def none_is_out_of_sight(env):
    """What a checkpoint would not find is as where the kernel is older."""
    for program in filter(pathlib.Path.exists, (RING, RING32)):
        got = does(env, "make", "0", "private", "make", ONLY_REGISTERED, program=program)
        if got != ["make 0", "private -22", "make -22"]:
            raise Failed("%s: %s" % (program.name, got))


# Of a data directory of its own; "ready" is what it says itself.
DATABASE = """
mariadb-install-db --no-defaults --datadir=/tmp/data --auth-root-authentication-method=normal --skip-name-resolve >/tmp/made 2>&1 ||
    { cat /tmp/made; exit 1; }
TMPDIR=/tmp exec mariadbd --no-defaults --datadir=/tmp/data --socket=/tmp/sock --skip-networking --innodb-buffer-pool-size=32M
"""


@test
@needs_namespaces("a ring does what nobody rewrites: --io-uring is refused")
def a_database_on_it(env):
    """MariaDB takes what there is: its own threads, or io_uring."""
    needs("mariadbd", "mariadb", "mariadb-install-db")
    does(env, "make", "0")
    for options, expected in ([], False), (["--io-uring"], True):
        env.run_detached("s", "sh", "-c", DATABASE, options=options, ready="ready for connections")
        client = ["exec", "s", "mariadb", "--no-defaults", "-S", "/tmp/sock", "-u", "root", "-NBe"]
        env.podrun(*client, "create database d; create table d.t (n int) engine=innodb; insert into d.t values (7)")
        if ("Using io_uring" in env.logs("s")) != expected:
            raise Failed(env.logs("s"))
        r = env.podrun("suspend", "s", "-o", env.path("i"), code=3 if expected else 0)
        if expected:
            one_line(r, "(mariadbd)", "io_uring is not supported")
        else:
            env.podrun("resume", "-d", env.path("i"))
        if env.podrun(*client, "update d.t set n = n + 1; select n from d.t; shutdown").text != "8\n":
            raise Failed("not as before")
        env.wait("s")
        env.podrun("rm", "s")


@test
def not_where_names_are_rewritten(env):
    one_line(env.podrun("run", "--names", "rewrite", "--net", "host", "--io-uring", "--", "true", code=4),
             "--io-uring needs namespaces")


if __name__ == "__main__":
    main()
