# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests that need a whole podrun share.

A test is a function that takes an `Env` and fails by raising.  Each gets directories of its own
(runtime, state, configuration, a scratch directory), so tests neither see each other nor the
user's sessions, and whatever a test leaves running is ended by name of its session and reported
as a failure.  Nothing here sleeps for a fixed time: `until` polls a condition.

    @test
    def suspend_names_what_it_cannot_freeze(env): ...

    if __name__ == "__main__":
        main()

Prints one line per test and closes with `N passed, N failed` (`, N skipped`).  A skip is a
failure when PODRUN_TEST_STRICT is set, as it is in CI.

With PODRUN_TEST_NAMES=rewrite the same tests run where the host allows no namespaces: every command
under the default profile of container engines (profile.c), with `names = rewrite` in the user's
configuration.  A test of something that only namespaces give says so, and is listed at the end:

    @test
    @needs_namespaces("a host name is a namespace's")
    def hostname_is_its_own(env): ...
"""
import argparse
import atexit
import concurrent.futures
import contextlib
import json
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PODRUN_BUILD", ROOT / "build"))
PODRUN = os.environ.get("PODRUN", str(BUILD / "podrun"))
PROFILE = [str(BUILD / "tests" / "container_profile")]
PATIENCE = float(os.environ.get("PODRUN_TEST_PATIENCE", "60"))
NAMES = os.environ.get("PODRUN_TEST_NAMES", "kernel")
REWRITE = NAMES == "rewrite"
if NAMES not in ("kernel", "rewrite"):
    sys.exit("PODRUN_TEST_NAMES: '%s' is neither 'kernel' nor 'rewrite'" % NAMES)
# What a user says there who wants it by default; a session has the host's network then.
REWRITE_CONFIG = "names = rewrite\nnet = host\n"


def leave_root():
    """Those of rewritten names try what reaches the host's files with the rights of who runs them: root's are too many."""
    if os.geteuid() != 0 or not pathlib.Path(sys.argv[0]).name.startswith("rewrite"):
        return
    name = os.environ.get("SUDO_USER", "root")
    try:
        user = pwd.getpwnam("podrun-test" if name == "root" else name)
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    except (KeyError, OSError) as e:
        sys.exit("these tests are run by an ordinary user, whom ./selftest makes for root: %s" % e)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    os.execvpe("python3", ["python3", *sys.argv],
               {**kept, "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name})


leave_root()


class Skip(Exception):
    """This host can't run the test; says why."""


class Failed(Exception):
    """A command did not do what the test needs."""


class Result:
    """What a finished command left behind."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.out, self.err = argv, code, out, err

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def errors(self):
        return self.err.decode(errors="replace")

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return "%s\n-> %s\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(map(str, self.argv)), self.code, self.text[-2000:], self.errors[-2000:])


def until(what, condition, patience=None):
    """Polls until `condition()` is true and returns its value; fails after a while."""
    deadline = time.monotonic() + (patience or PATIENCE)
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed("waited in vain: " + what)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


_ports, _ports_lock = set(), threading.Lock()


def quiet_port():
    """A port of this host's which no other test gets, and nobody by the kernel's choice: it may be free for a while, as that
    of a session that is suspended is."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        least = int(f.read().split()[0])
    while True:
        port = random.randrange(max(1024, least - 12000), least)
        with socket.socket() as s, _ports_lock, contextlib.suppress(OSError):
            if port not in _ports:
                s.bind(("", port))
                _ports.add(port)
                return port


_cache, _cache_lock = [], threading.Lock()


