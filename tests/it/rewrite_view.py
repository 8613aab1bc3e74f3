#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: the private view of files, where no mount namespace makes it."""
import difflib
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile

os.environ.pop("PODRUN_TEST_NAMES", None)  # it says itself where names are rewritten, and compares with where they are not
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import one_line  # noqa: E402
from harness import BUILD, PROFILE, main, test, until  # noqa: E402

PROBE = str(BUILD / "tests" / "path_probe")
RACE = str(BUILD / "tests" / "path_race")
REWRITE = ("--names", "rewrite", "--net", "host")


def run(env, *command, options=(), **more):
    """In a session with rewritten names, as a container engine would have it."""
    env.prefix = PROFILE
    return env.podrun("run", *REWRITE, "-w", "/", *options, "--rm", "--", *command, **more)


def same(env, *command, options=()):
    """Says the same under kernel names and under rewritten ones; returns what."""
    env.prefix = []
    kernel = env.podrun("run", "--net", "host", "-w", "/", *options, "--rm", "--", *command)
    rewritten = run(env, *command, options=options)
    diff = difflib.unified_diff(kernel.text.splitlines(), rewritten.text.splitlines(), "kernel names",
                                "rewritten names", lineterm="", n=12)
    assert kernel.text == rewritten.text, "\n".join(diff)
    return rewritten.text


SHELL = r"""
cd /tmp && pwd && cd .. && pwd; cd /tmp/.. && pwd -P; cd /run/user && pwd -P
ls -ld /tmp /run /dev/shm | cut -d' ' -f1
ls /tmp /run
cat >/tmp/here <<E
here
E
cat </tmp/here; cat /tmp//./here /dev/../tmp/here ../tmp/here; cd /tmp; cat here ../tmp/here
umask 027; mkdir d; echo x >d/f; stat -c '%A %n' d d/f; umask 022
ln -s /tmp/d/f abs; ln -s d/f rel; ln -s ../../../../tmp/d up; ln -s /etc/passwd out; ln -s abs chain
cat abs rel up/f chain; head -c5 out /tmp/../etc/passwd; readlink abs rel up out chain; readlink -f chain up/f
ls d/../d/f up/../abs; cat d/f/; cat nothing; cat d; rmdir d; rmdir .; rmdir /tmp; mv /tmp /tmp2
mv d/f e && ls; ln e hard && stat -c %h hard; cp -a e copy && cmp e copy && echo same
chmod 600 e && stat -c %a e; touch -d 2001-02-03 e && stat -c %Y e; truncate -s 10 e && stat -c %s e
test -w e && echo w; test -x e || echo not x; test -e abs || echo dangling; test -L abs && echo link
echo new >abs; ls d; mkfifo p; cat p & echo through >p; wait
printf '#!/bin/sh\necho $0 $*\n' >s; chmod +x s; ./s a; /tmp/s b; PATH=/tmp s c
cp /bin/sh sh2; printf '#!/tmp/sh2 -e\necho $0 $*\n' >s2; chmod +x s2; ./s2 a; /tmp/s2 b
find /tmp /run/lock | sort; rm -r /tmp/*; ls -A /tmp
ls -ld /var/run/lock | cut -c1-10; echo x >/var/run/lock/l; ls /run/lock; cat /run/lock/l
"""


@test
def a_shell_script_says_the_same(env):
    text = same(env, "bash", "-c", "exec 2>&1; " + SHELL)
    assert "through" in text and "dangling" in text


