#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: two commands at the same time that want the same session, image or name.

One of them wins, the other says why not, and nobody is lost.
"""
import fcntl
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
sys.path.insert(0, str(TESTS / "state"))
from cli import COUNT, arrives, finish, one_line, ssh_to, unheard  # noqa: E402
from faults import descendants, due, prepare, runs, stopped  # noqa: E402
from harness import PATIENCE, PODRUN, main, needs_namespaces, test, until  # noqa: E402

STOPPED = "a fault stops who resumes, which is not the session's keeper there"


def begin(env, *words, **kw):
    return env.start(PODRUN, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)


def ended(p):
    """Exit code and errors."""
    return p.wait(PATIENCE), p.communicate()[1]


def go_on(env):
    due(env, None, None)
    for pid in stopped(env):
        os.kill(pid, signal.SIGCONT)


def one_runs(env, name):
    (s,) = env.podrun("ps", "-a", "--json").json()
    assert (s["name"], s["state"]) == (name, "running"), s
    assert "ok" in finish(env, name)


@test
def two_suspends_at_once(env):
    env.run_detached("s", *COUNT)
    ps = [env.start(PODRUN, "suspend", "s", "-o", env.path("i%d" % i), stderr=subprocess.PIPE)
          for i in range(3)]
    codes = sorted(p.wait(timeout=PATIENCE) for p in ps)
    assert codes.count(0) == 1 and set(codes) <= {0, 5, 6}, codes
    (image,) = [i for i in range(3) if env.path("i%d" % i).exists()]
    env.podrun("resume", "-d", env.path("i%d" % image))
    assert "ok" in finish(env, "s")


@test
def two_resumes_at_once(env):
    env.run_detached("s", *COUNT)
    for _ in range(4):
        env.podrun("suspend", "s")
        ps = [env.start(PODRUN, "resume", "-d", "s", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
              for _ in range(3)]
        said = [p.communicate(timeout=PATIENCE)[1] for p in ps]
        assert sorted(p.returncode for p in ps) == [0, 6, 6], said
        for p, line in zip(ps, said):
            assert p.returncode == 0 or "is in use" in line or "resumed already" in line or "is running" in line, line
    assert "ok" in finish(env, "s")


@test
def a_command_is_suspended_with_its_session(env):
    env.run_detached("s", *COUNT)
    p = env.start(PODRUN, "exec", "s", "sh", "-c", "echo on; sleep 1000", stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "on\n"
    image = env.podrun("suspend", "s").text.strip()
    assert p.communicate(timeout=PATIENCE)[1] == "podrun: 's' was suspended to %s\n" % image
    assert p.returncode == 10, p.returncode
    env.podrun("resume", "-d", "s")
    env.podrun("exec", "s", "pkill", "-x", "sleep")
    assert "ok" in finish(env, "s")


@test
def who_knows_it_by_an_old_name_hears_where_it_is(env):
    """Whoever runs a command in it, or looks at it, is told what became of it, though its name is another by now."""
    other = env.host("other")
    ssh_to(env, other)
    env.run_detached("s", *COUNT)
    for words, what in (["suspend"], "suspended to "), (["migrate"], "moved to there"):
        command = begin(env, "exec", "s", "sh", "-c", "echo on; sleep 1000")
        watcher = begin(env, "attach", "--no-stdin", "s")
        assert command.stdout.readline() == "on\n"
        until("both are there", lambda: env.podrun("inspect", "s").json()["clients"] == 2)
        env.podrun("rename", "s", "t")
        env.podrun(*words, "t", *(["there"] if words == ["migrate"] else []))
        for p in command, watcher:
            code, errors = ended(p)
            assert code == 10 and what in errors, (code, errors)
        if words == ["suspend"]:
            env.podrun("resume", "-d", "--name", "s", "t")
    assert "ok" in finish(other, "t")
    # what was begun beside its command goes on
    other.podrun("rm", "-f", "t")


# Lets some of what comes through, and then nothing until a file is there.
STALLS = """
import os, sys, time
left = 300000
while left > 0:
    piece = os.read(0, 65536)
    os.write(1, piece)
    left -= len(piece)
