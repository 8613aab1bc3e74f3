#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests of images: what is told of them, cores, stacks."""
import contextlib
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, Skip, main, needs, needs_namespaces, test  # noqa: E402

LAYER = "a layer over the host's files"
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
    text = env.podrun("image", "show", env.path("i")).text
    assert "config 0: s: sh -c" in text and "under Linux" in text, text
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
def what_is_told_of_a_32_bit_program(env):
    """Where each thread stands, without its callers; no core."""
    program = BUILD / "tests" / "state" / "task_threads_i386"
    if not program.exists():
        raise Skip("this compiler makes no 32-bit programs (gcc-multilib)")
    env.run_detached("s", program, "/tmp/go")
    threads = env.podrun("stacks", "--json", "s").json()
    env.podrun("snapshot", "s", "-o", env.path("image"))
    env.podrun("kill", "s")
    for some in (threads, env.podrun("image", "stacks", "--json", env.path("image")).json()):
        assert len(some) > 1 and all(len(t["frames"]) == 1 for t in some), some
        assert any("[vdso]" in str(t["frames"]) for t in some), some
    r = env.podrun("image", "core", env.path("image"), "-o", env.path("core"), check=False)
    assert r.code == 4 and "32-bit program" in r.errors, r
    assert not list(env.path("core").parent.glob("core*"))


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


@contextlib.contextmanager
def beneath():
    """A directory which sessions see and don't own: not in /tmp, which is private to them."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="podrun-test-", dir="/var/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def started_beneath(env, where, *options):
    program = where / "program"
    shutil.copy(STATE / "counter", program)
    (where / "data").write_text("one\ntwo\n")
    env.run_detached("s", "sh", "-c", "cd %s; exec 5<data; read x <&5; ./program /tmp/go && "
                     "read y <&5 && echo $x $y" % where)
    env.podrun("suspend", "s", *options, "-o", env.path("i"))
    return program


def finish(env, word):
    env.podrun("resume", "-d", env.path("i"))
    env.podrun("exec", "s", "touch", "/tmp/go")
    log = env.wait("s")
    assert "ok" in log.split() and word in log, log


@test
@needs_namespaces(LAYER)
def with_files_needs_nothing_beneath(env):
    with beneath() as where:
        started_beneath(env, where, "--with-files")
        shutil.rmtree(where)
        finish(env, "one two")


@test
@needs_namespaces(LAYER)
def snapshot_with_files(env):
    with beneath() as where:
        started_beneath(env, where)
        env.podrun("resume", "-d", env.path("i"))
        env.podrun("snapshot", "s", "--with-files", "-o", env.path("j"))
        env.podrun("kill", "s")
        shutil.rmtree(where)
        env.path("i").unlink()
        env.path("j").rename(env.path("i"))
        env.podrun("rm", "-f", "s", check=False)
        finish(env, "one two")


@test
def another_version_of_a_program_is_refused(env):
    with beneath() as where:
        program = started_beneath(env, where)
        shutil.copy("/bin/true", where / "other")
        program.rename(where / "kept")
        (where / "other").rename(program)
        r = env.podrun("resume", "-d", env.path("i"), code=4)
        assert str(program) in r.errors and "--with-files" in r.errors, r
        program.unlink()
        r = env.podrun("resume", "-d", env.path("i"), code=4)
        assert str(program) in r.errors and "hint:" in r.errors, r
        (where / "kept").rename(program)
        finish(env, "one two")


@test
def portable_sessions_say_so(env):
    env.environ["GODEBUG"] = "gctrace=0"
    env.run_detached("s", "sh", "-c", "env; echo ready; exec sleep 1000", options=["--portable"])
    log = env.logs("s")
    assert "GODEBUG=gctrace=0,cpu.all=off\n" in log and "-AVX2" in log, log
    env.podrun("suspend", "s", "-o", env.path("i"))
    cpu = [l for l in env.podrun("image", "show", env.path("i")).text.split("\n")
           if l.startswith("cpu 0: ")]
    assert len(cpu) == 1 and "(portable)" in cpu[0] and "sse4_2" in cpu[0], cpu
    assert "avx" not in cpu[0], cpu
    env.podrun("rm", "s")


if __name__ == "__main__":
    main()
