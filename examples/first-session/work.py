#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Three threads that count in redis, each over a connection of its own that is never renewed.

Every count is checked against what the thread remembers, so a lost or repeated one ends it all.
Ends when the file /tmp/enough is there.
"""
import os
import socket
import threading
import time


class Redis:
    def __init__(self):
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", 6379))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        request = b"*%d\r\n" % len(words)
        for word in words:
            request += b"$%d\r\n%s\r\n" % (len(word), word.encode())
        self.socket.sendall(request)
        return self.file.readline().strip().decode()


def count(name):
    redis = Redis()
    me = redis.ask("CLIENT", "ID")
    expected = 0
    while not os.path.exists("/tmp/enough"):
        expected += 1
        got = redis.ask("INCR", name)
        if got != ":%d" % expected or redis.ask("CLIENT", "ID") != me:
            print("%s: redis says %s, not :%d" % (name, got, expected))
            os._exit(1)
        if expected % 20 == 0:
            print("pid %d, thread %s: counted to %d over connection %s"
                  % (os.getpid(), name, expected, me.lstrip(":")))
        time.sleep(0.01)


threads = [threading.Thread(target=count, args=(name,)) for name in ("a", "b", "c")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("all counts were right")