while not os.path.exists(sys.argv[1]): time.sleep(.02)
"""


BIG = ("python3", "-c", "import os, time\nx = os.urandom(16 << 20)\nprint('ready', flush=True)\n"
       "while not os.path.exists('/tmp/go'): time.sleep(.02)\nprint('ok')")


def stalls(env, other):
    """A line that does, until the file "over" is there."""
    ssh_to(env, other)
    script = env.path("ssh")
    env.path("stalls").write_text(STALLS)
    script.write_text(script.read_text().replace('sh -c "$*"', 'python3 %s %s | sh -c "$*"' % (env.path("stalls"), env.path("over"))))


def waits_for_room(pid):
    """It has begun to write the image, and writes no more of it."""
    def written():
        return int(re.search(r"wchar: (\d+)", pathlib.Path("/proc/%d/io" % pid).read_text())[1])
    before = written()
    time.sleep(.3)
    return before > 300000 and written() == before


@test
def a_move_whose_line_has_stalled_is_given_up_at_once(env):
    """In the middle of the image: the signal does not wait for room on the line, for the session stands still."""
    other = env.host("other")
    stalls(env, other)
    env.run_detached("s", *BIG)
    for how in signal.SIGINT, signal.SIGTERM:
        env.path("over").unlink(missing_ok=True)
        p = begin(env, "migrate", "s", "there")
        until("it is being written", lambda: [s["state"] for s in env.sessions()] == ["writing"])
        until("there is no more room", lambda: waits_for_room(p.pid))
        p.send_signal(how)
        assert p.wait(PATIENCE) == -how
        env.path("over").touch()
        until("it runs on", lambda: [s["state"] for s in env.sessions()] == ["running"])
        until("it is not there", lambda: not other.sessions())
    assert "ok" in finish(env, "s")


@test
def a_move_on_a_stalled_line_hears_that_its_session_has_ended(env):
    """In the middle of the image, and behind it, when nobody says that it is there."""
    for middle in True, False:
        other = env.host("other%d" % middle)
        if middle:
            stalls(env, other)
        else:
            unheard(env, other)
        env.run_detached("s", *BIG)
        p = begin(env, "migrate", "s", "there")
        if middle:
            until("there is no more room", lambda: waits_for_room(p.pid))
        else:
            until("it has arrived", lambda: [s["state"] for s in other.sessions()] == ["arrived"])
        env.podrun("kill", "s")
        p.wait(PATIENCE)
        env.path("over").touch()  # what stands for ssh has our stderr
        code, errors = ended(p)
        assert code == 6 and errors.startswith("podrun: cannot migrate 's': ") and "has ended" in errors, (code, errors)
        until("it is not there", lambda: not other.sessions())
        env.podrun("rm", "s")


@test
def who_would_move_it_as_well_hears_where_it_is(env):
    """It has gone while his ssh was on its way."""
    other = env.host("other")
    ssh_to(env, other)
    first = env.environ["PODRUN_SSH"]
    env.path("slow").write_text("#!/bin/sh\ntouch %s; exec sleep 1000\n" % env.path("asked"))
    env.path("slow").chmod(0o755)
    env.run_detached("s", *COUNT)
    env.environ["PODRUN_SSH"] = str(env.path("slow"))
    second = begin(env, "migrate", "s", "elsewhere")
    until("ssh is on its way", env.path("asked").exists)
    env.environ["PODRUN_SSH"] = first
    env.podrun("migrate", "s", "there")
    code, errors = ended(second)
    assert (code, errors) == (6, "podrun: cannot migrate 's': 's' was moved to there\n"), (code, errors)
    assert "ok" in finish(other, "s")


@test
def a_target_that_has_no_place_for_it_says_so(env):
    other = env.host("other")
    env.path("file").touch()
    other.environ["XDG_STATE_HOME"] = str(env.path("file") / "state")
    ssh_to(env, other)
    env.run_detached("s", *COUNT)
    r = env.podrun("migrate", "s", "there", code=8)
    one_line(r, "there: ", str(env.path("file")), "Not a directory")
    assert "the connection ended" not in r.errors, r
    assert "ok" in finish(env, "s")


@test
def who_waits_for_nobodys_acknowledgement_hears_of_the_doubt(env):
    """When he gives up, by a signal, though others than ssh have the line open, too."""
    other = env.host("other")
    ssh_to(env, other)
    script = env.path("ssh")
    script.write_text(script.read_text().replace('sh -c "$*"', 'sh -c "$*" | grep -v --line-buffered ACK\n'
                      'exec tail -f /dev/null --pid=%d 2>&-' % os.getpid()))
    env.run_detached("s", *COUNT)
    for how in signal.SIGINT, signal.SIGTERM:
        p = begin(env, "migrate", "s", "there")
        until("it runs there", lambda: [s["state"] for s in other.sessions()] == ["running"])
        p.send_signal(how)
        code, errors = ended(p)
        assert code == 9 and "did not acknowledge" in errors and "--finish" in errors, (code, errors)
        assert [s["state"] for s in env.sessions()] == ["in-doubt"]
        other.podrun("kill", "s")
        env.podrun("migrate", "--abort", "s")
    assert "ok" in finish(env, "s")


@test
def what_is_in_doubt_is_ended_by_force_only(env):
    """Here, and where it has arrived and was not let run: it may be the only one."""
    other = env.host("other")
    ssh_to(env, other, lines=2)  # HERE and READY come back, ACK does not
    env.run_detached("s", *COUNT)
    env.podrun("migrate", "s", "there", code=9)
    for words in (["stop", "s"], ["kill", "s"], ["kill", "-s", "TERM", "s"], ["suspend", "s"], ["exec", "s", "true"]):
        one_line(env.podrun(*words, check=False), "in doubt", "there", "--finish s", "--abort")
    one_line(env.podrun("rm", "s", code=6), "in-doubt", "--finish s", "--abort s")
    assert [s["state"] for s in env.sessions()] == ["in-doubt"]
    other.podrun("rm", "-f", "s")
    env.podrun("migrate", "--abort", "s")
    env.podrun("rm", "-f", "s")
    env.run_detached("s", *COUNT)
    arrives(env, other)
    for words in ["stop", "s"], ["kill", "s"]:
        one_line(other.podrun(*words, code=6), "frozen", "--abort s")
    other.podrun("rm", "-f", "s")
    ssh_to(env, other, lines=2)
    env.podrun("migrate", "s", "there", code=9)
    env.podrun("rm", "-f", "s")
    assert "ok" in finish(other, "s")


@test
def what_was_lost_in_doubt_is_sought_where_it_went(env):
    other = env.host("other")
    ssh_to(env, other, lines=2)  # HERE and READY come back, ACK does not
    env.run_detached("s", *COUNT)
    env.podrun("migrate", "s", "there", code=9)
    os.kill(env.podrun("inspect", "s").json()["supervisor"], signal.SIGKILL)
    until("it is over", lambda: [s["state"] for s in env.podrun("ps", "-a", "--json").json()] == ["lost"])
    one_line(env.podrun("migrate", "--abort", "s", code=6), "in doubt", "there", "--finish s")
    env.podrun("rm", "s")
    assert "ok" in finish(other, "s")


@test
def what_is_paused_hears_that_it_shall_end(env):
    """And is not killed with what it had to do before."""
    env.run_detached("s", "sh", "-c", "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep .02; done")
    env.podrun("pause", "s")
    env.podrun("stop", "-t", "1000", "s")
    assert env.wait("s", code=5).split() == ["ready", "bye"]


@test
def what_stands_still_goes_with_its_supervisor(env):
    """Also who freezes it, and whoever helps him."""
    env.run_detached("s", *COUNT)
    env.podrun("pause", "s")
    pid = env.podrun("inspect", "s").json()["supervisor"]
    family = [pid, *descendants(pid)]
    os.kill(pid, signal.SIGKILL)
    until("nobody is left", lambda: not [p for p in family if runs(p)])
    env.podrun("rm", "s")


@test
@needs_namespaces(STOPPED)
def two_resumes_of_one_image(env):
    """The first has just taken the name when the second comes."""
    for replace in [], ["--replace"]:
        prepare(env)
        due(env, None, None)
        env.run_detached("s", *COUNT)
        env.podrun("suspend", "s", "-o", env.path("i"))
        due(env, "resume.named", "stop")
        first = begin(env, "resume", "-d", *replace, env.path("i"))
        until("the first has the name", lambda: stopped(env))
        second = begin(env, "resume", "-d", *replace, env.path("i"))
        code, errors = ended(second)
        assert code == 6 and "was resumed" in errors, (code, errors)
        go_on(env)
        assert ended(first)[0] == 0
        one_runs(env, "s")
        env.podrun("rm", "s")


@test
@needs_namespaces(STOPPED)
def two_copies_that_want_one_name(env):
    prepare(env)
    due(env, None, None)
    env.run_detached("s", *COUNT)
    env.podrun("snapshot", "s", "-o", env.path("i"))
    env.podrun("kill", "s")
    env.podrun("rm", "s")
    due(env, "resume.named", "stop")
    first = begin(env, "resume", "-d", "--name", "t", env.path("i"))
    until("the first has the name", lambda: stopped(env))
    second = begin(env, "resume", "-d", "--name", "t", env.path("i"))
    time.sleep(1)  # it may wait, or have given up, or be wrong
    go_on(env)
    assert ended(first)[0] == 0
    code, errors = ended(second)
    assert code == 6 and "'t' is in use" in errors, (code, errors)
    one_runs(env, "t")


@test
def copies_that_want_one_volume(env):
    """A volume that may be written to is for one of those that are of the same session, whatever their names."""
    env.path("v").mkdir()
    env.run_detached("s", *COUNT, options=["-v", "%s:/mnt" % env.path("v")])
    one_line(env.podrun("snapshot", "s", "-o", env.path("i")), "volume")
    one_line(env.podrun("run", "--every", "1h", "-v", "%s:/mnt" % env.path("v"), "--", "true"), "volume")
    one_line(env.podrun("clone", "s", check=False), "writable volume /mnt")
    for verb in "snapshot", "suspend":  # whoever is suspended may run again
        one_line(env.podrun("resume", "-d", "--name", "t", env.path("i"), check=False), "writable volume /mnt", "'s'")
        env.podrun(verb, "s")
    env.podrun("resume", "-d", "s")
    env.podrun("resume", "-d", "--replace", env.path("i"))
    one_runs(env, "s")
    all_ = [ended(p) for p in [begin(env, "resume", "-d", "--name", "t%d" % n, env.path("i")) for n in range(3)]]
    assert sorted(code for code, _ in all_) == [0, 6, 6], all_
    assert all("writable volume" in errors for code, errors in all_ if code), all_
    (t,) = [s["name"] for s in env.podrun("ps", "--json").json()]
    env.podrun("snapshot", t, "-o", env.path("j"))  # a copy of a copy
    one_line(env.podrun("resume", "-d", "--name", "u", env.path("j"), check=False), "'%s'" % t)
    env.podrun("rm", "-f", t)
    for image, name in ("j", "u"), ("i", "s"):
        env.podrun("resume", "-d", "--name", name, env.path(image))
        assert "ok" in finish(env, name)


@test
@needs_namespaces(STOPPED)
def two_copies_that_want_one_volume(env):
    """The first has just taken its name when the second comes, and is not heard of by others yet."""
    prepare(env)
    due(env, None, None)
    env.path("v").mkdir()
    env.run_detached("s", *COUNT, options=["-v", "%s:/mnt" % env.path("v")])
    env.podrun("snapshot", "s", "-o", env.path("i"))
    env.podrun("rm", "-f", "s")
    due(env, "resume.named", "stop")
    first = begin(env, "resume", "-d", "--name", "t", env.path("i"))
    until("the first has its name", lambda: stopped(env))
    code, errors = ended(begin(env, "resume", "-d", "--name", "u", env.path("i")))
    assert code == 6 and "writable volume /mnt" in errors and "'t'" in errors, (code, errors)
    go_on(env)
    assert ended(first)[0] == 0
    one_runs(env, "t")


@test
def many_resumes_of_one_image(env):
    """Nobody is told to stop: as it comes."""
    for n in range(4):
        env.run_detached("s", *COUNT)
        env.podrun("suspend", "s", "-o", env.path("i"))
        all_ = [ended(p) for p in [begin(env, "resume", "-d", *(["--replace"] if n % 2 else []), env.path("i"))
                                   for _ in range(3)]]
        assert sorted(code for code, _ in all_) == [0, 6, 6], all_
        one_runs(env, "s")
        env.podrun("rm", "s")


@test
def a_move_that_is_finished_twice(env):
    """By the user of the other side, who has been told that it stays in doubt."""
    for i, second in enumerate(("--finish", "--abort") * 2):
        other = env.host("other%d" % i)
        env.run_detached("s", *COUNT)
        arrives(env, other)
        env.podrun("kill", "s")
        env.podrun("rm", "s")
        both = [other.start(PODRUN, "migrate", how, "s", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for how in ("--finish", second)]
        codes = [ended(p)[0] for p in both]
        left = [s["state"] for s in other.podrun("ps", "-a", "--json").json()]
        if second == "--finish":
            assert sorted(codes) == [0, 6] and left == ["running"], (codes, left)
        else:
            assert codes.count(0) == 1 and left == (["running"] if codes[0] == 0 else []), (codes, left)
        if left:
            one_runs(other, "s")


@test
def a_session_that_is_suspended_while_it_is_stopped(env):
    env.run_detached("s", "sh", "-c", "trap '' TERM; echo ready; while sleep .1; do :; done")
    stop = begin(env, "stop", "-t", "60", "s")
    until("it has been told to end", lambda: len(env.podrun("ps", "--json").json()) == 1 and stop.poll() is None)
    env.podrun("suspend", "s", "-o", env.path("i"))
    code, errors = ended(stop)
    # it may have come behind the suspend
    assert code in (10, 6, 5) and errors, (code, errors)


@test
def a_session_with_many_visitors(env):
    """It has no ear for more, and is not removed for that."""
    env.run_detached("s", *COUNT)
    waiting = [begin(env, "wait", "s") for _ in range(140)]
    until("some are turned away", lambda: any(p.poll() is not None for p in waiting))
    one_line(env.podrun("rm", "s", check=False), "cannot remove 's'")
    for p in waiting:
        p.kill()
        p.communicate()
    until("it can be asked again", lambda: env.podrun("top", "s", check=False).code == 0)
    one_runs(env, "s")


@test
def a_supervisor_that_stands_still(env):
    """As where its disk does.  The others are listed, and so is what is known of it."""
    env.run_detached("s", *COUNT)
    env.run_detached("t", *COUNT)
    supervisor = env.podrun("inspect", "s").json()["supervisor"]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        listed = [(x["name"], x["state"], x.get("tasks")) for x in env.podrun("ps", "--json").json()]
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert listed[0] == ("s", "running", None) and listed[1][:2] == ("t", "running") and listed[1][2], listed
    for name in "st":
        assert "ok" in finish(env, name)


@test
def a_session_that_is_lost_has_its_snapshots(env):
    """As when its host was switched off: who is told to remove what is left hears of them first."""
    env.run_detached("s", *COUNT)
    env.podrun("snapshot", "s")
    env.podrun("snapshot", "s")
    os.kill(env.podrun("inspect", "s").json()["supervisor"], signal.SIGKILL)
    until("it is lost", lambda: env.podrun("ps", "-a", "--json").json()[0]["state"] == "lost")
    for words in ("exec", "s", "true"), ("suspend", "s"):
        r = env.podrun(*words, check=False)
        assert "podrun resume s@2 " in r.errors and "snapshots" in r.errors, r
    assert "podrun resume s@2 " in env.podrun("resume", "-d", "s", code=6).errors
    env.podrun("resume", "-d", "s@2")
    one_runs(env, "s")


@test
def clones_at_once(env):
    """They want the same names - of long ones the end is left out -, and each gets as many as it was asked for."""
    names = [60 * "s" + end for end in "ab"]
    for name in names:
        env.run_detached(name, "sh", "-c", "echo ready; exec sleep 1000")
    told = []
    for p in [begin(env, "clone", name, "8") for name in names]:
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 0, (out, err)
        told += out.split()
    assert len(set(told)) == 16 and set(told + names) == {x["name"] for x in env.sessions()}, told
    env.podrun("rm", "-f", *names, *told)


@test
def a_fifo_that_nobody_reads(env):
    env.run_detached("s", *COUNT)
    os.mkfifo(env.path("fifo"))
    one_line(env.podrun("suspend", "s", "-o", env.path("fifo"), check=False), "fifo")
    one_runs(env, "s")


@test
def a_snapshot_is_not_put_in_the_place_of_one_that_others_need(env):
    env.run_detached("s", *COUNT)
    images = env.path("state") / "podrun" / "images"
    env.podrun("snapshot", "s")
    (images / "s.img@1").rename(images / "s.img@1.base")
    env.podrun("snapshot", "s")
    assert sorted(p.name for p in images.iterdir()) == ["s.img@1.base", "s.img@2"]
    env.podrun("kill", "s")


@test
def a_snapshot_goes_out_of_sight_when_nobody_looks_what_is_needed(env):
    """Else what it becomes would seem to be needed by none, and be removed."""
    env.run_detached("s", *COUNT, options=["--every", "1", "--keep", "1"])
    images = env.path("state") / "podrun" / "images"
    with open(env.path("state") / "podrun" / "names.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        until("the third is there", lambda: (images / "s.img@3").exists())
        assert (images / "s.img@1").exists() and (images / "s.img@2").exists(), list(images.iterdir())
    until("one is in sight", lambda: len([p for p in images.iterdir() if p.suffix != ".base"]) == 1)
    env.podrun("kill", "s")
    (last,) = [p.name for p in images.iterdir() if p.suffix != ".base"]
    env.podrun("resume", "-d", "--replace", last.replace(".img", ""))
    one_runs(env, "s")


def hears(pid, number):
    """It has asked for what it wants, and looks at its signals."""
    with open("/proc/%d/status" % pid) as f:
        (blocked,) = [int(line.split()[1], 16) for line in f if line.startswith("SigBlk")]
    return blocked >> (number - 1) & 1


def sessions(env):
    return env.podrun("ps", "-a", "--json").text, os.listdir(env.path("state") / "podrun" / "sessions")


def given_up(env, p, number, before):
    p.send_signal(number)
    code, errors = ended(p)
    assert code == 128 + number and "podrun: cannot" not in errors, (code, errors)
    until("nothing else is left", lambda: sessions(env) == before)


@test
def a_resume_that_is_given_up(env):
    """The image is as it was."""
    image = env.path("i")
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", image)
    before = sessions(env)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        p = begin(env, "resume", "-", stdin=subprocess.PIPE)
        os.write(p.stdin.fileno(), image.read_bytes()[:10000])
        until("it hears", lambda: hears(p.pid, number))
        given_up(env, p, number, before)
    prepare(env)
    for point in "restore.front", "restore.tasks", "restore.finish":
        due(env, point, "stop")
        p = begin(env, "resume", image)
        until("it waits", lambda: stopped(env))
        given_up(env, p, signal.SIGINT, before)
        due(env, None, None)
    env.podrun("resume", "-d", image)
    one_runs(env, "s")


TRAP = ("sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep .01; done")


@test
def a_resume_that_is_given_up_too_late(env):
    """It runs already, as far as anybody knows: the signal is for the command."""
    env.run_detached("s", *TRAP)
    env.podrun("suspend", "s", "-o", env.path("i"))
    prepare(env)
    due(env, "release.begin", "stop")
    p = begin(env, "resume", env.path("i"))
    until("it is about to run", lambda: stopped(env))
    p.send_signal(signal.SIGINT)
    go_on(env)
    assert ended(p)[0] == 5


@test
def a_run_that_is_given_up(env):
    """For a root inside it takes some time until there is a session; mostly more than we take to end it."""
    for _ in range(10):
        p = begin(env, "run", "--user", "root", "sleep", "1000")
        until("it hears", lambda: hears(p.pid, signal.SIGINT))
        p.send_signal(signal.SIGINT)
        code, errors = ended(p)
        if code != -signal.SIGINT:
            break
        # It was there already, and then the signal is the command's own.
        for session in env.sessions():
            env.podrun("kill", session["name"], check=False)
        until("it has ended", lambda: not env.sessions())
    assert code == 130 and "podrun: the" not in errors, (code, errors)
    until("nothing is left", lambda: sessions(env)[1] == [])


if __name__ == "__main__":
    main()