CALLS = r"""
import ctypes, errno, os, socket, stat, sys, tempfile
def say(what, f, *a, **k):
    try:
        r = f(*a, **k)
        if isinstance(r, os.stat_result):
            r = (stat.filemode(r.st_mode), r.st_size, r.st_nlink)
        elif isinstance(r, int) and f is os.open:
            os.close(r)
            r = "fd"
        elif isinstance(r, os.statvfs_result):
            r = r.f_namemax
        print(what, *a, k or "", "->", r)
    except OSError as e:
        print(what, *a, k or "", "->", errno.errorcode[e.errno])
os.chdir("/tmp")
os.makedirs("d/e"); open("d/f", "w").write("12345"); os.symlink("d", "l"); os.symlink("loop", "loop")
os.symlink("/tmp/new", "dangling"); os.symlink("f", "d/g")
d = os.open("/tmp/d", os.O_RDONLY)
paths = ["/tmp", "/tmp/", "/tmp/d/f", "/tmp/d/f/", "/tmp/d/f/x", "/tmp/d/", "/tmp/l", "/tmp/l/", "/tmp/l/f",
         "/tmp/loop", "/tmp/loop/x", "/tmp/dangling", "/tmp/dangling/", "/tmp/no/x", "/tmp/d/../d/g",
         "d/g", "../tmp/d/f", "l/../d/f", "", ".", "/tmp/" + "x" * 255,
         "/tmp/" + "x" * 256, "/tmp/" + "d/../" * 900, "/tmp/" + "./" * 3000, "/dev/shm/", "/run/lock",
         "/tmp/../../../tmp/d/f", "/var/run", "/var/run/", "/dev/stdin/x"]
for p in paths:
    short = p if len(p) < 300 else p[:20]
    def on(f, *a, **k):
        try:
            return f(p, *a, **k)
        except OSError as e:
            e.filename = None
            raise
    def st(follow):
        r = os.stat(p, follow_symlinks=follow)
        return stat.filemode(r.st_mode) if stat.S_ISDIR(r.st_mode) else r
    print("==", short)
    say("stat", st, True)
    say("lstat", st, False)
    say("access", lambda: os.access(p, os.R_OK | os.W_OK | os.X_OK))
    say("readlink", lambda: os.readlink(p))
    say("chdir", lambda: (os.chdir(p), os.getcwd(), os.chdir("/tmp"))[1])
    for flags in ("O_RDONLY", "O_RDWR", "O_PATH", "O_NOFOLLOW", "O_DIRECTORY", "O_PATH O_NOFOLLOW"):
        bits = 0
        for one in flags.split():
            bits |= getattr(os, one)
        say("open " + flags, lambda: os.close(os.open(p, bits)))
    say("O_EXCL", lambda: (os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_RDWR)), os.unlink(p))[1])
    say("mkdir", lambda: (os.mkdir(p), os.rmdir(p))[1])
    say("statvfs", lambda: os.statvfs(p).f_namemax > 0)
    say("utime", lambda: os.utime(p, (1, 2)))
    say("listxattr", lambda: len(os.listxattr(p)) >= 0)
    if p not in (".", "/tmp", "/tmp/", "/dev/shm/", "/run/lock"):
        say("symlink", lambda: (os.symlink("x", p), os.unlink(p))[1])
        say("rmdir", lambda: os.rmdir(p) if p.startswith("/tmp/../") else None)
say("at", os.open, "f", os.O_RDONLY, dir_fd=d)
say("at", os.open, "../d/f", os.O_RDONLY, dir_fd=d)
say("at", os.stat, "g", dir_fd=d, follow_symlinks=False)
say("at", os.open, "f", os.O_RDONLY, dir_fd=99)
say("at", os.mkdir, "new", dir_fd=d)
say("at", os.rename, "new", "newer", src_dir_fd=d, dst_dir_fd=d)
say("at", os.unlink, "newer", dir_fd=d)
say("at", os.rmdir, "newer", dir_fd=d)
libc, buf = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(256)
for p in (b"/tmp/d/f", b"d/f", b"f", b"", b"/tmp/loop"):
    for fd in (-100, d, 99):
        for flags in (0, 0x1000, 0x1100):  # AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW
            stats = libc.fstatat(fd, p, buf, flags), libc.statx(fd, p, flags, 0, buf)
            if p[:1] != b"/" or fd < 0 or not flags:
                print(fd == d or fd, p, flags, *stats)
say("rename", os.rename, "/tmp/d/f", "/run/f")
say("link", os.link, "/tmp/d/f", "/dev/shm/f")
say("link", os.link, "/tmp/l", "/tmp/l2", follow_symlinks=False)
say("dup", os.rename, "/tmp/d", "/tmp/d/e/d")
say("tmpfile", os.open, "/tmp", os.O_TMPFILE | os.O_RDWR)
say("tmpfile", os.open, "/tmp/d/f", os.O_TMPFILE | os.O_RDWR)
say("mknod", os.mknod, "/tmp/fifo", stat.S_IFIFO | 0o600)
say("fifo", os.open, "/tmp/fifo", os.O_WRONLY | os.O_NONBLOCK)
say("chmod", os.chmod, "/tmp/d/g", 0o640)
say("stat", os.stat, "/tmp/d/f")
say("chown", os.chown, "/tmp/d/f", -1, -1)
os.umask(0o077)
print(tempfile.mkdtemp(dir="/tmp").startswith("/tmp/"), oct(os.open("/tmp/u", os.O_CREAT | os.O_RDWR, 0o666)))
say("umask", os.stat, "/tmp/u")
os.rmdir("/tmp/d/e"); os.mkdir("/tmp/gone"); os.chdir("/tmp/gone"); os.rmdir("/tmp/gone")
say("cwd", os.getcwd)
os.mkdir("/tmp/r1"); os.chdir("/tmp/r1"); os.rename("/tmp/r1", "/tmp/r2"); say("cwd", os.getcwd)
say("renamed", lambda: os.close(os.open("x", os.O_CREAT | os.O_RDWR))); print(os.stat("x").st_size, os.listdir("/tmp/r2"))
os.rename("/tmp/r2/x", "/tmp/x"); os.mkdir("/tmp/gone"); os.chdir("/tmp/gone"); os.rmdir("/tmp/gone")
say("open", os.open, "x", os.O_RDONLY)
say("open", os.open, "x", os.O_CREAT | os.O_RDWR)
os.chdir("/tmp")
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/s"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("s"); print(s.getsockname(), c.getpeername())
os.symlink("/tmp/s", "/tmp/ls"); os.mkdir("/tmp/sd")
c = socket.socket(socket.AF_UNIX); c.connect("ls"); print(c.getpeername())
c = socket.socket(socket.AF_UNIX); c.bind("sd/u"); c.listen(); print(c.getsockname(), os.listdir("/tmp/sd"))
say("sock", socket.socket(socket.AF_UNIX).bind, "/tmp/s")
say("sock", socket.socket(socket.AF_UNIX).connect, "/tmp/none")
say("sock", os.open, "/tmp/s", os.O_RDONLY)
g = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); g.bind("g")
print(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"hi", "/tmp/g"), g.recv(9))
print(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b"hello"], [], 0, "/tmp/g"), g.recv(9))
print(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b"hello"], [], 0, "g"), g.recv(9))
say("sock", socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg, [b"hello"], [], 0, "/run/none")
"""


