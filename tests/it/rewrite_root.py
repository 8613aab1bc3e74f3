#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: a host name and a root directory of the session's own where names are rewritten."""
import difflib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import finish, one_line  # noqa: E402
from harness import BUILD, PODRUN, PROFILE, ROOT, main, test  # noqa: E402
from tree import make_tree, put  # noqa: E402

HERE = ("--names", "rewrite", "--net", "host")
OUTSIDE = str(ROOT)  # which is surely there, and not in a tree


def run(env, *argv, **kw):
    return env.podrun("run", *HERE, *argv, **kw)


# ---- host name ------------------------------------------------------------------------------------

NAMES = ("import os, socket\n"
         "print(os.uname().nodename, socket.gethostname(), *open('/proc/sys/kernel/hostname'),\n"
         "      *open('/proc/sys/kernel/domainname'), sep='|', end='')\n")


def domain():
    return pathlib.Path("/proc/sys/kernel/domainname").read_text()


@test
def host_name_is_said_everywhere(env):
    r = run(env, "--hostname", "here.example", "--", sys.executable, "-c", NAMES)
    assert r.text == "here.example|here.example|here.example\n|" + domain(), r
    one_line(run(env, "--hostname", "x" * 65, "--", "true", check=False), "--hostname")


@test
def all_else_of_uname_is_the_kernel_s(env):
    argv = ("setarch", "i686", "uname", "-srvm")
    assert run(env, "--hostname", "here", "--", *argv).text == env.call(*argv).text


@test
def an_ordinary_user_does_not_set_it(env):
    r = run(env, "--", sys.executable, "-c", "import socket\nsocket.sethostname('x')", code=1)
    assert "PermissionError" in r.errors, r


BECOMES = """
import os, socket
socket.sethostname("new")
print(os.uname().nodename, *open("/proc/sys/kernel/hostname"), end="")
os.setuid(33)
try:
    socket.sethostname("other")
except PermissionError:
    print("refused", socket.gethostname())
"""


@test
def root_inside_sets_it(env):
    """But only as long as he is that; and the host keeps its own."""
    was = os.uname().nodename
    r = run(env, "--user", "root", "--", sys.executable, "-c", BECOMES)
    assert r.text == "new new\nrefused new\n", r
    assert os.uname().nodename == was


WAITS = ("sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; uname -n")


CHANGES = ("sh", "-c", "hostname changed; echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; uname -n")


@test
def a_changed_name_comes_along(env):
    env.share_cache()
    for name, way, back in (("a", "kernel", "kernel"), ("b", "kernel", "rewrite"), ("c", "rewrite", "kernel"),
                            ("d", "rewrite", "rewrite")):
        root = make_tree(env.path(name + ".tree"))
        (root / "bin/hostname").symlink_to("busybox")
        env.run_detached(name, *CHANGES, options=("--names", way, "--net", "host", "--user", "root", "--root", root))
        env.podrun("suspend", name, "-o", env.path(name))
        env.podrun("rm", name)
        env.podrun("resume", env.path(name), "--names", back, "-d")
        log = finish(env, name)
        assert log.split()[-1] == "changed", (way, back, log)


def moved(env, name, way, back, *options):
    """What a session says of its host when it has been resumed the other way."""
    env.run_detached(name, *WAITS, options=("--names", way, "--net", "host", *options))
    env.podrun("suspend", name, "-o", env.path(name))
    env.podrun("rm", name)
    env.podrun("resume", env.path(name), "--names", back, "-d")
    return finish(env, name).split()[-1]


@test
def host_name_comes_along(env):
    """The host's own is one that stays, too."""
    assert moved(env, "a", "kernel", "rewrite") == "a"
    assert moved(env, "b", "kernel", "rewrite", "--hostname", "here") == "here"
    assert moved(env, "c", "rewrite", "kernel", "--hostname", "here") == "here"
    assert moved(env, "d", "rewrite", "kernel") == os.uname().nodename


# ---- root directory --------------------------------------------------------------------------------

