#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: /proc as a session sees it where no pid namespace makes one."""
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, PROFILE, Skip, main, needs, test, until  # noqa: E402

REWRITE = ("--names", "rewrite", "--net", "host")
SEEN = ("-v", "%s:%s" % (BUILD, BUILD))  # it may lie in what is private


def run(env, *command, options=(), **more):
    """In a session with rewritten names, as a container engine would have it."""
    env.prefix = PROFILE
    return env.podrun("run", *REWRITE, "-w", "/", *options, "--rm", "--", *command, **more)


def host_shm():
    return subprocess.check_output(["stat", "-f", "-c", "%T", "/dev/shm"], text=True).strip()


def python(env, script, *args, **more):
    return run(env, "python3", "-c", script, *map(str, args), **more)


def same(env, script, plain=lambda line: line):
    """Says the same under kernel names and under rewritten ones, once `plain` has made each line so."""
    env.prefix = []
    command = ("bash", "-c", "exec 2>&1; " + script)
    kernel = env.podrun("run", "--net", "host", "-w", "/", "--rm", "--", *command).text
    rewritten = run(env, *command).text
    kernel, rewritten = ([plain(line) for line in text.splitlines()] for text in (kernel, rewritten))
    assert kernel == rewritten, "\n".join(difflib.unified_diff(
        kernel, rewritten, "kernel names", "rewritten names", lineterm="", n=20))
    return rewritten


# ---- programs -----------------------------------------------------------------------------------

# A process with two threads and a child, one that is stopped, and one of another group whose parent has
# ended.  Nothing forks while somebody is waited for, so that the numbers are the same each time; in the end all sleep.
PEOPLE = r"""
mkfifo /tmp/up
python3 -c '
import os, subprocess, threading
c = subprocess.Popen(["sleep", "1000"], stdin=open("/etc/passwd"))
threading.Thread(target=c.wait).start()
open("/tmp/up", "w").close()
' &
py=$!; read line </tmp/up; read child </proc/$py/task/$py/children
state() { until read -d '' -r stat <$1 || [[ $stat == *\)\ $2\ * ]]; do :; done; }
comm() { until read comm </proc/$1/comm && test $comm = sleep; do :; done; }
sleep 2000 & comm $!; kill -STOP $!; state /proc/$!/stat T
(setsid sleep 3000 & echo $! >/tmp/pid); read pid </tmp/pid; comm $pid
for f in /proc/$py/task/*/stat /proc/$child/stat /proc/$pid/stat; do state $f S; done
# A command that looks when the shell waits for it.
calm() { bash -c "$(declare -f state); state /proc/\$PPID/stat S; exec \"\$@\"" calm "$@"; }
"""
OVER = "; kill -9 -1; true"


def words(line):
    """Without what times, sizes of columns and memory are."""
    line = re.sub(r"\b\d+:\d\d(:\d\d|\.\d\d)?\b", "TIME", line)
    return " ".join(line.split())


@test
def ps_says_the_same(env):
    needs("ps")
    said = same(env, PEOPLE + "ps -ef >/tmp/out; awk '{$4=\"\"; print}' /tmp/out; calm ps axo pid,ppid,pgid,sid,tty,stat,comm; ps -eLo pid,lwp,nlwp,comm;"
                              "ps -o pid,tpgid,args --forest -e" + OVER, words)
    assert [line for line in said if "podrun-init" in line][0].split()[1:3] == ["1", "0"], said


@test
def others_of_procps_say_the_same(env):
    needs("top", "pgrep", "pidof")
    same(env, PEOPLE + "calm top -b -n1 -o -PID >/tmp/out; awk 'NR == 2 {print} NR > 6 {sub(/-.*/, \"\", $12); print $1, $2, $3, $4, $8, $12}' /tmp/out; pgrep -l sleep;"
                       "pgrep -f '^sleep 2000'; pgrep -P 1; pgrep -s 0 python3; pidof sleep; pkill -f '^sleep 3000';"
                       "pwdx $$; pmap $$ | tail -1 | cut -c1-6; uptime | wc -l; free | wc -l; vmstat | wc -l" + OVER, words)


