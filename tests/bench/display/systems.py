# SPDX-License-Identifier: GPL-2.0-or-later
"""The systems that are measured: an X server, what shows it elsewhere, and the load (load.c) in it.

Each has a directory of its own with what load.c and watch.c share (stage.h), stays from the beginning to the end, and is
idle while others are measured.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import BUILD, PODRUN, quiet_port, until  # noqa: E402
from peers import find  # noqa: E402

BENCH = BUILD / "tests" / "bench" / "display"
INSIDE = "/bench"


def argv_of(pid):
    try:
        return pathlib.Path("/proc/%d/cmdline" % pid).read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def parent(pid):
    return int(pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[1])


def of_env(env, *names):
    """Processes of this run with an argument that ends with one of these."""
    found = []
    for pid in (int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()):
        try:
            mine = str(env.dir).encode() in pathlib.Path("/proc/%d/environ" % pid).read_bytes()
        except OSError:
            continue
        argv = argv_of(pid)
        if mine and argv and os.path.basename(argv[0]).split(":")[0] in names:
            found.append(pid)
    return found


class System:
    """`kind` is watch's word for its viewers, `pids` the processes whose CPU time counts."""

    kind = "vnc"

    def __init__(self, env, name, size, pages, clip):
        self.env, self.name, self.size = env, name, size
        self.dir = env.path(name)
        self.dir.mkdir()
        (self.dir / "stage").touch()
        for fifo in ("ask", "said"):
            os.mkfifo(self.dir / fifo)
        # Held open: a fifo without anybody forgets, and its openers would wait.
        self.fifos = [os.open(self.dir / f, os.O_RDWR) for f in ("ask", "said")]
        self.give("pages", pages)
        self.give("clip", clip)
        self.processes = []

    def give(self, name, path):
        """What all have, under the name that the load looks for."""
        if path:
            (self.dir / name).symlink_to(path)

    def start(self, *argv, **kw):
        kw.setdefault("stdout", subprocess.DEVNULL)
        kw.setdefault("stderr", subprocess.DEVNULL)
        p = self.env.start(*argv, **kw)
        self.processes.append(p)
        return p

    def begun(self):
        """The load's first word."""
        import select
        until("the load of %s is there" % self.name, lambda: select.select([self.fifos[1]], [], [], 0)[0])
        assert os.read(self.fifos[1], 1) == b"b"

    def close(self):
        for p in reversed(self.processes):
            p.send_signal(signal.SIGKILL)
            p.wait()
        for f in self.fifos:
            os.close(f)


def x_server(system, argv, *options):
    """Starts one without a cookie; its number."""
    read, write = os.pipe()
    p = system.start(*argv, *options, "-displayfd", write, pass_fds=[write])
    os.close(write)
    with os.fdopen(read) as f:
        number = f.readline().strip()
    if not number:
        raise RuntimeError("%s: %s has not begun" % (system.name, argv[0]))
    return p, ":" + number


class Podrun(System):
    kind = "podrun"

    def __init__(self, env, name, size, pages, clip):
        super().__init__(env, name, size, pages, clip)
        find("Xvfb", "xvfb")
        mounts = ["-v", "%s:%s" % (self.dir, INSIDE)]
        env.podrun("run", "-d", "--name", name, "--display=" + size, "--net", "none", *mounts, "--",
                   BENCH / "load", INSIDE, size, timeout=120)
        self.begun()
        self.target = "unix:%s/podrun/%s/display" % (env.environ["XDG_RUNTIME_DIR"], name)

    def give(self, name, path):
        if path and path.is_dir():
            shutil.copytree(path, self.dir / name, copy_function=os.link)
        elif path:
            os.link(path, self.dir / name)

    def pids(self):
        return self.servers() + self.display_servers()

    def servers(self):
        inside = self.env.podrun("inspect", self.name).json()
        return [p["host_pid"] for p in inside["processes"] if p["pid"] == inside["display"]["server"]]

    def display_servers(self):
        return [pid for pid in of_env(self.env, "podrun") if "--serve" in argv_of(pid) and self.name in argv_of(pid)]

    def others(self):
        """The session's pid 1 and its supervisor."""
        inside = self.env.podrun("inspect", self.name).json()
        top = min(p["host_pid"] for p in inside["processes"])
        first = parent(top)
        return [first, parent(first)]

    def close(self):
        self.env.podrun("kill", self.name, check=False)
        super().close()


class Peer(System):
    def load(self, display):
        environ = dict(self.env.environ, DISPLAY=display)
        self.processes.append(subprocess.Popen([str(BENCH / "load"), str(self.dir), self.size], env=environ))
        self.begun()

    def pids(self):
        return [p.pid for p in self.processes[:-1]]


class Tigervnc(Peer):
    def __init__(self, env, name, size, pages, clip):
        super().__init__(env, name, size, pages, clip)
        port = quiet_port()
        _, display = x_server(self, [find("Xtigervnc", "tigervnc-standalone-server")], "-geometry", size, "-depth", "24",
                              "-SecurityTypes", "None", "-localhost", "-rfbport", port, "-AlwaysShared",
                              "-nolisten", "tcp", "-noreset")
        self.target = str(port)
        self.load(display)


class X11vnc(Peer):
    def __init__(self, env, name, size, pages, clip):
        super().__init__(env, name, size, pages, clip)
        port = quiet_port()
        program = find("x11vnc", "x11vnc")
        _, display = x_server(self, [find("Xvfb", "xvfb")], "-screen", "0", size + "x24", "-nolisten", "tcp", "-noreset")
        self.start(program, "-display", display, "-rfbport", port, "-localhost", "-forever", "-shared", "-nopw", "-quiet",
                   "-norc", "-noxrecord")
        self.target = str(port)
        self.load(display)
        until("x11vnc listens", lambda: listens(port))


def listens(port):
    with open("/proc/net/tcp") as f:
        return any(line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A" for line in list(f)[1:])


class PodrunVp8(Podrun):
    """Whose viewer takes VP8 and no JPEG for films."""
    kind = "podrun-vp8"


SYSTEMS = {"podrun": Podrun, "tigervnc": Tigervnc, "x11vnc": X11vnc}
OTHERS = {"podrun-vp8": PodrunVp8}  # only if asked for