def same(env, *command, options=(), python=False, wd="/"):
    """Says the same under kernel names and under rewritten ones, each in a tree of its own."""
    said = []
    for way, prefix in (("kernel", []), ("rewrite", PROFILE)):
        root = make_tree(env.path("tree-" + way), python)
        env.prefix = prefix
        said.append(env.podrun("run", "--names", way, "--net", "host", "--root", root, "-w", wd, *options, "--rm",
                               "--", *command).text)
    diff = difflib.unified_diff(*(t.splitlines() for t in said), "kernel names", "rewritten names", lineterm="", n=12)
    assert said[0] == said[1], "\n".join(diff)
    return said[1]


SHELL = r"""
exec 2>&1
pwd; ls / | grep -vx root; ls -l /proc/self/exe /proc/self/root | cut -d'>' -f2; cat /etc/passwd; cat /etc/shadow
ls -ld /bin /var/run /tmp /run | cut -c1; readlink -f /bin/sh /var/run/lock; id -u >/dev/null && echo id
cat ../../etc/passwd /../etc/passwd /bin/../../etc/passwd /proc/self/root/etc/passwd /proc/self/cwd/etc/passwd
cd /usr/lib && pwd && cd .. && pwd && cd ../../.. && pwd; cd /bin && pwd -P && cat ../../etc/passwd
cd /; ls -d OUTSIDE /root /nothing; ls -d ../../../..OUTSIDE; cat /proc/$$/root/../../../etc/passwd
cat </dev/null; echo x >/dev/null; head -c3 /dev/zero | wc -c; cd /dev; head -c2 zero | wc -c; cat ../etc/passwd; cd ..; pwd
cat dev/null; test -c dev/null && echo device; ls -d /sys /sys/kernel /dev/shm; cd /sys/kernel && pwd && cd ../.. && pwd
mkdir -p /opt/d /tmp/t; cd /opt; echo text >f; ln -s /opt/f abs; ln -s ../../../opt/f up; ln -s /tmp/t out
ln -s /proc/self/status st; ln -s loop loop; ln -s /etc dir; ln -s /var/run/lock lock; ln -s /dev/null null
cat abs up; cat loop; ls -ld out/ lock/ | cut -c1-10; cat dir/passwd dir/../etc/passwd; cat null; head -c5 st; echo
ls -ld null/; test -d dir && readlink dir abs up; readlink -f lock up; echo y >out/in; cat /tmp/t/in; mv out/in /opt
mv f g; cat abs; ln g f; stat -c '%h %s %F' f abs; rmdir d; rmdir /opt; rmdir /tmp; rmdir /; mv / x; rm -r /opt/dir
chmod 600 g; stat -c %a g; touch -d 2001-02-03 g; stat -c %y g | cut -c1-10; find / -xdev -name g; umask 077; echo >h; stat -c %a h
mkfifo p; cat p & echo through >p; wait; : >/nothing/x; rm -rf /opt; ls /opt; echo over
"""


@test
def a_shell_session_says_the_same(env):
    text = same(env, "bash", "-c", SHELL.replace("OUTSIDE", OUTSIDE))
    assert "over" in text and text.count("tree:x:0") > 9, text
    assert text.count("%s: No such file or directory" % OUTSIDE) == 2, text


SORTS = r"""
exec 2>&1
show='echo "$0|$*|$(cat /proc/$$/comm)|$(readlink /proc/$$/exe)"'
mkdir /opt; cd /opt
printf '#!/bin/bash\n%s\n' "$show" >s; printf '#!/opt/s  one two \n' >s2; printf '#!/usr/bin/env bash\n%s\n' "$show" >s3
printf '#!/nothing\n' >s4; printf '#!bash\n%s' "$show" >s5; printf 'echo text $0 $*\n' >s6; printf '#!/opt/b\n%s\n' "$show" >s7
printf '#!/opt/s8\n' >s8; chmod +x s*; printf '#!/bin/sh\n' >closed; cp /bin/bash nox; chmod -x nox
cp /bin/bash b; ln -s b named; ln -s /bin/bash abs; cp /bin/bash long-long-long-long-long-long-long-name
./s a 'b c'; /opt/s x; PATH=/opt:$PATH s y; ./s2 a; ./s3 a; ./s4; cd /bin; /opt/s5; cd /opt; ./s6 a; ./s7; ./s8; ./closed; ./nox
for p in ./b ./named ./abs /opt/abs ./long* /bin/bash bash; do $p -c "$show" $p; done
(exec -a other bash -c "$show"); /lib64/ld-linux-x86-64.so.2 /bin/bash -c 'echo loaded'
/bin/busybox readlink /proc/self/exe; ln -s /bin/busybox ls; ./ls / >/dev/null && echo ls; readlink /proc/self/exe
bash -c 'cat /proc/self/comm; readlink /proc/self/exe; readlink /proc/$$/exe; true'
echo 'echo one' >p; chmod +x p; ./p; echo 'echo two' >p; ./p; cp /bin/busybox q; cp /bin/bash q; ./q -c 'readlink /proc/$$/exe; true'
cp /bin/busybox n; mv n q; (exec -a busybox ./q echo three); rm q
cp /bin/bash gone; ./gone -c 'rm gone; readlink /proc/$$/exe; exec /proc/$$/exe -c "echo again; readlink /proc/\$\$/exe; true"'
cp /bin/bash gone; ./gone -c 'cp gone new; mv new gone; readlink /proc/$$/exe; ./gone -c "readlink /proc/\$\$/exe; true"'
cp /bin/bash maps; ./maps -c 'while read a b c d e f; do echo "$f"; done </proc/$$/maps | sort -u | grep /; rm maps; grep -c "/opt/maps (deleted)" /proc/$$/maps; true'
cd /; rm -r /opt
"""


