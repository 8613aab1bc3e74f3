#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every example does what it says: examples/NAME/run ends with success.

A line "# needs: PROGRAM ..." in it says what must be installed.
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PODRUN, ROOT, Failed, add, main, needs  # noqa: E402

LONG = int(os.environ.get("PODRUN_TEST_MOVES", "3")) > 3


def header(script, key):
    found = re.search(r"^# %s: *(.*)$" % key, script.read_text(), re.M)
    return found.group(1).split() if found else []


def run(env, script, *options):
    needs(*header(script, "needs"))
    env.environ["TMPDIR"] = str(env.dir)
    return env.call(script, *options, PODRUN, timeout=1800).text


def desktop(env, script):
    needs(*header(script, "shows"))
    pictures = env.path("pictures")
    pictures.mkdir()
    said = run(env, script, "--pictures", pictures)
    for name in ("before.png", "after.png", "suspended.svg"):
        if not (pictures / name).stat().st_size:
            raise Failed("%s is empty\n%s" % (name, said))


for path in sorted((ROOT / "examples").glob("*/run")):
    if path.parent.name != "desktop":
        add(path.parent.name, lambda env, p=path: run(env, p))
    elif LONG:
        add("desktop", lambda env, p=path: desktop(env, p))

if __name__ == "__main__":
    main()
