# SPDX-License-Identifier: GPL-2.0-or-later
"""A viewer that listens: sound as a display server sends it, and what tone is in it."""
import contextlib
import ctypes
import ctypes.util
import math
import socket
import struct
import threading

RATE, SAMPLES = 48000, 960
UPDATED, MARK, AUDIO, NOTICE, FILE, ACK, HELLO = 28, 30, 24, 27, 29, 70, 64
# DisplayHello: version 1, codecs 1 (pixels as they are), audio
GREETING = b"\x08\x01\x18\x01\x50\x01"


def opus():
    """libopus, or None."""
    name = ctypes.util.find_library("opus")
    if not name:
        return None
    lib = ctypes.CDLL(name)
    for make in (lib.opus_decoder_create, lib.opus_encoder_create):
        make.restype = ctypes.c_void_p
    return lib


def encode(samples):
    """Opus packets of whole 20 ms of mono samples, -1 to 1; both channels have them."""
    lib, error = opus(), ctypes.c_int()
    e = lib.opus_encoder_create(RATE, 2, 2049, ctypes.byref(error))
    out = ctypes.create_string_buffer(1500)
    packets = []
    for i in range(0, len(samples) - SAMPLES + 1, SAMPLES):
        both = [int(32767 * x) for x in samples[i:i + SAMPLES] for _ in range(2)]
        pcm = (ctypes.c_int16 * len(both))(*both)
        n = lib.opus_encode(ctypes.c_void_p(e), pcm, SAMPLES, out, len(out))
        assert n > 0, n
        packets.append(out.raw[:n])
    lib.opus_encoder_destroy(ctypes.c_void_p(e))
    return packets


def decode(packets):
    """The left channel."""
    lib, error = opus(), ctypes.c_int()
    d = lib.opus_decoder_create(RATE, 2, ctypes.byref(error))
    pcm = (ctypes.c_int16 * (SAMPLES * 2))()
    samples = []
    for p in packets:
        n = lib.opus_decode(ctypes.c_void_p(d), p, len(p), pcm, SAMPLES, 0)
        assert n == SAMPLES, "a packet of %d samples" % n
        samples += [x / 32768 for x in pcm[:2 * n:2]]
    lib.opus_decoder_destroy(ctypes.c_void_p(d))
    return samples


def tone(hz, seconds, loud=0.4):
    return [loud * math.sin(2 * math.pi * hz * i / RATE) for i in range(int(RATE * seconds))]


def share(samples, hz):
    """Of the samples' energy, what is at @hz: Goertzel's algorithm. 1 for a pure tone."""
    c = 2 * math.cos(2 * math.pi * hz / RATE)
    a = b = 0.0
    for x in samples:
        a, b = x + c * a - b, a
    energy = sum(x * x for x in samples)
    return 2 * (a * a + b * b - c * a * b) / (len(samples) * energy) if energy > 1e-6 else 0.0


def has_tone(samples, hz, pieces=5):
    """Is it in @pieces of 100 ms, and nothing else? Between them there may be gaps."""
    n = RATE // 10
    found = sum(share(samples[i:i + n], hz) > 0.9 for i in range(0, len(samples) - n + 1, n))
    return found >= pieces


class Listener:
    """Connected to @path; `packets` is all the sound that has come, `times` when it was played, `files` what was said of files."""

    def __init__(self, path, greeting=GREETING):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(path))
        self.packets, self.times, self.files, self.updated = [], [], [], 0
        self.send(HELLO, greeting)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def send(self, kind, body):
        self.sock.sendall(struct.pack("<BBHI", kind, 0, 0, len(body)) + body)

    def _read(self):
        with contextlib.suppress(OSError, struct.error), self.sock.makefile("rb") as f:
            while True:
                kind, _, _, n = struct.unpack("<BBHI", f.read(8))
                body = f.read(n)
                if kind in (UPDATED, MARK):
                    self.updated += kind == UPDATED
                    self.send(ACK, body)
                elif kind == FILE:
                    self.files.append(body)
                elif kind == AUDIO:
                    self.times.append(struct.unpack("<Q", body[:8])[0])
                    self.packets.append(body[8:])

    def heard(self, since=0):
        return decode(self.packets[since:])

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.sock.close()