class Env:
    """Directories and commands of one test."""

    def __init__(self, name):
        # Short: where paths are rewritten, names of sockets (108 bytes) begin with it.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="podrun-%s-" % name[:8]))
        self.environ = dict(os.environ)
        self._make_places()
        self.background, self.hosts = [], []
        self.prefix = PROFILE if REWRITE or os.environ.get("PODRUN_TEST_PROFILE") else []

    def _make_places(self):
        for key, sub in (("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "state"),
                         ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")):
            (self.dir / sub).mkdir(mode=0o700)
            self.environ[key] = str(self.dir / sub)
        self.configure()

    def configure(self, text=""):
        """Writes the user's configuration."""
        config = self.dir / "config" / "podrun"
        config.mkdir(mode=0o700, exist_ok=True)
        (config / "config").write_text((REWRITE_CONFIG if REWRITE else "") + text)

    def contain(self):
        """From here on commands run as in a container engine's: no namespace, and what else its
        profile refuses (tests/lib/profile.c)."""
        self.prefix = PROFILE

    def leave(self):
        """From here on they run outside again."""
        self.prefix = []

    def elsewhere(self, monotonic, boottime, contained):
        """From here on commands run on another host, as far as its clocks go: they say so many seconds
        more.  `contained`: as in contain()."""
        self.prefix = ["unshare", "--user", "--map-current-user", "--time",
                       "--monotonic", str(monotonic), "--boottime", str(boottime)]
        self.prefix += PROFILE if contained else []

    def share_cache(self):
        """For a root inside: the skeleton layer is made once, as it is for a user, and that takes as long as it takes:
        it is a copy of all directories of the host."""
        with _cache_lock:
            new = not _cache
            if new:
                _cache.append(tempfile.mkdtemp(prefix="podrun-cache-"))
                atexit.register(shutil.rmtree, _cache[0], ignore_errors=True)
            self.environ["XDG_CACHE_HOME"] = _cache[0]
            if new:
                self.podrun("run", "--rm", "--user", "root", "true", check=False, timeout=10 * PATIENCE)

    def path(self, name):
        return self.dir / name

    def host(self, name):
        """A second host: everything of its own but the temporary directory."""
        self.hosts.append(_Host(self, name))
        return self.hosts[-1]

    def start(self, *argv, **kw):
        """Starts a command without waiting for it."""
        p = subprocess.Popen(self.prefix + [str(a) for a in argv], env=self.environ, **kw)
        self.background.append(p)
        return p

    def call(self, *argv, stdin=None, check=True, code=0, timeout=None, cwd=None):
        """Runs a command to its end; fails unless it exits with `code` (when `check`)."""
        argv = self.prefix + [str(a) for a in argv]
        if isinstance(stdin, str):
            stdin = stdin.encode()
        try:
            p = subprocess.run(argv, env=self.environ, capture_output=True, cwd=cwd,
                               timeout=timeout or PATIENCE,
                               **({"stdin": subprocess.DEVNULL} if stdin is None
                                  else {"input": stdin}))
        except subprocess.TimeoutExpired as e:
            raise Failed("no end after %gs: %s\n%s\n%s" % (
                e.timeout, " ".join(argv), e.stdout, e.stderr)) from None
        r = Result(argv, p.returncode, p.stdout, p.stderr)
        if check and r.code != code:
            raise Failed(str(r))
        return r

    def podrun(self, *args, **kw):
        return self.call(PODRUN, *args, **kw)

    def exec_last(self, *words):
        """`podrun exec`, of what the session's command waits for: where that ends at once, this does, too."""
        r = self.podrun("exec", *words, check=False)
        if r.code not in (0, 128 + signal.SIGKILL):
            raise Failed(str(r))

    def let_end(self, name="s", path="/tmp/go"):
        """Makes the file that the session's command waits for."""
        self.exec_last(name, "touch", path)

    def sessions(self):
        r = self.podrun("ps", "--json", check=False)
        return r.json() if r.code == 0 else []

    def logs(self, name):
        return self.podrun("logs", name).text

    def run_detached(self, name, *argv, options=(), ready="ready"):
        """Starts a session and waits until it has said `ready`, or has ended."""
        def said():
            over = not any(s["name"] == name for s in self.sessions())
            log = self.logs(name)
            if over and ready not in log:
                raise Failed("%s ended before it said %r:\n%s" % (name, ready, log[-2000:]))
            return ready in log

        self.podrun("run", "-d", "--name", name, *options, "--", *argv)
        if ready:
            until("%s says %r" % (name, ready), said)

    def wait(self, name, code=0, timeout=None):
        """Waits for the end of a session's command; returns its log."""
        r = self.podrun("wait", name, check=False, timeout=timeout)
        log = self.logs(name)
        if r.text.strip() not in (str(code),) and r.code != code:
            raise Failed("session %s ended with %r/%d, not %d\n%s" % (
                name, r.text.strip(), r.code, code, log[-2000:]))
        return log

    def close(self):
        """Ends what is left; returns what that was."""
        for p in self.background:
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)
                p.wait()
        left = self._end_sessions()
        for host in self.hosts:
            host._end_sessions()
        for attempt in range(50):
            shutil.rmtree(self.dir, ignore_errors=True, onerror=None)
            if not self.dir.exists():
                break
            for path, dirs, _ in os.walk(self.dir):
                for d in dirs:
                    with contextlib.suppress(OSError):
                        os.chmod(os.path.join(path, d), 0o700)
            time.sleep(0.02)
        return left

    def _end_sessions(self):
        names = [s.get("name", "?") for s in self.sessions()]
        for name in names:
            self.podrun("rm", "-f", name, check=False)
        return names


class _Host(Env):
    def __init__(self, env, name):
        self.dir = env.dir / name
        self.dir.mkdir()
        self.environ = dict(env.environ)
        self._make_places()
        self.background, self.hosts = env.background, env.hosts
        self.prefix = env.prefix


_tests = []


def test(fn):
    """Registers a test under its function's name."""
    _tests.append((fn.__name__, fn))
    return fn


def add(name, fn):
    """Registers a test made in a loop."""
    _tests.append((name, fn))


def left_out(why):
    """Marks a test that can't be: it is not run, but listed with the reason, and counted."""
    def mark(fn):
        fn.left_out = why
        return fn
    return mark


def needs_namespaces(why):
    """Marks a test of what only namespaces give: it is left out where names are rewritten."""
    return left_out("needs namespaces: " + why) if REWRITE else lambda fn: fn


def needs_device(path):
    """Marks a test that is left out where this user may not open a device, or there is none (tools/setup)."""
    return (lambda fn: fn) if os.access(path, os.R_OK | os.W_OK) else left_out("needs " + path)


def needs(*programs):
    """Skips unless all programs are installed."""
    for p in programs:
        if not shutil.which(p):
            raise Skip("%s is not installed" % p)


def needs_built(*path):
    """A program of the tests that not every compiler can make (32-bit ones); skips without it."""
    program = BUILD.joinpath("tests", *path)
    if not program.exists():
        raise Skip("%s is not built: gcc-multilib is not installed" % program.name)
    return program


def _logs(top):
    """The supervisors' logs below a directory that may be changing."""
    found = []
    for path, dirs, files in os.walk(top):
        dirs[:] = [d for d in dirs if d != "files"]
        found += [pathlib.Path(path) / f for f in files if f == "supervisor.log"]
    return sorted(found)


def _run_one(name, fn):
    env = Env(name.replace("/", "-"))
    began = time.monotonic()
    verdict, why = "ok", ""
    try:
        fn(env)
    except Skip as e:
        verdict, why = "skip", str(e)
    except Exception as e:  # a test may fail in any way
        verdict = "FAIL"
        why = str(e) if isinstance(e, (Failed, AssertionError)) and str(e) \
            else traceback.format_exc()
        for log in _logs(env.dir):
            with contextlib.suppress(OSError):
                tail = log.read_text(errors="replace")[-1500:]
                if tail:
                    why += "\n--- %s\n%s" % (log, tail)
    left = env.close()
    if left and verdict == "ok":
        verdict, why = "FAIL", "left running: " + ", ".join(left)
    return name, verdict, why, time.monotonic() - began


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-j", type=int, default=2)
    p.add_argument("-l", "--list", action="store_true")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("only", nargs="*", help="names or parts of names")
    args = p.parse_args()
    os.umask(0o022)  # some distributions' is 002, and tests look at what that leaves
    chosen = [(n, f) for n, f in _tests if not args.only or any(o in n for o in args.only)]
    if args.list:
        print("\n".join(n for n, _ in chosen))
        return
    out = [(n, f.left_out) for n, f in chosen if hasattr(f, "left_out")]
    chosen = [(n, f) for n, f in chosen if not hasattr(f, "left_out")]
    count = {"ok": 0, "FAIL": 0, "skip": 0}
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        todo = [pool.submit(_run_one, n, f) for n, f in chosen for _ in range(args.repeat)]
        for done in concurrent.futures.as_completed(todo):
            name, verdict, why, seconds = done.result()
            if verdict == "skip" and os.environ.get("PODRUN_TEST_STRICT"):
                verdict, why = "FAIL", "skipped: " + why
            count[verdict] += 1
            print("%-4s %-48s %6.2fs%s" % (verdict, name, seconds,
                  "  " + why.replace("\n", "\n       ") if why else ""), flush=True)
    for name, why in out:
        print("-    %-48s %s" % (name, why))
    line = "%d passed, %d failed" % (count["ok"], count["FAIL"])
    line += ", %d skipped" % count["skip"] if count["skip"] else ""
    print(line + (", %d left out" % len(out) if out else ""))
    sys.exit(1 if count["FAIL"] or not count["ok"] and not out else 0)
