#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same session on two kernels: this machine's, and Debian 12's under qemu without KVM.

A session made here is resumed there and finishes its work; one made there is resumed here.
PODRUN_KERNEL names the directory with the other kernel (see `vm`); the sessions are portable
ones, since the emulated processor lacks what this one has.
"""
import json
import os
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import SPARSE  # noqa: E402
from harness import BUILD, PODRUN, Failed, Skip, add, main, needs, quiet_port, until  # noqa: E402

VM = str(pathlib.Path(__file__).resolve().parent / "vm")
STATE = BUILD / "tests" / "state"
APPS = pathlib.Path(__file__).resolve().parents[1] / "apps"
PYTHON = ["python3", "-u", "-c", """
import hashlib, os, threading, time
print('ready')
done = []
def work():
    h = hashlib.sha256()
    for i in range(50): h.update(bytes(100000)); time.sleep(0.01)
    while not os.path.exists('/tmp/go'): time.sleep(0.01)
    done.append(h.hexdigest())
ts = [threading.Thread(target=work) for i in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
print('ok' if len(set(done)) == 1 else 'FAIL')
"""]
SHELL = ["sh", "-c", "while sleep 0.05; do echo x || exit; done | cat > /dev/null & p=$!; echo ready; "
                     "while [ ! -e /tmp/go ]; do sleep 0.02; done; kill $p; echo ok"]

# The session of the README: a shell, a Python program with threads, redis with a connected client.
CLIENT = """
import hashlib, os, socket, threading, time
def work():
    h = hashlib.sha256()
    while not os.path.exists('/tmp/go'): h.update(bytes(10000)); time.sleep(0.002)
ts = [threading.Thread(target=work) for i in range(3)]
[t.start() for t in ts]
while True:
    try: s = socket.create_connection(('127.0.0.1', 6390)); break
    except OSError: time.sleep(0.05)
n = 0
while n == 0 or not os.path.exists('/tmp/go'):
    s.sendall(b'INCR n\\r\\n')
    n += 1
    said = s.recv(100)
    if said != b':%d\\r\\n' % n: print('FAIL', n, said); os._exit(1)
    if n == 1: print('ready')
    time.sleep(0.002)
[t.join() for t in ts]
print('ok')
"""
REDIS = ["sh", "-c", "redis-server --port 6390 --save '' --dir /tmp > /dev/null & r=$!; "
                     "python3 -u -c \"$0\"; e=$?; kill $r; wait; exit $e", CLIENT]


def finish(podrun, name):
    # touch may be ended with the session; see let_end().
    return ("{ %s exec %s touch /tmp/go || [ $? = 137 ]; } && %s wait %s && %s logs %s"
            % (podrun, name, podrun, name, podrun, name))


# What a script there begins with.  One that has ended is not waited for: it will never be ready.
PRELUDE = """
export XDG_CONFIG_HOME=/mnt/config
ready() { until %(P)s logs $1 | grep -q ready; do %(P)s ps | grep -qw $1 || return 1; sleep 0.1; done; }
""" % {"P": PODRUN}
# A command there that takes longer hangs: ten are a slow machine's, a hundred a busy one's.
HANGS = "timeout 600 " + PODRUN


def vm(env, script):
    if not os.environ.get("PODRUN_KERNEL"):
        raise Skip("PODRUN_KERNEL is not set")
    env.environ["XDG_CONFIG_HOME"] = str(env.path("share") / "config")
    # The machine's own limit is the one that counts: it ends where nothing gets on.
    return env.call(VM, env.path("share"), "sh", "-e", "-c", PRELUDE + script, timeout=10 ** 6).text


def there(env, argv):
    """Made here, resumed there."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    env.environ["XDG_CONFIG_HOME"] = str(share / "config")
    env.run_detached("s", *argv, options=["--portable", "--end-with-command"])
    env.podrun("suspend", "s", "-o", share / "image")
    out = vm(env, "uname -r; %s resume -d /mnt/image; %s" % (PODRUN, finish(PODRUN, "s")))
    if "ok" not in out.split():
        raise Failed(out)


def back(env, argv):
    """Made there, resumed here."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    quoted = " ".join("'" + str(a).replace("'", "'\\''") + "'" for a in argv)
    vm(env, "%s run -d --portable --end-with-command --name s -- %s; ready s; %s suspend s -o /mnt/image"
       % (PODRUN, quoted, PODRUN))
    env.podrun("resume", "-d", share / "image")
    env.let_end()
    if "ok" not in env.wait("s"):
        raise Failed(env.logs("s"))


# What the other machine can't have: O_TMPFILE on an overlay (6.3); the groups and the priority of a
# user who is somebody else there; a walk over all files of the host, which are behind 9p; a pidfd of a thread (6.9).
NOT_THERE = {"file_ghost_overlay", "task_attributes", "inotifys_overlay", "pidfds_more"}
# The session's clock goes on while it is made again, which takes the emulated processor seconds: what
# task_waits measures, and allows 1.5 of.
TOO_SLOW_THERE = {"task_waits"}


def chosen_states(but=NOT_THERE):
    """The state programs: those PODRUN_KERNEL_STATES names, or all but those."""
    some = os.environ.get("PODRUN_KERNEL_STATES", "").split()
    return [p for p in sorted(STATE.iterdir()) if p.is_file() and os.access(p, os.X_OK) and
            (p.name in some if some else p.name.removesuffix("_i386") not in but)]


def has_keys():
    """Has this CPU memory protection keys?  The emulated one there has them."""
    return "ospke" in pathlib.Path("/proc/cpuinfo").read_text()


def verdicts(said, states):
    """Fails for every state without an `ok`."""
    bad = ["%s: %s" % (p.name, said.get(p.name, "nothing")) for p in states
           if "ok" not in said.get(p.name, "").split()]
    if bad:
        raise Failed("%d of %d\n%s" % (len(bad), len(states), "\n".join(bad)))


def states_there(env):
    """Every state program, made here; one boot resumes them all."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    env.environ["XDG_CONFIG_HOME"] = str(share / "config")
    states = chosen_states(NOT_THERE | TOO_SLOW_THERE)
    said = {}
    for p in states:
        try:
            env.run_detached(p.name, p, "/tmp/go", options=["--portable", "--end-with-command"])
            env.podrun("suspend", p.name, "-o", share / (p.name + ".image"))
        except Failed as e:
            said[p.name] = "here: " + str(e)
            env.podrun("rm", "-f", p.name, check=False)
    out = vm(env, "set +e; for i in /mnt/*.image; do n=$(basename $i .image); (exec 2>&1; "
                  "%s resume -d $i && %s exec $n touch /tmp/go; "
                  "%s wait $n; %s logs $n; %s rm -f $n) > /mnt/$n.said; done; true"
             % ((HANGS,) * 5))
    for p in states:
        text = share / (p.name + ".said")
        if p.name not in said:
            said[p.name] = text.read_text(errors="replace") if text.exists() else "not run " + out
    verdicts(said, states)


def states_back(env):
    """Every state program, made there in one boot; resumed here."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    env.environ["XDG_CONFIG_HOME"] = str(share / "config")
    states = chosen_states()
    vm(env, "set +e; for p in %s; do n=$(basename $p); (exec 2>&1; "
            "%s run -d --portable --end-with-command --name $n -- $p /tmp/go; ready $n; "
            "%s suspend $n -o /mnt/$n.image || %s logs $n) > /mnt/$n.said; done; true"
       % ((" ".join(map(str, states)),) + (HANGS,) * 3))
    said = {}
    for p in states:
        image, text = share / (p.name + ".image"), share / (p.name + ".said")
        if not image.exists():
            said[p.name] = "there: " + (text.read_text(errors="replace") if text.exists() else "")
            continue
        r = env.podrun("resume", "-d", image, check=False)
        if r.code == 0:
            env.podrun("exec", p.name, "touch", "/tmp/go", check=False)
            env.podrun("wait", p.name, check=False)
        said[p.name] = r.errors + env.podrun("logs", p.name, check=False).text
        if p.name.startswith("mem_keys") and not has_keys():
            said[p.name] = "ok" if r.code == 4 and "this CPU lacks memory protection keys" in r.errors else "taken: " + said[p.name]
        env.podrun("rm", "-f", p.name, check=False)
    verdicts(said, states)


def states_inside(env):
    """Every state program, made, suspended and resumed there."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    states = chosen_states()
    vm(env, "set +e; for p in %s; do n=$(basename $p); (exec 2>&1; "
            "%s run -d --end-with-command --name $n -- $p /tmp/go; ready $n; "
            "%s suspend $n -o image && %s resume -d image && %s exec $n touch /tmp/go; %s wait $n; "
            "%s logs $n; %s rm -f $n) > /mnt/$n.said; done; true"
       % ((" ".join(map(str, states)),) + (HANGS,) * 7))
    verdicts({p.name: (share / (p.name + ".said")).read_text(errors="replace") for p in states
              if (share / (p.name + ".said")).exists()}, states)


# Real programs, the scripts of tests/apps, whose work must come to the output that it has unmoved; and what tells that it
# has begun.  AT_WORK: a connection of port 7000.
AT_WORK = "grep -q ':1B58 .* 01 ' /proc/net/tcp /proc/net/tcp6"
PROGRAMS = {
    "redis": AT_WORK, "nginx": AT_WORK, "node-http": AT_WORK,
    "postgres": "test -e /tmp/work/bench.err",
    "java-threads": "pgrep -x java",
    "erlang-ring": "pgrep -x erl_child_setup",
    "go-goroutines": "pgrep -x m",
    "libreoffice": "pgrep -x soffice.bin",
    "mariadb": "pgrep -x mariadb",
    "xfce": "test -s /tmp/work/shown",
    "firefox": AT_WORK, "chromium": AT_WORK,
}
# Who takes AVX-512 where there is some, whatever --portable says; the emulated processor has none.
BOUND = {"chromium", "firefox", "mariadb"} if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else set()
# How often it is looked there whether they work, seconds: to look takes one of a CPU, which a browser that starts needs.
LOOKED_FOR = {"firefox": 1, "chromium": 1}
# How many times its usual work one does that would be over before it is moved.
LONGER = {"go-goroutines": 4, "firefox": 6, "chromium": 6, "xfce": 10}
# A compiler takes minutes there.
NOT_BEGUN_THERE = {"java-threads"}


def chosen_programs(but=()):
    """The scripts that PODRUN_KERNEL_PROGRAMS names, or all but those, with what tells that they work."""
    some = os.environ.get("PODRUN_KERNEL_PROGRAMS", "").split()
    return {APPS / n: begun for n, begun in PROGRAMS.items() if (n in some if some else n not in but)}


def unmoved(env, script):
    """What a script prints when nobody moves it."""
    needs(*next(line for line in script.read_text().splitlines() if line.startswith("# needs: ")).split()[2:])
    work = env.path(script.name)
    work.mkdir()
    env.environ.update(WORK=str(work), PORT=str(quiet_port()), SCALE=str(LONGER.get(script.name, 1)))
    return env.call(script, timeout=600, cwd=work).text


def words(script):
    """The options and the command of podrun run."""
    return ["--portable", "--end-with-command", "--name", script.name, "-e", "WORK=/tmp/work", "-e", "PORT=7000",
            "-e", "SCALE=%d" % LONGER.get(script.name, 1), "--", "sh", "-c", "mkdir -p /tmp/work && cd /tmp/work && exec " + str(script)]


def begin_and_suspend(env, script, begun, image):
    """Here, once the script works."""
    def works():
        if all(s["name"] != script.name for s in env.sessions()):
            raise Failed("over before it could be moved:\n" + env.logs(script.name))
        return env.podrun("exec", script.name, "sh", "-c", begun, check=False).code == 0

    env.podrun("run", "-d", *words(script))
    until(script.name + " is at work", works, 600)
    env.podrun("suspend", script.name, "-o", image, timeout=600)


def same_output(expected, said):
    """Fails for every script whose output is another than unmoved; what a JVM says of --portable is none of its own."""
    said = {n: "".join(line for line in text.splitlines(True) if not line.startswith("Picked up JAVA_TOOL_OPTIONS: "))
            for n, text in said.items()}
    bad = ["%s\n--- unmoved\n%s\n--- moved\n%s" % (n, out, said.get(n, "nothing")) for n, out in expected.items()
           if said.get(n) != out]
    if bad:
        raise Failed("%d of %d\n%s" % (len(bad), len(expected), "\n".join(bad)))


def programs_there(env):
    """Real programs, begun here; one boot resumes them all, and they finish their work there."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    expected, said = {}, {}
    for script, begun in chosen_programs(BOUND).items():
        expected[script.name] = unmoved(env, script)
        env.environ["XDG_CONFIG_HOME"] = str(share / "config")
        begin_and_suspend(env, script, begun, share / (script.name + ".image"))
    vm(env, "set +e; for i in /mnt/*.image; do n=$(basename $i .image); %s resume -d $i 2> /mnt/$n.errors && "
            "%s wait $n; %s logs $n > /mnt/$n.said; %s rm -f $n; done; true" % ((HANGS,) * 4))
    for name in expected:
        said[name] = "".join((share / (name + end)).read_text(errors="replace") for end in (".errors", ".said")
                             if (share / (name + end)).exists())
    same_output(expected, said)


def programs_back(env):
    """Real programs, begun there in one boot; resumed here, where they finish their work."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    chosen = chosen_programs(NOT_BEGUN_THERE)
    # V8 uses protection keys where there are any, and then can't go where there are none.
    if "PODRUN_VM_CPU" not in os.environ and not has_keys():
        env.environ["PODRUN_VM_CPU"] = "max,-pku"
    expected = {script.name: unmoved(env, script) for script in chosen}
    env.environ["XDG_CONFIG_HOME"] = str(share / "config")
    vm(env, "set +e; " + "".join(
        "(exec 2>&1; %s run -d %s; while %s ps | grep -qw %s; do %s exec %s sh -c %s && break; sleep %s; done; "
        "%s suspend %s -o /mnt/%s.image || %s logs %s) > /mnt/%s.said; "
        % (HANGS, shlex.join(words(s)), PODRUN, s.name, PODRUN, s.name, shlex.quote(begun), LOOKED_FOR.get(s.name, 0.1),
           HANGS, s.name, s.name, PODRUN, s.name, s.name) for s, begun in chosen.items()))
    said = {}
    for name in expected:
        image = share / (name + ".image")
        if not image.exists():
            said[name] = "there: " + (share / (name + ".said")).read_text(errors="replace")
            continue
        r = env.podrun("resume", "-d", image, check=False, timeout=600)
        said[name] = r.errors
        if r.code == 0:
            said[name] += env.wait(name, timeout=600)
            env.podrun("rm", "-f", name, check=False)
    same_output(expected, said)


def a_lesser_cpu_is_refused(env):
    """A session that is not portable, and one that has taken protection keys, resumed on a CPU without AVX and those."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    env.environ["XDG_CONFIG_HOME"] = str(share / "config")
    env.environ["PODRUN_VM_CPU"] = "Westmere"
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        raise Skip("this CPU has no AVX2 itself")
    for name, options in (("plain", []), ("portable", ["--portable"])):
        env.run_detached(name, *PYTHON, options=options)
        env.podrun("suspend", name, "-o", share / name)
    env.run_detached("keys", STATE / "mem_keys", "/tmp/go", options=["--portable"])
    env.podrun("suspend", "keys", "-o", share / "keys")
    out = vm(env, "%s resume -d /mnt/plain 2>&1 || echo code $?; %s resume -d /mnt/portable; %s; "
                  "{ %s resume -d /mnt/keys 2>&1 && %s exec keys touch /tmp/go && %s wait keys; } || echo keys $?"
             % (PODRUN, PODRUN, finish(PODRUN, "portable"), PODRUN, PODRUN, PODRUN))
    if "avx2" not in out or "code 4" not in out or "ok" not in out.split():
        raise Failed(out)
    if ("keys 4" in out and "lacks memory protection keys, which the session uses" in out) != has_keys() or (
            not has_keys() and "keys " in out):
        raise Failed(out)


MEMORY = """
exec 2>&1
%(P)s check | grep memory-limit
%(P)s run --memory 64M -- python3 -c 'x = bytearray(16 << 20); print("small fits")'
%(P)s run --memory 64M -- python3 -c 'x = bytearray(200 << 20)' || echo large $?
%(P)s run --memory 64M --net host -- sh -c \
    'for f in $(find /sys/fs/cgroup -name memory.max); do echo max > $f && echo OPEN; done; true' || true
%(P)s run -d --memory 64M --name s -- sh -c 'echo ready; while [ ! -e /tmp/go ]; do sleep 0.1; done
    python3 -c "x = bytearray(200 << 20)"; echo moved $?'
ready s
%(P)s suspend s -o /mnt/image
cp /mnt/image /mnt/second
ls /sys/fs/cgroup/user | grep podrun
%(P)s resume -d /mnt/image
cat /sys/fs/cgroup/user/podrun-*-s/memory.max
%(P)s exec s touch /tmp/go
%(P)s wait s
%(P)s logs s
until [ "$(echo /sys/fs/cgroup/user/podrun-*)" = /sys/fs/cgroup/user/podrun-others ]; do sleep 0.1; done
echo gone
"""


def memory_is_limited(env):
    """--memory, in a group that is delegated there; and an image of such a session resumed here."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    out = vm(env, MEMORY % {"P": PODRUN}).split("\n")
    if "NO" in out[0] or "memory-limit" not in out[0] or "small fits" not in out or "large 137" not in out or \
            "moved 137" not in out or "OPEN" in out or out.count("podrun-others") != 1 or \
            "67108864" not in out or "gone" not in out:
        raise Failed("\n".join(out))
    limits = {c["name"]: c for c in env.podrun("check", "--json", check=False).json()["checks"]}
    if not limits["memory-limit"]["ok"]:
        r = env.podrun("resume", "-d", share / "second", code=4)
        if "delegated" not in r.errors:
            raise Failed(str(r))


def huge_pages(env):
    """Huge pages in use, moved there; and resumed here, where there may be none."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    env.environ["PODRUN_VM_HUGE"] = "16"
    out = vm(env, "P=%s; $P run -d --portable --name s -- %s /tmp/go; ready s; $P suspend s -o /mnt/image; cp /mnt/image /mnt/second; $P resume -d /mnt/image; %s"
             % (PODRUN, STATE / "mem_huge", finish(PODRUN, "s")))
    if "ok" not in out.split():
        raise Failed(out)
    free = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    if free.exists() and int(free.read_text()) >= 3:
        env.podrun("resume", "-d", share / "second")
        env.let_end()
        if "ok" not in env.wait("s"):
            raise Failed(env.logs("s"))
        return
    r = env.podrun("resume", "-d", share / "second", code=4)
    if "huge pages" not in r.errors:
        raise Failed(str(r))


# `ssh there` leads to another account's podrun of the same machine.
SSH = """
exec 2>&1
uname -r
printf '%%s\n' '#!/bin/sh' shift 'for d in RUNTIME CONFIG DATA STATE CACHE' \
    'do mkdir -p -m 700 /home/me/other/$d; export XDG_${d}_HOME=/home/me/other/$d; done' \
    'export XDG_RUNTIME_DIR=/home/me/other/RUNTIME' 'exec sh -c "$*"' > /tmp/ssh
chmod +x /tmp/ssh
export PODRUN_SSH=/tmp/ssh PATH=%(dir)s:$PATH
"""
LIVE = SSH + """
podrun run -d --name s -- %(work)s %(mib)d %(rate)d
ready s
podrun migrate --live --force --json s there
podrun ps -a
/tmp/ssh there podrun exec s touch /tmp/go
/tmp/ssh there podrun wait s
/tmp/ssh there podrun logs s
"""


def live_by_soft_dirty(env):
    """Moved while it runs, on a kernel that tells writes by soft-dirty bits only."""
    share = env.path("share")
    share.mkdir()
    out = vm(env, LIVE % {"dir": pathlib.Path(PODRUN).parent, "work": BUILD / "tests" / "it" / "dirty_work",
                          "mib": 8, "rate": 50})
    said = json.loads(out[out.index("{"):out.rindex("}") + 1]) if "{" in out else {}
    if "ok" not in out.split() or said.get("tracker") != "soft_dirty" or said.get("rounds", 0) < 2 or \
            said.get("ahead", 0) < 2 << 20:
        raise Failed(out)


ARRIVAL = SSH + """
export PODRUN_LOG=info
podrun run -d --name s -- sh -c 'echo ready; while [ ! -e /tmp/go ]; do sleep .1; done; echo ok'
ready s
podrun migrate s there
grep -o 'the world was there before the image' /home/me/other/STATE/podrun/sessions/s/supervisor.log
/tmp/ssh there podrun exec s touch /tmp/go
/tmp/ssh there podrun wait s
/tmp/ssh there podrun logs s
"""


def a_world_before_its_session(env):
    """Made before a session is moved to it, and kept, by an overlay and a time namespace of an older kernel."""
    env.path("share").mkdir()
    out = vm(env, ARRIVAL % {"dir": pathlib.Path(PODRUN).parent})
    if "the world was there before the image" not in out or "ok" not in out.split():
        raise Failed(out)


SNAPSHOT = """
exec 2>&1
%(P)s check | grep pagemap-scan
%(P)s run -d --name s -- python3 -c "$(cat /mnt/program)"
ready s
%(P)s snapshot s -o image
%(P)s resume -d --name copy image
for n in s copy; do %(P)s exec $n touch /tmp/go; %(P)s wait $n; echo $n $(%(P)s logs $n); done
"""


def snapshot_of_sparse_memory(env):
    """Where touched pages are found in the page map, and reserved memory must not be looked through."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    (share / "program").write_text(SPARSE[-1])
    out = vm(env, SNAPSHOT % {"P": PODRUN}).split("\n")
    if "NO" not in out[0] or "s ready ok" not in out or "copy ready ok" not in out:
        raise Failed("\n".join(out))


WORK = {"python-threads": PYTHON, "shell-pipe": SHELL, "redis-session": REDIS}
for label, command in WORK.items():
    add("there/" + label, lambda env, a=command: there(env, a))
    add("back/" + label, lambda env, a=command: back(env, a))
add("there/states", states_there)
add("back/states", states_back)
add("inside/states", states_inside)
add("there/programs", programs_there)
add("back/programs", programs_back)
add("there/lesser-cpu", a_lesser_cpu_is_refused)
add("there/memory", memory_is_limited)
add("back/huge", huge_pages)
add("inside/live", live_by_soft_dirty)
add("inside/snapshot", snapshot_of_sparse_memory)
add("inside/arrival", a_world_before_its_session)

if __name__ == "__main__":
    main()