@test
def calls_end_the_same(env):
    text = same(env, "python3", "-c", CALLS)
    assert "ELOOP" in text and "ENOTDIR" in text and "ENAMETOOLONG" in text and "EXDEV" in text


PROGRAMS = r"""
import multiprocessing as mp, os, sqlite3, subprocess, tempfile
from multiprocessing import shared_memory
with tempfile.TemporaryDirectory() as d:
    open(d + "/a.c", "w").write('#include "a.h"\nint main(void) { return A; }')
    os.mkdir(d + "/i"); open(d + "/i/a.h", "w").write("#define A 7\n")
    subprocess.check_call(["cc", "-I", d + "/i", "-o", d + "/a", d + "/a.c"])
    print(subprocess.call([d + "/a"]), sorted(os.listdir(d)))
    sh = lambda c: print(subprocess.check_output(c, shell=True, cwd=d, text=True))
    sh("git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm x && git status --short;"
       "git log --format=%s; tar cf - a.c i | tar tf -; sort a.c; sed -i s/7/8/ i/a.h; cat i/a.h; find . -name '*.h'")
    c = sqlite3.connect(d + "/db"); c.execute("create table t(a)"); c.execute("insert into t values(1)"); c.commit()
    print(c.execute("select * from t").fetchall())
def square(x):
    return x * x
s = shared_memory.SharedMemory(create=True, size=100, name="here"); print(os.listdir("/dev/shm"))
s.close(); s.unlink()
with mp.Pool(2) as p:
    print(p.map(square, range(4)))
print(os.listdir("/tmp"))
from multiprocessing import resource_tracker
resource_tracker._resource_tracker._stop()
"""


@test
def programs_do_their_work(env):
    same(env, "python3", "-c", PROGRAMS)


@test
def a_terminal_multiplexer(env):
    script = ("tmux new-session -d 'echo in >/tmp/out; tmux wait-for -S done; exec sleep 1000' && tmux wait-for done;"
              "cat /tmp/out; ls -d /tmp/tmux-*/default; p=$(tmux display-message -p '#{pid}'); tmux kill-server;"
              "while kill -0 $p 2>/dev/null; do sleep 0.05; done")
    same(env, "sh", "-c", script)


@test
def volumes(env):
    there = env.path("there")
    there.mkdir()
    (there / "file").write_text("text\n")
    (there / "up").symlink_to("../outside")
    env.path("outside").write_text("not for you\n")
    script = ("ls /tmp /tmp/in /mnt/vol; cat /mnt/vol/file /tmp/in/file; echo x >/tmp/in/new; cat /mnt/vol/new;"
              "echo y >/mnt/vol/new; touch /mnt/vol/new2; rm /mnt/vol/new; mkdir /mnt/vol/d; cat /mnt/vol/up;"
              "cd /mnt/vol && pwd && cat file ../vol/file; /bin/pwd; cd /tmp/in; /bin/pwd; mv /tmp/in/new /tmp; rmdir /tmp/in; test -w /mnt/vol/file;"
              "echo $?; cat /tmp/one; rm /tmp/one; true")
    options = ("-v", "%s:/tmp/in" % there, "-v", "%s:/mnt/vol:ro" % there,
               "-v", "%s:/tmp/one" % (there / "file"))
    text = same(env, "bash", "-c", "exec 2>&1; " + script, options=options)
    assert "not for you" not in text and "Read-only" in text
    assert sorted(p.name for p in there.iterdir()) == ["file", "up"]


