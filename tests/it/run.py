#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: the command line as a user types it."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line, read_until, ssh_to, terminal  # noqa: E402
from harness import PATIENCE, PODRUN, main, needs, needs_namespaces, test, until  # noqa: E402


# What a root inside changes of the host's files is in it.
LAYER = "a layer over the host's files"


# ---- run ------------------------------------------------------------------------------------

@test
def run_relays_output_and_exit_code(env):
    r = env.podrun("run", "--", "sh", "-c", "echo out; echo err >&2; exit 42", code=42)
    assert r.text == "out\n" and r.errors == "err\n", r


@test
def run_without_the_word_run(env):
    assert env.podrun("echo", "hello").text == "hello\n"


@test
def run_relays_input(env):
    data = os.urandom(300000).hex()
    assert env.podrun("run", "-i", "--", "cat", stdin=data).text == data


@test
def run_codes_of_missing_and_unrunnable_commands(env):
    one_line(env.podrun("run", "--", "/no/such/program", code=127), "/no/such/program")
    r = env.podrun("supend", "s", code=127)
    one_line(r, "supend")
    assert "hint: no directory of the session's PATH has it" in r.errors, r
    one_line(env.podrun("run", "--", "/etc/passwd", code=126), "/etc/passwd")
    assert env.podrun("run", "--", "sh", "-c", "kill -9 $$", code=137)


@test
def run_forwards_signals(env):
    p = env.start(PODRUN, "run", "--name", "s", "--", "sh", "-c",
                  "trap 'echo got; exit 5' TERM; echo up; while :; do sleep 0.05; done",
                  stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGTERM)
    assert p.stdout.readline() == b"got\n"
    assert p.wait(timeout=PATIENCE) == 5


@test
def session_has_its_own_names(env):
    r = env.podrun("run", "--name", "names", "--", "sh", "-c",
                   "echo $$; ls -d /proc/[0-9]* | wc -l; id -u; ls /tmp | wc -l")
    pid, procs, uid, tmp = r.text.split()
    assert int(pid) < 10 and int(procs) <= 5 and int(tmp) == 0 and int(uid) == os.getuid(), r


@test
@needs_namespaces("a host name nobody has asked for")
def session_has_its_own_host_name(env):
    assert env.podrun("run", "--name", "names", "--", "hostname").text == "names\n"


@test
def session_has_the_umask_of_who_started_it(env):
    for mask in ("0027", "0000"):
        r = env.call("sh", "-c", "umask %s; exec %s run -- sh -c umask" % (mask, PODRUN))
        assert r.text == mask + "\n", r


@test
def files_written_inside_stay_inside(env):
    outside = env.path("outside")
    outside.write_text("old")
    env.podrun("run", "--", "sh", "-c", "echo new > %s; grep -q new %s" % (outside, outside),
               check=False)
    assert outside.read_text() == "old"


@test
def volumes_reach_the_host(env):
    d = env.path("vol")
    d.mkdir()
    env.podrun("run", "-v", "%s:/mnt" % d, "--", "sh", "-c", "echo hi > /mnt/f")
    assert (d / "f").read_text() == "hi\n"
    env.podrun("run", "-v", "%s:/mnt:ro" % d, "--", "sh", "-c", "! echo no > /mnt/g")
    assert not (d / "g").exists()


@test
def environment_and_directory(env):
    f = env.path("vars")
    f.write_text("A=1\n# not this\nB=two words\n")
    r = env.podrun("run", "-e", "C=3", "--env-file", f, "-w", "/usr", "--", "sh", "-c",
                   'echo "$A/$B/$C/$PWD"')
    assert r.text == "1/two words/3//usr\n", r


@test
@needs_namespaces(LAYER)
def root_inside(env):
    env.share_cache()
    r = env.podrun("run", "--user", "root", "--", "sh", "-c", "id -u; touch /etc/mine && echo ok")
    assert r.text == "0\nok\n", r
    assert not os.path.exists("/etc/mine")


