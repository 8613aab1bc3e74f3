#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Integration tests: where volumes are shown, and where that can't be any more."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from cli import COUNT, finish, one_line  # noqa: E402
from harness import main, needs_namespaces, test  # noqa: E402


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


if __name__ == "__main__":
    main()
