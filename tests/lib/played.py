# SPDX-License-Identifier: GPL-2.0-or-later
"""A display server played by a script: fixed messages to whoever connects, and the picture that must come of them."""
import base64
import random
import socket
import struct
import threading

from harness import until

(WELCOME, RAW, COPY, SFILL, BITMAP, PFILL, VIDEO, CURSOR, CLIPBOARD, RESIZE, NOTICE, UPDATED, MARK, KEEP, UNCOVER) = (
    1, 16, 17, 18, 19, 20, 21, 22, 25, 26, 27, 28, 30, 31, 32)
HELLO, KEY, POINTER, CLIPBOARD_IN, RESIZE_IN, REFRESH, ACK, FILE_IN, SCALE_IN = range(64, 73)
NONE, LZ4, LEFT_LZ4, JPEG, PALETTE, PALETTE_LZ4 = 0, 1, 2, 4, 5, 6
I420, MJPEG, VP8 = 0, 1, 2
W, H = 97, 61

# 32x32: red grows to the right, green downwards, blue with both.
GRADIENT = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8XGB"
    "YUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBT/wAARCAAg"
    "ACADAREAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhBy"
    "JxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKT"
    "lJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAA"
    "AAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRom"
    "JygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExc"
    "bHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwD5HsdH6fLXkxZ7uGxBvWOj9PlreLPp8NiDestH6fLW8WfT4bEG"
    "/Y6P0+Wtos+nw2IOasdH6fLXiRZ/MeGxBv2Oj9PlreLPp8NiDesdH6fLW8WfT4bEG/ZaP0+Wt4s+nw2IOasdH/2a8OLP5iw2IN+x0fp8tbxZ9R"
    "hsQb1jo/T5a3iz6fDYg37HR+ny1vFn0+GxBzdjo/T5a8OLP5iw2IN6x0f/AGa3iz6fDYg3rHR+ny1vFn1GGxBv2Oj9PlreLPp8NiD/2Q==")


def message(kind, body=b""):
    return struct.pack("<BBHI", kind, 0, 0, len(body)) + body


def rect(*r):
    return struct.pack("<4H", *r)


def field(number, value):
    """A protobuf field: a small number, or a string."""
    if isinstance(value, int):
        out = bytes([number << 3])
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])
    value = value.encode()
    return bytes([number << 3 | 2, len(value)]) + value


