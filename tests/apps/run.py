#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs: unmodified, doing their work while the session is moved under them.

Every script of tests/apps does a piece of work whose output is the same each time.  It is run
natively once, then in a session which is suspended and resumed at random moments, alternately
through a file and through a pipe; the output must be equal to the native run's.  When the work is
over before all moves are made, it is begun again.

A script gets its directory as $WORK (and as current directory), a free port as $PORT, and in $SCALE
how many times its usual work it shall do, so that a run with many moves is a long one.

Lines a script may carry:
    # needs: PROGRAM ...     programs that must be installed
    # as: me root            whom it runs as inside; default: me.  What only root can do is compared
                             with a session that nobody moves; such a script checks itself as well

PODRUN_TEST_MOVES is how many moves each makes; 3, and 100 in the long run.

Each is run once more as NAME/rewrite: between hosts without namespaces (the default profile of
container engines), where podrun rewrites the names and the network is the host's; and as NAME/between:
from such a host to one with namespaces, and back.  That makes two moves, and a fifth of the others'
in the long run.  What can't be done there is in NOT_REWRITTEN; some are run as root there, too: NAME/root-rewrite
and NAME/root-between.

One of each script's native runs is refused the calls that a session refuses (supervisor/policy, tests/lib/refused.c): it must
make none of them, but for those of which REFUSED says what becomes of them.  What only root can do has no native run: NAME/refused
is one in a session, under strace.
"""
import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, PATIENCE, PODRUN, Failed, add, main, needs, quiet_port  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MOVES = int(os.environ.get("PODRUN_TEST_MOVES", "3"))
SCALE = max(1, MOVES // 10)
LONGEST = max(300, 120 * SCALE)  # seconds of a run that nobody moves


def header(path, key, default=""):
    m = re.search(r"^# %s: *(.*)$" % key, path.read_text(), re.M)
    return (m.group(1) if m else default).split()


class Way:
    """How a session is begun and moved: options of run, and of each resume in turn."""

    def __init__(self, run=(), resume=((),), moves=MOVES, contained=False):
        self.run, self.resume, self.moves = list(run), resume, moves
        self.contained = contained
        self.port = quiet_port if run else lambda: 7000


REWRITE = ("--names", "rewrite")
FEW = max(2, MOVES // 5)
HERE_ONLY = Way()
REWRITTEN = Way((*REWRITE, "--net", "host"), (REWRITE,), FEW, True)
# A firefox that is moved so early that it looks for user namespaces on the host that has them makes some, and
# then can't go where there are none: it is told what it would have found where it began.
BETWEEN = Way((*REWRITE, "--net", "host", "-e", "MOZ_ASSUME_USER_NS=0"), (("--names", "kernel"), REWRITE), FEW)


# What only namespaces can give.  A root inside changes files of the host's in a layer over them, which only a mount
# namespace can have.
NOT_REWRITTEN = {
    "chromium": "its sandbox needs namespaces",
    "apt-dpkg": "writes /usr, /etc and /var/lib",
    "users": "writes /etc/passwd, /etc/group and /home",
}

# Calls that a session refuses and some make nevertheless: who, and why that does no harm.  clone3 is not looked for: the C
# library does the same by clone then, for each thread.
LOOK = str(BUILD / "tests" / "refused")
REFUSED = (
    ("clone (has other numbers)", ("firefox",), "asks for namespaces where there are none: its processes have filters then"),
    ("unshare (has other numbers)", ("firefox",), "the same"),
    ("io_setup", ("mariadb",), "when io_uring is not there; then its own threads read and write"),
    ("io_uring_setup", ("mariadb", "node-http", "qemu-sandbox"), "to find out: other ways to wait are taken"),
    ("keyctl", ("users",), "su would have a keyring of its own (pam_keyinit), and does without"),
    ("landlock_create_ruleset", ("chromium",), "asks for the version, and does without"),
    ("quotactl", ("firefox",), "whether a quota leaves less room than statfs tells"),
)

# Who runs as root there, too: becomes others, gives a terminal away, or just believes it.
ROOT_REWRITTEN = ("bash-jobs", "nginx", "redis", "xterm")

# On the host's network, and with the host's terminals, what a session has is its own until its image
# is written: through a pipe it moves to other hosts only.  And nobody else may take it meanwhile: the
# kernel gives the next who asks the lowest number of a terminal, so only one test at a time has any.
TERMINALS = threading.Lock()
HOLDS = {
    "mariadb": "a port", "node-http": "a port", "nginx": "a port", "openssl-stream": "a port", "redis": "a port",
    "firefox": "a terminal", "tmux-vim": "a terminal", "xfce": "a terminal", "xterm": "a terminal",  # or a display
}


def may_be_called(call, script):
    return any(call == one and script.name in scripts for one, scripts, why in REFUSED)


def check_refused(script, called):
    """`called`: calls that a session refuses, and by which processes."""
    wrong = sorted(one for one in called if not may_be_called(one[0], script))
    if wrong:
        raise Failed("%s makes calls that sessions refuse; if it can do without, REFUSED has to say how:\n%s" % (
            script.name, "\n".join("%s, by %s" % one for one in wrong)))


def native(env, script, look=None):
    """What the script prints when nobody moves it, and how long it takes.  It takes terminals and displays, too."""
    work = env.path("native")
    work.mkdir()
    log = env.path("refused")
    command = [LOOK, look, log, script] if look else [script]
    env.environ.update(WORK=str(work), PORT=str(quiet_port()), SCALE=str(SCALE))
    with TERMINALS if HOLDS.get(script.name) == "a terminal" else contextlib.nullcontext():
        began = time.monotonic()
        out = env.call(*command, timeout=LONGEST, cwd=work).text
        seconds = time.monotonic() - began
    if look:
        check_refused(script, {tuple(line.split("\t")) for line in log.read_text().splitlines()})
    return out, seconds


def begin(env, script, user, name, way=HERE_ONLY):
    """Starts the script in a session."""
    options = [*way.run, "-e", "WORK=/tmp/work", "-e", "PORT=%d" % way.port(),
               "-e", "SCALE=%d" % SCALE]
    if user == "root":
        options += ["--user", "root"]
        env.share_cache()
    env.podrun("run", "-d", "--end-with-command", "--name", name, *options, "--", "sh", "-c",
               "mkdir -p /tmp/work && cd /tmp/work && exec " + str(script))


def refused_to_root(env, script):
    """The calls of a run as root inside, as strace sees them before the session's filter does."""
    needs("strace", *header(script, "needs"))
    work, names = env.path("work"), env.call(LOOK, "kernel", "--list").text.split()
    work.mkdir()
    env.share_cache()
    env.podrun("run", "--user", "root", "-v", "%s:/mnt" % work, "-e", "WORK=/tmp/work", "-e", "SCALE=1", "--", "sh", "-c",
               "mkdir -p /tmp/work && cd /tmp/work && exec strace -f -qq -e signal=none -o /mnt/log -e trace=%s %s" % (
                   ",".join("?" + one for one in names if one != "clone3"), script), timeout=LONGEST)
    log = (work / "log").read_text()
    check_refused(script, {(one, "pid " + pid) for pid, one in re.findall(r"^(\d+) +(\w+)\(", log, re.M)})


