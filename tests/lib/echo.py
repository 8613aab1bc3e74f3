# SPDX-License-Identifier: GPL-2.0-or-later
"""Outside of a session: a server that sends back what it gets, and counts."""
import contextlib
import socket
import threading

from harness import until


class Server:
    def __init__(self, family=4, accepts=True):
        """@accepts False: there is room for one that waits, and accept() has to be called."""
        self.family = family
        self.listener = socket.create_server(("::1" if family == 6 else "127.0.0.1", 0), backlog=5 if accepts else 0,
                                             family=socket.AF_INET6 if family == 6 else socket.AF_INET)
        self.port = self.listener.getsockname()[1]
        self.echoed, self.clients, self.gone = 0, 0, 0
        if accepts:
            threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.clients += 1
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, contextlib.suppress(OSError):
            while data := client.recv(1 << 18):
                client.sendall(data)
                self.echoed += len(data)
        self.gone += 1

    def goes_on(self, more=0):
        """Waits until more than that many bytes have come back again."""
        before = self.echoed
        until("the session is heard of", lambda: self.echoed > before + more)