@test
def lsof_and_psmisc_say_the_same(env):
    needs("pstree", "lsof", "fuser", "killall")
    def plain(line):  # devices and inodes are other ones, a namespace has a root of its own
        return " ".join(w for w in words(line).split() if not re.fullmatch(r"\d+,\d+|\d{3,}(t0)?", w))
    same(env, PEOPLE + "pstree; pstree -pat; lsof -p $$ >/tmp/out; grep -vw rtd /tmp/out | awk '{$8=\"\"; print}'; lsof /etc/passwd;"
                       "fuser /etc/passwd; lsof +c0 -a -d 0-2 -c sleep >/tmp/out; wc -l /tmp/out; killall -v sleep" + OVER, plain)


def with_odd_mounts(env):
    """What begins a command on a host that has mounts where a session has files of its own."""
    needs("unshare")
    odd = env.path("a b")
    odd.mkdir()
    assert str(odd).startswith("/tmp/"), odd
    here = ["unshare", "-Urm", "sh", "-ec", "mount -t tmpfs one /run; mkdir /run/a; mount -t tmpfs two /run/a;"
            "mount -t tmpfs three '%s'; mount -t tmpfs four /mnt; exec \"$@\"" % odd, "sh"]
    env.prefix = []
    if env.call(*here, "true", check=False).code:
        raise Skip("no mounts can be made here")
    return here


@test
def mounts_that_it_does_not_see_are_not_listed(env):
    here = with_odd_mounts(env)
    script = ("for f in mounts self/mounts self/mountstats thread-self/mounts; do"
              "  grep -c -e ' /run/a' -e 'a.040b' /proc/$f; grep -cw four /proc/$f; done;"
              "exec 3</proc/self/mounts; readlink /proc/$$/fd/3 | sed 's/[0-9]\\+/N/'")
    for options in ("--names", "rewrite", "--net", "host"), ("--names", "rewrite", "--net", "host", "--user", "root"):
        env.prefix = here + PROFILE
        r = env.podrun("run", *options, "-w", "/", "--rm", "--", "sh", "-c", script, check=False)
        assert r.text.splitlines() == ["0", "1"] * 4 + ["/proc/N/mounts"], r


@test
def mounts_that_were_open_are_not_listed_after_a_resume_either(env):
    env.prefix = with_odd_mounts(env) + PROFILE
    script = ("exec 3</proc/self/mounts; echo ready; until [ -e /tmp/go ]; do sleep .1; done;"
              "cat <&3 >/tmp/said; grep -c ' /run/a' /tmp/said; grep -cw four /tmp/said")
    env.run_detached("s", "sh", "-c", script, options=("--names", "rewrite", "--net", "host", "-w", "/"))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", "--names", "rewrite", env.path("image"))
    env.podrun("exec", "s", "touch", "/tmp/go")
    until("it has read its mounts", lambda: len(env.logs("s").splitlines()) == 3)
    assert env.logs("s").splitlines() == ["ready", "0", "1"], env.logs("s")


@test
def nor_are_mounts_that_were_open_in_namespaces(env):
    here = with_odd_mounts(env)
    script = ("import os, select, time\nf, waited = open('/proc/self/mounts'), open('/proc/self/mounts')\n"
              "e = select.epoll(); e.register(waited, select.EPOLLPRI)\nprint('ready', flush=True)\n"
              "while not os.path.exists('/tmp/go'): time.sleep(0.01)\n"
              "text = f.read(); print(text.count(' /run/a '), text.count('four '), len(e.poll(0)) < 2)")
    env.prefix = here
    env.run_detached("s", "python3", "-c", script, options=("--names", "kernel", "--net", "host", "-w", "/"))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.prefix = here + PROFILE
    env.podrun("resume", "-d", "--names", "rewrite", env.path("image"))
    env.let_end()
    assert env.wait("s").splitlines() == ["ready", "0 1 True"], env.logs("s")