def unmoved(env, script, user):
    """The same as native(), in a session."""
    begin(env, script, user, "still")
    began = time.monotonic()
    out = env.wait("still", timeout=LONGEST)
    return out, time.monotonic() - began


def resume_file(env, image, options):
    """Where terminals and ports are the host's another program may have the number for a while: then again."""
    end = time.monotonic() + PATIENCE
    while True:
        r = env.podrun("resume", "-d", *options, image, check=False, timeout=120)
        taken = options and re.search(r"terminal /dev/pts/\d+ is in use|a TCP socket to \S+: Address already in use", r.errors)
        if not taken or time.monotonic() > end:
            return r.code, r.errors


def move(env, name, through_pipe, options=()):
    """One suspend and resume.  False when the session had ended before it could be frozen."""
    image = env.path("image")
    if through_pipe:
        a = env.start(PODRUN, "suspend", name, "-o", "-", stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE)
        b = env.start(PODRUN, "resume", "-d", *options, "--name", name, "-", stdin=a.stdout,
                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        a.stdout.close()
        b_err = b.communicate(timeout=120)[1].decode()
        a_err = a.communicate(timeout=120)[1].decode()
        a_code, b_code = a.returncode, b.returncode
    else:
        r = env.podrun("suspend", name, "-o", image, check=False, timeout=120)
        a_code, a_err, b_code, b_err = r.code, r.errors, 0, ""
        if a_code == 0:
            b_code, b_err = resume_file(env, image, options)
            image.unlink()
    if a_code in (5, 6):
        return False
    if a_code or b_code:
        raise Failed("suspend %d %s\nresume %d %s" % (a_code, a_err, b_code, b_err))
    return True


def move_through(env, script, user, name, seconds, moves, way):
    """One run of the script with up to `moves` moves; returns how many, and its output."""
    begin(env, script, user, name, way)
    rng = random.Random()
    done = 0
    while done < moves:
        time.sleep(rng.uniform(0.02, max(0.05, min(3, 1.5 * seconds / (moves + 1)))))
        pipe = done % 2 == 1 and not (way.run and script.name in HOLDS)
        if not move(env, name, pipe, way.resume[done % len(way.resume)]):
            break
        done += 1
    return done, env.wait(name, timeout=PATIENCE + 10 * seconds)


def moved(env, script, user, way=HERE_ONLY):
    needs(*header(script, "needs"))
    only_root = header(script, "as", "me") == ["root"]
    look = "rewrite" if way is REWRITTEN else "kernel" if script.name in NOT_REWRITTEN else None
    expected, seconds = unmoved(env, script, user) if only_root else native(env, script, look)
    if way.contained:
        env.contain()
    alone = way.run and HOLDS.get(script.name) == "a terminal"
    with TERMINALS if alone else contextlib.nullcontext():
        make_moves(env, script, user, way, expected, seconds)


def make_moves(env, script, user, way, expected, seconds):
    moves = runs = 0
    while moves < way.moves:
        runs += 1
        done, out = move_through(env, script, user, "app%d" % runs, seconds, way.moves - moves, way)
        moves += done
        if out != expected:
            raise Failed("after %d moves the output differs\n--- native\n%s\n--- moved\n%s" % (
                done, expected[-1500:], out[-1500:]))
        # A busy machine may have run it much slower at first: the moments were drawn too late.
        if done == 0:
            seconds /= 2
            if seconds < 0.05:
                raise Failed("the work is over before it can be moved once")


for path in sorted(HERE.iterdir()):
    if path.name != "run.py" and path.is_file() and os.access(path, os.X_OK):
        if header(path, "as", "me") == ["root"]:
            add(path.name + "/refused", lambda env, p=path: refused_to_root(env, p))
        for who in header(path, "as", "me"):
            add("%s/%s" % (path.name, who),
                lambda env, p=path, w=who: moved(env, p, w))
            if who == "me" and path.name not in NOT_REWRITTEN:
                add(path.name + "/rewrite", lambda env, p=path: moved(env, p, "me", REWRITTEN))
                add(path.name + "/between", lambda env, p=path: moved(env, p, "me", BETWEEN))
            if who == "root" and path.name in ROOT_REWRITTEN:
                add(path.name + "/root-rewrite", lambda env, p=path: moved(env, p, "root", REWRITTEN))
                add(path.name + "/root-between", lambda env, p=path: moved(env, p, "root", BETWEEN))

if __name__ == "__main__":
    main()
