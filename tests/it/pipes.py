#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests of suspends into pipes: one session goes in, and one is there afterwards.

    podrun suspend -o - | podrun resume -

Whatever fails on either side, the session runs on here or is there (supervisor/handover.h).
"""
import fcntl
import os
import pathlib
import signal
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
sys.path.insert(0, str(TESTS / "state"))
from cli import one_line  # noqa: E402
from faults import Session, children, due, points, prepare, read, stopped  # noqa: E402
from harness import PATIENCE, PODRUN, Failed, add, main, needs, needs_namespaces, test, until  # noqa: E402

COUNT = ("sh", "-c", "echo ready; i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); sleep 0.01; done; "
                     "echo ok $$")


def finish(env, name):
    env.let_end(name)
    if "ok" not in env.wait(name).split():
        raise Failed("no verdict from " + name)
    env.podrun("rm", name)


def running(env):
    return sorted(x["name"] for x in env.sessions())


def piped(env, *reader, options=()):
    """suspend | reader: both results."""
    a = env.start(PODRUN, "suspend", "s", "-o", "-", *options, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    b = env.start(*reader, stdin=a.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    a.stdout.close()
    out, b_err = b.communicate(timeout=PATIENCE)
    _, a_err = a.communicate(timeout=PATIENCE)
    return (a.returncode, a_err.decode()), (b.returncode, b_err.decode()), out


def moved(env, *reader, name="s"):
    a, b, _ = piped(env, *reader)
    if a[0] or b[0] or running(env) != [name]:
        raise Failed("%s %s %s" % (a, b, running(env)))


def refused(env, *reader, code):
    """The reader does not resume it, and ends with @code: it runs on."""
    a, b, _ = piped(env, *reader)
    if a[0] == 0 or b[0] != code or not a[1].startswith("podrun: cannot suspend 's': "):
        raise Failed("%s %s" % (a, b))
    if "s" not in running(env):
        raise Failed("lost: %s %s %s" % (a, b, running(env)))


@test
def the_same_name_again(env):
    env.run_detached("s", *COUNT)
    for _ in range(5):
        moved(env, PODRUN, "resume", "-d", "-")
    finish(env, "s")


@test
def another_name(env):
    env.run_detached("s", *COUNT)
    moved(env, PODRUN, "resume", "-d", "--name", "t", "-", name="t")
    finish(env, "t")


@test
def into_a_file(env):
    env.run_detached("s", *COUNT)
    with open(env.path("i"), "wb") as f:
        env.start(PODRUN, "suspend", "s", "-o", "-", stdout=f).wait()
    assert not running(env)
    env.podrun("image", "verify", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    finish(env, "s")


# What the shell makes of it leads to a descriptor of the command's, not of the supervisor's.
NAMED = ("$podrun -o /dev/stdout >$i", "$podrun -o /dev/stdout | cat >$i", "$podrun -o /proc/self/fd/9 9>$i",
         "$podrun -o /dev/stderr 2>$i", "$podrun -o >(exec cat >$i); r=$?; wait $!; exit $r",
         "exec 8<>fifo; cat <fifo 8>&- >$i & $podrun -o fifo; r=$?; exec 8>&-; wait; exit $r")


@test
def by_name(env):
    os.mkfifo(env.path("fifo"))
    env.run_detached("s", *COUNT)
    for where in NAMED:
        for what in "snapshot", "suspend":
            r = env.call("bash", "-c", "set -o pipefail; i=%s; podrun='%s %s s'; %s" % (env.path("i"), PODRUN, what, where),
                         cwd=env.dir)
            assert "i" not in r.text.split(), r
            env.podrun("image", "verify", env.path("i"))
        if running(env):
            raise Failed("it runs in spite of " + where)
        env.podrun("resume", "-d", env.path("i"))
    finish(env, "s")


# What has no path, or can be opened once only.
READ = ("cat $i | $podrun /dev/stdin", "cat $i | $podrun /proc/self/fd/9 9<&0", "$podrun <(exec cat $i)",
        "exec 8<>fifo; cat $i >fifo 8>&- & $podrun fifo 8>&-; r=$?; wait; exit $r")


@test
def read_by_name(env):
    os.mkfifo(env.path("fifo"))
    env.run_detached("s", "sh", "-c", "head -c 300000 /dev/urandom >/tmp/f; " + COUNT[2])
    env.podrun("snapshot", "s", "-o", env.path("i"))
    for where in READ:
        for what in "image show", "image verify", "image stacks", "image core -o core", "resume -d --name t":
            env.call("bash", "-c", "i=%s; podrun='%s %s'; %s" % (env.path("i"), PODRUN, what, where), cwd=env.dir)
        finish(env, "t")
    finish(env, "s")


@test
def read_by_name_with_input(env):
    """The command has podrun's input where the image comes by another way."""
    env.podrun("run", "-d", "-i", "--name", "s", "cat")
    env.podrun("snapshot", "s", "-o", env.path("i"))
    r = env.call("bash", "-c", "exec %s resume -i --name t <(exec cat %s)" % (PODRUN, env.path("i")), stdin="word")
    assert r.text == "word", r
    env.podrun("kill", "s")
    env.podrun("rm", "s", "t")