@test
def shells_use_what_is_below_it(env):
    script = r"""
echo hi >/dev/stderr; echo piped | cat /dev/stdin; cat <(echo substituted); exec 5</etc/passwd; head -c4 /dev/fd/5
echo; tee /dev/stderr <<<here; echo new >/proc/self/comm; cat /proc/$$/comm; cat /proc/self/comm
tr '\0' ' ' </proc/self/cmdline; echo; cd /proc/self; pwd; cd /proc/self/task; pwd -P; cd ..; pwd -P; ls -d task
cd /proc/$$/cwd/..; pwd -P; cd /proc/self/root/tmp; pwd -P; cd /proc/self/fd/../../$$; pwd -P; cd /; cd /proc/net; pwd -P
readlink /proc/self /proc/mounts /proc/net /proc/$$/cwd /proc/$$/root /proc/$$/fd/5; readlink -f /proc/self/../tty
ls -l /proc/self/fd/5 </dev/null | cut -c1-10; ls /proc/$$/fd; ls /proc/$$/task/*/; find /proc/$$/ -maxdepth 1 | sort
test -r /proc/1/environ || echo not readable; cat /proc/1/environ /proc/1/maps; ls /proc/1/fd; readlink /proc/1/exe
stat -c '%A %h %n' /proc/$$ /proc/$$/status /proc/$$/task /proc/$$/fd /proc/$$/fd/5 /proc/self /proc/meminfo
mkdir /proc/x; rmdir /proc/$$; rm /proc/$$/comm; mv /proc/uptime /tmp; touch /proc/x; echo x >/proc/x; echo x >/proc/$$/stat
cp /bin/sh /tmp/sh; exec 6</tmp/sh; rm /tmp/sh; /proc/self/fd/6 -c 'echo unnamed $0'; /proc/$$/exe -c 'echo same'
readlink /proc/$$/fd/6; cp /proc/self/fd/6 /tmp/copy && cmp /bin/sh /tmp/copy && echo whole; ls /proc/no /proc/0 /proc/01
echo 1000 >/proc/self/oom_score_adj && cat /proc/self/oom_score_adj; cat /proc/self/oom_score_adj/; cat /proc/self/status/..; true
"""
    said = same(env, script)
    assert "/proc/2/task" in said and "unnamed /proc/self/fd/6" in said, said


# ---- numbers ------------------------------------------------------------------------------------

