#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A name server that takes updates (RFC 2136) signed with one key (TSIG, RFC 8945), and nothing else.

    nameserver.py ADDRESS PORT ZONE KEYNAME SECRET FILE

FILE has what is known, a line "NAME ADDRESS" each, and "refused N": how many updates were.
Written from the RFCs, and tried with nsupdate(1), which is what makes it a witness.
"""
import base64
import hashlib
import hmac
import os
import socket
import struct
import sys
import time

A, SOA, AAAA, TSIG, IN, NONE, ANY = 1, 6, 28, 250, 1, 254, 255
UPDATE, NOTAUTH, NOTZONE, FORMERR = 5, 9, 10, 1


def name_at(m, at):
    labels = []
    while m[at]:
        if m[at] & 0xc0:
            return ".".join(labels + [name_at(m, (m[at] & 0x3f) << 8 | m[at + 1])[0]]).lower(), at + 2
        labels.append(m[at + 1:at + 1 + m[at]].decode())
        at += 1 + m[at]
    return ".".join(labels).lower(), at + 1


def wire(name):
    return b"".join(bytes([len(w)]) + w.encode() for w in name.split(".")) + b"\0"


def record_at(m, at):
    start = at
    name, at = name_at(m, at)
    kind, cls, ttl, n = struct.unpack(">HHIH", m[at:at + 10])
    at += 10
    return {"start": start, "name": name, "type": kind, "class": cls, "ttl": ttl, "data": m[at:at + n],
            "at": at, "end": at + n}


class NameServer:
    def __init__(self, address, port, zone, key, secret):
        self.sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, port))
        self.port = self.sock.getsockname()[1]
        self.zone, self.key, self.secret = zone, key, base64.b64decode(secret)
        self.records, self.refused, self.told = {}, 0, 0

    def is_signed(self, m, r):
        """The last record of the message is a TSIG with our key, made just now."""
        if r is None or r["type"] != TSIG or r["name"] != self.key or r["end"] != len(m):
            return False
        algorithm, at = name_at(m, r["at"])
        high, low, fudge, n = struct.unpack(">HIHH", m[at:at + 10])
        mac, rest = m[at + 10:at + 10 + n], m[at + 10 + n:]
        original, error, other = struct.unpack(">HHH", rest[:6])
        count = struct.unpack(">H", m[10:12])[0] - 1
        signed = struct.pack(">H", original) + m[2:10] + struct.pack(">H", count) + m[12:r["start"]]
        signed += wire(self.key) + struct.pack(">HI", ANY, 0) + wire(algorithm)
        signed += struct.pack(">HIHHH", high, low, fudge, error, other)
        good = hmac.new(self.secret, signed, hashlib.sha256).digest()
        return algorithm == "hmac-sha256" and hmac.compare_digest(mac, good) and \
            abs((high << 32 | low) - time.time()) <= fudge

    def take(self, m):
        """The rcode."""
        _, flags, zones, prerequisites, updates, more = struct.unpack(">6H", m[:12])
        if flags >> 15 or flags >> 11 & 15 != UPDATE or zones != 1 or prerequisites:
            return FORMERR
        zone, at = name_at(m, 12)
        if struct.unpack(">HH", m[at:at + 4]) != (SOA, IN) or zone != self.zone:
            return NOTZONE
        at += 4
        todo, last = [], None
        for _ in range(updates):
            todo.append(record_at(m, at))
            at = todo[-1]["end"]
        for _ in range(more):
            last = record_at(m, at)
            at = last["end"]
        if not self.is_signed(m, last):
            return NOTAUTH
        for r in todo:
            if not r["name"].endswith("." + zone) and r["name"] != zone:
                return NOTZONE
            known = self.records.setdefault(r["name"], {})
            if r["class"] == ANY:
                known.pop(r["type"], None)
                continue
            address = socket.inet_ntop(socket.AF_INET if r["type"] == A else socket.AF_INET6, r["data"])
            if r["class"] == NONE:
                assert r["ttl"] == 0, r
                known[r["type"]] = [a for a in known.get(r["type"], []) if a != address]
            else:
                assert r["class"] == IN and 0 < r["ttl"] <= 300, r
                known.setdefault(r["type"], []).append(address)
        self.told += 1
        return 0

    def serve_one(self):
        m, peer = self.sock.recvfrom(4096)
        rcode = self.take(m)
        self.refused += rcode != 0
        self.sock.sendto(m[:2] + struct.pack(">5H", 0x8000 | UPDATE << 11 | rcode, 0, 0, 0, 0), peer)

    def addresses(self, name):
        return sorted(sum(self.records.get(name, {}).values(), []))


def main(address, port, zone, key, secret, file):
    server = NameServer(address, int(port), zone, key, secret)
    while True:
        server.serve_one()
        with open(file + ".new", "w") as f:
            for name in server.records:
                f.writelines("%s %s\n" % (name, a) for a in server.addresses(name))
            f.write("refused %d\n" % server.refused)
        os.rename(file + ".new", file)


if __name__ == "__main__":
    main(*sys.argv[1:])