@test
def programs_of_all_sorts(env):
    text = same(env, "bash", "-c", SORTS)
    assert "three" in text and "/opt/s|one two ./s2 a|s2|/usr/bin/bash" in text, text


@test
def a_loader_that_the_host_has_not(env):
    """As of another C library: the program names it, and none but it can load the program."""
    texts = []
    for way, prefix in (("kernel", []), ("rewrite", PROFILE)):
        root = make_tree(env.path("tree-" + way))
        whole = (root / "usr/bin/bash").read_bytes()
        loader = re.search(rb"/lib64/(ld-[\w.-]+)\0", whole)
        assert whole.count(loader[0]) == 1
        (root / "usr/bin/bash").write_bytes(whole.replace(b"/lib64/ld-", b"/opt64/ld-"))
        (root / "opt64").symlink_to("/home/lib")
        name = loader[1].decode()
        put(root, "/lib64/" + name, "home/lib/" + name)
        (root / "usr/lib64" / name).unlink(missing_ok=True)
        env.prefix = prefix
        texts.append(env.podrun("run", "--names", way, "--net", "host", "--root", root, "--rm", "--", "bash", "-c",
                                "bash -c 'echo $0 loaded'; readlink /proc/$$/exe; true").text)
    assert texts[0] == texts[1] and "bash loaded" in texts[0], texts