AGREE = r"""
import ctypes, fcntl, os, select, signal, subprocess, sys, threading
def field(path, *names):
    lines = dict(l.split(":", 1) for l in open(path).read().splitlines())
    return [lines[n].split() for n in names]
def number(*a): return [[str(x)] for x in a]
me, up = os.getpid(), os.getppid()
KEYS = ("Pid", "Tgid", "PPid", "NStgid", "NSpid", "NSpgid", "NSsid", "TracerPid")
for name in ("self", me, "thread-self", "%d/task/%d" % (me, me)):
    assert field("/proc/%s/status" % name, *KEYS) == number(me, me, up, me, me, os.getpgrp(), os.getsid(0), 0), name
    stat = open("/proc/%s/stat" % name).read().rsplit(")", 1)
    assert stat[0].split()[0] == str(me), stat
    assert list(map(int, stat[1].split()[1:4])) == [up, os.getpgrp(), os.getsid(0)], stat
    assert stat[1].split()[0] == "R", stat
assert open("/proc/1/status").read().startswith("Name:\tpodrun-init\n")
assert field("/proc/1/status", "PPid", "Tgid") == number(0, 1)
child = subprocess.Popen(["sleep", "1000"])
assert open("/proc/self/task/%d/children" % me).read().split() == [str(child.pid)]
pidfd = os.pidfd_open(child.pid)
assert field("/proc/self/fdinfo/%d" % pidfd, "Pid", "NSpid") == number(child.pid, child.pid)
ep = select.epoll(); info = open("/proc/self/fdinfo/%d" % ep.fileno()); ep.register(pidfd)
assert "tfd: %8d" % pidfd in info.read() and os.readlink("/proc/self/fd/%d" % info.fileno()) == info.name.replace("self", str(me))
assert open("/proc/%d/sched" % me).readline() == "python3 (%d, #threads: 1)\n" % me
child.send_signal(signal.SIGSTOP); os.waitpid(child.pid, os.WUNTRACED)
assert field("/proc/%d/status" % child.pid, "State") == [["T", "(stopped)"]]
assert open("/proc/%d/stat" % child.pid).read().split()[2] == "T"
child.send_signal(signal.SIGCONT); os.waitpid(child.pid, os.WCONTINUED)
while field("/proc/%d/status" % child.pid, "State") != [["S", "(sleeping)"]]: pass
child.kill(); os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
assert field("/proc/%d/status" % child.pid, "State", "PPid") == [["Z", "(zombie)"], [str(me)]]
assert str(child.pid) in os.listdir("/proc")
child.wait()
assert not os.path.exists("/proc/%d" % child.pid) and str(child.pid) not in os.listdir("/proc")
told = []
def thread():
    tid = threading.get_native_id()
    told.append(tid)
    assert os.readlink("/proc/thread-self") == "%d/task/%d" % (me, tid)
    assert field("/proc/thread-self/status", "Pid", "Tgid") == number(tid, me)
    assert field("/proc/%d/status" % tid, "Pid", "Tgid") == number(tid, me)
    assert sorted(map(int, os.listdir("/proc/self/task"))) == sorted([me, tid])
    assert str(tid) not in os.listdir("/proc")
t = threading.Thread(target=thread); t.start(); t.join()
assert told[0] > me
lock = open("/tmp/locked", "w"); fcntl.lockf(lock, fcntl.LOCK_EX)
owners = [l.split()[4] for l in open("/proc/locks") if l.split()[1] == "POSIX"]
assert str(me) in owners and "0" not in owners, owners
assert " %d " % me in [l for l in open("/proc/self/fdinfo/%d" % lock.fileno()) if l.startswith("lock:")][0]
ev = (ctypes.c_long * 8)(0, 14 | 0 << 32); timer = ctypes.c_int()
assert ctypes.CDLL(None).syscall(222, 1, ev, ctypes.byref(timer)) == 0
assert "notify: signal/pid.%d\n" % me in open("/proc/self/timers").read()
assert sorted(map(int, filter(str.isdigit, os.listdir("/proc")))) == [1, me]
ino = os.stat("/proc/self/ns/net").st_ino
assert os.readlink("/proc/self/ns/net") == "net:[%d]" % ino and os.stat("/proc/1/ns", follow_symlinks=False)
before = len(os.listdir("/proc/self/fd"))
s = open("/proc/self/status")
assert os.readlink("/proc/self/fd/%d" % s.fileno()) == "/proc/%d/status" % me
assert len(os.listdir("/proc/self/fd")) == before + 1
assert os.fstat(s.fileno()).st_size == len(s.read()) and s.seek(0) == 0 and s.read().startswith("Name")
assert os.listdir("/proc")[-2:] == ["1", str(me)] or sys.argv[1] != "tmpfs"  # else there is no order
print("right")
"""


@test
def files_agree_with_calls(env):
    assert python(env, AGREE, host_shm()).text == "right\n"


SYSVIPC = r"""
import ctypes, os
c = ctypes.CDLL(None)
shm = c.shmget(4711, 4096, 0o1600)
lines = [l.split() for l in open("/proc/sysvipc/shm")][1:]
assert [l[:2] + l[4:6] for l in lines] == [["4711", str(shm), str(os.getpid()), "0"]], lines
c.shmctl(shm, 0, None)
assert len(open("/proc/sysvipc/shm").readlines()) == len(open("/proc/sysvipc/sem").readlines()) == 1
print("right")
"""


@test
def ipc_shows_the_sessions_own(env):
    assert python(env, SYSVIPC).text == "right\n"


# ---- nobody else --------------------------------------------------------------------------------

