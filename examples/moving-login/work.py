#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Works over two connections to a server outside: a login with a shell, and a download.

The shell counts; it must be the same shell, and must know what it has counted to.  The download's
SHA-256 must be what the server has sent.  Both end when the server says that it is enough, and
anything that happens to either connection ends it all.
"""
import hashlib
import os
import pty
import subprocess
import sys
import threading

SERVER = sys.argv[1]
SSH = ["ssh", "-F", "/ssh/config", "-tt", SERVER]
over = threading.Event()


def fail(*words):
    print(*words, flush=True)
    os._exit(1)


class Shell:
    """A login with a terminal, as `ssh SERVER` gives it."""

    def __init__(self):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvp(SSH[0], [*SSH, "stty -echo; echo welcome; PS1= exec sh"])
        self.seen = b""
        self.until(b"welcome")

    def until(self, word):
        while word not in self.seen:
            try:
                piece = os.read(self.terminal, 4096)
            except OSError:
                piece = b""
            if not piece:
                fail("the login is over:", self.seen[-200:])
            self.seen += piece
        before, _, self.seen = self.seen.partition(word)
        return before.decode()

    def ask(self, words):
        os.write(self.terminal, b"echo '<'%s'>'\n" % words)
        self.until(b"<")
        return self.until(b">").split()


def login():
    shell = Shell()
    os.write(shell.terminal, b"n=0\n")
    me = shell.ask(b"$$")[0]
    count = 0
    while not over.wait(0.02):
        count += 1
        got = shell.ask(b"$$ $((n = n + 1))")
        if got != [me, str(count)]:
            fail("the shell says", got, "and not", me, count)
        if count % 20 == 0:
            print("login: shell %s has counted to %d" % (me, count), flush=True)
    os.write(shell.terminal, b"exit 7\n")
    if os.waitstatus_to_exitcode(os.waitpid(shell.pid, 0)[1]) != 7:
        fail("the login did not end as it should")


def download():
    p = subprocess.Popen(["curl", "-sS", "http://%s:8000/stream/demo" % SERVER], stdout=subprocess.PIPE)
    digest, n, said = hashlib.sha256(), 0, 0
    while data := p.stdout.read(1 << 20):
        digest.update(data)
        n += len(data)
        if n - said >= 64 << 20:
            said = n
            print("download: %d MiB over one connection" % (n >> 20), flush=True)
    if p.wait():
        fail("curl ended with", p.returncode)
    sent = subprocess.run(["curl", "-sS", "http://%s:8000/digest/demo" % SERVER], capture_output=True, text=True).stdout
    if sent != "%s %d" % (digest.hexdigest(), n):
        fail("sent was", sent, "and received", digest.hexdigest(), n)
    over.set()


threads = [threading.Thread(target=f) for f in (login, download)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("the login and the download were right to the end")
