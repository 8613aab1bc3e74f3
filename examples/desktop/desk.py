# SPDX-License-Identifier: GPL-2.0-or-later
"""The session of this demonstration as ./run sees it: from outside, through podrun."""
import contextlib
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 300
# What a process of each is called.
DESKTOP = ("Xvfb", "dbus-daemon", "xfce4-session", "xfwm4", "xfce4-panel", "xfdesktop", "xfce4-terminal", "vim")
PROGRAMS = {"mousepad": "mousepad", "evince": "evince", "libreoffice": "soffice.bin", "firefox": "firefox-esr",
            "chromium": "chromium"}
BROWSERS = ("firefox", "chromium")
# Where each editor saves, in the session's home directory.
EDITORS = {"vim": "vim.txt", "mousepad": "notes.txt", "libreoffice": "letter.fodt"}


class Failed(Exception):
    pass


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed("waited in vain: " + what)
        time.sleep(0.2)
    return value


class Host:
    """Where a session can be: a user's directories and key, below `top`."""

    def __init__(self, podrun, top):
        self.program, self.environ = podrun, dict(os.environ)
        for key in ("RUNTIME_DIR", "STATE_HOME", "CONFIG_HOME"):
            path = top / key[0]
            path.mkdir(0o700, parents=True)
            self.environ["XDG_" + key] = str(path)

    def podrun(self, *args, check=True):
        p = subprocess.run([self.program, *map(str, args)], env=self.environ, stdin=subprocess.DEVNULL,
                           capture_output=True)
        if check and p.returncode:
            raise Failed("podrun %s: %d\n%s" % (" ".join(map(str, args)), p.returncode, p.stderr.decode()))
        return p.stdout

    def can(self, *args):
        return subprocess.run([self.program, *args], env=self.environ, stdin=subprocess.DEVNULL,
                              capture_output=True).returncode == 0

    def timed(self, *args):
        """What podrun tells about itself, and the whole command's time as "command_ms"."""
        began = time.monotonic()
        told = json.loads(self.podrun(*args))
        told["command_ms"] = (time.monotonic() - began) * 1000
        return told

    def trusts(self, other):
        self.podrun("key", "trust", other.podrun("key", "show").split()[0].decode())