OUTSIDE = r"""
import ctypes, errno, os, subprocess, sys
host, inside = sys.argv[1], os.getpid()
c = ctypes.CDLL(None, use_errno=True)
proc, fd, net = (os.open(p, os.O_RDONLY) for p in ("/proc", "/proc/self/fd", "/proc/net/"))
os.symlink("/proc", "/tmp/proc"); os.symlink("/proc/self/fd/%d/%s" % (proc, host), "/tmp/host")
names = [str(n) for n in range(1, 400)] + [host]
ways = ["/proc/%s", "/proc/self/../%s", "/proc/self/root/proc/%s", "/proc/self/task/%s", "/proc/self/root/../proc/./%s",
        "/proc/self/fd/" + str(proc) + "/%s", "/proc/self/fd/" + str(fd) + "/../../%s", "/proc/thread-self/../../../%s",
        "/proc/self/fd/" + str(net) + "/../../%s", "/proc/self/fd/" + str(net) + "/../%s", "/tmp/proc/%s", "/dev/fd/../../%s",
        "/proc/net/../../%s", "/proc/self/cwd/proc/%s", "/proc/1/../%s", "/proc/1/task/%s", "/proc/1/root/proc/%s"]
for way in ways:
    for path in (way % host, (way % host) + "/status", (way % host) + "/environ", (way % host) + "/fd/1", (way % host) + "/cwd"):
        for flags in (os.O_RDONLY, os.O_PATH, os.O_WRONLY, os.O_RDWR | os.O_CREAT, os.O_PATH | os.O_NOFOLLOW):
            try:
                print("reached", path, os.open(path, flags, 0o600))
            except OSError as e:
                assert e.errno in (errno.ENOENT, errno.EACCES), (path, e)
        assert not os.path.lexists(path), path
        for f in (os.readlink, os.listdir, os.chdir, os.statvfs, os.listxattr, lambda p: os.chmod(p, 0o700),
                  lambda p: os.truncate(p, 0), os.unlink, lambda p: os.utime(p), lambda p: os.link(p, "/tmp/l"),
                  lambda p: os.execv(p + "/exe", ["x"]), lambda p: os.rename(p, "/tmp/r")):
            try:
                print("reached", path, f(path))
            except OSError as e:
                pass
for dirfd, up in ((proc, ""), (fd, "../../"), (net, "../../"), (net, "../../../proc/")):
    for name in (host, host + "/environ"):
        try:
            print("reached", dirfd, up, name, os.open(up + name, os.O_RDONLY, dir_fd=dirfd))
        except OSError as e:
            assert e.errno in (errno.ENOENT, errno.EACCES), e
os.chdir("/proc/self/task")
for name in ("../../" + host, "../" + host, host):
    assert not os.path.lexists(name + "/status"), name
how = (ctypes.c_long * 3)()
for path in ("/proc/%s/status" % host, "/proc/%s/environ" % host, "../../%s/status" % host):
    assert c.syscall(437, -100, path.encode(), how, 24) == -1, path
seen = set(filter(str.isdigit, os.listdir("/proc")))
assert seen == {"1", str(inside)}, seen
for f in ("environ", "maps", "mem", "smaps", "auxv", "fd", "fdinfo/0", "cwd/x", "root/etc", "exe", "ns/net", "syscall",
          "task/1/mem", "task/1/environ", "task/1/fd/3", "map_files"):
    for flags in (os.O_RDONLY, os.O_RDWR):
        try:
            print("reached", f, os.read(os.open("/proc/1/" + f, flags), 100))
        except OSError as e:
            assert e.errno in (errno.EACCES, errno.ENOENT, errno.EPERM, errno.EISDIR), (f, e)
for f in ("comm", "oom_score_adj", "clear_refs", "coredump_filter"):
    assert not os.access("/proc/1/" + f, os.W_OK)
    try:
        print("reached", f, os.open("/proc/1/" + f, os.O_WRONLY))
    except OSError as e:
        assert e.errno == errno.EACCES, (f, e)
for f in ("uid_map", "gid_map", "projid_map"):
    try:
        print("reached", os.write(os.open("/proc/self/" + f, os.O_WRONLY), b"0 0 1\n"))
    except OSError as e:
        assert e.errno in (errno.EPERM, errno.EACCES), (f, e)
for f in ("kcore", "kmsg", "sysrq-trigger", "sys/kernel/core_pattern", "sys/vm/drop_caches"):
    try:
        print("reached", f, os.open("/proc/" + f, os.O_WRONLY))
    except OSError as e:
        assert e.errno in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EROFS), (f, e)
print("over")
"""


