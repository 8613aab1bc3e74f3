// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes on a stream that carries packets, in pieces: one byte says how many follow.  The first
 * byte of all says whether the stream begins as it should.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"
#include "vnet/tunnel/stream.h"

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	if (vnet_packet_parse(p) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor in = cursor_of(data, size);
	struct vnet_stream_options o = {.owner = {deliver, NULL}};
	struct vnet_carrier *c;
	struct err e = {0};
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0)
		abort();
	o.in = o.out = sv[0];
	if (vnet_stream_open(&c, &o, &e) < 0)
		abort();
	if (cursor_u8(&in) & 1 && io_write_full(sv[1], VNET_STREAM_MAGIC, VNET_STREAM_HEAD) < 0)
		abort();
	while (cursor_left(&in) > 1) {
		size_t n = MIN((size_t)cursor_u8(&in) + 1, cursor_left(&in));

		if (io_write_full(sv[1], cursor_take(&in, n), n) < 0)
			abort();
		if (vnet_carrier_run(c, &e) < 0)
			break;
	}
	vnet_carrier_close(c);
	close(sv[1]);
	return 0;
}