CALLS = r"""
import errno, mmap, os, signal, stat, sys
def say(what, f, *a, **k):
    try:
        r = f(*a, **k)
        if isinstance(r, os.stat_result):
            r = (stat.filemode(r.st_mode), r.st_size)
        print(what, "->", r)
    except OSError as e:
        print(what, "->", errno.errorcode[e.errno])
os.makedirs("/opt/d/e"); os.chdir("/opt")
open("f", "w").write("12345"); os.symlink("/opt/d", "abs"); os.symlink("d/../f", "rel"); os.symlink("/../../opt/f", "up")
os.symlink("/tmp", "t"); os.symlink("/dev", "dev"); os.symlink("/proc/self/fd", "fds"); os.symlink("/nowhere", "gone")
open("/tmp/in", "w").write("in")
paths = ["/", "//", "/.", "/..", "/../..", ".", "..", "../..", "f", "/opt/f", "/opt/f/", "/opt/f/x", "/opt//f", "abs", "abs/", "abs/e", "abs/../f",
         "rel", "up", "gone", "gone/", "t/in", "t/../etc/passwd", "t/..", "dev/null", "dev/../etc/passwd", "fds/0", "fds/..",
         "/dev", "/dev/", "/dev/null", "/dev/../opt/f", "/dev/./null", "/usr/../dev/null", "/nothing/../dev/null", "/sys", "/sys/kernel/..", "/proc", "/proc/..", "/proc/self/root",
         "/proc/self/root/opt/f", "/proc/self/cwd/f", "/proc/self/root/..", "/lib64/..", "/bin/sh", "/var/run/lock", "/var/run/..",
         "x" * 255, "x" * 256, "/opt/" + "d/../" * 800 + "f", "", "/etc/shadow", "OUTSIDE", "/home/../etc/passwd"]
for p in paths:
    print("==", p[:40])
    def st(follow):
        r = os.stat(p, follow_symlinks=follow)
        return stat.filemode(r.st_mode) if not stat.S_ISREG(r.st_mode) else (stat.filemode(r.st_mode), r.st_size)
    say("stat", st, True)
    say("lstat", st, False)
    say("access", lambda: os.access(p, os.R_OK))
    say("readlink", lambda: os.readlink(p).split(":")[0])
    say("chdir", lambda: (os.chdir(p), os.getcwd(), os.chdir("/opt"))[1])
    for flags in ("O_RDONLY", "O_PATH", "O_NOFOLLOW", "O_DIRECTORY"):
        def o():
            fd = os.open(p, getattr(os, flags))
            try:
                return os.readlink("/proc/self/fd/%d" % fd).split(":")[0]
            finally:
                os.close(fd)
        say("open " + flags, o)
    say("O_CREAT", lambda: os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_RDWR)) or os.unlink(p))
    if not p.startswith(("/proc", "fds")):
        say("mkdir", lambda: os.mkdir(p) or os.rmdir(p))
    say("statvfs", lambda: os.statvfs(p).f_namemax > 0)
    if p not in ("/proc/self/root/opt/f",):
        say("rmdir", lambda: os.rmdir(p) if p in ("/", ".", "/tmp") else None)
d = os.open("/opt/d", os.O_RDONLY)
say("at", os.stat, "../f", dir_fd=d); say("at", os.stat, "e", dir_fd=d); say("at", os.open, "../../../../etc/passwd", 0, dir_fd=d)
for one in ("..", "../..", "/", "."):
    say("listdir", lambda: sorted(set(os.listdir(one)) - {"root"}))
say("rename", os.rename, "f", "/tmp/f"); say("rename", os.rename, "f", "d/f"); say("link", os.link, "d/f", "/usr/f2")
say("walk", lambda: sorted(r for r, ds, fs in os.walk("/opt")))
os.rename("/opt/d", "/opt/dd"); os.chdir(d); print(os.getcwd(), os.readlink("/proc/self/cwd"))
m = mmap.mmap(os.open("/opt/dd/f", os.O_RDWR), 5); m[:1] = b"x"; print(open("f").read())
# ---- programs without a name
def start(f):
    pid = os.fork()
    if pid == 0:
        try:
            f()
        except OSError as e:
            print(errno.errorcode[e.errno], flush=True)
        os._exit(1)
    print(os.waitpid(pid, 0)[1], flush=True)
def memory(text):
    m = os.memfd_create("made", 0); os.write(m, text); return m
sys.stdout.flush()
bash = open("/bin/bash", "rb").read()
start(lambda: os.execve(memory(bash), ["a", "-c", "echo $0; readlink /proc/$$/exe"], {}))
start(lambda: os.execve(os.open("/bin/bash", os.O_RDONLY), ["b", "-c", "echo $0; readlink /proc/$$/exe"], os.environ))
start(lambda: os.execve(memory(b"#!/bin/bash -e\necho script $*"), ["c", "d"], {}))
start(lambda: os.execve(memory(open("/bin/busybox", "rb").read()), ["echo", "static"], {}))
start(lambda: os.execve(memory(b"#!/nothing\n"), ["c"], {}))
"""


@test
def calls_end_the_same(env):
    text = same(env, "python3", "-c", CALLS.replace("OUTSIDE", OUTSIDE), python=True)
    assert "EXDEV" in text and "static" in text and "script d" in text, text
    assert text.partition("== %s\n" % OUTSIDE[:40])[2].startswith("stat -> ENOENT\nlstat -> ENOENT\n"), text


@test
def what_is_written_is_in_the_tree(env):
    root = make_tree(env.path("tree"))
    env.contain()
    run(env, "--root", root, "--", "sh", "-c", "echo new >/etc/new; rm /etc/passwd; echo t >/tmp/own; echo r >/run/own")
    assert (root / "etc/new").read_text() == "new\n" and not (root / "etc/passwd").exists()
    assert not os.listdir(root / "tmp") and not os.listdir(root / "run"), root
    one_line(run(env, "--root", env.path("nothing"), "--", "true", code=125), "nothing")
    one_line(run(env, "--root", root / "etc/new", "--", "true", check=False), "etc/new")
    one_line(run(env, "--root", root, "--view", "host", "--", "true", check=False), "--view", "--root")