@test
def nobody_else_is_there(env):
    outside = env.start("sleep", "1000", stdout=subprocess.DEVNULL)
    for pid in (outside.pid, os.getpid()):
        text = python(env, OUTSIDE, pid).text
        assert text == "over\n", text
    assert outside.poll() is None


@test
def nobody_else_is_reached_by_a_race(env):
    """What follows is a file of /proc that begins as path_race wants it."""
    outside = env.start("env", "-i", "secret=1", "sleep", "1000", stdout=subprocess.DEVNULL)
    environ = pathlib.Path("/proc/%d/environ" % outside.pid)
    until("it is there", lambda: environ.read_bytes().startswith(b"secret"))
    text = run(env, str(BUILD / "tests" / "path_race"), environ, options=SEEN).text
    assert text == "over\n", text


# ---- what links lead to -------------------------------------------------------------------------

LINKS = r"""
import ctypes, errno, fcntl, os, signal, socket, sys, threading
def openat2(fd, path, flags, resolve):
    r = ctypes.CDLL(None, use_errno=True).syscall(437, fd, path.encode(), (ctypes.c_long * 3)(flags, 0, resolve), 24)
    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]
assert os.read(openat2(-100, "/proc/self/status", os.O_RDONLY, 0), 5) == b"Name:"
proc = os.open("/proc", os.O_RDONLY); assert os.read(openat2(proc, "self/stat", os.O_RDONLY, 0), 9).split()[0] == b"%d" % os.getpid()
assert openat2(proc, "self/exe", os.O_RDONLY, 2) == "ELOOP" and openat2(proc, "self/exe", os.O_RDONLY, 0) > 0
assert openat2(proc, "self/none", os.O_RDONLY, 2) == "ENOENT" and openat2(proc, "self/stat", os.O_RDWR, 0) == "EACCES"
def again(fd, flags): return os.open("/proc/self/fd/%d" % fd, flags)
def refused(error, fd, flags):
    try:
        again(fd, flags)
    except OSError as e:
        assert e.errno == error, (e, flags)
    else:
        raise AssertionError((fd, flags))
f = os.open("/tmp/f", os.O_RDWR | os.O_CREAT); os.write(f, b"12345"); os.lseek(f, 0, 0)
g = again(f, os.O_RDONLY)
assert os.read(g, 2) == b"12" and os.lseek(f, 0, 1) == 0
os.unlink("/tmp/f")
assert os.readlink("/proc/self/fd/%d" % g) == "/tmp/f (deleted)" and os.read(again(g, os.O_RDWR), 9) == b"12345"
os.close(again(g, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)); assert os.fstat(f).st_size == 0
os.chmod("/proc/self/fd/%d" % g, 0o640); assert os.stat("/proc/self/fd/%d" % g).st_mode == 0o100640
os.utime("/proc/self/fd/%d" % g, (1, 2)); assert os.fstat(f).st_mtime == 2
os.truncate("/proc/self/fd/%d" % g, 7); assert os.fstat(f).st_size == 7
m = os.memfd_create("m"); os.write(m, b"memory"); assert os.read(again(m, os.O_RDONLY), 9) == b"memory"
r, w = os.pipe(); os.write(again(w, os.O_WRONLY), b"x"); assert os.read(again(r, os.O_RDONLY), 1) == b"x"
assert not os.get_blocking(again(r, os.O_RDONLY | os.O_NONBLOCK)) and os.get_blocking(again(r, os.O_RDONLY))
pair = socket.socketpair(); refused(errno.ENXIO, pair[0].fileno(), os.O_RDONLY)
d = os.open("/tmp", os.O_RDONLY); refused(errno.EISDIR, d, os.O_WRONLY); refused(errno.ELOOP, d, os.O_RDONLY | os.O_NOFOLLOW)
refused(errno.ENOTDIR, m, os.O_RDONLY | os.O_DIRECTORY); refused(errno.EEXIST, m, os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.mkfifo("/tmp/p"); p = os.open("/tmp/p", os.O_RDWR); os.write(again(p, os.O_WRONLY), b"y"); assert os.read(p, 1) == b"y"
os.mkfifo("/tmp/p2"); p2 = os.open("/tmp/p2", os.O_PATH); got = []
t = threading.Thread(target=lambda: got.append(os.read(again(p2, os.O_RDONLY), 9))); t.start()
w2 = again(p2, os.O_WRONLY); os.write(w2, b"both ends"); t.join(); assert got == [b"both ends"]
leased = os.open("/tmp/leased", os.O_RDWR | os.O_CREAT); released = []
def release(*a):
    released.append(os.getpid()); fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.signal(signal.SIGIO, release)
fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if os.fork() == 0:
    os.close(os.open("/proc/%d/fd/%d" % (os.getppid(), leased), os.O_RDONLY)); os._exit(3)
while True:
    try:
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 3 and released
        break
    except InterruptedError:
        pass
os.close(os.open("/tmp/file", os.O_CREAT | os.O_RDWR))
o = os.open("/tmp/file", os.O_PATH); os.write(again(o, os.O_WRONLY), b"z"); assert open("/tmp/file").read() == "z"
t = os.open("/tmp", os.O_TMPFILE | os.O_RDWR); os.write(t, b"named late")
os.link("/proc/self/fd/%d" % t, "/tmp/named", follow_symlinks=True, src_dir_fd=d); assert open("/tmp/named").read() == "named late"
v = os.open("/mnt/vol/file", os.O_RDONLY); refused(errno.EROFS, v, os.O_RDWR); refused(errno.EROFS, v, os.O_WRONLY | os.O_CREAT)
for change in (lambda p: os.chmod(p, 0o777), lambda p: os.truncate(p, 0), lambda p: os.utime(p)):
    try:
        change("/proc/self/fd/%d" % v)
    except OSError as e:
        assert e.errno == errno.EROFS, e
    else:
        raise AssertionError
assert not os.access("/proc/self/fd/%d" % v, os.W_OK) and os.access("/proc/self/fd/%d" % v, os.R_OK)
assert os.listdir("/proc/self/fd/%d" % d) == os.listdir("/tmp")
assert os.path.exists("/proc/self/fd/%d/named" % d) and not os.path.exists("/proc/self/fd/%d/named" % m)
if os.fork() == 0:
    os.execv("/proc/self/exe", ["python3", "-c", "print('again')"])
os.wait()
print("right")
"""


