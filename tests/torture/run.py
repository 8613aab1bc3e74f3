#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Torture: a session that is never in the same state for long is suspended, resumed, snapshotted, rolled back, paused
and moved, at random moments, and at random moments somebody who takes part in that is killed.

The session is restless.h: it knows what it must hold.  Each round does one thing to it on one of two "hosts", perhaps
with an attack on it, and looks at what has become of it:

    it runs, in one place; or it does not, and there is an image of it, which is resumed.  It is gone only where somebody
    was killed without whom a session can't be (its supervisor, its pid 1, who rewrites its names)
    all that it holds is right; it counts aloud, and no number is said by two, or lost
    there is no process, no file, no socket, no mount and no object of System V that does not belong to it

All of it happens in a container of its own, in which these can be counted.

    PODRUN_TEST_SECONDS=3600 tests/torture/run.py          for so long (40; 20 where names are rewritten)
    PODRUN_TEST_SEED=7                                     the same choices again, though not the same moments
    PODRUN_TEST_STORY=1                                    says what was done also where nothing is wrong
    PODRUN_TEST_HOLD=1                                     where something is, all stands until it is killed
"""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
sys.path.insert(0, str(TESTS / "state"))
from cli import ssh_to  # noqa: E402
from contained import OURS, contain, objects, processes  # noqa: E402
from faults import children, read  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, REWRITE, Env, Failed, add, main, until  # noqa: E402

RESTLESS = BUILD / "tests" / "torture" / "restless"
SECONDS = float(os.environ.get("PODRUN_TEST_SECONDS", "20" if REWRITE else "40"))
INSIDE = "/tmp/restless"
# Besides what contained.py makes: where there is no room, and a network that is up.
PREPARE = """
mkdir -m 1777 /mnt/tmp && mkdir -m 777 /mnt/small && mount -t tmpfs -o size=64k none /mnt/small &&
chmod 777 /mnt/small && %s -c '%s'
""" % (sys.executable, "import fcntl, socket, struct; "
       "fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sH14x\", b\"lo\", 0x41))")


# ---- what is there ----------------------------------------------------------------------------

def family(pid):
    found = {pid}
    for child in children(pid):
        found |= family(child)
    return found


def sockets():
    """Names of unix sockets, and listeners."""
    found = [line.split()[7] for line in read("/proc/net/unix").splitlines()[1:] if len(line.split()) > 7]
    found += [line.split()[1] for line in read("/proc/net/tcp").splitlines()[1:] if line.split()[3] == "0A"]
    return sorted(found)


MATES = ("log", "supervisor.log", "record", "files")


class Place:
    """One of the two hosts."""

    def __init__(self, name, env):
        self.name, self.env = name, env

    def podrun(self, *args, **kw):
        return self.env.podrun(*args, **kw)

    def state(self, name="s"):
        """As ps says it; None: there is no such session."""
        r = self.podrun("ps", "-a", "--json", check=False)
        if r.code:
            raise Failed(str(r))
        return next((s["state"] for s in r.json() if s["name"] == name), None)

    def log(self):
        return self.env.path("state") / "podrun" / "sessions" / "s" / "log"

    def supervisor(self):
        """Of a session that is there; 0 if it is just going."""
        r = self.podrun("inspect", "s", check=False)
        return 0 if r.code else r.json().get("supervisor", 0)

    def key(self):
        return self.podrun("key", "show").text.split()[0]

    def files(self, live):
        """Of ours that nothing needs; `live`: the session is here."""
        home, run = self.env.path("state") / "podrun", self.env.path("run") / "podrun"
        found = [str(p) for p in run.glob("*") if not (live and p.name == "s")]
        found += [str(p) for p in (home / "images").glob("*")]
        for d in (home / "sessions").glob("*"):
            found += [str(p) for p in d.glob("*")
                      if p.name not in MATES or (p.name == "files" and not live)]
        return found


# ---- one attack --------------------------------------------------------------------------------

# It has something of the session's in its hands: not both it and who it does that for (ckpt/careful.h).
CAREFUL = "(podrun-careful)"
VICTIMS = {
    "client": lambda t: "podrun suspend" in t or "podrun resume" in t or "podrun migrate" in t or
    "podrun snapshot" in t,
    "receiver": lambda t: "podrun receive" in t,
    "worker": lambda t: t.endswith(("(podrun-freeze)", "(podrun-rebuild)", "(podrun-convert)", "(podrun-mend)", CAREFUL)),
    "supervisor": lambda t: "podrun supervise" in t and t.endswith(("(podrun)", "(exe)", "(podrun supervis)")),
    "pid 1": lambda t: t.endswith("(podrun-init)"),
    "rewriter": lambda t: t.endswith("(podrun-rewriter)"),
}
# Without them there is no session.  Where names are rewritten who freezes is the rewriter's child, and traces all.
LETHAL = ("supervisor", "pid 1", "rewriter") + (("worker",) if REWRITE else ())


class Torture:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        if REWRITE:
            os.environ["RESTLESS_WITHOUT_TCP"] = "1"
        env = Env("torture")
        env.leave() if not REWRITE else None
        self.env = env
        self.a, self.b = Place("A", env.host("a")), Place("B", env.host("b"))
        for p, q in ((self.a, self.b), (self.b, self.a)):
            ssh_to(p.env, q.env)
            q.podrun("key", "trust", p.key())
        self.heard, self.deaf = {}, False
        self.listened = {}  # how much of which log
        self.here = self.a
        self.spent = {}
        self.images = 0
        self.lost = 0
        self.seed = seed
        self.outside = (set(processes()), objects(), sockets(), read("/proc/self/mountinfo"))

    def other(self):
        return self.b if self.here is self.a else self.a

    # ---- the session ------------------------------------------------------------------------

    def begin(self):
        self.here = self.rng.choice((self.a, self.b))
        self.remove()
        self.new_life()
        self.seed += 1
        self.here.env.run_detached("s", RESTLESS, INSIDE, self.seed)

    def remove(self):
        """What is left of it where it is not: its record and log."""
        self.listen()
        for p in (self.a, self.b):
            if p.state() in ("ended", "suspended", "lost", "moved"):
                p.podrun("rm", "s", check=False)
        self.listen()

    def listen(self):
        """To all that it has said since.  What its log is where it was goes along with it."""
        for p in (self.a, self.b):
            with contextlib.suppress(FileNotFoundError), open(p.log(), "rb") as f:
                known, at = self.listened.get(p, (0, 0))
                f.seek(at if known == os.fstat(f.fileno()).st_ino else 0)
                lines = f.read().split(b"\n")
                self.listened[p] = (os.fstat(f.fileno()).st_ino, f.tell() - len(lines[-1]))
                for line in lines[:-1]:
                    if line.startswith(b"b0") and self.heard.setdefault(int(line[1:7]), line) != line:
                        raise Failed("it runs twice: %s, %s" % (self.heard[int(line[1:7])], line))

    def new_life(self, heard=None):
        """It begins to count, perhaps at some number where it had been already."""
        self.listen()
        self.heard, self.deaf = heard or {}, False

    def hear(self):
        """`deaf`: with a supervisor what it had not yet written down is gone."""
        self.listen()
        lost = [n for n in range(min(self.heard, default=0), max(self.heard, default=0)) if n not in self.heard]
        if lost and not self.deaf:
            raise Failed("what it said is lost: %s of %d" % (lost, len(self.heard)))

    def ask(self, name="s", end=False):
        r = self.here.podrun("exec", name, RESTLESS, INSIDE, "end" if end else "ask", check=False)
        if r.code:
            raise Failed("it does not hold what it must:\n%s\n%s" % (r, self.here.env.logs(name)))

    def image(self):
        self.images += 1
        return self.env.path("image%d" % self.images)

    def stored(self):
        return [i for p in (self.a, self.b) for i in (p.env.path("state") / "podrun" / "images").glob("*")]

    # ---- what may have become of it ----------------------------------------------------------

    LIVE = ("running", "paused", "in-doubt", "arrived")
    FINAL = (None, "running", "paused", "in-doubt", "arrived", "suspended", "ended", "lost", "moved")

    def settle(self):
        """Waits until nothing goes on, and returns where it stands on each host."""
        def settled():
            now = [p.state() for p in (self.a, self.b)]
            known = [p.supervisor() for p, s in zip((self.a, self.b), now) if s in self.LIVE]
            # A receiver that can't tell that it has it gives it up by itself.
            others = [pid for pid, text in processes().items()
                      if VICTIMS["receiver"](text) or (VICTIMS["supervisor"](text) and pid not in known)]
            return not others and all(s in self.FINAL for s in now) and now

        try:
            a, b = until("it is decided", settled)
        except Failed:
            raise Failed("not decided: %s %s" % ([p.state() for p in (self.a, self.b)], processes())) from None
        return {self.a: a, self.b: b}

    @staticmethod
    def decide(p, what, hit, may_run=False):
        """False: it has ended meanwhile, for somebody was killed without whom it can't be; or, where it `may_run`, it does:
        the word that it may was still on its way."""
        allowed = [None, "ended", "lost"] * bool(set(hit) & set(LETHAL)) + ["running"] * may_run
        r = p.podrun("migrate", what, "s", check=False)
        if r.code and (r.code != 6 or p.state() not in allowed):
            raise Failed(str(r))
        return not r.code

    def doubts(self, now, hit):
        """A move is in doubt: decides as a user has to, by what there is on both sides."""
        for p in (self.a, self.b):
            q = self.b if p is self.a else self.a
            if now[p] == "in-doubt":
                if now[q] == "running":
                    self.decide(p, "--finish", hit)
                elif now[q] in ("arrived", "in-doubt") and self.rng.random() < .5:
                    self.decide(p, "--finish", hit)
                    self.decide(q, "--finish", hit, may_run=True)
                else:
                    if now[q] in ("arrived", "in-doubt"):
                        if not self.decide(q, "--abort", hit, may_run=True) and q.state() == "running":
                            self.decide(p, "--finish", hit)
                            return self.settle()
                    elif set(hit) & set(LETHAL):
                        self.new_life()  # it may have run there, and ended
                    self.decide(p, "--abort", hit)
                return self.settle()
        for p in (self.a, self.b):
            q = self.b if p is self.a else self.a
            if now[p] == "arrived":
                there = now[q] in ("running", "paused", "suspended")
                if not there and set(hit) & set(LETHAL):
                    self.new_life()  # it may have run on there, and ended: this is what it was before
                self.decide(p, "--abort" if there else "--finish", hit)
                return self.settle()
        return now

    def after_death(self, now):
        """It may take a moment until a session notices that it is one no more."""
        for p in (self.a, self.b):
            if now[p] == "paused":
                p.podrun("unpause", "s", check=False)
            if now[p] in ("running", "paused"):
                until("it lives, or does not", lambda at=p: at.podrun("exec", "s", "true", check=False).code == 0
                      or at.state() not in self.LIVE)
        return self.settle()

    def become(self, what, code, image, hit):
        """Where it runs now; begins it anew if it may have ended."""
        now = self.settle()
        now = self.doubts(now, hit)
        self.deaf |= bool(set(hit) & set(LETHAL))
        if set(hit) & set(LETHAL):
            now = self.after_death(now)
        alive = [p for p in (self.a, self.b) if now[p] in ("running", "paused")]
        if len(alive) > 1:
            raise Failed("it runs twice")
        if alive and (image and image.exists() or self.stored()):
            raise Failed("it runs, and there is an image")
        if alive:
            self.here = alive[0]
            if now[self.here] == "paused" and what != "pause":
                raise Failed("it is paused, and nobody has asked for that")
            return
        stored = [p for p in (self.a, self.b) if now[p] == "suspended"]
        if len(stored) > 1:
            raise Failed("it is suspended on both")
        if stored or image and image.exists():
            p = stored[0] if stored else self.here
            r = p.podrun("resume", "-d", "s" if stored else image, check=False)
            if r.code == 0:
                self.here = p
                return
            if r.code != 6:
                raise Failed("what is suspended can't be resumed: %s" % r)
        if not set(hit) & set(LETHAL):
            raise Failed("it is gone: %s, exit code %s" % ({p.name: s for p, s in now.items()}, code))
        self.lost += 1
        self.nothing_left()
        self.begin()

    # ---- what is left ------------------------------------------------------------------------

    def left(self, live):
        known, found = set(self.outside[0]), []
        if live:
            known |= family(self.here.supervisor())
        found += [text for pid, text in processes().items() if pid not in known]
        for p in (self.a, self.b):
            found += p.files(live and p is self.here)
        if not live or not REWRITE:
            found += [o for o in objects() if o not in self.outside[1]]
        if not live:
            found += [s for s in sockets() if s not in self.outside[2] and not s.startswith("0100007F:")]
        mounts = read("/proc/self/mountinfo")
        return found + ([mounts] if mounts != self.outside[3] else [])

    def nothing_left(self, live=False):
        self.remove()
        try:
            until("nothing is left", lambda: not self.left(live))
        except Failed:
            raise Failed("left: " + "\n      ".join(self.left(live))) from None

    # ---- attacks -----------------------------------------------------------------------------

    def strike(self, what, who):
        """Kills `who` at some time of what is done; True if there was somebody to be killed."""
        time.sleep(self.rng.random() * self.spent.get(what, .2))
        hit = {pid: text for pid, text in processes().items() if VICTIMS[who](text) and pid not in self.outside[0]}
        one = hit and self.rng.choice(sorted(hit))
        everybody = self.rng.random() < .3
        for pid, text in hit.items():
            if pid == one or everybody and not text.endswith(CAREFUL) and not hit[one].endswith(CAREFUL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return bool(hit)

    def do(self, what, *commands, good=lambda codes: not any(codes)):
        """Runs commands at once, perhaps with an attack; without one their exit codes must be good.  Returns these, and
        who was killed."""
        victim = self.rng.choice([None, None, None] + sorted(VICTIMS))
        began = time.monotonic()
        procs, hit, err = [], [], open(self.env.path("errors"), "w+b")
        for place, argv, kw in commands:
            procs.append(place.env.start(PODRUN, *argv, stderr=err, **{"stdout": subprocess.DEVNULL, **kw}))
            OURS.append(procs[-1].pid)
            for f in (kw.get("stdout"), kw.get("stdin")):
                if isinstance(f, int) and f > 2:
                    os.close(f)
        if victim and self.strike(what, victim):
            hit.append(victim)
        for p in procs:
            p.wait(timeout=PATIENCE)
            OURS.remove(p.pid)
        if not victim:
            self.spent[what] = .8 * self.spent.get(what, .2) + .2 * (time.monotonic() - began)
        err.seek(0)
        said = err.read().decode(errors="replace").strip()
        err.close()
        codes = [p.returncode for p in procs]
        self.story = "%s%s: %s %s" % (what, ", killed: " + hit[0] if hit else "", codes, said)
        if not hit and not good(codes):
            raise Failed(self.story)
        return codes, hit

    # ---- rounds ------------------------------------------------------------------------------

    def suspend(self):
        image = self.image() if self.rng.random() < .7 else None
        codes, hit = self.do("suspend", (self.here, ["suspend", "s"] + (["-o", image] if image else []), {}))
        if codes == [0] and not hit:
            self.settle()
            self.kept_only(image)
            p = self.here
            if image and self.rng.random() < .5:
                p = self.other()
            codes, hit = self.do("resume", (p, ["resume", "-d", image or "s"], {}))
            now = self.settle()
            if set(hit) & set(LETHAL):
                now = self.after_death(now)
            if now[p] == "running":
                self.here = p
                if image:
                    image.unlink()
                return
            if p is not self.here and set(hit) & set(LETHAL):
                self.new_life()  # it may have run on there, and ended, of which here nobody knows
            self.here = p
        self.become("suspend", codes, image, hit)
        if image:
            image.unlink(missing_ok=True)

    def kept_only(self, image):
        """It is suspended: there is nothing but the image."""
        ours = "s.img"

        def found():
            return [x for x in self.left(False)
                    if not (image is None and x.endswith("/images/" + ours))]
        try:
            until("nothing but the image is left", lambda: not found())
        except Failed:
            raise Failed("left of a suspended session: " + "\n      ".join(found())) from None

    def snapshot(self):
        image = self.image()
        codes, hit = self.do("snapshot", (self.here, ["snapshot", "s", "-o", image], {}))
        self.become("snapshot", codes, None, hit)
        if codes == [0]:
            self.here.podrun("image", "verify", image)
            if not hit:
                self.roll_back(image)
        image.unlink(missing_ok=True)

    def roll_back(self, image):
        """The session as it was: instead of the one that there is, or while that is suspended."""
        kept, p = self.image() if self.rng.random() < .5 else None, self.here
        if kept:
            p.podrun("suspend", "s", "-o", kept)
            self.hear()
        else:
            p.podrun("kill", "s")
        self.nothing_left()
        before = self.heard
        self.new_life()
        self.here = self.rng.choice((self.a, self.b))
        self.here.podrun("resume", "-d", image)
        if kept:
            self.ask()
            self.hear()
            self.here.podrun("kill", "s")
            self.nothing_left()
            self.new_life(before)
            p.podrun("resume", "-d", kept)
            kept.unlink()
            self.here = p

    def pipe(self):
        there = self.rng.choice((self.here, self.other()))
        out, into = os.pipe()
        codes, hit = self.do("pipe", (self.here, ["suspend", "s", "-o", "-"], {"stdout": into}),
                             (there, ["resume", "-d", "-"], {"stdin": out}))
        # What was in the pipe is gone with who read it.
        self.become("pipe", codes, None, hit + (["supervisor"] if hit else []))

    def migrate(self):
        live = self.rng.choice(([], ["--live"], ["--live", "--force"], ["--live", "--force", "--rounds", "2"],
                                ["--live", "--rest", "4"]))
        gives_up = bool(live) and "--force" not in live
        codes, hit = self.do("migrate " + " ".join(live), (self.here, ["migrate", *live, "s", "there"], {}),
                             good=lambda codes: codes == [0] or (gives_up and codes == [1]))
        self.become("migrate", codes, None, hit)

    def lose_an_acknowledgement(self):
        # before HERE, READY, ACK
        ssh_to(self.here.env, self.other().env, lines=self.rng.choice((0, 1, 2)))
        codes, hit = self.do("lost line", (self.here, ["migrate", "s", "there"], {}),
                             good=lambda codes: codes in ([8], [9]))
        ssh_to(self.here.env, self.other().env)
        self.become("migrate", codes, None, hit)

    def pause(self):
        codes, hit = self.do("pause", (self.here, ["pause", "s"], {}))
        self.become("pause", codes, None, hit)
        if self.here.state() == "paused":
            r = self.here.podrun("unpause", "s", check=False)
            # Whose worker was killed runs on by itself, as soon as another one has tidied up behind it.
            if r.code and not (hit and r.code == 6 and self.here.state() == "running"):
                raise Failed(str(r))

    def no_room(self):
        way = self.rng.choice(("suspend", "snapshot"))
        codes, hit = self.do("no room", (self.here, [way, "s", "-o", "/mnt/small/image"], {}), good=any)
        if codes == [0] or os.listdir("/mnt/small"):
            raise Failed("an image where there is no room: %s %s" % (self.story, os.listdir("/mnt/small")))
        self.become("no room", codes, None, hit)

    def two_at_once(self):
        image, second = self.image(), self.image()
        codes, hit = self.do("two at once", (self.here, ["snapshot", "s", "-o", image], {}),
                             (self.here, ["suspend", "s", "-o", second], {}), good=lambda codes: 0 in codes)
        self.become("two at once", codes, second, hit)
        image.unlink(missing_ok=True)
        second.unlink(missing_ok=True)

    def anew(self):
        self.ask(end=True)
        if "ok" not in self.here.env.wait("s").split():
            raise Failed(self.here.env.logs("s"))
        self.nothing_left()
        self.begin()

    def run(self):
        rounds = (self.suspend, self.suspend, self.snapshot, self.snapshot, self.pipe, self.migrate, self.migrate,
                  self.migrate, self.lose_an_acknowledgement, self.pause, self.no_room, self.two_at_once, self.anew)
        done, end = 0, time.monotonic() + SECONDS
        self.begin()
        while time.monotonic() < end:
            self.story = ""
            what = self.rng.choice(rounds)
            try:
                what()
                self.ask()
                self.hear()
                self.nothing_left(live=True)
            except Exception as e:
                log = "".join("--- %s\n%s\n" % (p.name, read(p.env.path("state") / "podrun/sessions/s/supervisor.log")[-1500:])
                              for p in (self.a, self.b))
                raise Failed("round %d, %s (seed %d): %s\n%s\n%s" % (
                    done, what.__name__, self.seed, self.story, e, log)) from e
            done += 1
            print("%s -> %s" % (self.story or what.__name__, self.here.name), flush=True)
            self.story = ""
        self.ask(end=True)
        self.here.env.wait("s")
        self.hear()
        self.nothing_left()
        print("%d rounds; %d times the session was killed with who keeps it" % (done, self.lost))


# ---- all of it -------------------------------------------------------------------------------------

def inside(seed):
    t = Torture(seed)
    try:
        t.run()
    except Failed as e:
        if os.environ.get("PODRUN_TEST_HOLD"):
            print(e, flush=True)
            signal.pause()
        raise
    finally:
        for p in (t.a, t.b):
            p.podrun("rm", "-f", "s", check=False)
        t.env.close()


def outside(env):
    seed = int(os.environ.get("PODRUN_TEST_SEED") or random.randrange(1 << 30))
    print("seed %d" % seed, flush=True)
    env.environ["TMPDIR"] = "/mnt/tmp"
    r = contain(env, __file__, seed, network=True, prepare=PREPARE, timeout=SECONDS + 600, check=False)
    if os.environ.get("PODRUN_TEST_STORY") or r.code:
        print(r.text)
    if r.code:
        raise Failed(r.errors)
    print(r.text.splitlines()[-1])


add("a_restless_session", outside)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(int(sys.argv[2]))
    else:
        main()
