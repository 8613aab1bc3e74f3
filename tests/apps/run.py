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
"""
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PATIENCE, PODRUN, Failed, add, main, needs  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MOVES = int(os.environ.get("PODRUN_TEST_MOVES", "3"))
SCALE = max(1, MOVES // 10)
LONGEST = max(300, 120 * SCALE)  # seconds of a run that nobody moves


def header(path, key, default=""):
    m = re.search(r"^# %s: *(.*)$" % key, path.read_text(), re.M)
    return (m.group(1) if m else default).split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def native(env, script):
    """What the script prints when nobody moves it, and how long it takes."""
    work = env.path("native")
    work.mkdir()
    env.environ.update(WORK=str(work), PORT=free_port(), SCALE=str(SCALE))
    began = time.monotonic()
    out = env.call(script, timeout=LONGEST, cwd=work).text
    return out, time.monotonic() - began


def begin(env, script, user, name):
    """Starts the script in a session."""
    options = ["-e", "WORK=/tmp/work", "-e", "PORT=7000", "-e", "SCALE=%d" % SCALE]
    if user == "root":
        options += ["--user", "root"]
        env.share_cache()
    env.podrun("run", "-d", "--end-with-command", "--name", name, *options, "--", "sh", "-c",
               "mkdir -p /tmp/work && cd /tmp/work && exec " + str(script))


def unmoved(env, script, user):
    """The same as native(), in a session."""
    begin(env, script, user, "still")
    began = time.monotonic()
    out = env.wait("still", timeout=LONGEST)
    return out, time.monotonic() - began


def move(env, name, through_pipe):
    """One suspend and resume.  False when the session had ended before it could be frozen."""
    image = env.path("image")
    if through_pipe:
        a = env.start(PODRUN, "suspend", name, "-o", "-", stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE)
        b = env.start(PODRUN, "resume", "-d", "--name", name, "-", stdin=a.stdout,
                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        a.stdout.close()
        b_err = b.communicate(timeout=120)[1].decode()
        a_err = a.communicate(timeout=120)[1].decode()
        a_code, b_code = a.returncode, b.returncode
    else:
        r = env.podrun("suspend", name, "-o", image, check=False, timeout=120)
        a_code, a_err, b_code, b_err = r.code, r.errors, 0, ""
        if a_code == 0:
            r = env.podrun("resume", "-d", image, check=False, timeout=120)
            b_code, b_err = r.code, r.errors
            image.unlink()
    if a_code in (5, 6):
        return False
    if a_code or b_code:
        raise Failed("suspend %d %s\nresume %d %s" % (a_code, a_err, b_code, b_err))
    return True


def move_through(env, script, user, name, seconds, moves):
    """One run of the script with up to `moves` moves; returns how many, and its output."""
    begin(env, script, user, name)
    rng = random.Random()
    done = 0
    while done < moves:
        time.sleep(rng.uniform(0.02, max(0.05, min(3, 1.5 * seconds / (moves + 1)))))
        if not move(env, name, done % 2 == 1):
            break
        done += 1
    return done, env.wait(name, timeout=PATIENCE + 10 * seconds)


def moved(env, script, user):
    needs(*header(script, "needs"))
    only_root = header(script, "as", "me") == ["root"]
    expected, seconds = unmoved(env, script, user) if only_root else native(env, script)
    moves = runs = 0
    while moves < MOVES:
        runs += 1
        done, out = move_through(env, script, user, "app%d" % runs, seconds, MOVES - moves)
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
        for who in header(path, "as", "me"):
            add("%s/%s" % (path.name, who),
                lambda env, p=path, w=who: moved(env, p, w))

if __name__ == "__main__":
    main()