CHANGES_THE_HOSTS_FILES = """
set -e
cd /usr/bin
before=$(md5sum < env)
ln env env.backup
chmod 700 env && stat -c %a env env.backup
printf "\\nmore\\n" >> env && tail -n 1 env
mv tail tail.moved && tail.moved -n 1 env && ! [ -e tail ]
touch -d @1000000 cut && stat -c %Y cut
ln -P awk awk.link && [ -L awk.link ]
chown games sort && stat -c %U sort
[ "$(head -c "$(($(stat -c %s env) - 6))" env | md5sum)" = "$before" ] && echo same
"""


@test
@needs_namespaces(LAYER)
def root_inside_changes_the_hosts_files(env):
    env.share_cache()
    usr = {f: os.lstat("/usr/bin/" + f) for f in ("env", "tail", "cut", "sort", "awk")}
    out = "700\n700\nmore\nmore\n1000000\ngames\nsame\n"
    r = env.podrun("run", "--user", "root", "--", "sh", "-c", CHANGES_THE_HOSTS_FILES)
    assert r.text == out, r
    assert usr == {f: os.lstat("/usr/bin/" + f) for f in usr}


@test
@needs_namespaces(LAYER)
def a_session_that_is_starting_can_be_killed(env):
    """Building the skeleton layer takes long; the supervisor is there meanwhile."""
    started = env.start(PODRUN, "run", "--name", "s", "--user", "root", "--", "sleep", "9")

    def chore():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                comm = pathlib.Path("/proc", pid, "comm").read_text()
                mine = str(env.dir).encode() in pathlib.Path("/proc", pid, "environ").read_bytes()
                if comm == "podrun-chore\n" and mine:
                    os.kill(int(pid), signal.SIGSTOP)
                    return int(pid)
        return None

    pid = until("the skeleton layer is built", chore)
    assert [x["state"] for x in env.sessions() if x["name"] == "s"] == ["starting"]
    r = env.podrun("exec", "s", "true", check=False)
    assert r.code != 0 and "starting" in r.errors, r
    env.podrun("kill", "s")
    assert started.wait(timeout=PATIENCE) != 0
    assert not os.path.exists("/proc/%d" % pid)
    assert env.podrun("inspect", "s", check=False).code != 0
    # What was half done is not in the way, and does not stay.
    env.podrun("run", "--user", "root", "--", "touch", "/etc/mine")
    built = sorted(x.name.split("-")[0] for x in env.dir.glob("**/podrun/skeleton/*-*"))
    assert built == ["etc", "tree"], built


@test
def loopback_works_inside(env):
    r = env.podrun("run", "--", "python3", "-c",
                   "import socket as s; l=s.create_server(('127.0.0.1',0));"
                   "c=s.create_connection(l.getsockname()); a,_=l.accept();"
                   "a.sendall(b'hi'); print(c.recv(9).decode())")
    assert r.text == "hi\n"


@test
def memory_is_limited_or_refused(env):
    """Where no cgroup is delegated --memory is refused; tests/kernels has the other case for sure."""
    checks = {c["name"]: c for c in env.podrun("check", "--json", check=False).json()["checks"]}
    hog = ["python3", "-c", "x = bytearray(300 << 20)"]
    if checks["memory-limit"]["ok"]:
        env.podrun("run", "--memory", "100M", "--", *hog, code=137)
    else:
        one_line(env.podrun("run", "--memory", "100M", "--", *hog, code=4), "delegated", "hint: ")
    env.podrun("run", "--memory", "lots", "--", "true", code=2)


@test
def usage_errors_are_one_line(env):
    for argv in (("run", "--no-such-option"), ("suspend", "--wrong"), ("run",),
                 ("run", "--name", "-bad-", "--", "true"), ("run", "-v", "/usr:/", "--", "true"),
                 ("run", "-v", "/usr:/mnt/../..", "--", "true"), ("run", "-v", "/usr", "--", "true")):
        one_line(env.podrun(*argv, code=2))
    file = env.path("variables")
    file.write_text("A=1\n=2\n")
    for argv, takes in ((("run", "--net", "foo", "--", "true"), "none|host|vnat|passthrough:IF[@NETNS]"),
                        (("run", "--names", "", "--", "true"), "auto|kernel|rewrite"),
                        (("suspend", "--outside", "foo"), "refuse|close|reset"),
                        (("migrate", "--connections", "foo", "a", "b"), "keep|reset"),
                        (("run", "-e", "", "--", "true"), "NAME[=VALUE]"),
                        (("run", "-e", "=x", "--", "true"), "NAME[=VALUE]"),
                        (("run", "--env-file", file, "--", "true"), "NAME[=VALUE]")):
        r = env.podrun(*argv, code=2)
        one_line(r)
        assert "it takes " + takes in r.errors, r


