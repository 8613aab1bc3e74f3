#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: where volumes are shown, where that can't be any more, and what has become of their files; mounts of
the host's that were not there before."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line, ssh_to  # noqa: E402
from harness import PODRUN, REWRITE, Skip, main, needs, needs_namespaces, test, until  # noqa: E402
from tree import make_tree  # noqa: E402


@test
def volumes_that_a_symlink_leads_to(env):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as beneath:
        d, link = pathlib.Path(beneath) / "d", pathlib.Path(beneath) / "link"
        d.mkdir()
        link.symlink_to("d")
        env.run_detached("s", "sh", "-c", "exec 3>%s/f; echo ready; while [ ! -e /tmp/go ]; do sleep .01; done; "
                         "echo ok >&3; cat %s/f" % (link, link), options=("-v", "%s:%s" % (link, link)))
        env.podrun("suspend", "s")
        env.podrun("resume", "-d", "s")
        finish(env, "s")
        assert (d / "f").read_text() == "ok\n"


@test
@needs_namespaces("a mount, where the place of a volume matters")
def a_volume_has_no_place_any_more(env):
    """A file is where its directory was to be seen."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as beneath:
        at = pathlib.Path(beneath) / "at"
        at.mkdir()
        env.path("v").mkdir()
        env.run_detached("s", *COUNT, options=["-v", "%s:%s" % (env.path("v"), at)])
        env.podrun("suspend", "s", "-o", env.path("i"))
        at.rmdir()
        at.touch()
        one_line(env.podrun("resume", "-d", env.path("i"), code=4), "cannot bind", str(at))
        at.unlink()
        at.mkdir()
        env.podrun("resume", "-d", env.path("i"))
        assert "ok" in finish(env, "s").split()


@test
def a_file_that_has_been_replaced(env):
    """It is read on from where the program was, and whoever resumes is told; of a file that is as it was nobody is."""
    volume = env.path("v")
    volume.mkdir()
    file = volume / "f"
    file.write_text("abcdefgh")
    env.run_detached("s", "sh", "-c", "echo x | tee /tmp/own >/dev/shm/own; exec 3</mnt/f 4</tmp/own 5</dev/shm/own; "
                     "head -c 3 <&3; " + COUNT[2] + "; cat <&3", options=("-v", "%s:/mnt" % volume))
    for name, text, words in (("as it was", "abcdefgh", None), ("as long", "ABCDEFGH", "has been written since"),
                              ("longer", "123456789", "had 8 bytes when the session was frozen and has 9 now")):
        env.podrun("suspend", "s")
        if words:
            (volume / "g").write_text(text)
            (volume / "g").rename(file)
        r = env.podrun("resume", "-d", "s")
        assert words in r.errors if words else "frozen" not in r.errors, (name, r.errors)
    assert finish(env, "s").split()[-1] == "456789", env.logs("s")


# More than a search for a name looks at while all stand still (MAX_ENTRIES in ckpt/kinds/find.c); a file has 65000 names at
# most.  Before that no search is made where somebody watches for opening.
MANY, NAMES = 420000, 60000

WATCHES_WHAT_IT_MAPS = """
import ctypes, mmap, os, time
c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = ctypes.c_void_p # mmap.mmap would keep the file open
with open("/mnt/lib/modules/one", "rb") as f:
    assert c.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_PRIVATE, f.fileno(), ctypes.c_size_t(0)) > 0
i = c.inotify_init1(os.O_NONBLOCK)
assert c.inotify_add_watch(i, b"/mnt/lib/modules", 0x100) > 0
assert c.inotify_add_watch(c.inotify_init1(0), b"/dev/null", 0x20) > 0
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
open("/mnt/lib/modules/two", "w")
print("ok" if b"two" in os.read(i, 4096) else "nothing was told")
"""
WATCHES_WHAT_IT_SHOWS = """
import ctypes, os, sys, time
c = ctypes.CDLL(None)
i = c.inotify_init1(os.O_NONBLOCK)
for d in sys.argv[1:]:
    if d == "still":
        assert c.inotify_add_watch(c.inotify_init1(0), b"/dev/null", 0x20) > 0
    else:
        assert c.inotify_add_watch(i, d.encode(), 0x100) > 0
