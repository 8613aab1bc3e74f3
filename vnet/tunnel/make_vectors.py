#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints test_vectors.h: one handshake and what follows, computed with Python's cryptography and hashlib alone.

Written from the WireGuard paper (sections 5.4.1 to 5.4.7), not from the C sources, so that both
must have understood it in the same way.  Keys are fixed, so the output is always the same.
"""

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

INITIATOR, RESPONDER = 0x11223344, 0xAABBCCDD
STAMP = bytes.fromhex("40000000666666660a000000")
PACKET = bytes(range(64)) * 2


def digest(*parts):
    return hashlib.blake2s(b"".join(parts)).digest()


def mac(key, *parts):
    return hashlib.blake2s(b"".join(parts), key=key, digest_size=16).digest()


def keyed(key, data):
    return hmac.new(key, data, hashlib.blake2s).digest()


def kdf(n, chain, data):
    secret, out, last = keyed(chain, data), [], b""
    for i in range(1, n + 1):
        last = keyed(secret, last + bytes([i]))
        out.append(last)
    return out


def private(name):
    return bytearray(hashlib.sha256(b"podrun test key " + name).digest())


def clamp(key):
    key[0] &= 248
    key[31] = key[31] & 127 | 64
    return bytes(key)


def public(key):
    return X25519PrivateKey.from_private_bytes(key).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def shared(key, other):
    return X25519PrivateKey.from_private_bytes(key).exchange(X25519PublicKey.from_public_bytes(other))


def seal(key, counter, text, ad):
    return ChaCha20Poly1305(key).encrypt(struct.pack("<IQ", 0, counter), text, ad)


def rotl(v, n):
    return (v << n | v >> (32 - n)) & 0xFFFFFFFF


def hchacha20(key, nonce):
    s = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce))
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            s[a] = (s[a] + s[b]) & 0xFFFFFFFF
            s[d] = rotl(s[d] ^ s[a], 16)
            s[c] = (s[c] + s[d]) & 0xFFFFFFFF
            s[b] = rotl(s[b] ^ s[c], 12)
            s[a] = (s[a] + s[b]) & 0xFFFFFFFF
            s[d] = rotl(s[d] ^ s[a], 8)
            s[c] = (s[c] + s[d]) & 0xFFFFFFFF
            s[b] = rotl(s[b] ^ s[c], 7)
    return struct.pack("<8I", *s[:4], *s[12:])


def xseal(key, nonce, text, ad):
    sub = hchacha20(key, nonce[:16])
    return ChaCha20Poly1305(sub).encrypt(bytes(4) + nonce[16:], text, ad)


def handshake(v):
    si, sr = clamp(private(b"initiator")), clamp(private(b"responder"))
    ei, er = clamp(private(b"initiator's ephemeral")), clamp(private(b"responder's ephemeral"))
    psk = bytes(private(b"preshared"))
    v.update(initiator_private=si, initiator_public=public(si), responder_private=sr, responder_public=public(sr),
             initiator_ephemeral=ei, responder_ephemeral=er, preshared=psk, stamp=STAMP)

    chain = digest(b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")
    h = digest(digest(chain, b"WireGuard v1 zx2c4 Jason@zx2c4.com"), public(sr))
    m = struct.pack("<II", 1, INITIATOR) + public(ei)
    chain, = kdf(1, chain, public(ei))
    h = digest(h, public(ei))
    chain, key = kdf(2, chain, shared(ei, public(sr)))
    static = seal(key, 0, public(si), h)
    h = digest(h, static)
    chain, key = kdf(2, chain, shared(si, public(sr)))
    stamp = seal(key, 0, STAMP, h)
    h = digest(h, stamp)
    m += static + stamp
    mac1 = mac(digest(b"mac1----", public(sr)), m)
    v["initiation"] = m + mac1 + bytes(16)
    cookie = bytes(range(16))
    nonce = bytes(range(100, 124))
    v["cookie"] = cookie
    v["cookie_reply"] = struct.pack("<II", 3, INITIATOR) + nonce + xseal(
        digest(b"cookie--", public(sr)), nonce, cookie, mac1)
    v["initiation_with_cookie"] = m + mac1 + mac(cookie, m + mac1)

    m = struct.pack("<III", 2, RESPONDER, INITIATOR) + public(er)
    chain, = kdf(1, chain, public(er))
    h = digest(h, public(er))
    chain, = kdf(1, chain, shared(er, public(ei)))
    chain, = kdf(1, chain, shared(er, public(si)))
    chain, t, key = kdf(3, chain, psk)
    h = digest(h, t)
    m += seal(key, 0, b"", h)
    v["response"] = m + mac(digest(b"mac1----", public(si)), m) + bytes(16)
    send, receive = kdf(2, chain, b"")
    v["initiator_send"], v["initiator_receive"] = send, receive
    v["packet"] = PACKET
    v["data"] = struct.pack("<IIQ", 4, RESPONDER, 7) + seal(send, 7, PACKET, b"")


def main():
    v = {}
    handshake(v)
    # draft-irtf-cfrg-xchacha-03, section 2.2.1: the one published value that libcrypto has no name for.
    published = hchacha20(bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927"))
    assert published.hex() == "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"
    print("/* SPDX-License-Identifier: GPL-2.0-or-later */")
    print("/* Made by make_vectors.py. */\n/* clang-format off */")
    print("#ifndef VNET_TUNNEL_TEST_VECTORS_H\n#define VNET_TUNNEL_TEST_VECTORS_H\n")
    print("#include <stdint.h>\n")
    print(f"#define VECTOR_INITIATOR {INITIATOR:#x}u\n#define VECTOR_RESPONDER {RESPONDER:#x}u\n")
    for name, data in v.items():
        print(f"static const uint8_t vector_{name}[{len(data)}] = {{")
        for i in range(0, len(data), 12):
            print("\t" + " ".join(f"0x{b:02x}," for b in data[i:i + 12]))
        print("};")
    print("\n#endif")


if __name__ == "__main__":
    main()
