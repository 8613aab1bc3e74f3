# SPDX-License-Identifier: GPL-2.0-or-later
"""Images as the tests see them: read, changed, and signed again.

    image = Image.load(path)             frames, in order
    m = image.frames[0].message()        a record as a Message: fields by name
    m.set("name", "other")
    image.frames[0].store(m)
    image.save(path, seed_of(env))       heads, digests and signatures as proto/SPEC.md has them

The schemas are read from proto/*.proto, so a field that is added there is known here at once.  What a
schema would not allow can be said, too: a Message may hold any number in any field.
"""
import base64
import functools
import hashlib
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]

RECORD, DATA, END = 1, 2, 3
PIECE = 16 << 10
HEAD, FRAME = 144, 80
ZSTD = 1

# ---- Ed25519 (RFC 8032, section 6, with its extended coordinates) ------------------------------

P = 2 ** 255 - 19
Q = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def _add(a, b):
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    s, t, u, v = f - e, h - g, h + g, f + e
    return s * t % P, u * v % P, t * u % P, s * v % P


def _mul(n, point):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = _add(out, point)
        point = _add(point, point)
        n >>= 1
    return out


def _base():
    y = 4 * pow(5, P - 2, P) % P
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x & 1:
        x = P - x
    return x, y, 1, x * y % P


BASE = _base()


def _compress(point):
    z = pow(point[2], P - 2, P)
    return (point[1] * z % P | (point[0] * z % P & 1) << 255).to_bytes(32, "little")