@test
def volumes_of_other_file_systems(env):
    own = pathlib.Path(tempfile.mkdtemp(prefix="podrun-view-", dir="/dev/shm"))
    try:
        (own / "f").write_text("text\n")
        (own / "l").symlink_to("/etc/hostname")
        (own / "r").symlink_to("../%s/f" % own.name)
        script = ("d={0}; ls /host$d; cat /host$d/f /host$d/r; cat /host$d/l | wc -l; head -c 5 /host/proc/version;"
                  "mkdir /host$d/d 2>&1 | grep -c Read-only; cd /tmp/shm; cat f r 2>&1; echo new >n; cat ../shm/n; rm n;"
                  "stat -c %s /host$d/../{1}/f; echo hi >/tmp/dev/null; head -c 3 /tmp/dev/zero | wc -c;"
                  "cd /tmp$d && pwd && cat f; echo a >a; cat a ../{1}/a; rm a; ls").format(own, own.name)
        text = same(env, "bash", "-c", script, options=("-v", "/:/host:ro", "-v", "%s:/tmp/shm" % own,
                                                        "-v", "/dev:/tmp/dev"))
        assert text.count("text") == 4 and "/tmp/dev/shm" in text, text
    finally:
        shutil.rmtree(own)


LISTENS = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\\0" + sys.argv[1])
    print("reached")
except OSError as e:
    print(type(e).__name__)
a = socket.socket(socket.AF_UNIX); a.bind("\\0own"); a.listen(); s.connect("\\0own"); print("own")
"""


ANSWERS = """
import os, socket
a, b = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
a.bind("/tmp/a")
b.bind("/run/b")
for send in (a.sendto, lambda data, to: a.sendmsg([data], [], 0, to)):
    b.sendto(b"question", "/tmp/a")
    data, sender = a.recvfrom(99)
    send(b"answer", sender)
    print(data, b.recv(99, socket.MSG_DONTWAIT))
a.connect(sender)
a.send(b"more")
print(b.recv(99, socket.MSG_DONTWAIT), a.getpeername())
"""


@test
def datagrams_are_answered(env):
    """To the address that they came from."""
    assert "more" in same(env, "python3", "-c", ANSWERS)


@test
def abstract_sockets_of_the_hosts(env):
    facts = env.podrun("check", "--json").json()["checks"]
    if not next(c["ok"] for c in facts if c["name"] == "landlock-scopes"):
        return
    with socket.socket(socket.AF_UNIX) as there:
        name = "podrun-test-%d" % os.getpid()
        there.bind("\0" + name)
        there.listen()
        assert run(env, "python3", "-c", LISTENS, name).text.split() == ["PermissionError", "own"]


@test
def without_landlock(env):
    env.prefix = PROFILE + ["--refuse", "landlock_create_ruleset"]
    facts = env.podrun("check", "--json").json()["checks"]
    assert not next(c["ok"] for c in facts if c["name"] == "landlock")
    text = env.podrun("run", *REWRITE, "-w", "/", "--rm", "--", "sh", "-c", SHELL).text
    assert "through" in text


@test
def what_belongs_to_others_is_not_there(env):
    secret = env.path("secret")
    secret.write_text("secret\n")
    text = run(env, "sh", "-c", "cat %s; ls -A /tmp; ls -A %s; echo x >%s; ls %s" % (
        secret, env.dir, secret, env.environ["XDG_STATE_HOME"]), check=False).text
    assert "secret" not in text
    assert secret.read_text() == "secret\n"


@test
def nothing_of_the_hosts_is_reached(env):
    for place in (env.dir, "/dev/shm", "/run/user/%d" % os.getuid()):
        try:
            own = pathlib.Path(tempfile.mkdtemp(prefix="podrun-race-", dir=place))
        except OSError:
            continue
        try:
            secret = own / "secret"
            secret.write_text("secret\n")
            text = run(env, RACE, str(secret), options=("-v", "%s:%s" % (BUILD, BUILD))).text
            assert text == "over\n", "%s: %s" % (place, text)
            assert secret.read_text() == "secret\n"
            assert os.listdir(own) == ["secret"], os.listdir(own)
        finally:
            shutil.rmtree(own)


UNREAD = r"""
exec 2>&1; cp "$(command -v stat)" /tmp/stat; chmod 111 /tmp/stat
cd /tmp; /tmp/stat -c %n "$1"; ./stat -c %n "$1"; /out/stat -c %n "$1"
cd "$2"; "$2/stat" -c %n "$1"; ./stat -c %n "$1"
python3 -c 'import os, sys; os.execve(os.open(sys.argv[1], os.O_PATH), ["stat", "-c", "%n", sys.argv[2]], {})' \
        "$2/stat" "$1" 2>&1 | tail -1
