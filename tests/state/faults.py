# SPDX-License-Identifier: GPL-2.0-or-later
"""What is left when a suspend or a resume fails, or somebody in it is killed.

base/fault.c has a table of all the steps; PODRUN_TEST_FAULT makes one of them fail, or kills the
worker, the supervisor or the command there.  A state program is taken through all of them:

    suspend   it runs on as before, nothing is left, and it can be suspended afterwards
    resume    the image is not used up, nothing is left, and it can be resumed afterwards

and in the end its own check must pass.  Where the supervisor is killed the session ends, or the
image is whole; never both, never neither once the image is there.
"""
import contextlib
import os
import pathlib
import signal
import subprocess

from harness import BUILD, PODRUN, REWRITE, Failed, until

GO = "/tmp/go"
I386 = "_i386"


def base_name(program):
    """Of a state program, also of one built for 32 bits."""
    return program.name.removesuffix(I386)



class Point:
    def __init__(self, line):
        self.name, who, how, *ways = line.split()
        self.worker, self.fails = who == "worker", how == "fails"
        self.ways = ways


def points(way):
    table = subprocess.run([str(BUILD / "tests" / "fault_points")], capture_output=True,
                           check=True, text=True).stdout
    return [p for p in map(Point, table.splitlines()) if way in p.ways]


def prepare(env, options=()):
    """Everything podrun does in this test may be hit."""
    env.options = options
    env.environ["PODRUN_TEST_FAULT"] = str(env.path("fault"))


def due(env, point, action):
    env.path("fault").write_text("%s %s\n" % (point, action) if point else "")


# ---- what is there --------------------------------------------------------------------------

def children(pid):
    found = []
    with contextlib.suppress(OSError):
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                found += map(int, f.read().split())
    return sorted(found)


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def read(path):
    with contextlib.suppress(OSError):
        with open(path) as f:
            return f.read()
    return ""


def links(path):
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            with contextlib.suppress(OSError):
                found[name] = os.readlink(os.path.join(path, name))
    return found


# Not SigQ: it counts what all processes of the user have pending.
STATUS = ("State", "TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "Threads")


# Which comes and goes all the time: it is pending, or blocked while its handler runs, by chance.
STORMS = {"signal_storm": signal.SIGALRM}


def without(sig, mask):
    return "%016x" % (int(mask, 16) & ~(1 << (sig - 1)))


def look_at(pid, storm=0):
    status = dict(line.split(":", 1) for line in read("/proc/%d/status" % pid).splitlines())
    for k in ("SigPnd", "ShdPnd", "SigBlk") if storm and "SigBlk" in status else ():
        status[k] = without(storm, status[k])
    if status.get("State", "").split()[:1] in (["R"], ["D"], ["S"]):
        status["State"] = "runs"
    maps = [line.split()[:2] for line in read("/proc/%d/maps" % pid).splitlines()]
    return {"status": {k: status.get(k) for k in STATUS}, "maps": maps,
            "fds": links("/proc/%d/fd" % pid)}


def state(pid):
    """The letter of proc(5), or nothing."""
    stat = read("/proc/%d/stat" % pid)
    return stat.rpartition(")")[2].split()[0] if stat else ""


def runs(pid):
    return state(pid) not in ("", "Z", "X")


def stopped(env):
    """Processes that a fault has stopped."""
    mine = env.environ["PODRUN_TEST_FAULT"].encode()
    return [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and
            "\nState:\tT" in (read(str(p / "status")) or "") and mine in (read(str(p / "environ")) or "").encode()]


class Fds(set):
    """A client that is just leaving is no difference; what is left over is."""

    def __ne__(self, now):
        return not now <= self


class Session:
    """A session as the host sees it."""

    def __init__(self, env, name, storm=0):
        self.env, self.name, self.storm = env, name, storm
        self.supervisor = env.podrun("inspect", name).json()["supervisor"]
        self.init = children(self.supervisor)[0]
        # Where names are rewritten who does that stands in between.
        self.rewriter = self.init if REWRITE or getattr(env, "options", ()) else 0
        if self.rewriter:
            self.init = children(self.rewriter)[0]

    def look(self):
        tasks = {t: look_at(t, self.storm) for t in descendants(self.init)}
        tasks = {t: at for t, at in tasks.items() if at["status"]["State"]} # gone meanwhile
        return {"supervisor": {"children": children(self.supervisor),
                               "fds": Fds(links("/proc/%d/fd" % self.supervisor))},
                "rewriter": Fds(links("/proc/%d/fd" % self.rewriter)),
                "tasks": tasks,
                "files": sorted(os.listdir(self.env.path("state") / "podrun" / "sessions"))}

    def is_gone(self):
        return not runs(self.supervisor) and not runs(self.init)


def differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for k in sorted(set(a) | set(b), key=str)
                for d in differences(a.get(k), b.get(k), "%s/%s" % (path, k))]
    return ["%s: %r became %r" % (path, a, b)] if a != b else []


