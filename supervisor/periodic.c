// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in periodic.h. */
#include "supervisor/periodic.h"

#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/ledger.h"
#include "supervisor/session.h"

#define SOON_MS 200 /* when something else is going on */

struct periodic {
	struct event *timer;
	unsigned last;	/* the number of the newest of all */
	struct buf own; /* unsigned: those that are kept, oldest first */
	char *older;	/* the file of the newest of them, or NULL */
	bool under_way;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static DIR *open_images(const struct session *s)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/images", s->paths.state) < 0)
		path = NULL;
	return path ? opendir(path) : NULL;
}

/* "NAME.img@N": N, and what is behind it; 0 for others. */
static unsigned number_of(const struct session *s, const char *file, const char **ret_rest)
{
	const char *name = s->record->config->name;
	size_t len = strlen(name);
	unsigned long n;
	char *rest;

	if (strncmp(file, name, len) != 0 || strncmp(file + len, ".img@", 5) != 0)
		return 0;
	n = strtoul(file + len + 5, &rest, 10);
	*ret_rest = rest;
	return n < UINT_MAX ? (unsigned)n : 0;
}

/* ---- what is not needed any more ------------------------------------------------------------- */

struct needed {
	char *names[256];
	size_t n;
	bool unknown; /* an image can't be read: nothing is removed for good */
};

static void note_needed(void *ctx, const char *name)
{
	struct needed *v = ctx;

	if (v->n < ARRAY_SIZE(v->names) && (v->names[v->n] = strdup(name)))
		v->n++;
	else
		v->unknown = true;
}

static void look_what_is_needed(const struct session *s, DIR *dir, struct needed *ret)
{
	struct dirent *f;
	const char *rest;

	rewinddir(dir);
	while ((f = readdir(dir))) {
		_cleanup_close_ int fd = -1;
		struct err e = {0};

		if (!number_of(s, f->d_name, &rest) || *rest)
			continue;
		fd = openat(dirfd(dir), f->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || ckpt_base_names(fd, note_needed, ret, &e) < 0)
			ret->unknown = true;
	}
}

static bool is_needed(const struct needed *v, const char *file)
{
	size_t len = strlen(file), suffix = strlen(CKPT_BASE_SUFFIX);

	if (len > suffix && strcmp(file + len - suffix, CKPT_BASE_SUFFIX) == 0)
		len -= suffix;
	for (size_t i = 0; i < v->n; i++)
		if (strlen(v->names[i]) == len && strncmp(v->names[i], file, len) == 0)
			return true;
	return v->unknown;
}

/* It is still the very same image, which need not be hashed because of its new name. */
static void keep_as_base(const struct session *s, int dir, const char *file)
{
	_cleanup_free_ char *to = NULL;
	_cleanup_close_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool known = fd >= 0 && ledger_knows_file(s->paths.state, fd);

	if (asprintf(&to, "%s%s", file, CKPT_BASE_SUFFIX) < 0)
		to = NULL;
	if (!to || renameat(dir, file, dir, to) < 0)
		log_warn("cannot keep %s for others", file);
	else if (known)
		ledger_know_file(s->paths.state, fd);
}

/* Those whose time is over go out of sight first, so that what they refer to is not
 * needed because of them. */
static void remove_old(struct session *s, struct periodic *p)
{
	unsigned keep = s->record->config->keep;
	struct needed needed = {0};
	DIR *dir = open_images(s);
	struct dirent *f;
	const char *rest;

	if (!dir)
		return;
	while (keep && p->own.len / sizeof(unsigned) > keep) {
		_cleanup_free_ char *path =
			paths_image(&s->paths, s->record->config->name, *(unsigned *)p->own.data);

		if (path)
			keep_as_base(s, dirfd(dir), base_name(path));
		buf_consume(&p->own, sizeof(unsigned));
	}
	look_what_is_needed(s, dir, &needed);
	rewinddir(dir);
	while ((f = readdir(dir)))
		if (number_of(s, f->d_name, &rest) && strcmp(rest, CKPT_BASE_SUFFIX) == 0 &&
			!is_needed(&needed, f->d_name))
			unlinkat(dirfd(dir), f->d_name, 0);
	while (needed.n)
		free(needed.names[--needed.n]);
	closedir(dir);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void again(struct session *s, uint64_t ms)
{
	const struct timeval then = {
		.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	if (s->state != SESSION_CLOSING)
		event_add(s->periodic->timer, &then);
}

/* The newest number of this name, whoever made it. */
static unsigned newest(const struct session *s)
{
	unsigned most = 0;
	DIR *dir = open_images(s);
	struct dirent *f;
	const char *rest;

	while (dir && (f = readdir(dir)))
		most = MAX(most, number_of(s, f->d_name, &rest));
	if (dir)
		closedir(dir);
	return most;
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
	p->last = MAX(p->last, newest(s)) + 1;
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

	if (!p || !p->under_way)
		return;
	p->under_way = false;
	if (!s->op.placed || err_is(&s->op.failure))
		return;
	if (s->op.report)
		log_info("snapshot %u: stopped for %.1f ms, %llu bytes", p->last,
			(double)s->op.report->frozen_ns / 1e6,
			(unsigned long long)s->op.report->bytes);
	buf_put(&p->own, &p->last, sizeof(p->last));
	free(p->older);
	p->older = strdup(base_name(s->op.path));
	remove_old(s, p);
}

const char *periodic_older(const struct session *s)
{
	return s->periodic && s->periodic->under_way ? s->periodic->older : NULL;
}

void periodic_free(struct session *s)
{
	struct periodic *p = s->periodic;

	if (!p)
		return;
	if (p->timer)
		event_free(p->timer);
	buf_fini(&p->own);
	free(p->older);
	free(take_ptr(s->periodic));
}
