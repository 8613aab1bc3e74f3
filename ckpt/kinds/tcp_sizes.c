// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in tcp_sizes.h. */
#include "ckpt/kinds/tcp_sizes.h"

#include <stdio.h>
#include <string.h>

static const char *const names[2] = {"sys/net/ipv4/tcp_rmem", "sys/net/ipv4/tcp_wmem"};

static bool read_one(struct ckpt_build *b, const char *name, unsigned long v[3])
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	return io_read_file(b->host_proc, name, 256, &text) >= 0 && buf_cstr(&text) &&
	       sscanf(buf_cstr(&text), "%lu %lu %lu", &v[0], &v[1], &v[2]) == 3;
}

void tcp_sizes_begin(struct tcp_sizes *s, struct ckpt_build *b)
{
	memset(s, 0, sizeof(*s));
	s->build = b;
	if (b->world->ns_net < 0)
		return;
	s->known = read_one(b, names[0], s->before[0]) && read_one(b, names[1], s->before[1]);
	for (int i = 0; i < 2; i++)
		s->now[i] = s->before[i][1];
}

static void choose(struct tcp_sizes *s, int i, uint64_t size)
{
	const unsigned long *v = s->before[i];
	char text[96];

	if (!s->known || s->now[i] == size)
		return;
	snprintf(text, sizeof(text), "%lu %lu %lu", v[0], (unsigned long)size,
		MAX(v[2], (unsigned long)size));
	if (io_write_str(s->build->host_proc, names[i], text) < 0)
		log_info("cannot set /proc/%s", names[i]);
	else
		s->now[i] = (unsigned long)size;
}

static uint64_t within(uint64_t size)
{
	size = MAX(size, (uint64_t)TCP_SIZES_LEAST);
	return MIN(size, (uint64_t)TCP_SIZES_MOST);
}

void tcp_sizes_choose(struct tcp_sizes *s, uint64_t receive, uint64_t send)
{
	choose(s, 0, within(receive));
	choose(s, 1, within(send));
}

void tcp_sizes_raise(struct tcp_sizes *s, uint64_t receive, uint64_t send)
{
	tcp_sizes_choose(
		s, MAX(receive, (uint64_t)s->before[0][1]), MAX(send, (uint64_t)s->before[1][1]));
}

void tcp_sizes_end(struct tcp_sizes *s)
{
	for (int i = 0; i < 2; i++)
		choose(s, i, s->before[i][1]);
}
