# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU seconds per GB of what carries the display, plain and encrypted.

The viewer takes neither JPEG nor VP8 for films, and its line is this host, so the clip comes as pixels (I420), some 20 MB a
second; `films` are the frames of it that came as such.  What it costs to find them is the display server's, and what it costs to
carry them stands beside it.  Ways: the display's own socket, `podrun view` (a websocket of this host), `podrun view --listen` (the
same by TLS).
"""
import contextlib
import os
import pathlib
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import websocket  # noqa: E402
from browser import cpu_ms, tree  # noqa: E402
from harness import until  # noqa: E402
from looking import View  # noqa: E402
from played import ACK, HELLO, I420, MARK, UPDATED, VIDEO, field, message  # noqa: E402

GREETING = message(HELLO, field(1, 1) + field(3, 1) + field(4, 1 << I420) + field(5, 100))


class Viewer(threading.Thread):
    """Reads what comes, acknowledges it, and keeps nothing."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes = self.updates = self.films = 0
        self.data, self.skip = b"", 0
        self.send(GREETING)
        self.start()

    def run(self):
        with contextlib.suppress(OSError, websocket.Closed):
            while True:
                piece = self.receive()
                if not piece:
                    return
                self.bytes += len(piece)
                self.take(piece)

    def take(self, piece):
        dropped = min(self.skip, len(piece))
        self.skip -= dropped
        self.data += piece[dropped:]
        while len(self.data) >= 8:
            kind, _, _, n = struct.unpack_from("<BBHI", self.data)
            if kind in (UPDATED, MARK):
                if len(self.data) < 8 + n:
                    return
                self.send(message(ACK, self.data[8:8 + n]))
                self.updates += kind == UPDATED
            self.films += kind == VIDEO
            have = min(n, len(self.data) - 8)
            self.skip = n - have
            self.data = self.data[8 + have:]


class Direct(Viewer):
    name = "unix"

    def __init__(self, system):
        self.sock, self.relay = socket.socket(socket.AF_UNIX), []
        self.sock.connect(system.target.split(":", 1)[1])
        super().__init__()

    def send(self, data):
        self.sock.sendall(data)

    def receive(self):
        return self.sock.recv(1 << 18)

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.join()
        self.sock.close()


class Http(Viewer):
    name, options = "http", ()

    def __init__(self, system):
        self.view = View(system.env, *self.options, target=system.name)
        self.ws = self.view.websocket()
        self.ws.send("token " + self.view.token)
        self.ws.receive()
        self.relay = [self.view.process.pid]
        super().__init__()

    def send(self, data):
        self.ws.send(data)

    def receive(self):
        return self.ws.receive()

    def close(self):
        self.view.close()
        self.join()


class Https(Http):
    name, options = "https", ("--listen", "127.0.0.1:0", "--quality", "100")


WAYS = (Direct, Http, Https)


def measure(system, way, frames):
    viewer = way(system)
    until("there is a picture", lambda: viewer.updates)
    ask, said = system.fifos
    servers = system.display_servers()
    relay = [p for pid in viewer.relay for p in tree(pid)]
    before = viewer.bytes, cpu_ms(servers), cpu_ms(relay)
    os.write(ask, struct.pack("<c3xi", b"v", frames))
    assert os.read(said, 1) == b"e"
    after = viewer.bytes, cpu_ms(servers), cpu_ms(relay)
    viewer.close()
    return [b - a for a, b in zip(before, after)] + [viewer.films]


def rows(system, frames, rounds):
    """The ways take turns."""
    sums = {way.name: [0] * 4 for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            sums[way.name] = [a + b for a, b in zip(sums[way.name], measure(system, way, frames))]
    return [{"system": "podrun", "workload": "channel", "way": name, "gb": round(n / 1e9, 3),
             "server_cpu_s_per_gb": round(server * 1e6 / n, 2), "relay_cpu_s_per_gb": round(relay * 1e6 / n, 2), "films": films}
            for name, (n, server, relay, films) in sums.items()]
