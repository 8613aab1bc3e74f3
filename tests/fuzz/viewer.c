// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes from a viewer to a display server, behind a HELLO or (bit 7 of the first byte) instead
 * of one.  The first byte's other bits say in how many pieces they come; between two of them the
 * picture changes.  Whatever they were, another viewer still gets the picture, and no key stays
 * down when the first one is gone.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/memory.h"
#include "display/server.h"
#include "tests/fuzz/fuzz.h"

#define MOST 65536 /* bytes that a socket takes at once */

static const uint8_t hello[] = {DISPLAY_HELLO, 0, 0, 0, 5, 0, 0, 0, 0x08, 1, 0x18, 0xff, 1};

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* The other end, or -1 if the server does not want it. */
static int join(struct display_server *server, bool greet)
{
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	must(display_server_add(server, pair[1]) == 0);
	if (greet)
		must(send(pair[0], hello, sizeof(hello), 0) == sizeof(hello));
	return pair[0];
}

static void draw(struct display_memory *m, uint32_t colour)
{
	const struct display_rect r = {(int)(colour % 7), 2, 1, 1};

	if (display_rect_within(&r, m->picture.width, m->picture.height)) {
		display_frame_fill(&m->picture, &r, colour);
		display_memory_damage(m, &r);
	}
}

/* A little of everything that waits; what the viewer was sent is not looked at. */
static void turn(struct event_base *base, int fd)
{
	static uint8_t bytes[MOST];

	for (int i = 0; i < 3; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
	}
}

/* Another viewer, until it has the picture. */
static void look(struct event_base *base, struct display_server *server, struct display_memory *m)
{
	static uint8_t bytes[MOST];
	int fd = join(server, true);
	struct display_decoder *d;

	must(display_decoder_new(NULL, NULL, &d) == 0);
	while (!display_decoder_frame(d)->pixels ||
		!display_frame_same(display_decoder_frame(d), &m->picture)) {
		ssize_t n;

		event_base_loop(base, EVLOOP_NONBLOCK);
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		must(n != 0);
		if (n > 0)
			must(display_decoder_feed(d, bytes, (size_t)n, NULL) == 0);
	}
	display_decoder_free(d);
	close(fd);
}

/* Screens that are larger say nothing new, and take long. */
static void no_resize(struct display_source *s, int width, int height)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct display_source_ops ops;
	struct event_base *base;
	struct display_memory *m = NULL;
	struct display_server *server;
	size_t pieces;
	int fd;

	if (size < 1 || size > MOST)
		return 0;
	base = event_base_new();
	must(base != NULL);
	must(display_memory_new(40, 30, &m) == 0);
	ops = *m->source.ops;
	ops.resize = no_resize;
	m->source.ops = &ops;
	must(display_server_new(base, &m->source, "fuzz", NULL, NULL, &server, NULL) == 0);
	fd = join(server, !(data[0] & 0x80));
	pieces = (data[0] & 7u) + 1;
	data++;
	size--;
	for (size_t i = 0, n; i < pieces; i++, data += n, size -= n) {
		n = i + 1 < pieces ? size / (pieces - i) : size;
		if (n && send(fd, data, n, MSG_NOSIGNAL) < 0)
			break;
		draw(m, (uint32_t)(size * 77 + i + 1) & DISPLAY_RGB);
		turn(base, fd);
	}
	close(fd);
	while (display_server_viewers(server))
		event_base_loop(base, EVLOOP_NONBLOCK);
	must(m->n_down == 0 && m->buttons == 0);
	look(base, server, m);
	display_server_free(server);
	event_base_free(base);
	return 0;
}
