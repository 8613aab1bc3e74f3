# SPDX-License-Identifier: GPL-2.0-or-later
"""A websocket client (RFC 6455) that says what a test wants it to say, also what no browser would."""
import base64
import os
import socket
import ssl
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The server did not upgrade the connection; says how it answered."""


class Closed(Exception):
    """The other end has closed: `code` and `reason`, 0 and "" without a close frame."""

    def __init__(self, code=0, reason=""):
        super().__init__("%d %s" % (code, reason))
        self.code, self.reason = code, reason


def connect_tls(address):
    """Without a look at the certificate, which the caller may do: socket, certificate (DER)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    s = context.wrap_socket(socket.create_connection(address, timeout=60))
    return s, s.getpeercert(binary_form=True)


def request(sock, method, path, headers):
    """Sends a request and returns status line, headers and the beginning of the body."""
    lines = ["%s %s HTTP/1.1" % (method, path)] + ["%s: %s" % h for h in headers.items()]
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    got = b""
    while b"\r\n\r\n" not in got:
        piece = sock.recv(4096)
        if not piece:
            break
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    return status, {k.strip().lower(): v.strip() for k, _, v in (f.partition(":") for f in fields)}, rest


class Websocket:
    def __init__(self, host, port, path, protocol=None, tls=False, **headers):
        self.sock = connect_tls((host, port))[0] if tls else socket.create_connection((host, port), timeout=60)
        fields = {"Host": "%s:%d" % (host, port), "Upgrade": "websocket", "Connection": "Upgrade",
                  "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version": "13"}
        if protocol:
            fields["Sec-WebSocket-Protocol"] = protocol
        fields.update(headers)
        status, _, self.data = request(self.sock, "GET", path, {k: v for k, v in fields.items() if v is not None})
        if " 101 " not in status + " ":
            self.sock.close()
            raise Refused(status)

    def _take(self, n):
        while len(self.data) < n:
            try:
                piece = self.sock.recv(1 << 16)
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed()
            self.data += piece
        taken, self.data = self.data[:n], self.data[n:]
        return taken

    def send(self, data, kind=None):
        kind = kind or (TEXT if isinstance(data, str) else BINARY)
        data = data.encode() if isinstance(data, str) else data
        head = bytes([0x80 | kind])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", len(data))
        mask = os.urandom(4)
        long_mask = mask * (len(data) // 4 + 1)
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(long_mask[:len(data)], "big")).to_bytes(len(data), "big")
        self.sock.sendall(head + mask + masked)

    def receive(self):
        """The next message: str or bytes.  Raises Closed."""
        message, text = b"", False
        while True:
            first, second = self._take(2)
            n = second & 127
            if n == 126:
                n, = struct.unpack(">H", self._take(2))
            elif n == 127:
                n, = struct.unpack(">Q", self._take(8))
            body, kind = self._take(n), first & 15
            if kind == CLOSE:
                code = struct.unpack(">H", body[:2])[0] if len(body) >= 2 else 0
                raise Closed(code, body[2:].decode())
            if kind == PING:
                self.send(body, PONG)
            elif kind != PONG:
                message += body
                text = text or kind == TEXT
                if first & 0x80:
                    return message.decode() if text else message

    def close(self):
        self.sock.close()
