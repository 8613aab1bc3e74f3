#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: server.py DIR: what is outside, and knows nothing of podrun.

TCP 8000: HTTP.  GET /stream/ID sends bytes as fast as they go, until there is a file `enough` in
DIR, and PUT /sink/ID takes what it is given; GET /digest/ID tells the SHA-256 and length of either.
8001: a WebSocket that counts.  UDP 5300: answers each datagram with its sender's name and how many
came from there.  UDP and TCP 53: names, the same address for all (below example.test), one that
moves with each answer at counter.example.test.
"""
import asyncio
import hashlib
import http.server
import os
import pathlib
import socket
import socketserver
import struct
import sys
import threading

DIR = pathlib.Path(sys.argv[1])
BLOCK = os.urandom(256 << 10)
digests = {}


def enough():
    return (DIR / "enough").exists()


class Web(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        print(self.client_address, *args, flush=True)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        what, name = self.path.strip("/").split("/")
        if what == "digest":
            self.answer(digests.get(name, "none").encode())
            return
        if what == "whoami":
            self.answer(("%s %d" % self.client_address[:2]).encode())
            return
        self.send_response(200)
        self.end_headers()
        h, n = hashlib.sha256(), 0
        while not enough():
            for data in (struct.pack("<Q", n), BLOCK):
                h.update(data)
                self.wfile.write(data)
                n += len(data)
        digests[name] = "%s %d" % (h.hexdigest(), n)

    def do_PUT(self):
        self.send_response_only(100)
        self.end_headers()
        h, n = hashlib.sha256(), 0
        while size := int(self.rfile.readline(), 16):
            data = self.rfile.read(size)
            if len(data) != size or self.rfile.readline() != b"\r\n":
                raise EOFError("in the middle of a chunk")
            h.update(data)
            n += size
        self.rfile.readline()
        digests[self.path.split("/")[-1]] = "%s %d" % (h.hexdigest(), n)
        self.answer(digests[self.path.split("/")[-1]].encode())


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, address_family = True, socket.AF_INET6


def web():
    Server(("::", 8000), Web).serve_forever()


def datagrams():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("::", 5300))
    seen = {}
    while True:
        data, sender = s.recvfrom(65536)
        seen[sender] = seen.get(sender, 0) + 1
        s.sendto(b"%s %d %d " % (sender[0].encode(), sender[1], seen[sender]) + data, sender)


counted = [0]


def dns_answer(query):
    """One A record for any name; RFC 1035."""
    end = 12
    while query[end]:
        end += query[end] + 1
    name, question = query[12:end], query[12:end + 5]
    address = bytes([203, 0, 113, 2])
    if b"counter" in name:
        counted[0] += 1
        address = struct.pack(">I", 10 << 24 | counted[0])
    is_a = question[-4:-2] == b"\0\1"
    head = query[:2] + b"\x85\x80" + struct.pack(">HHHH", 1, int(is_a), 0, 0)
    return head + question + (b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + address if is_a else b"")


def names():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("::", 53))
    while True:
        data, sender = s.recvfrom(4096)
        s.sendto(dns_answer(data), sender)


def names_tcp():
    class One(socketserver.StreamRequestHandler):
        def handle(self):
            while size := self.rfile.read(2):
                answer = dns_answer(self.rfile.read(struct.unpack(">H", size)[0]))
                self.wfile.write(struct.pack(">H", len(answer)) + answer)

    class Many(socketserver.ThreadingMixIn, socketserver.TCPServer):
        daemon_threads, address_family, allow_reuse_address = True, socket.AF_INET6, True
    Many(("::", 53), One).serve_forever()


def websocket():
    import websockets

    async def count(ws, *path):
        n = 0
        async for message in ws:
            n += 1
            await ws.send("%d %d %s" % (id(ws), n, message))

    async def serve():
        async with websockets.serve(count, "0.0.0.0", 8001, ping_interval=None):
            await asyncio.Future()
    asyncio.run(serve())


for service in (web, datagrams, names, names_tcp, websocket):
    threading.Thread(target=service, daemon=True).start()
threading.Event().wait()