@test
def unknown_sessions_are_not_found(env):
    for argv in (("suspend", "nobody"), ("inspect", "nobody"), ("exec", "nobody", "true"),
                 ("logs", "nobody"), ("kill", "nobody"), ("attach", "nobody")):
        r = env.podrun(*argv, check=False)
        assert r.code in (5, 125), r
        one_line(r, "nobody")


# ---- looking and ending ---------------------------------------------------------------------

@test
def ps_inspect_logs_exec_kill(env):
    env.run_detached("s", "sh", "-c", "echo ready; while :; do sleep 0.05; done")
    (s,) = [x for x in env.sessions() if x["name"] == "s"]
    assert s["state"] == "running", s
    assert "s" in env.podrun("ps").text
    assert env.podrun("inspect", "s").json()
    assert env.podrun("exec", "s", "sh", "-c", "echo in; exit 9", code=9).text == "in\n"
    assert env.podrun("exec", "cat", "/proc/1/comm", check=False).code != 0
    assert env.podrun("exec", "s", "cat", "/proc/1/cmdline").text == "podrun-init\0"
    env.podrun("exec", "-d", "s", "sh", "-c", "echo nobody saw it")
    until("the log has it", lambda: env.logs("s") == "ready\nnobody saw it\n")
    env.podrun("kill", "s")
    until("s is gone", lambda: not [x for x in env.sessions() if x["state"] == "running"])


@test
def a_name_is_used_once(env):
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000")
    one_line(env.podrun("run", "--name", "s", "--", "true", check=False), "s")
    env.podrun("kill", "s")


