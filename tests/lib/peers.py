# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that benchmarks set beside podrun."""
import shutil


class Missing(Exception):
    """A program that is not installed; nobody leaves its figures out in silence."""


def find(program, package):
    path = shutil.which(program)
    if not path:
        raise Missing("%s is not installed (package %s)" % (program, package))
    return path