def quiet_number():
    """Of a port and a display that nobody gets by chance while the session is suspended, should its network be the
    host's."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        least = int(f.read().split()[0])
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", random.randrange(max(1024, least - 12000), least)))
            return s.getsockname()[1]


def filters(host_pid):
    """How many filters of system calls a process has."""
    with contextlib.suppress(OSError), open("/proc/%d/status" % host_pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Seccomp_filters:"))
    return 0


def began(host_pid):
    """When a process began, since its number may be another's by now.  None if it has ended, whoever may still have to
    wait for it."""
    with contextlib.suppress(OSError), open("/proc/%d/stat" % host_pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
        return fields[19] if fields[0] not in "ZX" else None
    return None


class Desktop:
    def __init__(self, host, name, programs):
        self.host, self.name, self.programs = host, name, list(programs)
        self.names = []  # the option: who holds the session's names

    def begin(self, options):
        self.host.podrun("run", "-d", "--name", self.name, *options, "--end-with-command",
                         "-v", "%s:/desktop:ro" % HERE, "-e", "NUMBER=%d" % quiet_number(),
                         "-e", "PROGRAMS=" + " ".join(self.programs), "--", "/desktop/session")
        self.names = ["--names", json.loads(self.host.podrun("inspect", self.name))["config"]["names"]]
        until("all windows are there", lambda: self.seen().get("windows"))

    def exec(self, *argv, check=True):
        return self.host.podrun("exec", self.name, *argv, check=check).decode()

    def logs(self):
        """What its programs complain of; nothing before it has begun."""
        return self.exec("sh", "-c", "cd /tmp/desktop && tail -n 15 *.log; tail seen/*", check=False) if self.names else ""

    def seen(self):
        """What has been counted so far, by whom."""
        lines = self.exec("sh", "-c", "cd /tmp/desktop/seen && grep . * /dev/null", check=False).splitlines()
        found = dict(line.split(":", 1) for line in lines)
        for name, count in found.items():
            if not count.isdigit():
                raise Failed("%s: %s" % (name, count))
        return {name: int(count) for name, count in found.items()}

    def goes_on(self, before):
        """Waits until everybody has counted further; returns how far.  Two lines later all windows were used."""
        least = {c: before.get(c, 0) + 1 for c in ("shell", "evince", *BROWSERS) if c == "shell" or c in self.programs}
        least["lines"] = before.get("lines", 0) + 2

        def further():
            now = {c: self.seen().get(c, 0) for c in least}
            return all(now[c] >= least[c] for c in least) and now
        return until("%s, and further" % before, further)

    def processes(self):
        return json.loads(self.host.podrun("top", "--json", self.name))

    def numbers(self):
        """The number of each program's first process."""
        found = {}
        for p in self.processes():
            found.setdefault(p["comm"], p["pid"])
        wanted = [*DESKTOP, *(PROGRAMS[p] for p in self.programs)]
        if missing := [n for n in wanted if n not in found]:
            raise Failed("not there: " + ", ".join(missing))
        return {n: found[n] for n in wanted}

    def sandboxed(self):
        """How many processes of each browser have filters of their own, beyond the session's."""
        there = self.processes()
        base = filters(next(p["host_pid"] for p in there if p["comm"] == "Xvfb"))
        found = {b: sum("/%s" % b in p["command"] and filters(p["host_pid"]) > base for p in there)
                 for b in BROWSERS if b in self.programs}
        if bare := [b for b in found if not found[b]]:
            raise Failed("without a sandbox: " + ", ".join(bare))
        return found

    def picture(self, path):
        """Of what its display shows, as PNG."""
        data = self.host.podrun("exec", self.name, "sh", "-c",
                                "DISPLAY=$(cat /tmp/desktop/display) exec xwd -root -silent")
        for tool in (["xwdtopnm"], ["pamdepth", "255"], ["pnmquant", "128"], ["pnmtopng", "-compression", "9"]):
            data = subprocess.run([tool[0], "-quiet", *tool[1:]], input=data, capture_output=True, check=True).stdout
        path.write_bytes(data)

    def suspend(self, image):
        there = [(p["host_pid"], began(p["host_pid"])) for p in self.processes()]
        told = self.host.timed("suspend", "--json", self.name, "-o", image)
        if left := [pid for pid, when in there if when and began(pid) == when]:
            raise Failed("still there after the suspend: %s" % left)
        if any(s["name"] == self.name for s in json.loads(self.host.podrun("ps", "--json"))):
            raise Failed("podrun ps lists it after the suspend")
        return told

    def resume(self, image, host):
        self.host = host
        return host.timed("resume", "-d", "--json", *self.names, image)

    def saved(self):
        """Ends the typing, has each editor save, and compares; the number of lines."""
        self.exec("touch", "/tmp/desktop/enough")
        until("the editors save", lambda: self.seen().get("saved"))
        lines = ["Line %d, typed while all this goes on." % (i + 1) for i in range(self.seen()["lines"])]
        editors = [e for e in EDITORS if e == "vim" or e in self.programs]

        def text(program):
            return re.findall(r"Line [^<\n]*", self.exec("cat", "/tmp/desktop/" + EDITORS[program]))
        try:
            until("", lambda: all(text(e) == lines for e in editors))
        except Failed:
            raise Failed("not %s is saved but %s" % (lines, {e: text(e) for e in editors})) from None
        return len(lines)

    def end(self):
        self.exec("touch", "/tmp/desktop/logout")
        return int(self.host.podrun("wait", self.name, check=False))