@test
def said_without_namespaces(env):
    root = make_tree(env.path("tree"))
    env.contain()
    r = env.podrun("run", "--root", root, "--rm", "--", "cat", "/etc/passwd")
    assert r.text.startswith("tree:"), r
    one_line(r, "rewritten", "what the session writes below %s is written there" % root)
    env.leave()
    env.run_detached("s", *WAITS, options=("--net", "host", "--root", root))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.contain()
    one_line(env.podrun("resume", "-d", env.path("image")), "rewritten", "below %s is written" % root)
    finish(env, "s")


VOLUME = r"""
exec 2>&1; ls / | grep vol; ls /usr/lib/deep; cat /lib/deep/er/f /usr/lib/deep/er/f /var/run/v/f /run/v/f; ls -A /vol /home/own; cat /vol/f /lib/../vol/f; echo x >/vol/new; echo y >/home/own/new; cat /vol/new
cat /vol/out /vol/up; cd /vol; pwd; cat ../etc/passwd; cd ../home/own; pwd; mv new /tmp; cat /tmp/new; readlink -f /vol/out
cat /etc/one; ls /etc; ls -A /state; echo over
"""


@test
def volumes_in_a_tree(env):
    there = env.path("there")
    there.mkdir()
    (there / "f").write_text("text\n")
    (there / "out").symlink_to("/etc/passwd")
    (there / "up").symlink_to("../secret")
    env.path("secret").write_text("secret\n")
    trees = [env.path("tree-" + w) for w in ("kernel", "rewrite")]
    text = same(env, "sh", "-c", VOLUME, options=(
        "-v", "%s:/vol:ro" % there, "-v", "%s:/home/own" % there, "-v", "%s:/lib/deep/er:ro" % there,
        "-v", "%s:/run/v:ro" % there, "-v", "%s:/etc/one" % (there / "f")))
    assert "secret" not in text and text.count("tree:x") == 2 and "over" in text, (text, trees)


@test
def podrun_s_own_is_hidden_in_a_tree(env):
    """The tree has the very directories that hold the session."""
    make_tree(env.dir)
    env.contain()
    (env.dir / "config/podrun").mkdir(parents=True, exist_ok=True)
    (env.dir / "config/podrun/secret").write_text("secret\n")
    text = run(env, "--root", env.dir, "--", "sh", "-c", "ls -A /config/podrun /run /state/podrun; cat /config/podrun/secret;"
               "cat config/podrun/secret; cd /config; cat podrun/secret; cat /var/../config/./podrun/secret; echo over",
               check=False).text
    assert "secret" not in text and "over" in text, text


MOVED = r"""
import mmap, os, signal, socket, subprocess, sys, time
os.chdir("/usr/lib"); f = open("/etc/passwd"); f.read(4); d = os.open("/home", os.O_RDONLY)
t = open("/tmp/own", "w+"); t.write("own"); t.flush(); os.unlink("/tmp/own")
m = mmap.mmap(os.open("/bin/busybox", os.O_RDONLY), 0, prot=mmap.PROT_READ)
e = os.open("/proc/self/exe", os.O_RDONLY); n = os.open("/dev/null", os.O_RDWR); st = open("/proc/self/stat")
s = socket.socket(socket.AF_UNIX); s.bind("/run/s"); s.listen()
shell = subprocess.Popen(["sh", "-c", "read x; echo shell $x; cd /lib64; pwd; cat /proc/$$/comm; readlink /proc/$$/exe"], stdin=subprocess.PIPE)
script = subprocess.Popen(["bash", "-c", "read x; echo $0 $x $(readlink /proc/$$/exe); exec id -u"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def state():
    return [os.getcwd(), os.readlink("/proc/self/exe"), open("/proc/self/comm").read(), os.readlink("/proc/self/root"),
            [os.readlink("/proc/self/fd/%d" % i) for i in (f.fileno(), d, e, n, st.fileno(), t.fileno())],
            os.stat("/proc/self/exe").st_size, m[:4], os.fstat(e).st_size, os.uname().nodename, os.path.exists("OUTSIDE"),
            sorted(open("/proc/%d/comm" % p).read() for p in (shell.pid, script.pid)), s.getsockname()]
while "python3\n" in state()[-2]:
    time.sleep(0.01)
before = state()
assert not before[9]
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(0.01)
after = state()
print("as before" if before == after else (before, after), f.read(), os.stat("../../etc/passwd").st_size, flush=True)
shell.communicate(b"one\n"); print(script.communicate(b"two\n")[0].decode())
import xml.dom, json, decimal
c = socket.socket(socket.AF_UNIX); c.connect("/run/s"); print(c.getpeername(), os.listdir(d))
"""