def changes(before, now):
    """What is not as it was.  That a task has ended is left to the program's own check."""
    for tid, task in now["tasks"].items():
        if "Z" in task["status"]["State"] and tid in before["tasks"]:
            before["tasks"][tid] = task
    return differences(before, now)


def as_before(session, before, what):
    """Waits until everything is as it was: the worker may still be ending."""
    try:
        until("as before", lambda: not changes(before, session.look()))
    except Failed:
        raise Failed("%s: %s" % (what, "\n".join(changes(before, session.look())))) from None


def told(result, what, *words):
    """A failure is one line, perhaps with a hint."""
    lines = result.errors.strip().split("\n")
    if result.code == 0 or not lines[0].startswith("podrun: ") or \
            any(not x.startswith("hint: ") for x in lines[1:]):
        raise Failed("%s: %s" % (what, result))
    for w in words:
        if w not in result.errors:
            raise Failed("%s: %r not in: %s" % (what, w, result))


def nothing_but(env, name):
    """All that is kept is the record of one session, if any."""
    env.podrun("ps", "-a")
    state, run = env.path("state") / "podrun", env.path("run") / "podrun"
    left = [x for x in os.listdir(state / "sessions") if x != name]
    left += [x for x in os.listdir(run)] if run.exists() else []
    left += [x for x in os.listdir(state / "images")] if (state / "images").exists() else []
    return left


# ---- suspend --------------------------------------------------------------------------------

def suspend_once(env, session, before, way, point, action):
    what = "%s, %s at %s" % (way, action, point.name)
    image = env.path("image")
    due(env, point.name, action)
    r = env.podrun(way, session.name, "-o", image, check=False)
    due(env, None, None)
    told(r, what, *(["fault at " + point.name] if action == "fail" else []))
    as_before(session, before, what)
    if [x for x in os.listdir(env.dir) if x.startswith("image")]:
        raise Failed(what + ": an image is left")


# An empty packet can be looked at once only (docs/coverage.md): what fails behind the first look has
# taken it from the next image.
LOOKED_AT_ONCE = {"udp": "write.asked", "unix_pair": "freeze.plan"}


def suspends(env, session, way, action, program):
    before = session.look()
    for p in points(way):
        if p.name == LOOKED_AT_ONCE.get(base_name(program)):
            break
        if base_name(program) in TIMED and p.name not in ("freeze.swept", "freeze.plan", "write.data"):
            continue
        if action == "fail" and not p.fails:
            continue
        if action == "kill" and (not p.worker or not p.fails):
            continue
        suspend_once(env, session, before, way, p, action)


# ---- resume ---------------------------------------------------------------------------------

def resume_once(env, image, point, action):
    what = "resume, %s at %s" % (action, point.name)
    due(env, point.name, action)
    r = env.podrun("resume", "-d", *env.options[:2], image, check=False)
    due(env, None, None)
    told(r, what, *(["fault at " + point.name] if action == "fail" else []))
    if not image.exists():
        raise Failed(what + ": the image is gone")
    until(what + ": nothing but the record is left", lambda: not nothing_but(env, "s"))


def resumes(env, image, action):
    for p in points("resume"):
        if action == "fail" and not p.fails:
            continue
        if action == "kill" and (not p.worker or not p.fails):
            continue
        resume_once(env, image, p, action)


# Its waits end by the clock, and some begin anew each time, or end with EINTR when the worker is
# killed (docs/coverage.md): a few points that fail, and no move afterwards.
TIMED = ("task_waits", "clocks")
# No clock, but semop ends with EINTR likewise; a job stopped because it reads its terminal reads again before it is
# stopped as it was, and has that signal once more until it is continued.
WAITING = ("sysv_waits", "task_jobs")

def goes_on(program):
    """Arguments which tell it that the session itself will go on after a freeze."""
    return ("on",) if base_name(program) in TIMED else ()


# They change their mappings and fork all the time: there is no state to compare with.
LIVELY = ("mem_mapped",)


def begin(env, program, options=()):
    prepare(env, options)
    due(env, None, None)
    env.run_detached("s", program, GO, *goes_on(program), options=env.options)
    return Session(env, "s", STORMS.get(base_name(program), 0))


