// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections that lead out of a session: there may be thousands, and everybody waits for them.
 *
 * The first that is to be made makes all, and the first that is to be finished finishes all, each of
 * them by whichever thread comes next (ckpt_build.crew).  What one of them takes, some 40 calls, has
 * nothing to do with any other, but for the size of their buffers: that is the session network's own
 * default while a socket is made (tcp_sizes.h), so those that are alike in it are made at a time.
 */
#include <errno.h>
#include <stdlib.h>

#include "ckpt/kinds/tcp_end.h"
#include "ckpt/kinds/tcp_sizes.h"
#include "proto/sockets.pb-c.h"

struct many {
	struct ckpt_build *b;
	struct tcp_end **ends;
	size_t n;
	struct tcp_peer peer;
};

/* Of all that have been looked at. */
static int collect_live(struct many *ret, struct ckpt_build *b, struct err *e)
{
	*ret = (struct many){.b = b, .ends = calloc(b->n_records + 1, sizeof(*ret->ends))};
	if (!ret->ends)
		return err_errno(e, -ENOMEM, "TCP sockets");
	for (size_t i = 0; i < b->n_records; i++) {
		const struct ckpt_record *r = &b->records[i];

		if (r->kind && r->kind->number == PROTO_KIND_TCP && r->state &&
			tcp_end_is_live(r->state))
			ret->ends[ret->n++] = r->state;
	}
	return 0;
}

static int look_at_one(void *ctx, size_t i, struct err *e)
{
	struct ckpt_build *b = ctx;
	struct ckpt_record *r = &b->records[i];

	if (!r->kind || r->kind->number != PROTO_KIND_TCP)
		return 0;
	return tcp_end_of(b, r, e) ? 0 : -EBADMSG;
}

static int make_one(void *ctx, size_t i, struct err *e)
{
	const struct many *all = ctx;
	struct tcp_end *u = all->ends[i];

	u->fd = tcp_live_make(all->b, u->m, e);
	return MIN(u->fd, 0);
}

int tcp_many_make(struct ckpt_build *b, struct tcp_sizes *sizes, struct err *e)
{
	struct many all = {0};
	int r = par_crew_each(b->crew, b->n_records, look_at_one, b, e);

	if (r >= 0)
		r = collect_live(&all, b, e);
	/* All that are to have one size, one after the other. */
	for (size_t i = 0, n; r >= 0 && i < all.n; i += n) {
		struct many some = {.b = b, .ends = all.ends + i};

		tcp_live_prepare(b, all.ends[i]->m, sizes);
		for (n = 1; i + n < all.n; n++)
			if (!tcp_live_alike(all.ends[i]->m, all.ends[i + n]->m, sizes))
				break;
		r = par_crew_each(b->crew, n, make_one, &some, e);
	}
	free(all.ends);
	return r;
}

static int finish_one(void *ctx, size_t i, struct err *e)
{
	const struct many *all = ctx;
	struct tcp_end *u = all->ends[i];
	int fd = tcp_end_fd(all->b, u);
	int r = tcp_live_finish(&u->live, fd, u->m, &all->peer, e);

	if (r >= 0)
		r = ckpt_sock_options_late_of(
			all->b, fd, u->m->common, tcp_live_fresh(all->b, u->m), e);
	tcp_live_fini(&u->live);
	pb__tcp__free_unpacked(take_ptr(u->m), NULL);
	return r;
}

int tcp_many_finish(struct ckpt_build *b, struct err *e)
{
	struct many all;
	int r = collect_live(&all, b, e);

	tcp_peer_open(&all.peer);
	if (r >= 0)
		r = par_crew_each(b->crew, all.n, finish_one, &all, e);
	tcp_peer_close(&all.peer);
	free(all.ends);
	return r;
}
