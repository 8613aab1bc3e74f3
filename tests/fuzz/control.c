// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes on a control socket, in any pieces, with descriptors anywhere.
 *
 * The input is a list of pieces: one byte (how many bytes follow, at most 63; bit 6: one descriptor
 * comes along; bit 7: five do, which is more than the receiver takes), then those bytes.  After
 * each piece the receiver takes what it can, and unpacks it as both sorts of messages.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"

#define MAX_FDS 4

static void unpack(const void *body, size_t len)
{
	pb__control__free_unpacked(pb__control__unpack(NULL, len, body), NULL);
	pb__worker__free_unpacked(pb__worker__unpack(NULL, len, body), NULL);
}

/* Everything that has come; false once the connection is dead. */
static bool receive(struct proto_conn *c)
{
	const void *body;
	size_t len, n_fds;
	int fds[MAX_FDS];
	struct err e = {0};
	int r;

	while ((r = proto_conn_recv(c, &body, &len, fds, MAX_FDS, &n_fds, &e)) == 1) {
		unpack(body, len);
		while (n_fds)
			close(fds[--n_fds]);
	}
	return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor in = cursor_of(data, size);
	struct proto_conn *c;
	struct err e = {0};
	int sv[2], fds[MAX_FDS + 1];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0)
		abort();
	if (proto_conn_new(&c, sv[0], &e) < 0)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = sv[1];
	while (cursor_left(&in) > 1) {
		uint8_t piece = cursor_u8(&in);
		size_t n = MIN((size_t)(piece & 63), cursor_left(&in));
		size_t n_fds = piece & 128 ? MAX_FDS + 1 : piece & 64 ? 1 : 0;

		if (n && io_send_fds(sv[1], cursor_take(&in, n), n, fds, n_fds) < 0)
			break;
		if (!receive(c))
			break;
	}
	close(sv[1]);
	receive(c);
	proto_conn_free(c);
	return 0;
}
