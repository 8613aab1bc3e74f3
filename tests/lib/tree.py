# SPDX-License-Identifier: GPL-2.0-or-later
"""A distribution of its own for `run --root`, put together from the host's files."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from harness import needs


def libraries(*programs):
    text = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True).stdout
    return set(re.findall(r"^\s(?:.* => )?(/\S+) \(", text, re.M))


def put(root, path, name=None):
    """A file of the host's, at its path."""
    there = root / (name or str(path)).lstrip("/")
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(os.path.realpath(path), there)
    return there


PYTHON = pathlib.Path(sysconfig.get_path("stdlib"))


def make_tree(root, python=False, programs=()):
    """A distribution of its own, as small as it gets: bash, the tools of busybox, python."""
    needs("busybox", "bash")
    for d in ("usr/bin", "usr/lib", "usr/lib64", "etc", "var/tmp", "home"):
        (root / d).mkdir(parents=True)
    for d in ("bin", "lib", "lib64"):
        (root / d).symlink_to("usr/" + d)
    (root / "var/run").symlink_to("/run")
    (root / "etc/passwd").write_text("tree:x:0:0::/:/bin/sh\n")
    programs = [shutil.which("bash"), *([os.path.realpath(sys.executable)] if python else []), *programs]
    put(root, shutil.which("busybox"), "usr/bin/busybox")
    for name in ("sh", "ls", "cat", "stat", "readlink", "ln", "mkdir", "rm", "rmdir", "mv", "cp", "chmod", "env",
                 "find", "sort", "cut", "tr", "touch", "sleep", "id", "grep", "head", "mkfifo", "uname", "wc"):
        (root / "usr/bin" / name).symlink_to("busybox")
    for program in programs:
        put(root, program, "usr/bin/" + os.path.basename(program))
    if python:
        (root / "usr/bin/python3").symlink_to(os.path.basename(programs[1]))
        shutil.copytree(PYTHON, root / str(PYTHON)[1:], symlinks=True, ignore=shutil.ignore_patterns(
            "test", "__pycache__", "dist-packages", "config-*", "idlelib", "*.a", "ensurepip"))
        programs += (root / str(PYTHON)[1:]).glob("lib-dynload/*.so")
    # Threads load it when they end.
    loaded = subprocess.run(["cc", "-print-file-name=libgcc_s.so.1"], capture_output=True, text=True).stdout.strip()
    for library in libraries(*programs) | ({os.path.realpath(loaded)} if programs and "/" in loaded else set()):
        if not (root / library[1:]).exists():
            put(root, library)
    return root
