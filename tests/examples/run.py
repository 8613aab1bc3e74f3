#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every example does what it says: examples/NAME/run ends with success.

Lines in it say

    # needs: PROGRAM ...    what must be installed
    # shows: PROGRAM ...    what it can do without, and is to be tested with
    # namespaces: WHY       that it can't be without the host's namespaces
    # long: OPTION FILE ... that it is for the long run, and which option names a directory for which files
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PODRUN, ROOT, Failed, add, main, needs, needs_namespaces, test  # noqa: E402

LONG = int(os.environ.get("PODRUN_TEST_MOVES", "3")) > 3


def header(script, key):
    found = re.search(r"^# %s: *(.*)$" % key, script.read_text(), re.M)
    return found.group(1).split() if found else []


def run(env, script):
    needs(*header(script, "needs"), *header(script, "shows"))
    env.environ["TMPDIR"] = str(env.dir)
    left, long = env.path("left"), header(script, "long")
    said = env.call(script, *((long[0], left) if long else ()), PODRUN, timeout=1800).text
    for name in long[1:]:
        if not (left / name).exists() or not (left / name).stat().st_size:
            raise Failed("%s is empty, or not there\n%s" % (name, said))


@test
def without_an_argument_the_podrun_of_the_path(env):
    script = ROOT / "examples" / "first-session" / "run"
    needs(*header(script, "needs"))
    env.environ["PATH"] = "%s:%s" % (pathlib.Path(PODRUN).parent, env.environ["PATH"])
    assert "no count lost" in env.call(script, timeout=600, cwd="/").text
    env.environ["PATH"] = "/usr/bin:/bin"
    assert env.call(script, code=1).errors == "first-session: there is no podrun\n"


for path in sorted((ROOT / "examples").glob("*/run")):
    why = " ".join(header(path, "namespaces"))
    if LONG or not header(path, "long"):
        kept = needs_namespaces(why) if why else lambda fn: fn
        add(path.parent.name, kept(lambda env, p=path: run(env, p)))

if __name__ == "__main__":
    main()
