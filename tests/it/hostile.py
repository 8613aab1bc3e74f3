#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Images that are signed by a trusted key, and lie.

A signature says who wrote an image, not that what is in it makes sense: whoever can write one can put
any number into any field.  Here every field of every record is set to values it should not have, the
image is signed again and resumed.  Each time one of two things has to happen:

    refused    exit code 7 (or 4, where a field says what the host must have), one line, nothing of it
               left: no process, no file, no record
    resumed    the variation is harmless; the session can be killed, and then nothing is left

Never: a podrun that is killed, hangs, fails with the class "failed", or writes outside the session.

`mutants` takes a random sample (PODRUN_TEST_SEED, which it prints; PODRUN_TEST_SECONDS, 60); with
PODRUN_TEST_MUTANTS=all every value of every field is tried, which takes an hour or so.
PODRUN_TEST_ONLY="mm.mappings" limits either to fields with that in their name.
"""
import ctypes
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import images  # noqa: E402
from harness import BUILD, PATIENCE, PODRUN, Env, Failed, add, main, test, until  # noqa: E402
from images import DATA, RECORD, SCHEMA, Frame, Image, Message  # noqa: E402

STATE = BUILD / "tests" / "state"
PR_SET_CHILD_SUBREAPER = 36
TOO_BIG = 6 << 20

NAMES = {1: "config", 2: "tree", 3: "world"}

# ---- values that fields should not have ------------------------------------------------------------

SMALL = (0, 1, 2, 3, 5, 64, 4095, 65536)
ADDRESSES = (0x1000, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000, 0xffff800000000000,
             0xffffffffff600000, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 4096, (1 << 64) - 1)
STRINGS = (b"", b"/", b".", b"..", b"../../../../../../../../var/tmp/podrun-%CANARY%/made",
           b"/../../../../../../../var/tmp/podrun-%CANARY%/made", b"/proc/self/root/etc/passwd",
           b"/proc/1/root/tmp", b"/dev/null", b"/etc/passwd", b"a\nb\x1b[31m", b"\xff\xfe", b"x" * 300,
           b"/x" * 3000, b"y" * 70000, b"%s%n%d")


def numbers(kind, old):
    near = [old + 1, old - 1, old ^ 4095, old * 2] if old is not None else []
    if kind == "bool":
        return [not old]
    if kind == "int32":
        return near + [-1, -2, -(1 << 31), (1 << 31) - 1, *SMALL]
    if kind == "uint32":
        return near + [1 << 31, (1 << 31) - 1, (1 << 32) - 1, 0xffff0000, *SMALL]
    if kind == "int64":
        return near + [-1, -(1 << 63), (1 << 63) - 1, 10 ** 18, *SMALL]
    return near + [*ADDRESSES, *SMALL]


def blobs(old):
    yield from STRINGS
    if old:
        yield old[:len(old) // 2]
        yield old[:-1]
        yield old + b"\0"
        yield old + b"\0/../x"
        yield old + old
        yield b"\xff" * len(old)
        yield bytes(len(old))
        for i in range(0, min(len(old), 216), 8):  # words of registers, siginfo and their like
            for word in (0xffff800000001000, 0x1234):
                if len(old) % 8 == 0:
                    yield old[:i] + word.to_bytes(8, "little") + old[i + 8:]


def variations(message, field):
    """Functions that change one field of a message, each with a name."""
    f, kind, values = message.fields[field], message.kind(field), message.values.get(field, [])
    old = values[0] if values else None

    def put(new):
        return lambda m: m.values.__setitem__(field, new)

    if old is not None:
        yield "missing", put([])
    if f.repeated and values:
        yield "twice", put(values + values[:1])
        yield "first-gone", put(values[1:])
        yield "backwards", put(values[::-1])
        yield "thousandfold", put((values * 3000)[:3000])
    rest = values[1:]
    if kind in SCHEMA.messages:
        yield "blank", put([Message(kind)] + rest)
    elif kind in ("string", "bytes"):
        for new in blobs(old):
            yield repr(new[:30]) + ("+%d" % (len(new) - 30) if len(new) > 30 else ""), \
                put([new] + rest)
    elif kind in SCHEMA.enums:
        for new in sorted(set(SCHEMA.enums[kind]) - {old or 0}) + [99, -1]:
            yield str(new), put([new] + rest)
    else:
        for new in sorted(set(map(int, numbers(kind, old)))):
            if new != (old or 0):
                yield hex(new), put([new] + rest)


def walk(message, path):
    """All (path, getter) of a message and what is in it."""
    yield path, lambda m: m
    for field, values in message.values.items():
        for i, v in enumerate(values):
            if isinstance(v, Message):
                for below, get in walk(v, path + "." + field):
                    yield below, lambda m, f=field, i=i, g=get: g(m.values[f][i])


def kind_name(number):
    return NAMES.get(number) or images.RECORDS[number].lower()


# Changes of the stream itself: what frames there are, in which order, about what.
def stream_variations(image, i):
    f, n = image.frames[i], len(image.frames)

    def frames(*new):
        return lambda im: im.frames.__setitem__(slice(i, i + 1), list(new))

    def other(**kw):
        g = f.copy()
        g.__dict__.update(kw)
        return frames(g)

    yield "gone", frames()
    yield "twice", frames(f, f)
    for subject in (0, 1, 2, f.subject + 1, 1 << 31, (1 << 32) + 1, (1 << 64) - 1):
        if subject != f.subject:
            yield "subject-%d" % subject, other(subject=subject)
    if f.type == RECORD:
        yield "empty", other(payload=b"")
        yield "half", other(payload=f.payload[:len(f.payload) // 2])
        yield "garbage", other(payload=b"\xff" * 40)
        for kind in (0, 20, 21, 40, 61, 63, 75, 80, 99, (1 << 32) - 1):
            if kind != f.kind:
                yield "kind-%d" % kind, other(kind=kind)
        yield "data-before", frames(Frame(DATA, f.kind, f.subject, bytes(4096), 0), f)
        yield "data-behind", frames(f, Frame(DATA, f.kind, f.subject, bytes(4096), 0))
        if i + 1 < n:
            yield "later", lambda im: im.frames.__setitem__(
                slice(i, i + 2), [im.frames[i + 1], im.frames[i]])
    elif not f.flags:
        for offset in (1, 4096, f.offset + 1, f.offset + 4096, 0x7ffffffff000, 0xffff800000000000,
                       (1 << 63) - 4096, (1 << 64) - len(f.payload)):
            if offset != f.offset:
                yield "offset-%x" % offset, other(offset=offset)
        yield "short", other(payload=f.payload[:-1] or b"x")
        yield "long", other(payload=f.payload + bytes(4096))


class Mutants:
    """All variations of a set of images, by name of what is varied."""

    def __init__(self, sources, rng):
        self.sources, self.places, self.rng = sources, {}, rng
        for name, image in sources.items():
            for i, f in enumerate(image.frames):
                label = kind_name(f.kind)
                if f.type == DATA:
                    self._place("data." + label, name, i, None)
                    continue
                self._place("record." + label, name, i, None)
                m = f.message()
                for path, get in walk(m, label):
                    for field in get(m).fields:
                        self._place(path + "." + field, name, i, (get, field))

    def _place(self, label, *where):
        self.places.setdefault(label, []).append(where)

    def candidates(self, label, per_label):
        """Some places for a label: one in the smallest image, others anywhere; those where the field
        is set before those where it is not."""
        def size(w):
            name, i, spot = w
            blank = spot is not None and \
                not spot[0](self.sources[name].frames[i].message()).values.get(spot[1])
            return blank, sum(len(f.payload) for f in self.sources[name].frames)
        # not more than some, to be quick
        places = self.places[label]
        places = sorted(self.rng.sample(places, min(len(places), 12)), key=size)
        return [places[0]] + [self.rng.choice(places) for _ in range(per_label - 1)]

    def of(self, label, per_label=1):
        for name, i, spot in self.candidates(label, per_label):
            image = self.sources[name]
            if spot is None:
                for what, change in stream_variations(image, i):
                    yield "%s[%d] %s = %s" % (name, i, label, what), self.made(image, change)
                continue
            get, field = spot
            for what, change in variations(get(image.frames[i].message()), field):
                yield "%s[%d] %s = %s" % (name, i, label, what), self.made(
                    image, self._inside(i, get, change))

    @staticmethod
    def _inside(i, get, change):
        return lambda im: im.change(i, lambda m: change(get(m)))

    @staticmethod
    def made(image, change):
        def make(canary):
            im = image.copy()
            change(im)
            for i, f in enumerate(im.frames):
                if f.type == RECORD and b"%CANARY%" in f.payload:
                    im.frames[i] = g = f.copy()
                    g.payload = f.payload.replace(b"%CANARY%", canary.encode()[:8].ljust(8, b"_"))
            im.head = im.head[:16] + os.urandom(16) + im.head[32:]
            return im
        return make


# ---- one mutant -----------------------------------------------------------------------------------

def adopt_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def no_children(what):
    """Waits until every process that descends from this one has ended."""
    def gone():
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            return False
        except ChildProcessError:
            return True
    try:
        until("no process is left", gone)
    except Failed:
        kids = pathlib.Path("/proc/self/task/%d/children" % os.getpid()).read_text().split()
        names = [pathlib.Path("/proc/%s/comm" % k).read_text().strip() for k in kids]
        for k in kids:
            os.kill(int(k), 9)
        raise Failed("%s: left running: %s" % (what, " ".join(names))) from None


def listing(*tops):
    """What is below some directories, but for what may stay of any resume."""
    found = set()
    for top in tops:
        for path, dirs, files in os.walk(top):
            found |= {os.path.join(path, n) for n in dirs + files}
    return {f for f in found if "/ledger" not in f and "/known" not in f}


class Place:
    """Where mutants are resumed: directories of their own, and one that they must not touch."""

    def __init__(self, env, name):
        self.env, self.name = env, name
        self.canary = tempfile.mkdtemp(prefix="podrun-", dir="/var/tmp")
        (pathlib.Path(self.canary) / "kept").write_text("as it was\n")
        self.short = self.canary.split("-")[1]

    def close(self):
        shutil.rmtree(self.canary)

    def untouched(self):
        kept = pathlib.Path(self.canary) / "kept"
        return os.listdir(self.canary) == ["kept"] and kept.read_text() == "as it was\n"

    def resume(self, image):
        """Resumes it; returns the exit code after checking that nothing is amiss."""
        env = self.env
        before = listing(env.dir / "run", env.dir / "state")
        r = env.podrun("resume", "-d", image, check=False, timeout=2 * PATIENCE)
        if r.code == 0:
            # rm -f kills it first; a session whose name was varied is looked for
            if env.podrun("rm", "-f", self.name, check=False).code:
                for s in env.podrun("ps", "-a", "--json").json():
                    env.podrun("rm", "-f", s["name"])
        else:
            lines = r.errors.strip().split("\n")
            if r.code not in (7, 4) or not lines[0].startswith("podrun: ") or \
                    len(lines) > 1 + lines[-1].startswith("hint: "):
                raise Failed(str(r))
        no_children(str(r))
        left = listing(env.dir / "run", env.dir / "state") - before
        if left:
            raise Failed("%s\nleft: %s" % (r, " ".join(sorted(left))))
        if not self.untouched():
            raise Failed("%s\nit has written outside" % r)
        return r

    def look(self, image):
        """What only looks at an image may refuse it, and comes to an end."""
        for args in (("show",), ("stacks",), ("core", "-o", self.env.path("core"))):
            r = self.env.podrun("image", args[0], image, *args[1:], check=False, timeout=PATIENCE)
            if r.code not in (0, 7, 4):
                raise Failed(str(r))
            for core in self.env.dir.glob("core*"):
                core.unlink()


def make_sources(env, programs):
    sources = {}
    for p in programs:
        name = "s%d" % os.getpid()
        env.run_detached(name, STATE / p, "/tmp/go")
        env.podrun("suspend", name, "-o", env.path("i"))
        env.podrun("rm", "-f", name, check=False)
        if env.path("i").stat().st_size <= TOO_BIG:
            sources[p] = Image.load(env.path("i"))
        env.path("i").unlink()
    return sources


def run_mutants(env, sources, part, parts, seed, seconds, everything):
    """The work of one process: one mutant of `parts`."""
    rng = random.Random(seed)
    mutants = Mutants(sources, rng)
    key = images.seed_of(env)
    place = Place(env, "s%d" % os.getpid())
    only = os.environ.get("PODRUN_TEST_ONLY", "").split(",")
    todo = [m for label in sorted(mutants.places) if any(o in label for o in only)
            for m in mutants.of(label)]
    rng.shuffle(todo)
    end = time.monotonic() + seconds
    codes, bad = {}, []
    image = env.path("mutant")
    for n, (name, make) in enumerate(todo):
        # by its name: another process has other images, and another order
        if zlib.crc32(name.split(" ", 1)[1].encode()) % parts != part:
            continue
        if not everything and time.monotonic() > end:
            break
        make(place.short).save(image, key)
        try:
            r = place.resume(image)
            codes[r.code] = codes.get(r.code, 0) + 1
            print("%d %s  %s" % (r.code, name, r.errors.strip()), flush=True)
            if n % 5 == 0:
                place.look(image)
        except Failed as e:
            bad.append(name)
            print("BAD %s\n%s\n" % (name, e), flush=True)
            if len(bad) > (5000 if everything else 10):
                break
            shutil.copy(image, env.path("bad-%d-%d" % (part, len(bad))))
    place.close()
    print("SUM %d mutants of %d, exit codes %s, %d bad" % (
        sum(codes.values()) + len(bad), len(todo) // parts, codes, len(bad)))
    return bad


def mutate(env):
    everything = os.environ.get("PODRUN_TEST_MUTANTS") == "all"
    seed = int(os.environ.get("PODRUN_TEST_SEED", 0)) or random.randrange(1, 1 << 31)
    seconds = float(os.environ.get("PODRUN_TEST_SECONDS", 60))
    programs = sorted(p.name for p in STATE.iterdir() if p.is_file() and os.access(p, os.X_OK)
                      and not p.name.endswith("_overlay"))
    if not everything:
        programs = sorted(random.Random(seed).sample(programs, 16))
    part, parts = (int(x) for x in os.environ.get("PODRUN_TEST_PART", "0/1").split("/"))
    adopt_orphans()
    sources = make_sources(env, programs)
    print("seed %d, images of %s" % (seed, " ".join(sources)), flush=True)
    bad = run_mutants(env, sources, part, parts, seed, seconds, everything)
    return 1 if bad else 0


# ---- lies somebody would think of -----------------------------------------------------------------

LIES = []


def lie(program, kind, why="", codes=(7,)):
    """Registers a function that changes a message of the first record of a kind (its name in
    images.RECORDS), or, without a kind, the image itself."""
    def take(fn):
        LIES.append((fn.__name__ + why, program, kind, fn, codes))
        return fn
    return take


def first(image, kind):
    for i in image.records():
        if images.RECORDS.get(image.frames[i].kind) == kind:
            return i
    raise LookupError(kind)


def new(of, **fields):
    m = Message(of)
    for field, value in fields.items():
        m.set(field, value)
    return m


def parametrised(program, kind, field, values, codes=(7,), of=None):
    """One lie for each value of a field; `of`: the repeated field whose first message has it."""
    for v in values:
        def change(m, v=v):
            (m.all(of)[0] if of else m).set(field, v)
        LIES.append(("%s.%s = %s" % (kind, field, hex(v) if isinstance(v, int) else repr(v)[:40]),
                     program, kind, change, codes))


VSYSCALL, KERNEL = 0xffffffffff600000, 0xffff800000001000
parametrised("counter", "Mm", "start", [1, KERNEL, VSYSCALL, (1 << 64) - 4096], of="mappings")
parametrised("counter", "Mm", "end", [0, 4096, VSYSCALL, KERNEL, (1 << 64) - 1], of="mappings")
parametrised("counter", "Mm", "source", [77, -1], of="mappings")
parametrised("counter", "Mm", "object", [10 ** 6, (1 << 64) - 1], of="mappings")
parametrised("counter", "Task", "ppid", [2, -1, 77, 1 << 30])
parametrised("counter", "Task", "sid", [-1])
parametrised("counter", "Task", "pgid", [-1])
parametrised("counter", "Task", "mm", [0, 1, 3, -1])
parametrised("counter", "Fdtable", "fd", [-1, 1 << 30, (1 << 31) - 1, 1 << 21], of="entries")
parametrised("counter", "Fdtable", "file", [0, 9999, (1 << 32) - 1], of="entries")
parametrised("counter", "Fs", "cwd", ["relative", "", "/no/such/place", "/etc/passwd", "x" * 9000],
             codes=(7, 4))
parametrised("counter", "Creds", "securebits", [0xffffffff], codes=(7, 4))
parametrised("counter", "Config", "name", ["../../outside", "/abs", "", "a/b", "x" * 300, "a\nb"])
parametrised("counter", "Config", "session_id", [b"", b"short", b"x" * 17])
parametrised("counter", "Task", "exit_signal", [-1, 65, 1 << 30])
parametrised("task_stopped", "Task", "stop_signal", [-1, 65])
parametrised("memfds", "MemFd", "size", [1 << 63, (1 << 64) - 1])
parametrised("file_ghost", "Ghost", "size", [1 << 63, (1 << 64) - 1])
parametrised("file_ghost", "Ghost", "object", [0, 9999], codes=(0, 7))
parametrised("mem_sysv", "SysvShm", "size", [0, 1 << 62, (1 << 64) - 1], of="segments")
parametrised("mem_shared_anon", "SharedMem", "size", [1 << 62, (1 << 64) - 1, 5], of="objects")
parametrised("mem_shared_anon", "SharedMem", "file", [9999, 1], of="objects")
parametrised("unix_pair", "Unix", "peer", [1, 9999, (1 << 32) - 1])
parametrised("pipes", "Pipe", "capacity", [(1 << 32) - 1, 1 << 31], codes=(0, 7, 4))
parametrised("ptys", "Pty", "termios", [b"", b"x", b"x" * 4096], of="pair")
parametrised("counter", "Rlimits", "hard", [0], of="limits")  # the first is RLIMIT_CPU
parametrised("task_signals", "Sigactions", "sig", [0, 9, 19, 65, -1, 1 << 30], of="actions")
parametrised("task_timers", "PosixTimers", "id", [-1, 1 << 30], of="timers", codes=(7, 4))
parametrised("task_timers", "PosixTimers", "tid", [1, 77, -1], of="timers", codes=(0, 7))


def registers(at, word):
    """Changes one of the 27 words of user_regs_struct."""
    def change(m):
        regs = bytearray(m.get("regs"))
        regs[8 * at:8 * at + 8] = word.to_bytes(8, "little")
        m.set("regs", bytes(regs))
    LIES.append(("register %d = %x" % (at, word), "counter", "Thread", change, (7,)))


for at, word in ((16, KERNEL), (16, VSYSCALL + (1 << 63)), (17, 0x10), (17, 0x23), (20, 0), (20, 0x10),
                 (21, KERNEL), (22, KERNEL), (23, 0x10), (24, 0x18), (25, 0x8), (26, 0x1)):
    if (at, word) != (16, VSYSCALL + (1 << 63)):
        registers(at, word & (1 << 64) - 1)


@lie("counter", "Mm")
def overlapping_mappings(m):
    m.all("mappings")[1].set("start", m.all("mappings")[0].get("start"))


@lie("mem_file_shared", None, codes=(0, 7))
def no_whole_pages(image):
    for i, f in enumerate(image.frames):
        if f.type == DATA and kind_name(f.kind) == "mm":
            image.frames[i] = g = f.copy()
            g.payload = f.payload[:-1]


@lie("counter", "Mm")
def three_million_mappings(m):
    m.values["mappings"] = m.values["mappings"][:1] * 3000000


@lie("counter", "Task")
def three_million_threads(m):
    m.values["threads"] = list(range(3, 3000003))


@lie("counter", "Fdtable")
def one_number_twice(m):
    m.all("entries").append(m.all("entries")[0])


@lie("task_threads", "Task")
def a_thread_with_the_number_of_its_process(m):
    m.values["threads"][0] = 2


@lie("counter", None)
def a_process_with_number_1(image):
    for i in image.records():
        if image.frames[i].subject == 2:
            image.frames[i] = g = image.frames[i].copy()
            g.subject = 1


@lie("counter", None)
def a_process_with_a_negative_number(image):
    for i in image.records():
        if image.frames[i].subject == 2:
            image.frames[i] = g = image.frames[i].copy()
            g.subject = (1 << 64) - 1


@lie("task_tree", None)
def parents_in_a_circle(image):
    a, b = [i for i in image.records(20)][:2]
    image.change(a, lambda m: m.set("ppid", image.frames[b].subject))
    image.change(b, lambda m: m.set("ppid", image.frames[a].subject))


@lie("sysv_ipc", "SysvMsg", codes=(4,))
def more_messages_than_a_queue_holds(m):
    q = next(q for q in m.all("queues") if q.all("messages"))
    q.values["messages"] = q.values["messages"] * 1000


@lie("epolls", None)
def an_epoll_in_itself(image):
    i = first(image, "Epoll")
    image.change(i, lambda m: m.all("targets").insert(0, new(
        "EpollTarget", file=image.frames[i].subject, fd=40, events=1)))


@lie("epolls", None)
def epolls_in_a_circle(image):
    a, b = image.records(68)[:2]
    for i, k in ((a, b), (b, a)):
        image.change(i, lambda m, k=k: m.values.__setitem__("targets", [new(
            "EpollTarget", file=image.frames[k].subject, fd=40, events=1)]))


@lie("unix_pair", None)
def a_socket_that_is_its_own_peer(image):
    i = first(image, "Unix")
    image.change(i, lambda m: m.set("peer", image.frames[i].subject))


@lie("unix_flight", None)
def a_socket_in_its_own_queue(image):
    for i in image.records(74):
        image.change(i, lambda m, i=i: [q.set("files", image.frames[i].subject)
                                        for q in m.all("queue")])


LIES[-1] = LIES[-1][:-1] + ((0, 7),)


@lie("unix_long", None)
def connections_that_wait_where_nobody_listens(image):
    for i in image.records(74):
        image.change(i, lambda m: m.values.get("pending") and m.set("state", 0))


@lie("unix_abstract", None)
def a_datagram_socket_in_a_backlog(image):
    datagram = []
    for i in image.records(74):
        image.change(i, lambda m, i=i: m.get("common").get("type") == 2
                     and datagram.append(image.frames[i].subject))
    for i in image.records(74):
        image.change(i, lambda m: m.values.get("pending")
                     and m.values.__setitem__("pending", datagram[:1]))


@lie("counter", "World")
def a_command_that_is_not_there(m):
    m.all("jobs")[0].set("vpid", 77)


@lie("counter", "World")
def a_time_before_the_boot(m):
    m.set("monotonic_ns", -1)


@lie("counter", "World")
def a_boot_in_the_stone_age(m):
    m.set("boottime_ns", 1 << 62)


@lie("counter", "World")
def the_same_command_twice(m):
    m.all("jobs").append(m.all("jobs")[0])


@lie("counter", "Config")
def a_volume_over_everything(m):
    m.values["binds"] = [new("Bind", source="/", target="../../..")]


@lie("counter", None)
def a_hundred_thousand_strange_records(image):
    image.frames[5:5] = [Frame(RECORD, 61, 10 ** 6 + n, b"") for n in range(100000)]


TREE_LIES = {
    "dots": [dict(path="../made", type=0)],
    "dots within": [dict(path="upper/../../made", type=0)],
    "absolute": [dict(path="/var/tmp/podrun-%CANARY%/made", type=0)],
    "nothing": [dict(path="", type=0)],
    "dot": [dict(path=".", type=1)],
    "NUL": [dict(path=b"a\0b", type=0)],
    "through a link": [dict(path="evil", type=2, target="/var/tmp"), dict(path="evil/made", type=0)],
    "over a link": [dict(path="evil", type=2, target="/var/tmp/made"), dict(path="evil", type=0)],
    "hard link to outside": [dict(path="evil", type=3, target="../../../../../etc/passwd")],
    "hard link through a link": [dict(path="evil", type=2, target="/etc"),
                                 dict(path="more", type=3, target="evil/passwd")],
    "twice": [dict(path="evil", type=0), dict(path="evil", type=0)],
    "privileged attribute": [dict(path="evil", type=0, xattrs=("security.capability", b"x" * 20))],
    "trusted attribute": [dict(path="evil", type=0, xattrs=("trusted.overlay.opaque", b"y"))],
    "content beyond its end": [dict(path="evil", type=0, size=1, content=b"long")],
    "no such sort": [dict(path="evil", type=9)],
    "long name": [dict(path="x" * 300, type=0)],
}


def in_the_place_of(path, target):
    """Instead of what the session has there, a link."""
    def change(m):
        below = path.encode() + b"/"
        m.values["entries"] = [e for e in m.all("entries") if not (e.get("path") + b"/").startswith(below)]
        m.values["entries"].append(new("TreeEntry", path=path, type=2, target=target, mode=0o777))
    return change


OUT = "/var/tmp/podrun-%CANARY%"
for path in ("tmp", "run", "upper", "work", "shm"):
    LIES.append(("files: %s leads out" % path, "counter", "Tree", in_the_place_of(path, OUT), (7,)))
# Of these, what the host has mounted says what they are good for.
for path in ("upper/home", "upper/opt", "upper/usr", "upper/var", "upper/var/tmp", "work/%opt", "run/lock", "run/user"):
    LIES.append(("files: %s leads out" % path, "counter", "Tree", in_the_place_of(path, OUT), (0, 4, 7)))


def tree_lie(name, entries):
    def change(m):
        for e in entries:
            t = Message("TreeEntry")
            for field, value in e.items():
                if field == "xattrs":
                    value = new("TreeXattr", name=value[0], value=value[1])
                t.set(field, value)
            t.values.setdefault("mode", [0o4777])
            m.all("entries").append(t)
    LIES.append(("files: " + name, "counter", "Tree", change, (7,)))


for name, entries in TREE_LIES.items():
    tree_lie(name, entries)

for path in ("/proc/1/mem", "/proc/1/environ", "/proc/self/mem", "/proc/sysrq-trigger", "/proc/kmsg",
             "/proc/1/root/etc/passwd", "/proc/self/fd/0", "/dev/ptmx", "/no/such", "relative", "/a\0b"):
    for program, kind in (("file_regular", "Regular"), ("procfiles", "ProcFile")):
        def change(m, path=path):
            m.set("path", path)
            m.get("common").set("flags", 2)
        LIES.append(("%s %s" % (kind, path), program, kind, change,
                     (0, 4, 7) if path in ("/dev/ptmx", "/proc/self/fd/0") else (4, 7)))


def run_lies(env):
    adopt_orphans()
    sources = make_sources(env, sorted({p for _, p, _, _, _ in LIES}))
    key, place, bad = images.seed_of(env), Place(env, "s%d" % os.getpid()), 0
    for name, program, kind, change, codes in LIES:
        def vary(im):
            if kind:
                im.change(first(im, kind), change)
            else:
                change(im)
        Mutants.made(sources[program], vary)(place.short).save(env.path("lie"), key)
        try:
            r = place.resume(env.path("lie"))
            if r.code not in codes:
                raise Failed("not %s\n%s" % (codes, r))
            print("%d %s  %s" % (r.code, name, r.errors.strip()), flush=True)
            place.look(env.path("lie"))
        except Failed as e:
            bad += 1
            print("BAD %s\n%s\n" % (name, e), flush=True)
    place.close()
    print("SUM %d lies, %d bad" % (len(LIES), bad))
    return 1 if bad else 0


def in_a_process(env, what):
    """In a process of its own, which adopts what its children leave behind."""
    p = subprocess.run([sys.executable, __file__, what], env=env.environ, capture_output=True, text=True)
    lines = p.stdout.strip().split("\n")
    print("%s\n%s" % (lines[0], lines[-1]), flush=True)
    if p.returncode:
        bad = p.stdout[p.stdout.find("BAD"):]
        raise Failed(bad[:6000] + p.stderr[-2000:])


@test
def lies(env):
    in_a_process(env, "--lies")


@test
def mutants(env):
    in_a_process(env, "--mutate")


if __name__ == "__main__":
    if sys.argv[1:] in (["--mutate"], ["--lies"]):
        own = Env("hostile")
        try:
            code = mutate(own) if sys.argv[1] == "--mutate" else run_lies(own)
        finally:
            own.close()
        sys.exit(code)
    main()