printf '#!%s/stat -c%%n\n' "$2" >/tmp/script; chmod +x /tmp/script; /tmp/script "$1"; echo $?
chmod 555 /tmp/stat; /tmp/stat -c %n /tmp; echo over
"""


@test
def a_program_that_may_not_be_read(env):
    """Its paths could not be replaced, so it would see which of the host's files are there."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="podrun-unread-", dir="/var/tmp"))
    try:
        stat = place / "stat"
        shutil.copy(shutil.which("stat"), stat)
        stat.chmod(0o111)
        # The host's /tmp is not the session's.
        secret = env.path("secret")
        secret.touch()
        lines = run(env, "sh", "-c", UNREAD, "sh", str(secret), str(place),
                    options=("-v", "%s:/out" % place)).text.splitlines()
        assert str(secret) not in lines, lines
        assert all("ermission" in line and "denied" in line for line in lines[:6]), lines
        # As an interpreter it is the kernel that finds it: killed.
        assert lines[6:] in (["Killed", "137", "/tmp", "over"], ["137", "/tmp", "over"]), lines
        refused = run(env, str(stat), "-c", "%n", str(secret), code=126)
        one_line(refused, "cannot run '%s': Permission denied" % stat, "must be readable")
        assert "hint" not in run(env, "/etc/passwd", code=126).errors
        assert run(env, str(stat), "-c", "%n", str(secret), options=("--view", "host")).text.strip() == str(secret)
        env.prefix = []
        env.podrun("run", "--net", "host", "--rm", "--", str(stat), "-c", "%n", str(secret), code=1)
    finally:
        shutil.rmtree(place)


@test
def strange_arguments(env):
    for seed in range(3):
        text = run(env, "sh", "-c", "echo before; %s 1500 %d <&- 2>&1 | tail -1; echo $$; ls -d /tmp" % (
            PROBE, seed + 1), options=("-v", "%s:%s" % (BUILD, BUILD))).text
        assert text.split() == ["before", "over", "2", "/tmp"], text


@test
def working_directory(env):
    env.prefix = PROFILE
    one_line(env.podrun("run", *REWRITE, "-w", str(env.dir), "--", "true", code=125), str(env.dir), "hint: ")
    there = ("-v", "%s:%s" % (env.dir, env.dir), "-w", str(env.dir))
    assert env.podrun("run", *REWRITE, *there, "--rm", "--", "pwd").text.strip() == str(env.dir)


DEEP = r"""
import os, shutil, subprocess, sys
top, name = sys.argv[1], "d" * 200
os.chdir(top)
for i in range(25):
    os.mkdir(name)
    os.chdir(name)
    with open("f", "w") as f:
        f.write("%d" % i)
    os.rename("f", "g")
    os.link("g", "./h")
    os.symlink("g", "s")
    with open("s", "a") as f:
        f.write(" more")
    os.chmod("../" + name + "/g", 0o700)
    print(open("g").read(), oct(os.stat("h").st_mode), os.access("g", os.W_OK), os.readlink("s"), sorted(os.listdir(".")))
    with open("run", "w") as f:
        f.write("#!/bin/sh\necho it runs: $0; ls; pwd >/dev/null && cd .. && ls | cut -c1-9\n")
    os.chmod("run", 0o755)
    print(subprocess.run(["./run"], capture_output=True, text=True).stdout)
for i in range(25):
    os.chdir("..")
print(os.getcwd(), sorted(os.listdir(".")) == [name])
for command in (["find", ".", "-name", "g"], ["du", "--apparent-size", "."], ["tar", "-cf", "-", "."], ["rm", "-rf", name]):
    p = subprocess.run(command, capture_output=True)
    print(command, p.returncode, p.stderr.decode())
print(os.listdir("."))
"""


@test
def deeper_than_a_path_can_say(env):
    text = same(env, sys.executable, "-c", DEEP, "/tmp")
    assert "24 more" in text and text.endswith("\n[]\n"), text
    env.path("v").mkdir()
    volume = ("-v", "%s:/tmp/v" % env.path("v"))
    assert "24 more" in same(env, sys.executable, "-c", DEEP, "/tmp/v", options=volume)


