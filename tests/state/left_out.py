# SPDX-License-Identifier: GPL-2.0-or-later
"""State programs that are left out in some ways where names are rewritten, and why.

A way is one of those which always rewrite (run.py), or any with PODRUN_TEST_NAMES=rewrite: then the session has a
private view of files, and the host's network.
"""
from harness import REWRITE

ALWAYS = ("rewrite", "leave", "rewritten", "back", "kept", "rewritten_faults")
# Which suspend or snapshot; which resume with rewritten names; which do so while the session is still there, or a
# moment after it.
MOVES = ("leave", "rewritten", "back", "kept", "rewritten_faults", "suspend", "twice", "pipe", "snapshot", "faults", "kills",
         "supervisor", "client", "careful")
REBUILDS = tuple(w for w in MOVES if w != "leave")
COPIES = ("kept", "snapshot")
HERE_AT_ONCE = ("pipe",) + COPIES
# In which it ends with rewritten names, or runs with a private view.
ENDS_HERE = ("rewrite", "session") + REBUILDS
PRIVATE = ("session",) + REBUILDS

FILES = "the host's files are its own only as long as it is the only one"
PORTS = "on the host's network its names are taken as long as it is there, and ports for a minute"
LAYER = "with a layer over the host's files, which only a mount namespace can have"

LEFT_OUT = {
    "sandboxes": [(ENDS_HERE + MOVES, "no namespaces")],
    "sysv_sandbox": [(ENDS_HERE + MOVES, "no namespaces")],
    "task_caps": [(ENDS_HERE + MOVES, "no namespaces")],
    "procgone": [(ENDS_HERE, "an open file of /proc is a copy from when it was opened")],
    "task_closed": [(ENDS_HERE, "/proc shows that it is not closed in truth (rewrite/attributes.c)")],
    "sock_flow": [(MOVES, "a loopback connection of the host's with more data than fits")],
    "udp": [(MOVES, "on the host's network what waits unread is lost")],
    "unix_dgram": [(PRIVATE, "in a private view senders have the host's names of their sockets")],
    "fifo_opens": [(("faults",), "descriptors with which the rewriter waits are others each time")],
    "file_paths_gone": [(REBUILDS, "no descriptor of a path that is gone")],
    "file_ghost_overlay": [(("back",), LAYER), (COPIES, FILES)],
    "file_regular_overlay": [(("back",), LAYER), (HERE_AT_ONCE, FILES)],
    "fifos_overlay": [(HERE_AT_ONCE, FILES)],
    "inotifys_overlay": [(COPIES, FILES)],
    "task_wclone": [(REBUILDS, "a process whose program had to be executed ends with SIGCHLD")],
    "task_exe_gone": [(REBUILDS, "a program without a path can't be executed")],
    "task_exe_memfd": [(REBUILDS, "a program without a path can't be executed")],
    "netlink": [(("pipe",), PORTS)],
    "sock_options": [(("pipe",), PORTS)],
    "tcp_goodbye": [(HERE_AT_ONCE, PORTS)],
    "tcp_listen": [(HERE_AT_ONCE, PORTS)],
    "tcp_connects": [(HERE_AT_ONCE, PORTS)],
    "tcp_states": [(HERE_AT_ONCE, PORTS)],
    "tcp_pair": [(HERE_AT_ONCE, PORTS)],
    "udp_states": [(("pipe",), PORTS)],
    "unix_abstract": [(("pipe",), PORTS)],
    "unix_connect": [(("pipe",), PORTS)],
}


def why(program, way):
    """The reason, or an empty string."""
    if way not in ALWAYS and not REWRITE:
        return ""
    return next((reason for ways, reason in LEFT_OUT.get(program, ()) if way in ways), "")
