#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs: unmodified, doing their work while the session is moved under them.

Every script of tests/apps does a piece of work whose output is the same each time.  It is run
natively once, then in a session which is suspended and resumed at random moments, alternately
through a file and through a pipe; the output must be equal to the native run's.

Lines a script may carry:
    # needs: PROGRAM ...     programs that must be installed
    # as: me root            whom it runs as inside; default: me

--moves N    moves per run; the long run uses 100
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
from harness import PODRUN, Failed, add, main, needs, until  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MOVES = int(os.environ.get("PODRUN_TEST_MOVES", "3"))


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
    env.environ["WORK"] = str(work)
    env.environ["PORT"] = free_port()
    began = time.monotonic()
    out = env.call(script, timeout=300, cwd=work).text
    return out, time.monotonic() - began


def session_state(env, name):
    for s in env.sessions():
        if s.get("name") == name:
            return s.get("state")
    return None


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


def moved(env, script, user):
    needs(*header(script, "needs"))
    expected, seconds = native(env, script)
    options = ["-e", "WORK=/tmp/work", "-e", "PORT=7000"]
    if user == "root":
        options += ["--user", "root"]
    env.podrun("run", "-d", "--end-with-command", "--name", "app", *options, "--", "sh", "-c",
               "mkdir -p /tmp/work && cd /tmp/work && exec " + str(script))
    rng = random.Random()
    moves = 0
    while moves < MOVES:
        time.sleep(rng.uniform(0.02, max(0.05, min(3, 1.5 * seconds / (MOVES + 1)))))
        if not move(env, "app", moves % 2 == 1):
            break
        moves += 1
    out = env.wait("app")
    if out != expected:
        raise Failed("after %d moves the output differs\n--- native\n%s\n--- moved\n%s" % (
            moves, expected[-1500:], out[-1500:]))
    if moves == 0:
        raise Failed("the work was over before it could be moved once")


for path in sorted(HERE.iterdir()):
    if path.name != "run.py" and path.is_file() and os.access(path, os.X_OK):
        for who in header(path, "as", "me"):
            add("%s/%s" % (path.name, who),
                lambda env, p=path, w=who: moved(env, p, w))

if __name__ == "__main__":
    main()