@test
def links_lead_where_the_kernels_do(env):
    there = env.path("there")
    there.mkdir()
    (there / "file").write_text("text\n")
    options = ("-v", "%s:/mnt/vol:ro" % there)
    env.prefix = []
    command = ("python3", "-c", LINKS)
    assert env.podrun("run", "--net", "host", *options, "--rm", "--", *command).text == "again\nright\n"
    assert run(env, *command, options=options).text == "again\nright\n"
    assert (there / "file").read_text() == "text\n"


# ---- files that are open ------------------------------------------------------------------------

OPEN = r"""
exec 6</proc/self/stat 7</proc/self/status 8</proc/meminfo 9</proc/$$/maps; cd /proc/self/task; read -n 3 said <&6
sleep 1000 & exec 5</proc/$!/comm 4</proc/$!/stat; kill -9 $!; wait $!; echo ready
until test -e /tmp/go; do sleep 0.05; done
read name rest <&6; echo $name; head -2 <&7 | cut -c1-8; grep -c MemTotal <&8; grep -q bash <&9 && echo maps; cat <&4; pwd -P; ls
readlink /proc/$$/fd/[6789]; test -e $$/status && echo over
"""
SAID = r"""bash)
Name: ba
Umask: 0
1
maps
cat: -: No such process
/proc/2/task
2
/proc/2/stat
/proc/2/status
/proc/meminfo
/proc/2/maps
over
"""