def fields(body):
    """{number: int or bytes} of a packed record."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(body):
        key = varint()
        if key & 7 == 2:
            n = varint()
            found[key >> 3] = body[at:at + n]
            at += n
        else:
            found[key >> 3] = varint()
    return found


def lz4(data):
    """One block: greedy, with a table of where four bytes were seen last."""
    out, seen, at, begun = bytearray(), {}, 0, 0

    def length(n):
        return bytes([255] * ((n - 15) // 255) + [(n - 15) % 255]) if n >= 15 else b""

    def sequence(literals, back, match):
        token = min(len(literals), 15) << 4 | (min(match - 4, 15) if back else 0)
        out.extend(bytes([token]) + length(len(literals)) + literals)
        if back:
            out.extend(struct.pack("<H", back) + length(match - 4))

    while at < len(data) - 12:
        four = data[at:at + 4]
        before = seen.get(four)
        seen[four] = at
        if before is None or at - before > 65535:
            at += 1
            continue
        match = 4
        while at + match < len(data) - 5 and data[before + match] == data[at + match]:
            match += 1
        sequence(data[begun:at], at - before, match)
        at += match
        begun = at
    sequence(data[begun:], 0, 0)
    return bytes(out)


class Picture:
    """What a viewer must show, and the messages that lead there."""

    def __init__(self, w=W, h=H):
        self.w, self.h = w, h
        self.pixels = [[0] * w for _ in range(h)]
        self.kept = [[0] * w for _ in range(h)]
        self.random = random.Random(1)

    def put(self, x, y, w, h, colour):
        for j in range(h):
            for i in range(w):
                self.pixels[y + j][x + i] = colour(i, j)

    def bgr(self, x, y, w, h):
        return b"".join(struct.pack("<I", self.pixels[j][i])[:3] for j in range(y, y + h) for i in range(x, x + w))

    def noise(self, *_):
        return self.random.randrange(1 << 24)

    def raw(self, codec, x, y, w, h, colour):
        self.put(x, y, w, h, colour)
        data = self.bgr(x, y, w, h)
        if codec == LEFT_LZ4:
            row = 3 * w
            data = bytes((data[i] - (data[i - 3] if i % row > 2 else 0)) & 255 for i in range(len(data)))
        return message(RAW, rect(x, y, w, h) + bytes([codec, 0]) + (data if codec == NONE else lz4(data)))

    @staticmethod
    def packed(indices, w, bits):
        rows = [indices[i:i + w] for i in range(0, len(indices), w)]
        out = b""
        for row in rows:
            text = "".join(format(i, "0%db" % bits) for i in row)
            text += "0" * (-len(text) % 8)
            out += int(text, 2).to_bytes(len(text) // 8, "big")
        return out

    def palette(self, codec, colours, x, y, w, h):
        table = [self.noise() for _ in range(colours)]
        indices = [self.random.randrange(colours) for _ in range(w * h)]
        self.put(x, y, w, h, lambda i, j: table[indices[j * w + i]])
        data = self.packed(indices, w, 8 if colours > 16 else 4 if colours > 4 else 2 if colours > 2 else 1)
        return message(RAW, rect(x, y, w, h) + bytes([codec, 0, colours & 255]) + struct.pack("<%dI" % colours, *table) +
                       (lz4(data) if codec == PALETTE_LZ4 else data))

    def fill(self, colour, *r):
        self.put(*r, lambda i, j: colour)
        return message(SFILL, rect(*r) + struct.pack("<I", colour))

    def bitmap(self, zero, one, x, y, w, h):
        bits = [self.random.randrange(2) for _ in range(w * h)]
        self.put(x, y, w, h, lambda i, j: one if bits[j * w + i] else zero)
        return message(BITMAP, rect(x, y, w, h) + struct.pack("<II", zero, one) + self.packed(bits, w, 1))

    def tiles(self, tw, th, x, y, w, h):
        tile = [self.noise() for _ in range(tw * th)]
        self.put(x, y, w, h, lambda i, j: tile[j % th * tw + i % tw])
        return message(PFILL, rect(x, y, w, h) + bytes([tw, th, 0, 0]) +
                       b"".join(struct.pack("<I", p)[:3] for p in tile))

    def copy(self, sx, sy, x, y, w, h):
        old = [row[:] for row in self.pixels]
        self.put(x, y, w, h, lambda i, j: old[sy + j][sx + i])
        return message(COPY, struct.pack("<HH", sx, sy) + rect(x, y, w, h))

    def keep(self, x, y, w, h):
        for j in range(y, y + h):
            self.kept[j][x:x + w] = self.pixels[j][x:x + w]
        return message(KEEP, rect(x, y, w, h))

    def uncover(self, x, y, w, h):
        self.put(x, y, w, h, lambda i, j: self.kept[y + j][x + i])
        return message(UNCOVER, rect(x, y, w, h))

    def jpeg(self, x, y):
        self.put(x, y, 32, 32, lambda i, j: 4 * i + 60 << 16 | 4 * j + 40 << 8 | 2 * (i + j) + 30)
        return message(RAW, rect(x, y, 32, 32) + bytes([JPEG, 0]) + GRADIENT)

    @staticmethod
    def video(kind, frame, w, h, *r):
        return message(VIDEO, struct.pack("<HH", 1, 0) + rect(*r) + struct.pack("<BBHHQ", kind, 0, w, h, 40000) + frame)

    def i420(self, fw, fh, x, y, w, h):
        """Noise as video, scaled to its rectangle, by the formulas of proto/SPEC.md."""
        across, down = (fw + 1) // 2, (fh + 1) // 2
        frame = bytes(self.random.randrange(256) for _ in range(fw * fh + 2 * across * down))

        def pixel(i, j):
            u, v = (frame[fw * fh + k * across * down + j // 2 * across + i // 2] - 128 for k in (0, 1))
            luma = frame[j * fw + i]
            return [min(max(luma + ((n + 32768) >> 16), 0), 255) for n in
                    (91881 * v, -22554 * u - 46802 * v, 116130 * u)]

        def place(at, size, to):
            p = min(max((2 * at + 1) * size * 128 // to - 128, 0), (size - 1) * 256)
            return p >> 8, min((p >> 8) + 1, size - 1), p & 255

        def mixed(i, j):
            (x0, x1, a), (y0, y1, b) = place(i, fw, w), place(j, fh, h)
            four = zip(pixel(x0, y0), pixel(x1, y0), pixel(x0, y1), pixel(x1, y1))
            red, green, blue = (((s * (256 - a) + t * a) * (256 - b) + (s1 * (256 - a) + t1 * a) * b + 32768) >> 16
                                for s, t, s1, t1 in four)
            return red << 16 | green << 8 | blue

        self.put(x, y, w, h, mixed)
        return self.video(I420, frame, fw, fh, x, y, w, h)

    def mjpeg(self, x, y):
        """As jpeg, but of a film."""
        self.jpeg(x, y)
        return self.video(MJPEG, GRADIENT, 32, 32, x, y, 32, 32)

    def everything(self):
        """Each command and each codec without loss, over one another, with copies in between."""
        out = [self.raw(NONE, 0, 0, W, H, self.noise),
               self.raw(LZ4, 5, 3, 40, 30, lambda i, j: i // 9 * 0x203040 & 0xffffff),
               self.raw(LEFT_LZ4, 30, 20, 50, 30, lambda i, j: (i * 3 & 255) << 16 | (j * 5 & 255) << 8 | i + j & 255)]
        for at, (codec, colours) in enumerate([(PALETTE, 2), (PALETTE, 3), (PALETTE_LZ4, 4), (PALETTE, 5),
                                               (PALETTE_LZ4, 16), (PALETTE_LZ4, 2),
                                               (PALETTE, 17), (PALETTE_LZ4, 256)]):
            out.append(self.palette(codec, colours, at * 12 + 1, 40, 11, 11))
        out += [self.fill(0x123456, 90, 0, 7, 61), self.bitmap(0, 0xffffff, 50, 1, 33, 9),
                self.tiles(5, 3, 2, 50, 21, 10), self.tiles(64, 64, 40, 2, 3, 3),
                self.copy(0, 0, 7, 5, 60, 40), self.copy(20, 20, 13, 11, 60, 40), self.copy(0, 10, 0, 9, 97, 51),
                self.copy(10, 0, 12, 0, 80, 61), self.fill(0xff, 3, 3, 1, 1),
                self.i420(9, 7, 60, 30, 9, 7), self.i420(10, 6, 55, 38, 23, 15), self.copy(60, 32, 50, 25, 15, 9),
                self.keep(20, 10, 60, 40), self.fill(0x445566, 10, 5, 80, 50), self.keep(40, 20, 5, 5),
                self.uncover(25, 12, 40, 30), self.uncover(0, 0, 9, 9)]
        return b"".join(out)

    def rgb(self):
        return b"".join(struct.pack(">I", p)[1:] for row in self.pixels for p in row)


def welcome(w=W, h=H, role=0):
    return message(WELCOME, field(1, 1) + field(2, w) + field(3, h) + field(4, role) + field(5, "fake"))


def updated(serial):
    return message(UPDATED, struct.pack("<I", serial))


class Viewer:
    """One connection of a viewer."""

    def __init__(self, sock):
        self.sock, self.got, self.ended = sock, [], False

    def read(self):
        data = b""
        while True:
            try:
                piece = self.sock.recv(1 << 16)
            except OSError:
                piece = b""
            if not piece:
                self.ended = True
                return
            data += piece
            while len(data) >= 8:
                kind, _, _, n = struct.unpack("<BBHI", data[:8])
                if len(data) < 8 + n:
                    break
                self.got.append((kind, data[8:8 + n]))
                data = data[8 + n:]

    def send(self, data):
        self.sock.sendall(data)

    def of(self, *kinds):
        return [m for m in list(self.got) if m[0] in kinds]

    def input(self):
        """Keys as (keysym, scancode, down), pointers as (x, y, buttons, wheel x, wheel y), pasted text."""
        out = []
        for kind, body in self.of(KEY, POINTER, CLIPBOARD_IN):
            if kind == KEY:
                out.append(struct.unpack("<IHBx", body))
            elif kind == POINTER:
                out.append(struct.unpack("<hhBxbb", body))
            else:
                out.append(body.decode())
        return out

    def updates(self):
        return [struct.unpack("<I", body)[0] for _, body in self.of(ACK)]


class Display:
    """A display server: whoever connects and says HELLO is sent `first`."""

    def __init__(self, env, first, name="fake"):
        self.directory = env.dir / "run" / "podrun" / name
        self.directory.mkdir(parents=True, exist_ok=True)
        for d in (self.directory, self.directory.parent):
            d.chmod(0o700)
        self.first, self.viewers = first, []
        self.open()

    def open(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.directory / "display"))
        self.listener.listen()
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(Viewer(sock),), daemon=True).start()

    def _serve(self, viewer):
        threading.Thread(target=viewer.read, daemon=True).start()
        until("HELLO or the end", lambda: viewer.got or viewer.ended)
        if not viewer.got:
            return  # podrun view tries whether somebody is there
        assert viewer.got[0][0] == HELLO, viewer.got[0]
        self.viewers.append(viewer)
        viewer.send(self.first)

    def close(self):
        """Dies."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        (self.directory / "display").unlink()
        for v in self.viewers:
            v.sock.shutdown(socket.SHUT_RDWR)

    def viewer(self, number=1):
        """The one that came as the last of so many."""
        until("viewer %d has come" % number, lambda: len(self.viewers) >= number)
        return self.viewers[number - 1]
