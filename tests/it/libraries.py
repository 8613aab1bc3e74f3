#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""podrun goes into a session's root to make its processes anew, and loads nothing from there.

What lies there is the session's, or whoever's who has made the image: a library with the name of
one that podrun loads when it needs it (base/late.h), or that the C library loads for some of its
calls, would be run by who may do all that its user may.
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import Failed, main, needs, needs_namespaces, test  # noqa: E402

NAMES = ["libIPSec_MB.so.1", "libIPSec_MB.so.2", "libgcc_s.so.1", "libpcap.so.0.8", "libpcap.so.1"]

# Says so to whoever looks, in whatever root it is.
LIBRARY = r"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	close(open("/tmp/loaded", O_CREAT | O_WRONLY, 0600));
}
"""

# A root inside puts them wherever a library may be looked for; then there is enough memory to be hashed by several.
HOLDS_THEM = r"""
for d in /usr/lib/x86_64-linux-gnu /usr/lib /usr/lib64 /usr/local/lib; do
	mkdir -p $d
	for name in "$@"; do rm -f $d/$name; cp /mnt/library.so $d/$name; done
done
exec perl -e '$SIG{ALRM} = sub {}; my $m = ""; $m .= pack("N", $_ * 2654435761 % 4294967296) for 1 .. 3000000;
	$| = 1; print "ready\n"; sleep 1000 while 1'
"""


def with_them(env):
    directory = env.path("vol")
    directory.mkdir()
    (directory / "library.c").write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", directory / "library.so", directory / "library.c"], check=True)
    env.share_cache()
    env.run_detached("s", "sh", "-c", HOLDS_THEM, "sh", *NAMES,
                     options=["--user", "root", "-v", "%s:/mnt:ro" % directory])
    # It would be heard of.
    env.podrun("exec", "s", "env", "LD_PRELOAD=/usr/lib/%s" % NAMES[0], "true")
    env.podrun("exec", "s", "rm", "/tmp/loaded")
    env.podrun("suspend", "s", "-o", env.path("i"))
    # Another file, so all of it is hashed again.
    env.path("copy").write_bytes(env.path("i").read_bytes())
    env.path("i").unlink()
    return env.path("copy")


def not_loaded(env):
    if env.podrun("exec", "s", "test", "-e", "/tmp/loaded", check=False).code != 1:
        raise Failed("a library of the session's was loaded")


@test
@needs_namespaces("a root inside with a layer of its own")
def those_of_an_image_are_not_loaded(env):
    needs("cc", "perl")
    image = with_them(env)
    env.podrun("resume", "-d", image)
    not_loaded(env)
    env.podrun("kill", "s")


if __name__ == "__main__":
    main()