STANDS = r"""
import ctypes, os, random, signal, sys, threading
CLONE_FS = 0x200
libc = ctypes.PyDLL(None)
open("/tmp/mark", "w").close()
def stands():  # as paths are told that lead into the view
    return "/" if os.path.exists("tmp/mark") else "/usr" if os.path.exists("../tmp/mark") else "nowhere"
def work(i):
    while True:
        what, arg = os.read(orders[i][0], 16).decode().split()
        answer = "done"
        if what == "cd":
            os.chdir(arg)
        elif what == "stands":
            answer = stands()
        elif what == "end":
            while True:
                try:
                    os.wait()
                except ChildProcessError:
                    os._exit(0)
        elif libc.syscall(56, signal.SIGCHLD | (CLONE_FS if what == "share" else 0), 0, 0, 0, 0) == 0:
            i = int(arg)
            continue
        os.write(answers[1], answer.encode().ljust(16))
def tell(i, what, arg=0):
    os.write(orders[i][1], ("%s %s" % (what, arg)).encode().ljust(16))
    return os.read(answers[0], 16).decode().strip()
def round(seed):
    r, shared, at = random.Random(seed), {0: 0}, {0: "/"}
    os.chdir("/")
    if os.fork() == 0:
        work(0)
    while len(shared) < MANY or r.random() < 0.9:
        i, what = r.choice(list(shared)), r.choice(["cd", "stands", "stands", "fork", "share"])
        if what == "cd":
            at[shared[i]] = r.choice(["/", "/usr"])
            tell(i, what, at[shared[i]])
        elif what == "stands":
            told = tell(i, what)
            if told != at[shared[i]]:
                sys.exit("%d: %d is at %s, not %s" % (seed, i, at[shared[i]], told))
        elif len(shared) < MANY:
            n = len(shared)
            tell(i, what, n)
            shared[n] = shared[i] if what == "share" else n
            at.setdefault(n, at[shared[i]])
    for i in range(MANY):
        os.write(orders[i][1], b"end 0".ljust(16))
    os.wait()
MANY = 8
orders, answers = [os.pipe() for _ in range(MANY)], os.pipe()
for seed in range(12):
    round(seed)
# A thread moves just when another makes a child: sometimes it was first, sometimes the other.
both, moved = threading.Barrier(2), threading.Barrier(2)
def move():
    for i in range(400):
        both.wait()
        for _ in range(random.randrange(300)):
            pass
        os.chdir(("/usr", "/")[i & 1]); moved.wait()
os.chdir("/")
threading.Thread(target=move).start()
for i in range(400):
    stands(); both.wait()
    for _ in range(random.randrange(300)):
        pass
    ready = os.pipe()
    if os.fork() == 0:
        os.read(ready[0], 1)
        os._exit(stands() != os.getcwd())
    moved.wait()
    stands(); os.write(ready[1], b"x")
    if os.wait()[1]:
        print("a child of a thread is not told right", flush=True)
        os._exit(1)
    os.close(ready[0]); os.close(ready[1])
print("all right")
"""


@test
def who_shares_a_working_directory(env):
    assert run(env, "python3", "-c", STANDS, timeout=300).text.strip() == "all right"


@test
def threads_that_stand_in_different_directories(env):
    """Under kernel names it is the kernel that says what is found."""
    there = ("-v", "%s:%s" % (BUILD, BUILD))
    for way in ("made", "unshares"):
        script = "touch /tmp/mark; exec %s %s" % (BUILD / "tests" / "it" / "parted", way)
        # A container's default profile refuses any unshare.
        for names in (("--net", "host"), REWRITE):
            text = env.podrun("run", *names, "-w", "/", *there, "--rm", "--", "sh", "-c", script).text
            assert text == "yynynynynny y\n", (way, names, text)


MOVED = r"""
import mmap, os, signal, socket, sys
os.chdir("/tmp"); os.mkdir("d"); os.chdir("d")
f = open("/tmp/f", "w+"); f.write("one\n"); f.flush()
m = mmap.mmap(os.open("/dev/shm/m", os.O_CREAT | os.O_RDWR), 0) if os.truncate(
    os.open("/dev/shm/m", os.O_CREAT | os.O_RDWR), 4096) is None else None
m[:3] = b"shm"
g = open("/tmp/gone", "w+"); g.write("gone"); g.flush(); os.unlink("/tmp/gone")
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/d/s"); s.listen()
os.symlink("/tmp/f", "/run/lock/l")
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
f.write("two\n"); f.flush(); g.seek(0)
c = socket.socket(socket.AF_UNIX); c.connect("s")
print(os.getcwd(), open("/run/lock/l").read().split(), open("/dev/shm/m", "rb").read(3), g.read(), s.getsockname(),
      c.getpeername(), os.readlink("/proc/self/fd/%d" % f.fileno()), sorted(os.listdir("/tmp")), os.listdir("/dev/shm"), flush=True)
"""


