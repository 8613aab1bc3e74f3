#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same session on two kernels: this machine's, and Debian 12's under qemu without KVM.

A session made here is resumed there and finishes its work; one made there is resumed here.
PODRUN_KERNEL names the directory with the other kernel (see `vm`); the sessions are portable
ones, since the emulated processor lacks what this one has.
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import BUILD, PODRUN, Failed, Skip, add, main  # noqa: E402

VM = str(pathlib.Path(__file__).resolve().parent / "vm")
STATE = BUILD / "tests" / "state"
PYTHON = ["python3", "-u", "-c", """
import hashlib, os, threading, time
print('ready')
done = []
def work():
    h = hashlib.sha256()
    for i in range(50): h.update(bytes(100000)); time.sleep(0.01)
    while not os.path.exists('/tmp/go'): time.sleep(0.01)
    done.append(h.hexdigest())
ts = [threading.Thread(target=work) for i in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
print('ok' if len(set(done)) == 1 else 'FAIL')
"""]
SHELL = ["sh", "-c", "sleep 10000 | cat & echo ready; "
                     "while [ ! -e /tmp/go ]; do sleep 0.02; done; kill %1; echo ok"]


def finish(podrun, name):
    return ("%s exec %s touch /tmp/go && %s wait %s && %s logs %s"
            % (podrun, name, podrun, name, podrun, name))


def vm(env, script):
    if not os.environ.get("PODRUN_KERNEL"):
        raise Skip("PODRUN_KERNEL is not set")
    env.environ["XDG_CONFIG_HOME"] = str(env.path("share") / "config")
    return env.call(VM, env.path("share"), "sh", "-e", "-c",
                    "export XDG_CONFIG_HOME=/mnt/config; " + script, timeout=900).text


def there(env, argv):
    """Made here, resumed there."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    env.environ["XDG_CONFIG_HOME"] = str(share / "config")
    env.run_detached("s", *argv, options=["--portable"])
    env.podrun("suspend", "s", "-o", share / "image")
    out = vm(env, "uname -r; %s resume -d /mnt/image; %s" % (PODRUN, finish(PODRUN, "s")))
    if "ok" not in out.split():
        raise Failed(out)


def back(env, argv):
    """Made there, resumed here."""
    share = env.path("share")
    share.mkdir()
    (share / "config").mkdir(mode=0o700)
    quoted = " ".join("'" + str(a).replace("'", "'\\''") + "'" for a in argv)
    vm(env, "%s run -d --portable --name s -- %s; until %s logs s | grep -q ready; do sleep 0.1; "
            "done; %s suspend s -o /mnt/image" % (PODRUN, quoted, PODRUN, PODRUN))
    env.podrun("resume", "-d", share / "image")
    env.podrun("exec", "s", "touch", "/tmp/go")
    if "ok" not in env.wait("s"):
        raise Failed(env.logs("s"))


WORK = {"python-threads": PYTHON, "shell-pipe": SHELL}
for state in os.environ.get("PODRUN_KERNEL_STATES", "counter").split():
    WORK[state] = [str(STATE / state), "/tmp/go"]
for label, command in WORK.items():
    add("there/" + label, lambda env, a=command: there(env, a))
    add("back/" + label, lambda env, a=command: back(env, a))

if __name__ == "__main__":
    main()
