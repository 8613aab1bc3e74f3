#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every example does what it says: examples/NAME/run ends with success."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import PODRUN, ROOT, add, main, needs  # noqa: E402


def run(env, script):
    needs("redis-server", "python3")
    env.environ["TMPDIR"] = str(env.dir)
    env.call(script, PODRUN, timeout=120)


for path in sorted((ROOT / "examples").glob("*/run")):
    add(path.parent.name, lambda env, p=path: run(env, p))

if __name__ == "__main__":
    main()