@test
def followed(env):
    """Whoever follows its log is told that it goes on elsewhere, and not where it has ended."""
    for options in [], ["-o", env.path("image")]:
        env.run_detached("s", *COUNT)
        log = env.start(PODRUN, "logs", "-f", "s", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert log.stdout.readline() == "ready\n"
        env.podrun("suspend", "s", *options)
        said = log.communicate(timeout=PATIENCE)
        assert (log.returncode, said) == (10, ("", "podrun: 's' was suspended\n")), (log.returncode, said)
        one_line(env.podrun("logs", "-f", "s", code=10), "suspended")
        assert env.podrun("logs", "s").text == "ready\n"
        env.podrun("rm", "s")


@test
def into_nothing(env):
    """Nobody could resume it."""
    env.run_detached("s", *COUNT)
    for where in "-o /dev/null", "-o - >/dev/null", "-o /dev/stdout >/dev/null":
        r = env.call("sh", "-c", "exec %s suspend s %s" % (PODRUN, where), check=False)
        one_line(r, "cannot suspend 's'", "keeps no image")
        assert r.code == 1 and running(env) == ["s"], r
    env.podrun("snapshot", "s", "-o", "/dev/null")
    one_line(env.podrun("suspend", "s", "-o", env.dir, check=False), "cannot write", "Is a directory")
    finish(env, "s")


@test
def through_cat_and_back(env):
    env.run_detached("s", *COUNT)
    moved_out, _, data = piped(env, "cat")
    assert moved_out[0] == 0 and not running(env), moved_out
    env.podrun("resume", "-d", "-", stdin=data)
    finish(env, "s")


@test
def through_zstd_and_back(env):
    needs("zstd")
    env.run_detached("s", *COUNT)
    out, _, data = piped(env, "zstd", "-c")
    assert out[0] == 0 and not running(env), out
    env.path("i").write_bytes(data)
    a = env.start("zstd", "-dc", env.path("i"), stdout=subprocess.PIPE)
    b = env.start(PODRUN, "resume", "-d", "-", stdin=a.stdout, stdout=subprocess.DEVNULL)
    a.stdout.close()
    assert b.wait(60) == 0 and a.wait(60) == 0
    finish(env, "s")


@test
def a_name_that_is_in_use(env):
    env.run_detached("s", *COUNT)
    env.run_detached("t", *COUNT)
    refused(env, PODRUN, "resume", "-d", "--name", "t", "-", code=6)
    for name in ("s", "t"):
        finish(env, name)


@test
def only_looked_at(env):
    env.run_detached("s", *COUNT)
    refused(env, PODRUN, "image", "verify", "-", code=0)
    refused(env, PODRUN, "image", "show", "-", code=0)
    refused(env, "head", "-c", "10000", code=0)
    moved(env, PODRUN, "resume", "-d", "-")
    finish(env, "s")


@test
def a_stranger(env):
    env.run_detached("s", *COUNT)
    other = env.host("other")
    reader = ["env"] + ["%s=%s" % (k, other.environ[k]) for k in
                        ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME")]
    refused(env, *reader, PODRUN, "resume", "-d", "-", code=7)
    assert not running(other)
    finish(env, "s")


@test
def a_record_that_cannot_be_written(env):
    prepare(env)
    due(env, None, None)
    env.run_detached("s", *COUNT)
    for point in ("suspend.written", "suspend.recorded", "write.finish", "write.sync"):
        due(env, point, "fail")
        reader = ["env", "-u", "PODRUN_TEST_FAULT", PODRUN, "resume", "-d", "--name", "t", "-"]
        refused(env, *reader, code=7)
        due(env, None, None)
    moved(env, PODRUN, "resume", "-d", "-")
    finish(env, "s")


# Behind these the session is the reader's.
TAKEN = ("release.begin", "release.half", "resume.released")


def reader_fails(env, action):
    env.run_detached("s", *COUNT)
    prepare(env)
    for p in points("resume"):
        if p.name in TAKEN or (action == "kill" and not p.worker):
            continue
        due(env, p.name, action)
        a, b, _ = piped(env, PODRUN, "resume", "-d", "--name", "t", "-")
        due(env, None, None)
        what = "%s at %s: %s %s" % (action, p.name, a, b)
        if a[0] == 0 or b[0] == 0:
            raise Failed(what)
        if running(env) != ["s"]:
            raise Failed("%s: %s" % (what, running(env)))
        env.podrun("rm", "t", check=False)
    moved(env, PODRUN, "resume", "-d", "--name", "t", "-", name="t")
    finish(env, "t")


for _action in ("fail", "kill", "kill-supervisor"):
    add("reader_" + _action.replace("-", "_"), lambda env, a=_action: reader_fails(env, a))


def wide_pipe():
    r, w = os.pipe()
    fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 1 << 20)
    return r, w


def waiting_reader(env):
    """A suspend that has written all, and whose reader has not read any."""
    env.run_detached("s", *COUNT)
    s = Session(env, "s")
    r, w = wide_pipe()
    p = env.start(PODRUN, "suspend", "s", "-o", "-", stdout=w, stderr=subprocess.PIPE)
    os.close(w)
    record = env.path("state") / "podrun" / "sessions" / "s" / "record"
    until("it is written", lambda: "suspended" in record.read_bytes().decode(errors="replace"))
    return s, p, r


def ends_in_vain(p):
    _, err = p.communicate(timeout=PATIENCE)
    if p.returncode == 0 or not err.startswith(b"podrun: cannot suspend 's': "):
        raise Failed("%s %s" % (p.returncode, err))


@test
def a_reader_that_goes_away(env):
    _, p, r = waiting_reader(env)
    assert p.poll() is None
    os.close(r)
    ends_in_vain(p)
    finish(env, "s")


@test
@needs_namespaces("who freezes is the rewriter, and with it goes the session")
def a_worker_that_is_killed_while_the_reader_decides(env):
    s, p, r = waiting_reader(env)
    for pid in children(s.supervisor):
        if pid != s.init and "podrun-freeze" in read("/proc/%d/comm" % pid):
            os.kill(pid, signal.SIGKILL)
    ends_in_vain(p)
    data = b""
    os.set_blocking(r, False)
    try:
        while piece := os.read(r, 65536):
            data += piece
    except BlockingIOError:
        pass
    os.close(r)
    env.path("i").write_bytes(data)
    assert env.podrun("image", "verify", env.path("i"), check=False).code == 7
    finish(env, "s")


@test
def a_command_that_is_killed_while_the_reader_decides(env):
    _, p, r = waiting_reader(env)
    p.kill()
    p.wait()
    until("it runs", lambda: [x["state"] for x in env.sessions()] == ["running"])
    os.close(r)
    finish(env, "s")


@test
def a_command_that_is_killed_when_the_reader_has_read_all(env):
    """It has not taken the last byte yet, which is fetched back: the session is not the reader's."""
    _, p, r = waiting_reader(env)
    prepare(env)
    due(env, "resume.restored", "stop")
    b = env.start(PODRUN, "resume", "-d", "--name", "t", "-", stdin=r, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.close(r)
    until("the reader stands still", lambda: stopped(env))
    p.kill()
    p.wait()
    until("it runs", lambda: [x["state"] for x in env.sessions()] == ["running"])
    for pid in stopped(env):
        os.kill(pid, signal.SIGCONT)
    _, err = b.communicate(timeout=PATIENCE)
    assert b.returncode == 6 and b"it runs on where it was" in err, (b.returncode, err)
    assert running(env) == ["s"]
    finish(env, "s")


@test
def a_reader_that_takes_its_time(env):
    s, p, r = waiting_reader(env)
    assert [x["name"] for x in env.sessions()] == ["s"]
    b = env.start(PODRUN, "resume", "-d", "-", stdin=r, stdout=subprocess.DEVNULL)
    os.close(r)
    assert b.wait(60) == 0 and p.wait(60) == 0
    until("it is gone", s.is_gone)
    finish(env, "s")


if __name__ == "__main__":
    main()
