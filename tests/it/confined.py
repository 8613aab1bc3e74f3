#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that confine themselves, are traced, or are no 64-bit programs: moved, or refused in one line.

Those that confine themselves also where names are rewritten, in a container engine's profile."""
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, Failed, Skip, add, main, needs, needs_namespaces, test, until  # noqa: E402

CONFINED = BUILD / "tests" / "state" / "task_seccomp"
DOOMED = BUILD / "tests" / "it" / "doomed"

# Inside: installs a filter of argv[1] instructions when /tmp/install is there, then counts.
INSTALL = r"""
import ctypes, os, struct, sys, time
print("begun", os.getpid(), flush=True)
while not os.path.exists("/tmp/install"):
    time.sleep(.01)
n = int(sys.argv[1])
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000) * n)
program = struct.pack("HxxxxxxQ", n, ctypes.addressof(code))
assert ctypes.CDLL(None).prctl(22, 2, ctypes.create_string_buffer(program), 0, 0) == 0
print("ready", flush=True)
while True:
    time.sleep(.01)
    print("tick", flush=True)
"""


LISTEN = r"""
import ctypes, errno, struct
c = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
assert c.prctl(38, 1, 0, 0, 0) == 0 and c.syscall(317, 1, %d, program) == -1
print(errno.errorcode[ctypes.get_errno()])
"""


def both(fn):
    """Registers a test for both ways of naming; it gets the options of `podrun run`."""
    def rewritten(env):
        env.contain()
        fn(env, ("--names", "rewrite", "--net", "host"))
    add(fn.__name__, lambda env: fn(env, ()))
    add(fn.__name__ + "_rewritten", rewritten)
    return fn


def refused(env, name, word):
    """A suspend fails in one line with `word` in it, and the session goes on."""
    before = len(env.logs(name))
    r = env.podrun("suspend", name, "-o", env.path("image"), check=False)
    line = [x for x in r.errors.splitlines() if not x.startswith("hint: ")]
    if r.code != 3 or len(line) != 1 or word not in line[0] or "task " not in line[0]:
        raise Failed("not refused as it should be: %s" % r)
    assert not env.path("image").exists()
    until("the session goes on", lambda: "tick" in env.logs(name)[before:])
    env.podrun("kill", name)


@both
def filters_installed_while_it_is_frozen(env, options):
    """Freezing and installing keep out of each other's way."""
    loop = 'i=0; while [ ! -e /tmp/end ]; do i=$((i+1)); "$0" /etc/passwd || echo broken; echo $i; done; echo end'
    env.run_detached("s", "sh", "-c", loop, CONFINED, options=options)
    for i in range(8):
        env.podrun("pause", "s")
        env.podrun("unpause", "s")
        env.podrun("snapshot", "s", "-o", env.path("image%d" % (i % 2)))
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    env.podrun("pause", "s")
    env.podrun("unpause", "s")
    seen = env.logs("s").count("ok\n")
    until("it goes on", lambda: env.logs("s").count("ok\n") > seen + 1)
    env.let_end("s", "/tmp/end")
    log = env.wait("s")
    words = log.split()
    times = len(words) // 3
    # Nothing that any of them wrote is missing, or there twice.
    assert words == [w for i in range(times) for w in ("ready", "ok", str(i + 1))] + ["end"], log[-2000:]


@both
def killed_by_a_filter_while_it_is_frozen(env, options):
    """A call that is a task's end may be made the moment before it stops."""
    env.run_detached("s", DOOMED, options=options)
    for _ in range(40):
        env.podrun("pause", "s")
        env.podrun("unpause", "s")
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    assert env.logs("s") == "ready\n"
    env.podrun("kill", "s")


KILLED = r"""
import ctypes, os, signal, struct, sys, threading, time
call = ctypes.CDLL(None, use_errno=True).syscall
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
prctl = ctypes.CDLL(None).prctl
def install(flags):
    while True:
        call(317, 1, flags, program)
for i in range(100):
    pid = os.fork()
    if pid == 0:
        prctl(38, 1, 0, 0, 0)
        for flags in (0, 1):
            threading.Thread(target=install, args=(flags,)).start()
        if i % 3 == 0:
            os.execv("/bin/sleep", ["sleep", "1000"])
        install(0)
    time.sleep(.002 * (i % 8))
    if i % 5 == 0 and i % 3: # the kernel drops a SIGSTOP that comes in the middle of an exec
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0) == (pid, 9)
print("ready", flush=True)
while not os.path.exists("/tmp/end"):
    time.sleep(.01)
print("ended", flush=True)
"""


@both
def killed_while_it_installs_one(env, options):
    """Threads that install filters all the time, their process killed, stopped, or another program meanwhile."""
    env.run_detached("s", "python3", "-c", KILLED, options=options)
    env.podrun("suspend", "s", "-o", env.path("image"))
    env.podrun("resume", "-d", env.path("image"))
    env.let_end("s", "/tmp/end")
    assert "ended" in env.wait("s")


@both
def a_filter_that_has_no_room_for_a_door(env, options):
    env.run_detached("s", "python3", "-c", INSTALL, "4096", options=options, ready="begun")
    env.podrun("pause", "s")
    env.podrun("unpause", "s")
    env.podrun("exec", "s", "touch", "/tmp/install")
    until("the filter is there", lambda: "ready" in env.logs("s"))
    refused(env, "s", "filter that is not known")


@both
def a_listener_of_its_own(env, options):
    """There can be only one, and the program is told as the kernel tells it."""
    flags = 8 # SECCOMP_FILTER_FLAG_NEW_LISTENER
    said = env.podrun("run", "--rm", *options, "--", "python3", "-c", LISTEN % flags).text
    assert said == "EBUSY\n", said