WAITS = r"""
import os, signal, subprocess, threading, time
os.mkfifo("/tmp/f")
def late():
    fd = os.open("/tmp/f", os.O_WRONLY)
    os.write(fd, b"late")
    os.close(fd)
class Rung(Exception):
    pass
def ring(*_):
    raise Rung
signal.signal(signal.SIGALRM, ring)
for opens in (lambda: os.open("/tmp/f", os.O_RDONLY), lambda: open("/tmp/f", "w")):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        opens()
        print("opened")
    except Rung:
        print("interrupted")
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.1)
threading.Timer(0.4, late).start()
print(open("/tmp/f").read())
for command in ("exec cat /tmp/f", "exec 3>/tmp/f"):
    print(subprocess.call(["timeout", "0.2", "sh", "-c", command]))
p = subprocess.Popen(["cat", "/tmp/f"]); time.sleep(0.1); p.kill(); print(p.wait())
many = [subprocess.Popen(["cat", "/tmp/f"], stdout=subprocess.PIPE) for i in range(20)]
time.sleep(0.1)
print(os.stat("/tmp/f").st_size)
fd = os.open("/tmp/f", os.O_WRONLY)
def has_it(p):
    try:
        return any(os.readlink("/proc/%d/fd/%s" % (p.pid, n)) == "/tmp/f" for n in os.listdir("/proc/%d/fd" % p.pid))
    except OSError:
        return False
while not all(map(has_it, many)): time.sleep(0.01)
os.close(fd)
print([p.wait() for p in many])
"""


@test
def another_name(env):
    env.prefix = PROFILE
    script = ("cd /tmp; echo x >x; echo ready; while ! test -e go; do sleep 0.05; done; mkdir d; cat /tmp/x; pwd; "
              "cat ../tmp/x; mv x d; cat d/x; /bin/pwd")
    env.run_detached("one", "sh", "-c", script, options=(*REWRITE, "-w", "/tmp"))
    env.podrun("rename", "one", "two")
    env.exec_last("-w", "/tmp", "two", "--", "touch", "go")
    assert env.wait("two").split() == ["ready", "x", "/tmp", "x", "x", "/tmp"]


@test
def another_has_the_old_name(env):
    """Its files lie where those of one that is renamed and suspended were."""
    env.prefix = PROFILE
    script = "import sys, time; f = open('/tmp/f', 'w'); print(sys.argv[1], file=f, flush=True); print('ready', flush=True); time.sleep(1000)"
    for name in "one", "two":
        env.run_detached("s", "python3", "-c", script, name, options=REWRITE)
        if name == "one":
            env.podrun("rename", "s", "t")
    env.podrun("suspend", "t")
    env.podrun("resume", "-d", "t")
    for name, has in ("t", "one"), ("s", "two"):
        assert env.podrun("exec", name, "cat", "/tmp/f").text == has + "\n"
        env.podrun("kill", name)


LONG = r"""
import errno, os, socket, sys
stream = lambda: socket.socket(socket.AF_UNIX)
dgram = lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for top in ("/tmp/", "/run/", "/dev/shm/", "/run/lock/", *sys.argv[1:]):
    name = lambda what: top + (what * 86)[len(top):]
    print("==", top)
    s = stream(); s.bind(name("s")); s.listen()
    c = stream(); c.bind(name("c")); c.connect(name("s")); p, _ = s.accept(); p.send(b"hello")
    print(s.getsockname(), c.getsockname(), c.getpeername(), p.getsockname(), p.getpeername(), c.recv(9))
    d = dgram(); d.bind(name("d")); e = dgram(); e.bind(name("e")); e.sendto(b"1", name("d"))
    print(d.recv(9)); e.sendmsg([b"2"], [], 0, name("d"))
    m, who = d.recvfrom(9); d.sendto(b"3", who); d.sendmsg([b"4"], [], 0, who); print(m, e.recv(9), e.recv(9))
    os.symlink(name("s"), top + "l"); os.chdir(top); stream().connect("l"); stream().connect(top + "l")
    stream().connect(name("s")[len(top):]); r = stream(); r.bind("r"); print(r.getsockname())
    for f in (lambda: stream().bind(name("s")), lambda: stream().connect(name("n")), lambda: e.sendto(b"", name("n")),
              lambda: stream().bind(top + "d/" + name("s")[len(top) + 2:])):
        try:
            print(f())
        except OSError as e2:
            print(errno.errorcode[e2.errno])
    f = dgram(); f.bind(top + "short"); f.sendto(b"5", name("d")); m, who = d.recvfrom(9); d.sendto(m, who); print(f.recv(9))
    os.unlink(name("s")); s = stream(); s.bind(name("s")); print(s.getsockname(), sorted(os.listdir(top)))
    for i in "123":
        deep = top + i * 40 + "/"; os.mkdir(deep); n = deep + (i * 107)[len(deep):]
        s = stream(); s.bind(n); s.listen(); c = stream(); c.connect(n); print(s.getsockname(), c.getpeername())
        os.rename(deep, top + "away" + i); stream().connect(top + "away" + i + n[len(deep) - 1:])
        try:
            stream().connect(n)
        except OSError as e2:
            print(errno.errorcode[e2.errno])
"""