@test
def a_session_in_a_tree_moves(env):
    root = make_tree(env.path("tree"), python=True)
    for name, ways in (("a", "rewrite kernel"), ("b", "kernel rewrite"), ("c", "rewrite rewrite kernel rewrite")):
        first, *rest = ways.split()
        env.run_detached(name, "python3", "-B", "-c", MOVED.replace("OUTSIDE", OUTSIDE),
                         options=("--names", first, "--net", "host", "--root", root))
        for way in rest:
            env.podrun("suspend", name, "-o", env.path(name + way))
            env.podrun("rm", name)
            env.podrun("resume", env.path(name + way), "--names", way, "-d")
        log = finish(env, name)
        assert "as before" in log and "shell one\n/lib64\nsh\n/usr/bin/busybox" in log, (ways, log)
        assert "bash two /usr/bin/bash\n%d" % os.getuid() in log and log.endswith("/run/s []\n"), (ways, log)


@test
def files_of_a_tree_come_along(env):
    """With --with-files what is in use is the tree's, not the host's at the same path."""
    for name, options in (("a", ("--root", make_tree(env.path("tree")))), ("b", ())):
        env.run_detached(name, "bash", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; sleep 0;"
                         "cd /usr/bin; echo $0 over; read x </etc/passwd; echo $x; true", options=(*HERE, *options, "-w", "/"))
        env.podrun("suspend", name, "--with-files", "-o", env.path(name))
        env.podrun("rm", name)
        if options:
            (env.path("tree") / "usr/bin/bash").unlink()
        env.podrun("resume", env.path(name), "--names", "kernel", "-d")
        log = finish(env, name)
        assert "bash over" in log and ("tree:x" in log) == bool(options), log


@test
def a_layer_is_not_written_into_a_tree(env):
    root = make_tree(env.path("tree"))
    env.run_detached("s", "sh", "-c", "echo x >/etc/new; echo ready; sleep 1000",
                     options=("--names", "kernel", "--net", "host", "--root", root))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("rm", "s")
    one_line(env.podrun("resume", env.path("image"), "--names", "rewrite", "-d", check=False), "layer", "/etc/new")
    assert not (root / "etc/new").exists()


@test
def a_tree_that_is_not_there(env):
    root = make_tree(env.path("tree"))
    env.run_detached("s", "sh", "-c", "echo ready; sleep 1000", options=(*HERE, "--root", root))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("rm", "s")
    root.rename(env.path("elsewhere"))
    one_line(env.podrun("resume", env.path("image"), "--names", "rewrite", "-d", check=False), str(root))


# ---- attacks ------------------------------------------------------------------------------------

