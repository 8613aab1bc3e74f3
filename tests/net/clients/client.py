# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs inside tell the test: that they are ready, how far they are, and how it ended."""
import os
import subprocess
import sys

OUTSIDE = os.environ.get("OUTSIDE", "203.0.113.2")
SSH = ["ssh", "-F", "/ssh/config"]
# How much of the usual goes through a line that may carry little more than a hundred kilobytes in a second.
SHARE = 20 if "BAD_LINE" in os.environ else 1
_n = 0


def beat():
    """Once more something went there and back."""
    global _n
    _n += 1
    with open("/tmp/beat.new", "w") as f:
        f.write(str(_n))
    os.rename("/tmp/beat.new", "/tmp/beat")
    if _n == 1:
        print("ready", flush=True)


def enough():
    return os.path.exists("/tmp/go")


def check(condition, *story):
    if not condition:
        print("FAIL", *story, flush=True)
        sys.exit(1)


def call(*argv, **kw):
    """A command's output; fails unless it succeeds."""
    p = subprocess.run(argv, stdout=subprocess.PIPE, text=True, **kw)
    check(p.returncode == 0, argv, "ended with", p.returncode, p.stdout)
    return p.stdout


def done():
    print("ok after", _n, flush=True)