def _hash(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


@functools.lru_cache(None)
def _expand(seed):
    h = hashlib.sha512(seed).digest()
    a = int.from_bytes(h[:32], "little") & (1 << 254) - 8 | 1 << 254
    return a, h[32:], _compress(_mul(a, BASE))


def public(seed):
    return _expand(seed)[2]


def sign(seed, message):
    a, prefix, key = _expand(seed)
    r = _hash(prefix, message) % Q
    big_r = _compress(_mul(r, BASE))
    s = (r + _hash(big_r, key, message) % Q * a) % Q
    return big_r + s.to_bytes(32, "little")


def seed_of(env):
    """The private key of a test's directories; there after the first suspend."""
    for path in (env.dir / "config").rglob("*"):
        if path.is_file():
            text = path.read_text(errors="replace")
            if text.startswith("ed25519-private:"):
                return base64.b64decode(text[len("ed25519-private:"):])
    raise LookupError("no private key in %s" % env.dir)


# ---- schemas -----------------------------------------------------------------------------------

class Field:
    def __init__(self, number, name, kind, repeated):
        self.number, self.name, self.kind, self.repeated = number, name, kind, repeated


class Schema:
    """All messages and enums of proto/*.proto: {name: {field name: Field}}, {name: [numbers]}."""

    def __init__(self):
        self.messages, self.enums, self.scopes = {}, {}, {}
        for path in sorted((ROOT / "proto").glob("*.proto")):
            text = re.sub(r"//[^\n]*", "", path.read_text())
            self._block(re.findall(r"[\w.]+|[{}=;]|\"[^\"]*\"", text), 0, [])

    def _block(self, words, i, scope):
        while i < len(words) and words[i] != "}":
            if words[i] in ("syntax", "package", "import"):
                i = words.index(";", i) + 1
            elif words[i] in ("message", "enum", "oneof"):
                inner = scope if words[i] == "oneof" else scope + [words[i + 1]]
                name = ".".join(inner)
                if words[i] == "message":
                    self.messages[name] = {}
                elif words[i] == "enum":
                    self.enums[name] = []
                i = self._block(words, i + 3, inner) + 1
            elif words[i + 1] == "=":
                self.enums[".".join(scope)].append(int(words[i + 2]))
                i += 4
            else:
                repeated = words[i] == "repeated"
                kind, name, _, number = words[i + repeated:i + repeated + 4]
                self.messages[".".join(scope)][name] = Field(int(number), name, kind, repeated)
                i += repeated + 5
        return i

    def resolve(self, scope, kind):
        """The full name of what a field of message `scope` calls `kind`, or a scalar's name."""
        parts = scope.split(".")
        while True:
            name = ".".join(parts + [kind])
            if name in self.messages or name in self.enums:
                return name
            if not parts:
                return kind
            parts.pop()


SCHEMA = Schema()
VARINTS = ("int32", "int64", "uint32", "uint64", "bool")

# What the records of each kind are; kinds by their number in proto/SPEC.md.
RECORDS = {
    1: "Config", 2: "Tree", 3: "World", 10: "SysvShm", 11: "SysvSem", 12: "SysvMsg", 13: "Mqueues",
    14: "Devshm", 15: "SharedMem", 16: "Cpu", 17: "Seccomp", 18: "Nested", 19: "Settings", 20: "Task", 21: "Mm", 22: "Fdtable",
    23: "Fs", 24: "Sigactions", 25: "Pending", 26: "Itimers", 27: "PosixTimers", 28: "Creds", 29: "Rlimits",
    30: "PosixLocks", 31: "Prctl", 40: "Thread", 41: "Sched", 42: "Pending", 43: "Creds", 60: "Regular",
    61: "Ghost", 62: "ProcFile", 63: "Pipe", 64: "Pipe", 65: "EventFd", 66: "TimerFd",
    67: "SignalFd", 68: "Epoll", 69: "PidFd", 70: "Inotify", 71: "MemFd", 72: "Pty", 73: "Pty",
    74: "Unix", 75: "Tcp", 76: "Udp", 77: "Netlink", 78: "NsFile", 79: "MqFile",
}


def _varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _read_varint(data, i):
    n = shift = 0
    while True:
        n |= (data[i] & 127) << shift
        shift += 7
        i += 1
        if data[i - 1] < 128:
            return n, i


class Message:
    """A record or a part of one.  `values`: {field name: list}, without what is not there."""

    def __init__(self, name, data=b""):
        self.name, self.values = name, {}
        self.fields = SCHEMA.messages[name]
        by_number = {f.number: f for f in self.fields.values()}
        i = 0
        while i < len(data):
            tag, i = _read_varint(data, i)
            f = by_number[tag >> 3]
            kind = SCHEMA.resolve(name, f.kind)
            out = self.values.setdefault(f.name, [])
            if tag & 7 == 0:
                n, i = _read_varint(data, i)
                out.append(self._number(kind, n))
                continue
            size, i = _read_varint(data, i)
            part = data[i:i + size]
            i += size
            if kind in SCHEMA.messages:
                out.append(Message(kind, part))
            elif kind in ("string", "bytes"):
                out.append(part)
            else:  # packed
                k = 0
                while k < len(part):
                    n, k = _read_varint(part, k)
                    out.append(self._number(kind, n))

    @staticmethod
    def _number(kind, n):
        if kind in ("uint32", "uint64", "bool") or n < 1 << 63:
            return n
        return n - (1 << 64)

    def kind(self, field):
        return SCHEMA.resolve(self.name, self.fields[field].kind)

    def get(self, field):
        """The value of a field that is there once, or None."""
        values = self.values.get(field)
        return values[0] if values else None

    def all(self, field):
        return self.values.setdefault(field, [])

    def set(self, field, value):
        self.values[field] = [value.encode() if isinstance(value, str) else value]

    def pack(self):
        out = []
        for name, values in self.values.items():
            f = self.fields[name]
            kind = self.kind(name)
            for v in values:
                if isinstance(v, int):
                    if kind in ("uint32", "bool"):
                        v &= (1 << 32) - 1
                    out.append(_varint(f.number << 3) + _varint(v))
                else:
                    data = v.pack() if isinstance(v, Message) else v
                    out.append(_varint(f.number << 3 | 2) + _varint(len(data)) + data)
        return b"".join(out)


# ---- the stream --------------------------------------------------------------------------------

class Frame:
    def __init__(self, type, kind, subject, payload, offset=0, flags=0, length=None):
        self.type, self.kind, self.subject, self.payload = type, kind, subject, payload
        self.offset, self.flags = offset, flags
        self.length = length  # None: as long as the payload

    def message(self):
        return Message(RECORDS[self.kind], self.payload)

    def store(self, message):
        self.payload = message.pack()

    def copy(self):
        return Frame(self.type, self.kind, self.subject, self.payload, self.offset, self.flags,
                     self.length)


class Image:
    def __init__(self, head, frames):
        self.head, self.frames = head, frames

    @classmethod
    def load(cls, path):
        data = pathlib.Path(path).read_bytes()
        frames, at = [], HEAD
        while True:
            type, flags, kind, pad, _, subject, offset, stored, length = \
                struct.unpack_from("<IIIIQQQII", data, at)
            if type == END:
                return cls(data[:HEAD], frames)
            at += FRAME + pad
            frames.append(Frame(type, kind, subject, data[at:at + stored], offset, flags,
                                length if flags & ZSTD else None))
            at += stored

    def copy(self):
        """One whose list of frames can be changed; copy a frame before changing it."""
        return Image(self.head, list(self.frames))

    def records(self, kind=None):
        return [i for i, f in enumerate(self.frames)
                if f.type == RECORD and (kind is None or f.kind == kind)]

    def change(self, index, change):
        """Replaces frame `index` by a copy whose message `change` has changed."""
        f = self.frames[index] = self.frames[index].copy()
        m = f.message()
        change(m)
        f.store(m)

    def digest(self, head, frame):
        """In version 1 data was hashed as a whole, as records are."""
        if frame.type != DATA or self.head[8:12] == struct.pack("<I", 1):
            return hashlib.sha256(head + frame.payload).digest()
        pieces = (frame.payload[i:i + PIECE] for i in range(0, len(frame.payload), PIECE))
        return hashlib.sha256(head + b"".join(hashlib.sha256(p).digest() for p in pieces)).digest()

    def pack(self, seed):
        head = self.head[:48] + public(seed)
        head += sign(seed, b"podrun image head\0" + head)
        out, digests, at = [head], [head], HEAD
        for n, f in enumerate(self.frames):
            stored = len(f.payload)
            h = struct.pack("<IIIIQQQII", f.type, f.flags, f.kind, 0, n, f.subject % (1 << 64),
                            f.offset % (1 << 64), stored,
                            stored if f.length is None else f.length)
            digests.append(self.digest(h, f))
            out += [h, digests[-1], f.payload]
            at += FRAME + stored
        end = struct.pack("<QQ", len(self.frames), at) + hashlib.sha256(b"".join(digests)).digest()
        end += sign(seed, b"podrun image end\0" + end)
        h = struct.pack("<IIIIQQQII", END, 0, 0, 0, len(self.frames), 0, 0, 112, 112)
        return b"".join(out + [h, hashlib.sha256(h + end).digest(), end])

    def save(self, path, seed):
        pathlib.Path(path).write_bytes(self.pack(seed))