ESCAPES = r"""
import ctypes, errno, os, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
secret, inside = sys.argv[1], "/etc/passwd"
def look(what, fd):
    if fd >= 0:
        if b"secret" in os.read(fd, 100):
            print("reached by", what, flush=True)
        os.close(fd)
def attempt(what, f):
    try:
        look(what, f())
    except OSError:
        pass
up = "../" * 30
os.makedirs("/opt/a/b/c"); os.chdir("/opt/a/b/c")
os.symlink(secret, "abs"); os.symlink(up + secret, "rel"); os.symlink("/proc/self/root" + secret, "proc"); os.symlink("/proc/1/root", "one")
os.symlink("/proc/self/cwd/" + up + secret, "cwd"); os.symlink("/dev/../" + secret, "dev"); os.symlink("/", "top")
names = [secret, up + secret, "/" + up + secret, "abs", "rel", "proc", "cwd", "dev", "top/.." + secret, "one" + secret,
         "/proc/1/root" + secret, "/proc/%d/root%s" % (os.getppid(), secret), "/proc/self/root/.." + secret,
         "/proc/thread-self/root" + secret, "/proc/self/task/%d/root%s" % (os.getpid(), secret), "/dev/.." + secret,
         "/dev/pts/../.." + secret, "/dev/fd/../../../../.." + secret, "/sys/.." + secret, "/sys/kernel/../.." + secret, "/dev/shm/.." + secret,
         "/proc/self/cwd/" + up + secret, "/proc/1/cwd" + secret, "/usr/../dev/.." + secret]
dirs = [os.open(d, os.O_RDONLY) for d in ("/", "/opt", "/dev", "/sys", "/proc", "/dev/shm", "/tmp", "/proc/self/root", "/proc/self")]
def openat2(dirfd, path, flags, resolve):
    how = struct.pack("QQQ", flags, 0, resolve)
    r = libc.syscall(437, dirfd, path.encode(), how, len(how))
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r
for name in names:
    attempt("open " + name, lambda: os.open(name, os.O_RDONLY))
    attempt("O_CREAT " + name, lambda: os.open(name, os.O_RDWR | os.O_CREAT))
    attempt("O_PATH " + name, lambda: os.open("/proc/self/fd/%d" % os.open(name, os.O_PATH), os.O_RDONLY))
    for d in dirs + [-100]:
        attempt("openat %s" % name, lambda: os.open(name, os.O_RDONLY, dir_fd=d if d >= 0 else None))
        attempt("openat %s" % name[1:], lambda: os.open(name[1:], os.O_RDONLY, dir_fd=d if d >= 0 else None))
        for resolve in (0, 1, 2, 4, 8, 16, 4 | 8, 16 | 2):
            attempt("openat2 %s %x" % (name, resolve), lambda: openat2(d, name, os.O_RDONLY, resolve))
            attempt("openat2 %s %x" % (name[1:], resolve), lambda: openat2(d, name[1:], os.O_RDONLY, resolve))
    for f in (os.stat, os.readlink, os.listxattr, lambda n: os.chmod(n, 0o777), lambda n: os.truncate(n, 0), os.chdir,
              os.unlink, lambda n: os.rename(n, "/opt/x"), lambda n: os.link(n, "/opt/x"), lambda n: os.utime(n, (1, 1)),
              lambda n: os.mkdir(n + "2"), lambda n: os.symlink("x", n + "3"), lambda n: os.mknod(n + "4")):
        try:
            f(name)
            if f in (os.stat, os.chdir):
                print("found", name, os.getcwd(), flush=True)
        except OSError:
            pass
        os.chdir("/opt/a/b/c")
# By descriptors that a directory has been moved away under.
d = os.open("/opt/a/b", os.O_RDONLY); os.rename("/opt/a/b", "/b"); os.fchdir(d)
attempt("moved", lambda: os.open("../" * 20 + secret[1:], os.O_RDONLY))
attempt("moved at", lambda: os.open("../" * 20 + secret[1:], os.O_RDONLY, dir_fd=d))
client = socket.socket(socket.AF_UNIX); client.connect("/share/s"); outside = socket.recv_fds(client, 1, 1)[1][0]
attempt("descriptor outside", lambda: os.open("secret", os.O_RDONLY, dir_fd=outside))
attempt("descriptor outside, O_CREAT", lambda: os.open("secret", os.O_RDWR | os.O_CREAT, dir_fd=outside))
attempt("descriptor outside, openat2", lambda: openat2(outside, "secret", os.O_RDONLY, 0))
for f in (lambda: os.mkdir("made", dir_fd=outside), lambda: os.rename("secret", "moved", src_dir_fd=outside, dst_dir_fd=outside),
          lambda: os.link("secret", "/opt/linked", src_dir_fd=outside), lambda: os.stat("secret", dir_fd=outside)):
    try:
        f(); print("found by a descriptor outside", flush=True)
    except OSError:
        pass
attempt("descriptor outside", lambda: os.open(".." + secret, os.O_RDONLY, dir_fd=outside))
try:
    os.fchdir(outside)
    attempt("cwd outside", lambda: os.open("secret", os.O_RDONLY))
    attempt("cwd outside", lambda: os.open("../" * 20 + secret[1:], os.O_RDONLY))
except OSError:
    pass
os.chdir("/")
try:
    os.chroot("/opt"); attempt("chroot", lambda: os.open("../.." + secret, os.O_RDONLY))
except OSError:
    pass
# What another thread changes under the hands of whoever has looked at it.
room = ctypes.create_string_buffer(4096)
over = False
def flip():
    while not over:
        room.value = secret.encode()
        room.value = inside.encode()
        room.value = b"/dev/null"
        room.value = b"/opt/turn/" + os.path.basename(secret).encode()
t = threading.Thread(target=flip); t.start()
os.makedirs("/opt/one", exist_ok=True); os.symlink(os.path.dirname(secret), "/opt/two"); os.symlink("/opt/one", "/opt/turn")
for i in range(600):
    look("race of open", libc.syscall(2, room, os.O_RDONLY))
    look("race of openat", libc.syscall(257, -100, room, os.O_RDONLY))
    look("race of O_CREAT", libc.syscall(2, room, os.O_RDWR | os.O_CREAT, 0o600))
    how = struct.pack("QQQ", 0, 0, 0); look("race of openat2", libc.syscall(437, -100, room, how, 24))
    if i % 50 == 0:
        libc.syscall(87, room); libc.syscall(82, room, b"/opt/x"); libc.syscall(76, room, 0)
        os.unlink("/opt/turn"); os.symlink("/opt/two" if i % 100 else "/opt/one", "/opt/turn")
over = True; t.join()
# A program of the host's.
pid = os.fork()
if pid == 0:
    for name in names:
        try:
            os.execve(os.path.dirname(name) + "/program", ["program"], {})
        except OSError:
            pass
    os._exit(0)
os.waitpid(pid, 0)
print("over")
"""


