// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any datagrams that come to a tunnel.
 *
 * The input is a list of pieces: one byte says what kind, one or two how long it is, and the bytes
 * follow.  A fuzzer can't make MACs and seals, and would never get behind them, so:
 *
 *      0  a datagram as it is
 *      1  a handshake message that gets the right mac1
 *      2  a packet that a peer with keys sends, in its next message
 *      3  the same, with the counter of the one before
 *      4  time passes: as many seconds as the piece is long
 *
 * Super-packets that come out of it are checked: they must be well formed.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"
#include "vnet/tunnel/device.h"
#include "vnet/tunnel/tunnel.h"

#define KEY "QKyd1J2pBQxoZdBTzHFyqEgkP0mQ5xHcJ6jXrj0pUFo="

struct fuzzed {
	struct vnet_tunnel *t;
	struct vnet_cipher *seal;
	uint64_t now, counter;
	uint32_t index;
};

static uint64_t clock_of(void *ctx)
{
	return ((struct fuzzed *)ctx)->now;
}

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	if (from != 0 || vnet_packet_parse(p) < 0)
		abort();
}

/* A tunnel whose peer has made keys with it, without the peer. */
static void begin(struct fuzzed *f)
{
	static const char text[] = "[Interface]\nPrivateKey = " KEY "\n[Peer]\nPublicKey = " KEY
				   "\nAllowedIPs = 10.0.0.0/8, fd00::/8\n";
	static const uint8_t key[VNET_KEY_LEN] = {1};
	const struct vnet_tunnel_clock clock = {clock_of, clock_of, f};
	const struct vnet_tunnel_options o = {.owner = {deliver, f}, .clock = &clock};
	struct vnet_carrier *c;
	struct vnet_config config;
	struct vnet_keypair *k;

	f->now = 1000 * SECONDS;
	if (vnet_config_parse(&config, text, strlen(text), "fuzz", NULL) < 0 ||
		vnet_tunnel_open(&c, &config, &o, NULL) < 0)
		abort();
	vnet_config_fini(&config);
	f->t = (struct vnet_tunnel *)c;
	k = calloc(1, sizeof(*k));
	f->seal = vnet_cipher_new(key, true);
	if (!k || !f->seal ||
		vnet_index_add(&f->t->index, &k->index, VNET_INDEX_KEYS, f->t->peers) < 0)
		abort();
	k->since = f->now;
	k->send = vnet_cipher_new(key, true);
	k->receive = vnet_cipher_new(key, false);
	f->t->peers[0].current = k;
	f->index = k->index.number;
}

static void sealed(struct fuzzed *f, const struct vnet_endpoint *from, const uint8_t *data,
	size_t len, uint64_t counter)
{
	uint8_t datagram[4096 + VNET_DATA_OVERHEAD];
	const struct vnet_data head = {.type = htole32(VNET_DATA),
		.receiver = htole32(f->index),
		.counter = htole64(counter)};

	memcpy(datagram, &head, sizeof(head));
	if (vnet_cipher_seal(f->seal, counter, data, len, datagram + sizeof(head)) < 0)
		abort();
	vnet_data_receive(f->t, from, datagram, len + VNET_DATA_OVERHEAD);
}

static void signed_(
	struct fuzzed *f, const struct vnet_endpoint *from, const uint8_t *data, size_t len)
{
	uint8_t message[256];

	if (len < sizeof(struct vnet_macs) || len > sizeof(message))
		return;
	memcpy(message, data, len);
	if (vnet_crypto_mac(f->t->guard.mac1_key, VNET_HASH_LEN, message,
		    len - sizeof(struct vnet_macs), message + len - sizeof(struct vnet_macs)) < 0)
		abort();
	vnet_handshake_receive(f->t, from, message, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct vnet_endpoint from = {.family = AF_INET, .port = 9, .v4.s_addr = 0x0100007f};
	struct cursor in = cursor_of(data, size);
	struct fuzzed f = {0};

	begin(&f);
	while (cursor_left(&in) > 2) {
		uint8_t kind = cursor_u8(&in);
		size_t len = cursor_u8(&in) | (size_t)(cursor_u8(&in) & 15) << 8;
		const uint8_t *bytes;

		if (kind % 5 == 4) {
			f.now += len * SECONDS;
			f.t->now = f.now;
			vnet_coalesce_flush(f.t->coalesce);
			vnet_timers_run(f.t);
			continue;
		}
		len = MIN(len, cursor_left(&in));
		bytes = cursor_take(&in, len);
		if (kind % 5 == 0 && len && bytes[0] == VNET_DATA)
			vnet_data_receive(f.t, &from, bytes, len);
		else if (kind % 5 == 0)
			vnet_handshake_receive(f.t, &from, bytes, len);
		else if (kind % 5 == 1)
			signed_(&f, &from, bytes, len);
		else
			sealed(&f, &from, bytes, len, kind % 5 == 2 ? f.counter++ : f.counter);
	}
	vnet_coalesce_flush(f.t->coalesce);
	vnet_cipher_free(f.seal);
	vnet_carrier_close(&f.t->carrier);
	return 0;
}