@test
def stop_asks_before_it_kills(env):
    env.run_detached("s", "sh", "-c",
                     "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    env.podrun("stop", "s")
    assert "bye" in env.logs("s")


@test
def pause_and_unpause(env):
    env.run_detached("s", "sh", "-c", "echo ready; i=0; while :; do i=$((i+1)); echo $i; "
                                      "sleep 0.01; done")
    env.podrun("pause", "s")
    (s,) = env.sessions()
    assert s["state"] == "paused", s
    a = env.logs("s")
    time.sleep(0.2)
    assert env.logs("s") == a
    env.podrun("unpause", "s")
    until("it goes on", lambda: env.logs("s") != a)
    env.podrun("kill", "s")


@test
def commands_are_cut_between_characters(env):
    """In tables, which hold nothing that a terminal would obey."""
    for line in 100 * "\u00e4", "\u009b31m\u202e" + 100 * "\u65e5", "\udc9b\udcff" + 100 * "a":
        env.run_detached("s", "sh", "-c", "echo ready; sleep 1000; # " + line)
        for words, most in (["ps"], 60), (["top", "s"], 100):
            row, = (r for r in env.podrun(*words).out.decode().split("\n") if " sh -c " in r)
            said = row[row.index("sh -c"):]
            assert len(said) == most and said.isprintable(), said
        env.podrun("rm", "-f", "s")


@test
def it_is_looked_for_where_xdg_runtime_dir_says(env):
    """Whoever has another one, as by su or from cron, is told that this may be why nobody is there."""
    env.run_detached("s", *COUNT)
    was = env.environ["XDG_RUNTIME_DIR"]
    env.environ["XDG_RUNTIME_DIR"] = str(env.path("another"))
    env.path("another").mkdir(mode=0o700)
    one_line(env.podrun("exec", "s", "true", code=125), "'s' is running", env.path("another").name, "XDG_RUNTIME_DIR")
    env.environ["XDG_RUNTIME_DIR"] = was
    assert "ok" in finish(env, "s")


@test
def rename_and_rm(env):
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000")
    one_line(env.podrun("rename", "s", 64 * "t", code=2), "at most 63")
    env.podrun("rename", "s", "t")
    assert [x["name"] for x in env.sessions()] == ["t"]
    env.podrun("kill", "t")
    env.podrun("rm", "t", check=False)
    assert env.podrun("inspect", "t", check=False).code == 5


@test
def daemon_keeps_the_session(env):
    r = env.podrun("run", "--name", "s", "--", "sh", "-c",
                   "setsid sh -c 'while :; do sleep 0.05; done' >/dev/null 2>&1 </dev/null & exit 4",
                   code=4)
    assert "s" in r.errors, r
    assert [x["state"] for x in env.sessions()] == ["running"]
    env.podrun("kill", "s")


@test
def a_directory_without_a_record_is_nobodys(env):
    env.podrun("ps", "-a")
    sessions = env.path("state") / "podrun" / "sessions"
    run = env.path("run") / "podrun"
    for name in ("s", "t", ".resume-1", ".gone-1-0"):
        (sessions / name / "files").mkdir(parents=True)
    (run / "t").mkdir()
    env.podrun("run", "--name", "s", "--rm", "--", "true")
    one_line(env.podrun("rm", "t", code=5), "t")
    # What `s` had is taken apart when everybody has been told of its end.
    until("nothing is left", lambda: not os.listdir(sessions) and not os.listdir(run))
    (sessions / "u").mkdir()
    assert env.podrun("ps", "-a", "-q").text == "" and not os.listdir(sessions)


@test
def a_session_that_is_just_being_made_is_left_alone(env):
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000")
    sessions = env.path("state") / "podrun" / "sessions"
    (sessions / "s" / "record").rename(env.path("record"))
    env.podrun("ps", "-a")
    assert os.listdir(sessions) == ["s"]
    one_line(env.podrun("run", "--name", "s", "--", "true", check=False), "s")
    env.path("record").rename(sessions / "s" / "record")
    env.podrun("kill", "s")


# ---- terminals ------------------------------------------------------------------------------

@test
def root_inside_has_a_terminal(env):
    env.share_cache()
    pid, m = terminal(env, "run", "-it", "--user", "root", "--", "sh", "-c", "tty; whoami; read x")
    assert b"/dev/pts/" in read_until(m, b"root")
    os.write(m, b"\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@test
def interactive_shell_detach_and_attach(env):
    pid, m = terminal(env, "run", "-it", "--name", "s", "--", "sh", "-i")
    os.write(m, b"tty; stty size; X=kept\n")
    read_until(m, b"/dev/pts/")
    os.write(m, b"\x10\x11")
    _, status = os.waitpid(pid, 0)
    os.close(m)
    assert [x["state"] for x in env.sessions()] == ["running"]
    pid, m = terminal(env, "attach", "s")
    os.write(m, b"echo [$X]\n")
    read_until(m, b"[kept]")
    os.write(m, b"exit 6\n")
    _, status = os.waitpid(pid, 0)
    os.close(m)
    assert os.waitstatus_to_exitcode(status) == 6, status


@test
def terminal_survives_a_move(env):
    pid, m = terminal(env, "run", "-it", "--name", "s", "--", "sh", "-i")
    os.write(m, b"X=kept; echo $((40+2)) $$\n")
    read_until(m, b"42 ")
    env.podrun("suspend", "s", "-o", env.path("i"))
    _, status = os.waitpid(pid, 0)
    os.close(m)
    assert os.waitstatus_to_exitcode(status) == 10, status
    env.podrun("resume", "-d", env.path("i"))
    pid, m = terminal(env, "attach", "s")
    os.write(m, b"echo [$X]; tty\n")
    read_until(m, b"[kept]")
    os.write(m, b"exit\n")
    os.waitpid(pid, 0)
    os.close(m)


@test
def a_resumed_screen_is_drawn_again(env):
    pid, m = terminal(env, "run", "-it", "--name", "s", "--", "bash", "--norc", "-c",
                      "trap 'echo drawn' WINCH; echo ready; while :; do sleep 0.05; done")
    read_until(m, b"ready")
    env.podrun("suspend", "s", "-o", env.path("i"))
    os.waitpid(pid, 0)
    os.close(m)
    pid, m = terminal(env, "resume", "-it", str(env.path("i")))
    read_until(m, b"drawn")
    os.write(m, b"\x10\x11")
    os.waitpid(pid, 0)
    os.close(m)
    env.podrun("kill", "s")


@test
def a_directory_that_is_not_there_has_a_hint(env):
    here = env.path("here")
    here.mkdir()
    r = env.podrun("run", "pwd", cwd=here, code=125)
    assert r.errors.startswith("podrun: no working directory '%s' in the session: No such" % here), r
    assert "hint: its /tmp is its own" in r.errors, r
    assert env.podrun("run", "-v", "%s:%s" % (here, here), "pwd", cwd=here).text == "%s\n" % here


# ---- suspend, snapshot, resume ---------------------------------------------------------------

@test
def suspend_reports_and_leaves_nothing(env):
    env.run_detached("s", *COUNT)
    r = env.podrun("suspend", "s", "-o", env.path("i"), "--json").json()
    for key in ("frozen_ms", "total_ms", "bytes", "tasks"):
        assert r[key] > 0, r
    assert os.stat(env.path("i")).st_size == r["bytes"], r
    assert not env.sessions(), env.sessions()
    r = env.podrun("resume", "-d", "--json", env.path("i")).json()
    assert r["tasks"] > 0 and r["total_ms"] > 0, r
    assert "ok" in finish(env, "s")


@test
def default_place_is_the_store(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s")
    assert "s" in env.podrun("ps", "-a").text
    env.podrun("resume", "-d", "s")
    assert "ok" in finish(env, "s")


@test
def the_waiting_client_is_told(env):
    p = env.start(PODRUN, "run", "--name", "s", "--", *COUNT, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    p.stdout.readline()
    env.podrun("suspend", "s", "-o", env.path("i"))
    _, err = p.communicate(timeout=PATIENCE)
    assert p.returncode == 10 and err.count(b"\n") == 1, (p.returncode, err)


@test
def a_move_is_resumed_once(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    one_line(env.podrun("resume", "-d", "--name", "t", env.path("i"), code=6))
    assert "ok" in finish(env, "s")
    one_line(env.podrun("resume", "-d", env.path("i"), code=6))


@test
def a_snapshot_is_a_copy(env):
    env.run_detached("s", *COUNT)
    r = env.podrun("snapshot", "s", "-o", env.path("i"), "--json").json()
    assert r["frozen_ms"] > 0, r
    one_line(env.podrun("resume", "-d", env.path("i"), code=6), "s")
    for name in ("a", "b"):
        env.podrun("resume", "-d", "--name", name, env.path("i"))
    for name in ("s", "a", "b"):
        assert "ok" in finish(env, name)


@test
def a_session_is_there_while_its_snapshot_is_written(env):
    """What reads the image is slow: the session runs on, takes commands, and shows no copies."""
    env.run_detached("s", "python3", "-c", "import os, time; b = bytearray(os.urandom(1 << 20)) * 64; "
                     "print('ready', flush=True)\nwhile not os.path.exists('/tmp/go'): "
                     "time.sleep(0.01)\nprint('ok')")
    before = len(env.podrun("inspect", "s").json()["processes"])
    p = env.start(PODRUN, "snapshot", "s", "-o", "-", stdout=subprocess.PIPE)
    image = bytearray(p.stdout.read(4096))
    x = env.start(PODRUN, "exec", "s", "sh", "-c", "echo in", stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    while x.poll() is None:  # what is written before the session goes on has to be read
        image += p.stdout.read(65536)
        with contextlib.suppress(subprocess.TimeoutExpired):
            x.wait(0.005)
    out, err = x.communicate()
    assert (x.returncode, out) == (0, b"in\n"), (x.returncode, out, err)
    info = env.podrun("inspect", "s").json()
    assert info["state"] == "writing" and len(info["processes"]) == before, info
    one_line(env.podrun("suspend", "s", code=6), "s")
    image += p.stdout.read()
    assert p.wait(timeout=PATIENCE) == 0
    assert env.sessions()[0]["state"] == "running"
    assert "ok" in finish(env, "s")
    env.path("i").write_bytes(image)
    env.podrun("resume", "-d", "--name", "t", env.path("i"))
    assert "ok" in finish(env, "t")


@test
def a_session_may_end_while_its_snapshot_is_written(env):
    """It needs nothing of it any more: the image is whole, and then the session has ended."""
    for options in ((), ("--end-with-command",)):
        env.run_detached("s", "python3", "-c", "import os, time; b = bytearray(os.urandom(1 << 20)) * 64; "
                         "print('ready', flush=True)\nwhile not os.path.exists('/tmp/go'): "
                         "time.sleep(0.01)\nprint('ok', flush=True)", options=options)
        p = env.start(PODRUN, "snapshot", "s", "-o", "-", stdout=subprocess.PIPE)
        image = bytearray(p.stdout.read(4096))
        x = env.start(PODRUN, "exec", "s", "touch", "/tmp/go")
        while x.poll() is None:
            image += p.stdout.read(65536)
            with contextlib.suppress(subprocess.TimeoutExpired):
                x.wait(0.005)
        until("it has come to its end", lambda: "ok" in env.logs("s").split())
        image += p.stdout.read()
        assert p.wait(timeout=PATIENCE) == 0
        assert env.wait("s").split() == ["ready", "ok"]
        until("it has ended", lambda: env.podrun("ps", "-a", "--json").json()[0]["state"] == "ended")
        env.podrun("rm", "s")
        env.path("i").write_bytes(image)
        env.podrun("resume", "-d", "--name", "t", env.path("i"))
        assert "ok" in finish(env, "t")
        env.podrun("rm", "t")


@test
def a_session_that_ends_by_itself_is_frozen_whole_or_not_at_all(env):
    """Whenever it ends: the image can be resumed, or there is none and the command says why."""
    for i in range(16):
        name = "s%d" % i
        env.podrun("run", "-d", "--name", name, "--", "sh", "-c", "sleep 0.0%02d; exit 7" % (4 * i))
        way = ("suspend", "snapshot")[i % 2]
        r = env.podrun(way, name, "-o", env.path("i"), check=False)
        if r.code:
            assert r.code == 6 and "has ended" in r.errors, r
            assert not env.path("i").exists(), r
        else:
            env.podrun("resume", "-d", "--name", name + "c", env.path("i"))
            env.path("i").unlink()
            env.wait(name + "c", code=7)
        if not r.code and way == "suspend":
            continue
        env.wait(name, code=7)


@test
def clone_makes_running_copies(env):
    env.run_detached("s", *COUNT)
    env.podrun("clone", "s", "3")
    names = sorted(x["name"] for x in env.sessions())
    assert len(names) == 4 and "s" in names, names
    for name in names:
        assert "ok" in finish(env, name)


@test
def files_of_the_session_travel(env):
    env.run_detached("s", "sh", "-c",
                     "mkdir -p ~/d /tmp/t; echo home > ~/d/f; echo tmp > /tmp/t/f; "
                     "echo shm > /dev/shm/f; rm -f /tmp/gone; echo run > /run/f; echo ready; "
                     "while [ ! -e /tmp/go ]; do sleep 0.01; done; "
                     "cat ~/d/f /tmp/t/f /dev/shm/f /run/f")
    env.podrun("suspend", "s", "-o", env.path("i"))
    other = env.host("other")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    other.podrun("resume", "-d", env.path("i"))
    try:
        assert "home\ntmp\nshm\nrun\n" in finish(other, "s")
    finally:
        other.podrun("kill", "s", check=False)


@test
def what_was_said_travels(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    other = env.host("other")
    other.podrun("key", "trust", env.podrun("key", "show").text.split()[0])
    other.podrun("resume", "-d", env.path("i"))
    try:
        log = finish(other, "s").split()
        assert log[:2] == ["ready", "ok"], log
    finally:
        other.podrun("kill", "s", check=False)


@test
def nothing_that_was_written_is_lost(env):
    # It writes so fast that there is always something in the pipe when it is frozen.
    env.run_detached("s", "sh", "-c", "echo ready; i=0; while [ ! -e /tmp/end ]; do i=$((i+1)); "
                                      "echo $i; done")
    for _ in range(4):
        env.podrun("suspend", "s", "-o", env.path("i"))
        env.podrun("resume", "-d", env.path("i"))
        env.path("i").unlink()
    env.let_end("s", "/tmp/end")
    env.podrun("wait", "s")
    # Of a long log the end travels: the first line may be half of one.
    numbers = [int(n) for n in env.logs("s").split()[1:]]
    for a, b in zip(numbers, numbers[1:]):
        assert b == a + 1, "%d is followed by %d" % (a, b)


@test
def images_of_strangers_are_refused(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    one_line(env.host("other").podrun("resume", "-d", env.path("i"), code=7), "trust")


@test
def damaged_images_are_refused(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    good = env.path("i").read_bytes()
    bad = env.path("bad")
    for what, data in (("truncated", good[:-1]), ("half", good[:len(good) // 2]), ("empty", b""),
                       ("flipped", good[:len(good) // 3] + bytes([good[len(good) // 3] ^ 1])
                        + good[len(good) // 3 + 1:]),
                       ("header", b"\0" + good[1:]), ("garbage", os.urandom(5000))):
        bad.write_bytes(data)
        one_line(env.podrun("resume", "-d", bad, code=7))
        assert env.podrun("image", "verify", bad, check=False).code == 7, what
        assert not env.sessions(), what
    env.podrun("image", "verify", env.path("i"))
    env.podrun("image", "show", env.path("i"))
    env.podrun("resume", "-d", env.path("i"))
    assert "ok" in finish(env, "s")


@test
def a_full_target_leaves_the_session_running(env):
    env.run_detached("s", *COUNT)
    one_line(env.podrun("suspend", "s", "-o", "/dev/full", check=False))
    one_line(env.podrun("suspend", "s", "-o", "/no/such/dir/i", check=False))
    p = env.start(PODRUN, "suspend", "s", "-o", "-", stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    p.stdout.close()
    assert p.wait(timeout=PATIENCE) != 0
    assert "ok" in finish(env, "s")


@test
def a_killed_client_loses_nothing(env):
    for delay in (0, 0.003, 0.01, 0.02, 0.05):
        env.run_detached("s", *COUNT)
        p = env.start(PODRUN, "suspend", "s", "-o", env.path("i"), stderr=subprocess.DEVNULL)
        time.sleep(delay)
        p.kill()
        p.wait()
        state = until("decided", lambda: "image" if env.path("i").exists() and not env.sessions()
                      else "running" if [x for x in env.sessions() if x["state"] == "running"]
                      and not list(env.dir.glob("i*")) else None)
        if state == "image":
            env.podrun("resume", "-d", env.path("i"))
            env.path("i").unlink()
        assert "ok" in finish(env, "s")
        env.podrun("rm", "s", check=False)


@test
def migrate_moves_to_another_host(env):
    other = env.host("other")
    ssh_to(env, other)
    p = env.start(PODRUN, "run", "--name", "s", "--", *COUNT, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    p.stdout.readline()
    r = env.podrun("migrate", "s", "there", "--json").json()
    assert r["frozen_ms"] > 0, r
    _, err = p.communicate(timeout=PATIENCE)
    assert p.returncode == 10 and b"there" in err, (p.returncode, err)
    assert not env.sessions()
    assert "ok" in finish(other, "s")


@test
def migrate_fails_and_the_session_runs_on(env):
    env.run_detached("s", *COUNT)
    env.environ["PODRUN_SSH"] = "false"
    one_line(env.podrun("migrate", "s", "there", code=8), "s", "there")
    for host in "", "-oProxyCommand=true":
        one_line(env.podrun("migrate", "--", "s", host, code=2), "is no [USER@]HOST")
    other = env.host("other")
    other.run_detached("s", *COUNT)
    ssh_to(env, other)
    one_line(env.podrun("migrate", "s", "there", code=8), "in use")
    assert "ok" in finish(env, "s")
    assert "ok" in finish(other, "s")


@test
def migrate_in_doubt_is_decided_by_hand(env):
    for verdict in ("--finish", "--abort"):
        other = env.host("other" + verdict)
        ssh_to(env, other, lines=2)  # HERE and READY come back, ACK does not
        env.run_detached("s", *COUNT)
        r = env.podrun("migrate", "s", "there", code=9, check=False)
        assert r.code == 9 and "--finish" in r.errors, r
        (s,) = env.sessions()
        assert s["state"] == "in-doubt", s
        if verdict == "--finish":
            env.podrun("migrate", "--finish", "s")
            assert not env.sessions()
            assert "ok" in finish(other, "s")
        else:
            other.podrun("kill", "s")
            env.podrun("migrate", "--abort", "s")
            assert "ok" in finish(env, "s")
        env.podrun("rm", "s")


@test
@needs_namespaces("where names are rewritten, who freezes is who gives the names: without him there is no session anyhow")
def in_doubt_it_ends_with_its_worker(env):
    """It may run elsewhere, so it must not run on here because nobody holds it any more."""
    other = env.host("other")
    ssh_to(env, other, lines=2)  # HERE and READY come back, ACK does not
    env.run_detached("s", *COUNT)
    env.podrun("migrate", "s", "there", code=9)
    supervisor = env.podrun("inspect", "s").json()["supervisor"]
    children = pathlib.Path("/proc/%d/task/%d/children" % (supervisor, supervisor)).read_text().split()
    (worker,) = [pid for pid in children if pathlib.Path("/proc/%s/comm" % pid).read_text() == "podrun-freeze\n"]
    os.kill(int(worker), signal.SIGKILL)
    until("it is gone", lambda: not env.sessions())
    one_line(env.podrun("migrate", "--abort", "s", code=6), "moved to there")
    assert "ok" in finish(other, "s")


# A TCP connection with an urgent byte, then told to go on.
URGENT = r"""
import os, socket, sys, time
how = sys.argv[1]
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname())
b, _ = l.accept()
if how == "inline":
    b.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
a.sendall(b"before")
a.send(b"!", socket.MSG_OOB)
a.sendall(b"x")
while b.recv(99, socket.MSG_PEEK) != b"before":
    time.sleep(.01)
urgent = b"" if how == "inline" else b.recv(1, socket.MSG_OOB | (0 if how == "read" else socket.MSG_PEEK))
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
got = b""
while not got.endswith(b"x"):
    got += b.recv(99)
print(urgent, got)
"""


@test
def urgent_bytes_are_refused_and_kept(env):
    for how, seen in (("unread", "b'!' b'beforex'"), ("read", "b'!' b'beforex'"),
                      ("inline", "b'' b'before!x'")):
        env.run_detached("s", "python3", "-c", URGENT, how)
        one_line(env.podrun("suspend", "s", "-o", env.path("i"), "--deadline", "50", code=3), "urgent")
        env.let_end()
        assert seen in env.wait("s"), (how, env.logs("s"))
        env.podrun("rm", "s")


@test
def stacks_of_a_session(env):
    env.run_detached("s", *COUNT)
    text = env.podrun("stacks", "s").text
    assert "sh" in text and "#" in text, text
    assert "ok" in finish(env, "s")


@test
def image_core_is_an_elf_core(env):
    env.run_detached("s", *COUNT)
    env.podrun("suspend", "s", "-o", env.path("i"))
    env.podrun("image", "stacks", env.path("i"))
    env.podrun("image", "core", env.path("i"), "-o", env.path("core"))
    assert list(env.dir.glob("core*"))[0].read_bytes()[:4] == b"\x7fELF"


@test
def check_tells_about_the_host(env):
    facts = env.podrun("check", "--json", check=False).json()
    names = [c for c in facts["checks"] if c["name"].endswith("namespaces")]
    assert (facts["names"] == "kernel") == all(c["ok"] for c in names), facts
    assert bool(facts["weaker"]) == (facts["names"] == "rewrite"), facts
    assert "\nnames: " in env.podrun("check", check=False).text


if __name__ == "__main__":
    main()