@test
def long_names_of_sockets(env):
    own = env.path("own")
    own.mkdir()
    volume = "/" + "v" * 40 + "/"
    text = run(env, "python3", "-c", LONG, "/tmp/" + "v" * 30 + "/",
               options=("-v", "%s:/tmp/%s" % (own, "v" * 30))).text
    assert text.count("ADDRINUSE") == 5 and not os.path.exists(own / "podrun"), text
    same(env, "python3", "-c", LONG)
    # Where what the session says is longer than what the host is told.
    script = ("import socket, sys\ns = socket.socket(socket.AF_UNIX)\nn = sys.argv[1]\ns.bind(n)\n"
              "print(s.getsockname() == n)")
    assert run(env, "python3", "-c", script, volume + "s", options=("-v", "%s:%s" % (own, volume))).text == "True\n"
    assert os.listdir(own).count("s") == 1


HEARS = r"""
import os, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
long = "/tmp/" + "s" * 80
s = socket.socket(socket.AF_UNIX); s.bind(long); s.listen()
c = socket.socket(socket.AF_UNIX); c.bind("/tmp/" + "c" * 80); c.connect(long)
print(s.accept()[1], "ready", flush=True)
signal.sigwait([signal.SIGUSR1])
c = socket.socket(socket.AF_UNIX); c.connect(long); print(c.getpeername() == long)
c = socket.socket(socket.AF_UNIX); c.bind("/tmp/" + "b" * 80); c.connect(long); print(c.getsockname()[:6], s.accept() and "over")
"""


def short_place(env, name):
    """What the kernel says of a long name: a directory beside all others'."""
    place = pathlib.Path(env.logs(name).split()[0]).parents[1]
    assert place.parent == pathlib.Path("/tmp") and place.stat().st_mode & 0o777 == 0o700, place
    assert os.listdir(place) == ["0"] and os.readlink(place / "0").endswith("/files/tmp"), os.listdir(place)
    return place


@test
def short_names_go_with_the_session(env):
    env.prefix = PROFILE
    command = ("bash", "-c", "exec -a hears python3 -c '%s'" % HEARS.replace("'", "'\"'\"'"))
    env.run_detached("hears", *command, options=(*REWRITE, "-w", "/"))
    place = short_place(env, "hears")
    env.podrun("rename", "hears", "heard")
    env.podrun("exec", "-w", "/", "heard", "--", "pkill", "-USR1", "-f", "^hears")
    assert env.wait("heard").split()[2:] == ["True", "/tmp/b", "over"], env.logs("heard")
    assert not place.exists()

    env.run_detached("killed", *command, options=(*REWRITE, "-w", "/"))
    place = short_place(env, "killed")
    os.kill(env.podrun("inspect", "killed").json()["supervisor"], signal.SIGKILL)

    def swept():
        env.podrun("ps")
        return not place.exists()
    until("nobody uses %s" % place, swept)


@test
def opens_that_wait(env):
    text = same(env, "python3", "-c", WAITS)
    assert text.count("interrupted") == 2 and "late" in text


@test
def a_suspend_while_somebody_waits(env):
    env.prefix = PROFILE
    script = "mkfifo /tmp/f; (echo ready; read l </tmp/f; echo got $l) & (exec 3>/tmp/g; wait)& wait"
    env.run_detached("waits", "sh", "-c", script, options=(*REWRITE, "-w", "/"))
    env.podrun("pause", "waits")
    env.podrun("unpause", "waits")
    env.podrun("suspend", "waits")
    env.prefix = []
    env.podrun("resume", "-d", "waits")
    env.exec_last("waits", "--", "sh", "-c", "echo it >/tmp/f")
    assert "got it" in env.wait("waits")


def moves(env, *prefixes):
    """A session in the view goes through hosts with these prefixes."""
    env.prefix = prefixes[0]
    script = ("cp $(readlink -f $(command -v python3)) /tmp/py && exec /tmp/py -c 'import signal; "
              "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n" + MOVED.replace("'", "'\"'\"'") + "'")
    options = ("--net", "host", "-w", "/") + (("--names", "rewrite") if prefixes[0] else ())
    env.run_detached("moves", "bash", "-c", script, options=options)
    for prefix in prefixes[1:]:
        env.podrun("suspend", "moves")
        env.prefix = prefix
        env.podrun("resume", "-d", *(("--names", "rewrite") if prefix else ()), "moves")
    env.podrun("exec", "moves", "--", "pkill", "-USR1", "py")
    log = env.wait("moves")
    assert "/tmp/d ['one', 'two'] b'shm' gone /tmp/d/s /tmp/d/s /tmp/f ['d', 'f', 'py'] ['m']" in log, log


@test
def an_image_fits_where_kernel_names_are(env):
    moves(env, PROFILE, [])


@test
def an_image_fits_where_no_names_are(env):
    moves(env, [], PROFILE)


@test
def an_image_comes_back(env):
    moves(env, PROFILE, PROFILE)


if __name__ == "__main__":
    main()