@test
@needs_namespaces("all tasks have a tracer, so ptrace is refused")
def a_filter_installed_under_a_tracer(env):
    needs("strace")
    trace = 'strace -qq -o /dev/null -e trace=none -p "$1" & echo $! >/tmp/tracer; wait'
    env.run_detached("s", "python3", "-c", INSTALL, "1", ready="begun")
    pid = env.logs("s").split()[1]
    env.podrun("exec", "-d", "s", "sh", "-c", trace, "sh", pid)
    until("it is traced", lambda: env.podrun(
        "exec", "s", "grep", "TracerPid", "/proc/%s/status" % pid).text.split()[1] != "0")
    env.podrun("exec", "s", "touch", "/tmp/install")
    until("the filter is there", lambda: "ready" in env.logs("s"))
    env.podrun("exec", "s", "sh", "-c", "kill -INT $(cat /tmp/tracer)", check=False)
    env.podrun("exec", "s", "sh", "-c", "kill $(cat /tmp/tracer)", check=False)
    until("it is traced no more", lambda: env.podrun(
        "exec", "s", "grep", "TracerPid", "/proc/%s/status" % pid).text.split()[1] == "0")
    refused(env, "s", "filter that is not known")


@test
@needs_namespaces("all tasks have a tracer, so ptrace is refused")
def a_traced_program(env):
    needs("strace")
    loop = "echo ready; while :; do sleep .01; echo tick; done"
    env.run_detached("s", "strace", "-f", "-qq", "-o", "/dev/null", "sh", "-c", loop)
    refused(env, "s", "strace traces it")


BASE = 0x8048000
HEAD = 64 + 56


def tiny(path, code):
    """A 64-bit ELF file that is nothing but `code`, which begins at BASE + HEAD."""
    size = HEAD + len(code)
    path.write_bytes(
        struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, BASE + HEAD, 64, 0, 0,
                    64, 56, 1, 0, 0, 0) +
        struct.pack("<IIQQQQQQ", 1, 7, 0, BASE, BASE, size, size, 4096) + code)
    path.chmod(0o755)


def says_tick_and_sleeps(at, seconds):
    """write(1, "tick\n", 5) and nanosleep for ever, by int 0x80: 64-bit code as well as 32-bit code."""
    text = at + 0x2c
    code = (b"\xb8\x04\0\0\0\xbb\x01\0\0\0\xb9" + struct.pack("<I", text) +
            b"\xba\x05\0\0\0\xcd\x80" +
            b"\xb8\xa2\0\0\0\xbb" + struct.pack("<I", text + 8) + b"\x31\xc9\xcd\x80")
    code += b"\xeb" + struct.pack("<b", -len(code) - 2)
    nap = (seconds, 0) if seconds else (0, 10000000)
    return code.ljust(0x2c, b"\x90") + b"tick\n\0\0\0" + struct.pack("<II", *nap)


def run_tiny(env, code):
    program = env.path("tiny")
    tiny(program, code)
    try:
        with subprocess.Popen([program], stdout=subprocess.PIPE) as p:
            said = p.stdout.read(5)
            p.kill()
    except OSError:
        said = b""
    if said != b"tick\n":
        raise Skip("this kernel runs no 32-bit programs")
    env.podrun("run", "-d", "--name", "s", "-v", "%s:/mnt:ro" % program.parent, "--", "/mnt/tiny")
    until("it runs", lambda: "tick" in env.logs("s"))


@test
def a_64_bit_program_in_a_32_bit_call(env):
    run_tiny(env, says_tick_and_sleeps(BASE + HEAD, 100000))
    r = env.podrun("suspend", "s", "-o", env.path("image"), check=False)
    if r.code != 3 or "int 0x80" not in r.errors or "task " not in r.errors:
        raise Failed("not refused as it should be: %s" % r)
    # It waits on.
    assert "podrun" in env.podrun("exec", "s", "echo", "podrun").text
    assert env.logs("s").split() == ["tick"]
    env.podrun("kill", "s")


@test
def a_64_bit_program_that_runs_32_bit_code(env):
    """A far jump there; ds is nothing that 32-bit code could use, and is not used."""
    jump = b"\xff\x2c\x25" + struct.pack("<I", BASE + HEAD + 8) + b"\x90"
    there = BASE + HEAD + 16
    run_tiny(env, jump + struct.pack("<IHH", there, 0x23, 0) + says_tick_and_sleeps(there, 0))
    refused(env, "s", "32-bit code")


FILTERED = """
import ctypes, os, sys, time
class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]
allow = Filter(6, 0, 0, 0x7fff0000)
libc = ctypes.CDLL(None)
if os.fork() == 0:
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.pointer(allow)))) == 0
    os.execv(sys.argv[1], [sys.argv[1], "/tmp/go"])
while True:
    print("tick", flush=True)
    time.sleep(0.01)
"""


def program_of_32_bits(name):
    program = BUILD / "tests" / name
    if not program.exists():
        raise Skip("this compiler makes no 32-bit programs (gcc-multilib)")
    return program


@test
def a_32_bit_program_under_a_filter(env):
    env.run_detached("s", "python3", "-c", FILTERED, program_of_32_bits("state/pipes_i386"))
    until("both run", lambda: {"ready", "tick"} <= set(env.logs("s").split()))
    refused(env, "s", "32-bit program under seccomp filters")


@test
def a_32_bit_program_without_a_free_address(env):
    env.podrun("run", "-d", "--name", "s", "--", program_of_32_bits("it/full32"))
    until("it runs", lambda: "tick" in env.logs("s"))
    refused(env, "s", "no addresses free")


if __name__ == "__main__":
    main()