@test
def open_files_move_between_both_ways(env):
    ways = {"rewrite": (PROFILE, ("--names", "rewrite")), "kernel": ([], ("--names", "kernel"))}
    for there, back in (("rewrite", "rewrite"), ("rewrite", "kernel"), ("kernel", "rewrite")):
        env.prefix, names = ways[there]
        env.run_detached("s", "bash", "-c", "exec 2>&1; " + OPEN, options=names + ("--net", "host"))
        env.podrun("suspend", "s", "-o", env.path("image"))
        env.prefix, names = ways[back]
        env.podrun("resume", "-d", *names, env.path("image"))
        env.let_end()
        said = env.wait("s")
        env.podrun("rm", "s")
        env.path("image").unlink()
        said = said.replace("\t", " ").split("ready\n")[1]
        assert said == SAID, "%s to %s: %s" % (there, back, said)


# ---- what is left behind ------------------------------------------------------------------------

MANY = r"""
import os, subprocess
for i in range(60):
    for j in range(4):
        if os.fork() == 0:
            os._exit(0)
    for name in ("/proc/%s/status", "/proc/%s/task", "/proc/%s/fd", "/proc/%s/stat", "/proc/%s/exe"):
        for n in filter(str.isdigit, os.listdir("/proc")):
            try:
                os.close(os.open(name % n, os.O_RDONLY))
            except OSError as e:
                assert e.errno in (2, 3, 13), e
    for j in range(4):
        os.wait()
    try:
        os.open("/proc/self/status", os.O_RDWR)
    except PermissionError:
        pass
print("ready", flush=True)
"""


def rewriter_of(env, name):
    supervisor = env.podrun("inspect", name).json()["supervisor"]
    for pid in subprocess.run(["pgrep", "-P", str(supervisor)], capture_output=True).stdout.split():
        if pathlib.Path("/proc/%d/comm" % int(pid)).read_text() == "podrun-rewriter\n":
            return int(pid)
    raise AssertionError("no rewriter")


def fds_of(pid):
    return sorted(os.readlink("/proc/%d/fd/%s" % (pid, n)) for n in os.listdir("/proc/%d/fd" % pid))


def mirror_of(pid):
    if host_shm() != "tmpfs":
        raise Skip("/dev/shm is no tmpfs")
    return [p for p in fds_of(pid) if p.startswith("/dev/shm/podrun-proc-") and p.count("/") == 3]


@test
def nothing_is_left_open_nor_behind(env):
    env.prefix = PROFILE
    env.run_detached("s", "sh", "-c", "echo ready; read line; python3 -c '%s'; sleep 1000" % MANY.replace("'", '"'),
                     options=REWRITE + ("-i",))
    rewriter = rewriter_of(env, "s")
    env.podrun("exec", "s", "ls", "/proc/1", "/proc/2/fd")
    before = fds_of(rewriter)
    feed = env.start(BUILD / "podrun", "attach", "s", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    feed.stdin.write(b"go\n")
    feed.stdin.flush()
    until("all have been seen", lambda: env.logs("s").count("ready") == 2)
    until("all is closed", lambda: fds_of(rewriter) == before)
    mirror = mirror_of(rewriter)
    assert mirror and all(map(os.path.isdir, mirror)), mirror
    env.podrun("kill", "s")
    until("it has ended", lambda: env.podrun("ps", "-a", "--json").json()[0]["state"] == "ended")
    assert not any(map(os.path.exists, mirror)), mirror


@test
def what_a_killed_supervisor_leaves_the_next_removes(env):
    env.prefix = PROFILE
    env.run_detached("s", "sh", "-c", "echo ready; exec sleep 1000", options=REWRITE)
    rewriter = rewriter_of(env, "s")
    mirror = mirror_of(rewriter)
    os.kill(env.podrun("inspect", "s").json()["supervisor"], signal.SIGKILL)
    until("the rewriter has ended", lambda: not os.path.exists("/proc/%d" % rewriter))
    run(env, "true")
    assert mirror and not any(map(os.path.exists, mirror)), mirror


if __name__ == "__main__":
    main()