print("ready", flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(.01)
open(sys.argv[1] + "/three", "w")
print("ok" if b"three" in os.read(i, 4096) else "nothing was told")
"""


@test
def directories_beside_a_great_tree_are_found(env):
    """The search for a name ends somewhere.  Programs watch where they have their modules from, which is found by what they
    have mapped, and file managers what they show, which is found by its number in the directory above, or by a link that is
    in one.  While the session runs there is time for all of the tree."""
    volume = env.path("v")
    (volume / "lib" / "modules").mkdir(parents=True)
    (volume / "lib" / "fonts").mkdir()
    (volume / "doc").mkdir()
    (volume / "doc" / "again").symlink_to("./fonts/")
    (volume / "doc" / "fonts").symlink_to("../many/.././lib/fonts")
    (volume / "many").mkdir()
    (volume / "lib" / "modules" / "one").write_text("one")
    for n in range(MANY):
        source = "%s/many/%d" % (volume, n - n % NAMES)
        if n % NAMES:
            os.link(source, "%s/many/%d" % (volume, n))
        else:
            open(source, "w").close()
    programs = [[WATCHES_WHAT_IT_MAPS], [WATCHES_WHAT_IT_SHOWS, "/mnt/doc", "still"],
                [WATCHES_WHAT_IT_SHOWS, "/mnt/doc/again", "/mnt/doc", "still"]]
    if not REWRITE:
        programs.append([WATCHES_WHAT_IT_SHOWS, "/mnt/lib/modules"])
    for program in programs:
        env.run_detached("s", sys.executable, "-c", *program, options=("-v", "%s:/mnt" % volume))
        env.podrun("suspend", "s")
        env.podrun("resume", "-d", "s")
        assert "ok" in finish(env, "s").split(), env.logs("s")
        env.podrun("rm", "s")


@test
def a_program_that_is_not_whole_any_more(env):
    """Of one with a build-id, too: what is behind that would be missed when the program needs it."""
    volume = env.path("v")
    volume.mkdir()
    program = volume / "sleep"
    shutil.copy("/bin/sleep", program)
    whole = program.read_bytes()
    env.run_detached("s", "sh", "-c", "echo ready; exec /mnt/sleep 1000", options=("-v", "%s:/mnt" % volume))
    until("it is sleep", lambda: [p["comm"] for p in env.podrun("top", "--json", "s").json()] == ["sleep"])
    env.podrun("suspend", "s")
    for n in 0, 100, 4096, len(whole) // 2:
        program.write_bytes(whole[:n])
        one_line(env.podrun("resume", "-d", "s", code=4), "/mnt/sleep is not the file which the session had mapped")
    program.write_bytes(whole)
    env.podrun("resume", "-d", "s")
    env.podrun("kill", "s")


def in_a_tree(env):
    """A session on a tree of its own, and what goes before a command for which there is a mount in that."""
    needs("unshare")
    root = make_tree(env.path("root"))
    (root / "mnt").mkdir()
    (root / "link").symlink_to("usr")
    mounted = ["unshare", "-Urm", "sh", "-ec", 'mount -t tmpfs none "$0"; exec "$@"', str(root / "mnt")]
    if env.call(*mounted, "true", check=False).code:
        raise Skip("no namespace to mount something in")
    env.run_detached("s", "sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep .01; done; echo ok",
                     options=("--root", root, "-w", "/"))
    return mounted


def top(env):
    return env.podrun("exec", "s", "/usr/bin/busybox", "ls", "/").text.split()


@test
@needs_namespaces("a layer over the host's files")
def a_mount_where_there_was_none(env):
    """What lies beside it is put together in another way; links of the host's are there, but not what was removed."""
    mounted = in_a_tree(env)
    before = top(env)
    for _ in range(2):
        env.podrun("suspend", "s")
        env.call(*mounted, PODRUN, "resume", "-d", "s")
        assert top(env) == before, (top(env), before)
        if "link" in before:
            env.podrun("exec", "s", "rm", "/link")
            before.remove("link")
    assert "ok" in finish(env, "s").split()


@test
@needs_namespaces("a layer over the host's files")
def a_mount_on_another_host(env):
    mounted = in_a_tree(env)
    before = top(env)
    other = env.host("other")
    ssh_to(env, other)
    script = env.path("ssh")
    lines = script.read_text().splitlines()
    lines[-1] = "exec unshare -Urm sh -c 'mount -t tmpfs none %s && exec %s receive'" % (mounted[-1], PODRUN)
    script.write_text("\n".join(lines) + "\n")
    env.podrun("migrate", "s", "there")
    assert top(other) == before, (top(other), before)
    assert "ok" in finish(other, "s").split()


if __name__ == "__main__":
    main()
