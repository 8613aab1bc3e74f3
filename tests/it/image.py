#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests of images: what is told of them, cores, stacks, differences."""
import contextlib
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, one_line  # noqa: E402
from harness import BUILD, REWRITE, Skip, main, needs, needs_namespaces, test, until  # noqa: E402

LAYER = "a layer over the host's files"
STATE = BUILD / "tests" / "state"
STACKED = STATE / "stacked"


def stacked(env, *options):
    env.run_detached("s", STACKED, "/tmp/go")
    env.podrun("suspend", "s", "-o", env.path("i"), *options)
    return env.path("i")


@test
def show_lets_no_control_character_through(env):
    env.run_detached("s", "sh", "-c", "d=$(printf '/tmp/a\\033[31m\\302\\233b'); mkdir \"$d\"; cd \"$d\"; "
                     "echo ready; exec sleep 1000")
    env.podrun("suspend", "s", "-o", env.path("i"))
    text = env.podrun("image", "show", env.path("i")).text
    assert "config 0: s: sh -c" in text and "under Linux" in text, text
    for args in ((), ("--json",)):
        text = env.podrun("image", "show", *args, env.path("i")).text
        bad = [c for c in text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"]
        assert not bad and "tmp/a" in text, text
    env.podrun("rm", "s")


@test
def ls_lists_images_of_any_name(env):
    for name in "a.part", "b.base":
        env.run_detached(name, *COUNT)
        env.podrun("suspend", name)
    assert [pathlib.Path(x["image"]).name for x in env.podrun("image", "ls", "--json").json()] == ["a.part.img", "b.base.img"]


@test
def stacks_of_an_image(env):
    image = stacked(env)
    text = env.podrun("image", "stacks", image).text
    for word in ("task 2 (stacked)", "main+", "stacked_inner+", "handler+", "libc.so.6+"):
        assert word in text, text
    threads = env.podrun("image", "stacks", "--json", image).json()
    assert len(threads) == 3, threads
    for t in threads:
        names = [f.get("function") for f in t["frames"]]
        assert t["comm"] == "stacked" and any(n in names for n in ("main", "thread")), t
    deep = [f.get("function") for f in threads[-1]["frames"]]
    assert deep.count("stacked_inner") in (2, 4), deep
    with open(image, "rb") as f:
        assert env.podrun("image", "stacks", "-", stdin=f.read()).text == text


@test
def what_is_told_of_a_32_bit_program(env):
    """Where each thread stands, without its callers; no core."""
    program = BUILD / "tests" / "state" / "task_threads_i386"
    if not program.exists():
        raise Skip("this compiler makes no 32-bit programs (gcc-multilib)")
    env.run_detached("s", program, "/tmp/go")
    threads = env.podrun("stacks", "--json", "s").json()
    env.podrun("snapshot", "s", "-o", env.path("image"))
    env.podrun("kill", "s")
    for some in (threads, env.podrun("image", "stacks", "--json", env.path("image")).json()):
        assert len(some) > 1 and all(len(t["frames"]) == 1 for t in some), some
        # The C library calls the kernel by the vDSO, or itself.
        assert any("[vdso]" in str(t["frames"]) or "libc.so" in str(t["frames"]) for t in some), some
    r = env.podrun("image", "core", env.path("image"), "-o", env.path("core"), check=False)
    assert r.code == 4 and "32-bit program" in r.errors, r
    assert not list(env.path("core").parent.glob("core*"))


@test
def cores_beside_a_32_bit_program(env):
    """Whoever is no such program has one, also who came after it."""
    program = BUILD / "tests" / "state" / "task_threads_i386"
    if not program.exists():
        raise Skip("this compiler makes no 32-bit programs (gcc-multilib)")
    env.run_detached("s", "sh", "-c", '"$0" /tmp/go & sleep 1000 & sleep 1000 & wait', program)
    until("all are there", lambda: env.sessions()[0]["tasks"] >= 4)
    pids = [x["pid"] for x in env.podrun("top", "--json", "s").json()]  # its threads have numbers, too
    env.podrun("snapshot", "s", "-o", env.path("image"))
    env.podrun("kill", "s")
    r = env.podrun("image", "core", env.path("image"), "-o", env.path("core"), code=4)
    one_line(r, "task 3: no core can be made of a 32-bit program")
    cores = [str(env.path("core.%d" % n)) for n in sorted(pids) if n != 3]
    assert r.text.split() == cores == sorted(map(str, env.dir.glob("core*"))), r


@test
def cores_for_gdb(env):
    needs("gdb")
    image = stacked(env, "--compress")
    out = env.podrun("image", "core", image, "-o", env.path("core")).text.split()
    assert [pathlib.Path(p).name for p in out] == ["core.2", "core.3"], out
    text = ""
    for core in out:
        text += env.call("gdb", "-batch", "-nx", "-ex", "info threads", "-ex", "thread apply all bt",
                         "-ex", "p stacked_data", "-ex", "p stacked_heap[5242879]",
                         "-ex", "p stacked_shared[1024]", "-ex", "p $ymm0.v4_int64[0] * 0 + 77",
                         "-ex", "info auxv", STACKED, core).text
    for word in ("(LWP 2)", "(LWP 3)", "stacked_inner (depth=", "in main (", "in handler (sig=",
                 "<signal handler called>", '"changed since"', "104 'h'", "= 4242", "= 77", "AT_ENTRY"):
        assert word in text, "%s not in\n%s" % (word, text)


@test
def a_damaged_image_leaves_no_core(env):
    image = stacked(env)
    data = bytearray(image.read_bytes())
    data[len(data) // 2] ^= 1
    image.write_bytes(data)
    env.podrun("image", "core", image, "-o", env.path("core"), code=7)
    env.podrun("image", "stacks", image, code=7)
    assert not list(env.dir.glob("core*")), list(env.dir.iterdir())


# Says what it has done between two images; the number of pages is all there is to know of memory.
CHANGES = """
import fcntl, mmap, os, socket, threading, time
def wait(name):
    while not os.path.exists('/tmp/' + name): time.sleep(.01)
# not of the same protection as memory beside it: that would be one mapping with it
pages = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
pages[:] = os.urandom(1 << 20)
gone = mmap.mmap(-1, 5 << 20)
closed = os.open('/etc/passwd', os.O_RDONLY) # in front of so many that the image numbers those behind it anew
many = [os.pipe() for i in range(8)]
pipe, pair = os.pipe(), socket.socketpair()
memory = os.memfd_create('memory')
twice = os.open('/proc/self/fd/%d' % memory, os.O_RDWR)
open('/tmp/file 1', 'w'); open('/tmp/file 2', 'w')
named, marked = os.open('/tmp/file 1', os.O_RDONLY), os.open('/etc/passwd', os.O_RDONLY)
open('/tmp/kept', 'w').write('kept'); open('/tmp/old', 'w').write('old'); open('/tmp/other', 'w').write('some')
open('/tmp/long', 'wb').write(b'a' * 50000)
old = os.fork()
if not old: wait('never')
print('ready', flush=True)
wait('go')
for i in 3, 77, 200: pages[i * 4096] = (pages[i * 4096] + 1) % 256
gone.close()
os.write(pipe[1], b'five.'); pair[0].send(b'abc'); os.close(closed)
os.write(memory, b'x'); os.lseek(memory, 0, 0)
other = os.open('/tmp/file 2', os.O_RDONLY); os.dup2(other, named, False); os.close(other)
fcntl.fcntl(marked, fcntl.F_SETFD, 0)
os.remove('/tmp/old'); open('/tmp/other', 'w').write('else'); open('/tmp/new', 'w').write('new')
with open('/tmp/long', 'r+b') as f: f.seek(49000); f.write(b'b')
threading.Thread(target=wait, args=('never',), daemon=True).start()
os.kill(old, 9); os.waitpid(old, 0)
if os.fork(): print('changed %d %d %d %d %d %d %d.' % (pipe[1], pair[1].fileno(), closed, memory, twice, named, marked), flush=True)
wait('never')
"""


@test
def diff_tells_what_has_changed(env):
    env.run_detached("s", "python3", "-c", CHANGES)
    a, b = env.path("a"), env.path("b")
    env.podrun("snapshot", "s", "-o", a)
    env.let_end()
    done = until("it is done", lambda: re.search(r"changed ([\d ]+)\.", env.logs("s")))
    pipe, pair, closed, memory, twice, named, marked = map(int, done.group(1).split())
    env.podrun("snapshot", "s", "-o", b, "--compress")
    env.podrun("kill", "s")

    r = env.podrun("image", "diff", "--json", a, b).json()
    (changed,) = [p for p in r["processes"] if "change" not in p]
    assert sorted(p["change"] for p in r["processes"] if p is not changed) == ["gone", "new"], r
    assert any(m["pages"] == 3 and int(m["end"], 16) - int(m["start"], 16) >= 1 << 20 for m in changed["memory"]), r
    assert [m["change"] for m in changed["mappings"]
            if int(m["end"], 16) - int(m["start"], 16) == 5 << 20] == ["gone"], r
    fds = {d["fd"]: d for d in changed["descriptors"]}
    # What a pipe and a file hold is told of all descriptors of it; numbers of the image's own are none of their names.
    assert set(fds) == {pipe - 1, pipe, pair, closed, memory, twice, named, marked}, fds
    assert all("other contents" in fds[fd]["is"] for fd in (pipe - 1, pipe, memory, twice)), fds
    assert "/tmp/file 2" in fds[named]["is"] and "/tmp/file 1" in fds[named]["was"], fds
    assert "close-on-exec" in fds[marked]["was"] and "close-on-exec" not in fds[marked]["is"], fds
    assert "is" not in fds[closed] and "/etc/passwd" in fds[closed]["was"], fds
    assert "3 bytes unread" in fds[pair]["is"] and "unread" not in fds[pair]["was"], fds
    assert [t["change"] for t in changed["threads"]] == ["new"], r
    files = {f["path"]: f for f in r["files"]}
    assert set(files) == {"tmp/go", "tmp/long", "tmp/old", "tmp/other", "tmp/new"}, files
    assert "other contents" in files["tmp/long"]["is"] and "other contents" in files["tmp/other"]["is"], files
    assert "is" not in files["tmp/old"] and "was" not in files["tmp/new"], files

    text = env.podrun("image", "diff", a, b).text
    for line in ("process %d (python3)\n" % changed["pid"], ": 3 of 256 pages changed", "descriptor %d: " % closed,
                 "file tmp/old: file of 3 bytes, mode", "(gone)", "(new)"):
        assert line in text, text
    with open(b, "rb") as f:
        assert env.podrun("image", "diff", a, "-", stdin=f.read()).text == text
    # The other way round, and not at all.
    back = env.podrun("image", "diff", "--json", b, a).json()
    assert {f["path"] for f in back["files"]} == set(files)
    assert [len(p.get("memory", [])) for p in back["processes"] if p["pid"] == changed["pid"]] == \
        [len(changed["memory"])]
    for image in (a, b):
        assert env.podrun("image", "diff", image, image).text == ""
        assert not any(env.podrun("image", "diff", "--json", image, image).json().values())


@test
def diff_of_a_server(env):
    """redis: one value more is a few pages of one process."""
    needs("redis-server", "redis-cli")
    env.run_detached("s", "redis-server", "--port", "6392", "--save", "", "--dir", "/tmp",
                     ready="Ready to accept connections")
    a, b = env.path("a"), env.path("b")
    env.podrun("snapshot", "s", "-o", a)
    env.podrun("exec", "s", "redis-cli", "-p", "6392", "set", "key", "value" * 1000)
    env.podrun("snapshot", "s", "-o", b)
    env.podrun("kill", "s")
    r = env.podrun("image", "diff", "--json", a, b).json()
    (server,) = r["processes"]
    assert server["name"] == "redis-server" and 0 < sum(m["pages"] for m in server["memory"]) < 500, r
    assert "descriptors" not in server and "threads" not in server, server


@test
def diff_needs_two_images_that_are_whole(env):
    image = stacked(env)
    one_line(env.podrun("image", "diff", image, code=2), "usage")
    one_line(env.podrun("image", "diff", "-", "-", code=2), "stdin")
    one_line(env.podrun("image", "diff", image, env.path("none"), code=5), "none")
    data = bytearray(image.read_bytes())
    data[len(data) // 2] ^= 1
    env.path("damaged").write_bytes(data)
    for which, two in (("second", (image, env.path("damaged"))), ("first", (env.path("damaged"), image))):
        r = env.podrun("image", "diff", *two, code=7)
        one_line(r, which, "digest")
        assert r.text == "", r


@contextlib.contextmanager
def beneath():
    """A directory which sessions see and don't own: not in /tmp, which is private to them."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="podrun-test-", dir="/var/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def started_beneath(env, where, *options):
    program = where / "program"
    shutil.copy(STATE / "counter", program)
    (where / "data").write_text("one\ntwo\n")
    env.run_detached("s", "sh", "-c", "cd %s; exec 5<data; read x <&5; ./program /tmp/go && "
                     "read y <&5 && echo $x $y" % where)
    env.podrun("suspend", "s", *options, "-o", env.path("i"))
    return program


def finish(env, word):
    env.podrun("resume", "-d", env.path("i"))
    env.let_end()
    log = env.wait("s")
    assert "ok" in log.split() and word in log, log


@test
@needs_namespaces(LAYER)
def with_files_needs_nothing_beneath(env):
    with beneath() as where:
        started_beneath(env, where, "--with-files")
        shutil.rmtree(where)
        finish(env, "one two")


@test
@needs_namespaces(LAYER)
def snapshot_with_files(env):
    with beneath() as where:
        started_beneath(env, where)
        env.podrun("resume", "-d", env.path("i"))
        env.podrun("snapshot", "s", "--with-files", "-o", env.path("j"))
        env.podrun("kill", "s")
        shutil.rmtree(where)
        env.path("i").unlink()
        env.path("j").rename(env.path("i"))
        env.podrun("rm", "-f", "s", check=False)
        finish(env, "one two")


@test
def another_version_of_a_program_is_refused(env):
    with beneath() as where:
        program = started_beneath(env, where)
        shutil.copy("/bin/true", where / "other")
        program.rename(where / "kept")
        (where / "other").rename(program)
        r = env.podrun("resume", "-d", env.path("i"), code=4)
        assert str(program) in r.errors and "--with-files" in r.errors, r
        program.unlink()
        r = env.podrun("resume", "-d", env.path("i"), code=4)
        assert str(program) in r.errors and "hint:" in r.errors, r
        (where / "kept").rename(program)
        finish(env, "one two")


@test
def portable_sessions_say_so(env):
    env.environ["GODEBUG"] = "gctrace=0"
    env.run_detached("s", "sh", "-c", "env; cat /etc/gcrypt/hwf.deny; echo ready; exec sleep 1000", options=["--portable"])
    log = env.logs("s")
    assert "\nintel-shaext\n" in log or REWRITE, log
    assert "GODEBUG=gctrace=0,cpu.all=off\n" in log and "-AVX2" in log, log
    env.podrun("suspend", "s", "-o", env.path("i"))
    cpu = [l for l in env.podrun("image", "show", env.path("i")).text.split("\n")
           if l.startswith("cpu 0: ")]
    assert len(cpu) == 1 and "(portable)" in cpu[0] and "sse4_2" in cpu[0], cpu
    assert "avx" not in cpu[0], cpu
    env.podrun("rm", "s")


@test
def words_are_completed(env):
    """By bash: files where an option takes one, what there is to choose from, the words of commands that have some."""
    env.path("file.img").touch()
    env.path("complete").write_text(env.podrun("help", "--completion", "bash").text + """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_podrun
printf '%s\n' "${COMPREPLY[@]}"
""")
    for words, offered in ((["suspend", "-o", "file"], ["file.img"]), (["suspend", "--output", "file"], ["file.img"]),
                           (["suspend", "s", "--outside", "re"], ["refuse", "reset"]), (["suspend", "--outside", "=", "c"], ["close"]),
                           (["suspend", "--outs"], ["--outside"]), (["image", "ve"], ["verify"]),
                           (["image", "verify", "file"], ["file.img"]), (["key", ""], ["show", "trust", "rm"]),
                           (["help", "susp"], ["suspend"]), (["run", "--net", "v"], ["vnat"]), (["run", "--gateway", ""], ["local", "wg:"]),
                           (["run", "--name", "file"], []), (["run", "--root", "file"], ["file.img"]), (["kill", "-s", ""], [])):
        r = env.call("bash", env.path("complete"), "podrun", *words, cwd=env.dir)
        assert r.text.split() == offered and not r.err, (words, r)


@test
def other_shells_are_told_the_same(env):
    """In a list of zsh's a colon is its end; short options take what long ones do; both have sessions beside files."""
    zsh, fish = (env.podrun("help", "--completion", shell).text for shell in ("zsh", "fish"))
    assert r":value:(none host vnat passthrough\:)'" in zsh and r":value:(local wg\:)'" in zsh, zsh
    assert "'--output=[" in zsh and "'-o[" in zsh and "_arguments '--detach[leave it running]' '-d[leave it running]'" in zsh
    (resume,) = [line for line in zsh.splitlines() if line.startswith("\tresume|restore)")]
    assert resume.endswith("'*:operand:_podrun_either' ;;"), resume
    assert "_from suspend checkpoint' -l output -s o -r -F -d" in fish and "_from kill' -f\n" in fish, fish


if __name__ == "__main__":
    main()