def through_all(env, program, action, finish, options=()):
    session = begin(env, program, options)
    image = env.path("image")
    suspends(env, session, "suspend", action, program)
    if base_name(program) in TIMED:
        finish(env, "s")
        return
    suspends(env, session, "snapshot", action, program)
    env.podrun("suspend", "s", "-o", image)
    until("it is gone", session.is_gone)
    resumes(env, image, action)
    env.podrun("resume", "-d", *env.options[:2], image)
    finish(env, "s")


def faults(env, program, finish):
    through_all(env, program, "fail", finish)


def rewritten_faults(env, program, finish):
    """The same where names are rewritten.  Who freezes can't be killed there without the session."""
    env.contain()
    through_all(env, program, "fail", finish, ("--names", "rewrite", "--net", "host"))


def kills(env, program, finish):
    through_all(env, program, "kill", finish)


# ---- what is in nobody's hands but ours -----------------------------------------------------

CAREFUL = {"mqueue": "take.queue", "ptys": "take.terminal"}


def careful(env, program, finish):
    """Messages or bytes have been taken out to be put back, and somebody is killed."""
    session = begin(env, program)
    before, image = session.look(), env.path("image")
    for way in ("suspend", "snapshot"):
        due(env, CAREFUL[base_name(program)], "kill-worker")
        told(env.podrun(way, "s", "-o", image, check=False), way)
        due(env, None, None)
        as_before(session, before, "worker killed in a " + way)
    due(env, CAREFUL[base_name(program)], "kill")
    env.podrun("snapshot", "s", "-o", image)
    due(env, None, None)
    as_before(session, before, "the worker's child killed")
    finish(env, "s")
    env.podrun("resume", "-d", "--name", "copy", image)
    finish(env, "copy")


# ---- the supervisor is killed ---------------------------------------------------------------

def over(env, session, what):
    """Nothing of the session runs any more, and its name can be used again."""
    until(what + ": nothing runs", session.is_gone)
    env.podrun("rm", "s", check=False)
    until(what + ": nothing is left", lambda: not nothing_but(env, None))
    env.podrun("run", "--name", "s", "--rm", "--", "true")


def supervisor_in_suspend(env, program, way, finish):
    for p in points(way):
        what = "%s, supervisor killed at %s" % (way, p.name)
        image = env.path("image")
        session = begin(env, program)
        due(env, p.name, "kill-supervisor")
        r = env.podrun(way, "s", "-o", image, check=False)
        due(env, None, None)
        told(r, what)
        until(what + ": nothing runs", session.is_gone)
        if image.exists():
            env.podrun("resume", "-d", image)
            finish(env, "s")
            image.unlink()
        over(env, session, what)
        if [x for x in os.listdir(env.dir) if x.startswith("image")]:
            raise Failed(what + ": an image is left")


def supervisor_in_resume(env, program, finish):
    image = env.path("image")
    begin(env, program)
    env.podrun("suspend", "s", "-o", image)
    for p in points("resume"):
        what = "resume, supervisor killed at %s" % p.name
        due(env, p.name, "kill-supervisor")
        told(env.podrun("resume", "-d", image, check=False), what)
        due(env, None, None)
        until(what + ": nothing but the record is left",
              lambda: not [x for x in nothing_but(env, "s") if x != "s"])
        if p.name in NEARLY:
            env.podrun("resume", "-d", image)
            env.podrun("suspend", "s", "-o", image)
        if p.name not in USED_UP:
            continue
        env.podrun("resume", "-d", image, code=6)
        env.podrun("rm", "s")
        begin(env, program)
        env.podrun("suspend", "s", "-o", image)
    env.podrun("resume", "-d", image)
    finish(env, "s")


# Nothing has run yet, though the image was claimed.
NEARLY = ("resume.consumed", "release.begin")
# Behind these the session may have run.
USED_UP = ("release.half", "resume.released")


def supervisor(env, program, finish):
    supervisor_in_suspend(env, program, "suspend", finish)
    supervisor_in_suspend(env, program, "snapshot", finish)
    supervisor_in_resume(env, program, finish)


# ---- the command is killed ------------------------------------------------------------------

def client(env, program, finish):
    """Nobody waits for the outcome: it is one of the two all the same."""
    session = begin(env, program)
    image = env.path("image")
    for p in points("suspend"):
        due(env, p.name, "kill-client")
        env.podrun("suspend", "s", "-o", image, code=-9)
        until("suspended", session.is_gone)
        for q in points("resume") if p.name == "freeze.begin" else points("resume")[:1]:
            due(env, q.name, "kill-client")
            env.podrun("resume", "-d", image, code=-9)
            due(env, None, None)
            until("it runs", lambda: [x["state"] for x in env.sessions()] == ["running"])
            env.podrun("suspend", "s", "-o", image)
        env.podrun("resume", "-d", image)
        session = Session(env, "s")
    finish(env, "s")