def escapes(env, *prefix):
    root = make_tree(env.path("tree"), python=True)
    # Where a session without a root of its own may go.
    place = pathlib.Path(tempfile.mkdtemp(prefix="podrun-root-", dir="/var/tmp"))
    secret, program = place / "secret", place / "program"
    secret.write_text("secret\n")
    program.write_text("#!/bin/sh\necho reached by exec\n")
    program.chmod(0o755)
    env.prefix = list(prefix)
    env.path("share").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(env.path("share") / "s"))
    listener.listen()
    at = os.open(place, os.O_RDONLY)
    volumes = ("-v", "%s:/share" % env.path("share"), "-v", "%s:/race:ro" % (BUILD / "tests/path_race"))
    try:
        p = env.start(PODRUN, "run", *HERE, "--root", root, *volumes, "--rm", "--", "sh", "-c",
                      "/race %s rooted; exec python3 -c \"$0\" %s" % (secret, secret), ESCAPES,
                      stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        connection = listener.accept()[0]
        socket.send_fds(connection, [b"x"], [at])
        text = p.communicate()[0].decode()
        return text, secret.exists() and (secret.read_text(), sorted(os.listdir(place)),
                                          secret.stat().st_mode & 0o777, secret.stat().st_mtime > 1000)
    finally:
        listener.close()
        os.close(at)
        shutil.rmtree(place)


@test
def strange_arguments(env):
    """Nonsense with a tree to spoil: the session lives, and nothing is left outside."""
    roots = [make_tree(env.path("tree%d" % i), programs=[BUILD / "tests/path_probe"]) for i in range(2)]
    env.contain()
    before = sorted(os.listdir(env.dir)), os.stat(env.dir).st_mode
    for seed, root in enumerate(roots):
        text = run(env, "--root", root, "--", "sh", "-c",
                   "echo before; path_probe 1000 %d <&- >/tmp/said 2>&1; echo $$" % (seed + 7)).text
        assert text == "before\n2\n", text
    assert (sorted(os.listdir(env.dir)), os.stat(env.dir).st_mode) == before


@test
def nothing_outside_is_reached(env):
    text, left = escapes(env, *PROFILE)
    assert text == "over\nover\n", text
    assert left == ("secret\n", ["program", "secret"], 0o644, True), left


@test
def nor_without_landlock_but_by_a_race(env):
    text, _ = escapes(env, *PROFILE, "--refuse", "landlock_create_ruleset", *PROFILE)
    said = text[text.index("over\n"):].split("\n")
    assert [line for line in said if "race" not in line] == ["over", "over", ""], text


if __name__ == "__main__":
    main()
