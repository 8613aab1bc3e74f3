/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_view - what the tests of the view have in common: trees to look at, and looks. */
#ifndef SUPERVISOR_REWRITE_VIEW_TEST_VIEW_H
#define SUPERVISOR_REWRITE_VIEW_TEST_VIEW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>

#include "base/base.h"
#include "supervisor/rewrite/view/view.h"

static inline void put(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(io_write_file(AT_FDCWD, path, text, strlen(text), 0644), 0);
}

static inline void make_link(const char *dir, const char *target, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(symlink(target, path), 0);
}

static inline void make_dir(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(io_mkdir_p(AT_FDCWD, path, 0755), 0);
}

/* Which texts may lead in, and which do not. */
static inline void check_texts(const struct view *v, const char *const *in, size_t n_in,
	const char *const *out, size_t n_out)
{
	for (size_t i = 0; i < n_in; i++)
		if (!view_leads_in(v, in[i]))
			fail_msg("%s is in", in[i]);
	for (size_t i = 0; i < n_out; i++)
		if (view_leads_in(v, out[i]))
			fail_msg("%s is out", out[i]);
}

struct walk_case {
	const char *path;
	unsigned how;
	int result;
	const char *end;  /* the session's path it comes to */
	const char *host; /* below the files; behind "=" below the directory of all; or the whole */
};

static inline void check_walk(
	const struct view *v, const char *files, const char *all, const struct walk_case *c)
{
	_cleanup_place_ struct view_place p = VIEW_PLACE_INIT;
	char host[PATH_MAX], want[PATH_MAX];
	int r = view_walk(v, NULL, c->path, c->how, &p);

	if (r != c->result)
		fail_msg("%s: %d, not %d (%s)", c->path, r, c->result, p.path);
	if (r < 0)
		return;
	if (strcmp(p.path, c->end) != 0)
		fail_msg("%s comes to %s, not %s", c->path, p.path, c->end);
	assert_int_equal(view_place_host(v, &p, host), 0);
	snprintf(want, sizeof(want), "%s/%s", c->host[0] == '=' ? all : files,
		c->host[0] == '=' ? c->host + 1 : c->host);
	if (strcmp(host, c->host[0] == '/' ? c->host : want) != 0)
		fail_msg("%s is at %s", c->path, host);
}

#endif
