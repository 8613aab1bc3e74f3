// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in periodic.h. */
#include "supervisor/periodic.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/disk/images.h"
#include "supervisor/disk/tenure.h"
#include "supervisor/session.h"

#define SOON_MS 200 /* when something else is going on */

struct periodic {
	struct event *timer;
	unsigned last;	/* the number of the newest of all */
	struct buf own; /* char *: files of those that are kept, oldest first */
	bool under_way;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- what is not needed any more ------------------------------------------------------------- */

static void forget_oldest(struct periodic *p)
{
	free(*(char **)p->own.data);
	buf_consume(&p->own, sizeof(char *));
}

/*
 * Those whose time is over go out of sight first, so that what they refer to is not needed because
 * of them.  Where somebody else is about names they stay until the next one is there.
 */
static void remove_old(struct session *s, struct periodic *p)
{
	const Pb__Config *c = s->record->config;
	_cleanup_close_ int lock = tenure_try_lock(&s->paths);

	if (lock < 0)
		return;
	while (c->keep && p->own.len / sizeof(char *) > c->keep) {
		images_hide(&s->paths, *(char **)p->own.data);
		forget_oldest(p);
	}
	images_sweep(&s->paths);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void again(struct session *s, uint64_t ms)
{
	const struct timeval then = {
		.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	if (s->state != SESSION_CLOSING)
		event_add(s->periodic->timer, &then);
}

static void on_time(evutil_socket_t fd, short what, void *ctx)
{
	struct session *s = ctx;
	struct periodic *p = s->periodic;
	_cleanup_free_ char *path = NULL;
	struct err e = {0};

	if (s->state != SESSION_RUNNING || s->op.what != 0) {
		again(s, SOON_MS);
		return;
	}
	p->last = MAX(p->last, images_newest(&s->paths, s->record->config->name)) + 1;
	path = paths_image(&s->paths, s->record->config->name, p->last);
	if (path) {
		p->under_way = true;
		if (s->control->snapshot(s, path, &e) < 0) {
			p->under_way = false;
			log_warn("snapshot: %s", e.msg);
		}
	}
	again(s, s->record->config->every * 1000ULL);
}

void periodic_begin(struct session *s)
{
	if (!s->record->config->every || s->periodic)
		return;
	s->periodic = calloc(1, sizeof(*s->periodic));
	if (s->periodic)
		s->periodic->timer = event_new(s->loop, -1, 0, on_time, s);
	if (!s->periodic || !s->periodic->timer) {
		log_warn("no memory for snapshots");
		periodic_free(s);
		return;
	}
	again(s, s->record->config->every * 1000ULL);
}

void periodic_done(struct session *s)
{
	struct periodic *p = s->periodic;
	char *file;

	if (!p || !p->under_way)
		return;
	p->under_way = false;
	if (err_is(&s->op.failure))
		log_warn("snapshot %u: %s", p->last, s->op.failure.msg);
	if (!s->op.placed || err_is(&s->op.failure))
		return;
	if (s->op.report)
		log_info("snapshot %u: stopped for %.1f ms, %llu bytes", p->last,
			(double)s->op.report->frozen_ns / 1e6,
			(unsigned long long)s->op.report->bytes);
	file = strdup(base_name(s->op.path));
	if (file)
		buf_put(&p->own, &file, sizeof(file));
	remove_old(s, p);
}

const char *periodic_older(const struct session *s)
{
	const struct periodic *p = s->periodic;
	size_t n = p && p->under_way ? p->own.len / sizeof(char *) : 0;

	return n ? ((char *const *)p->own.data)[n - 1] : NULL;
}

void periodic_free(struct session *s)
{
	struct periodic *p = s->periodic;

	if (!p)
		return;
	if (p->timer)
		event_free(p->timer);
	while (p->own.len)
		forget_oldest(p);
	buf_fini(&p->own);
	free(take_ptr(s->periodic));
}
