// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in images.h. */
#include "supervisor/disk/images.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/disk/ledger.h"
#include "supervisor/disk/paths.h"

static DIR *open_images(const struct paths *p)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/images", p->state) < 0)
		path = NULL;
	return path ? opendir(path) : NULL;
}

/* What follows "NAME" in "NAME.img@N", of any name if @name is NULL: N and what is behind; 0 for others. */
static unsigned number_of(const char *name, const char *file, const char **ret_rest)
{
	const char *at = strstr(file, ".img@"); /* a name has no @ */
	unsigned long n;
	char *rest;

	if (!at || (name && (strlen(name) != (size_t)(at - file) || strncmp(file, name, at - file))))
		return 0;
	n = strtoul(at + 5, &rest, 10);
	*ret_rest = rest;
	return n < UINT_MAX && (!*rest || !strcmp(rest, CKPT_BASE_SUFFIX)) ? (unsigned)n : 0;
}

static unsigned newest(const struct paths *p, const char *name, bool in_sight)
{
	_cleanup_closedir_ DIR *dir = open_images(p);
	unsigned most = 0, n;
	struct dirent *f;
	const char *rest;

	while (dir && (f = readdir(dir))) {
		n = number_of(name, f->d_name, &rest);
		if (n && !(in_sight && *rest))
			most = MAX(most, n);
	}
	return most;
}

unsigned images_newest(const struct paths *p, const char *name)
{
	return newest(p, name, false);
}

unsigned images_newest_in_sight(const struct paths *p, const char *name)
{
	return newest(p, name, true);
}

/* ---- what is needed -------------------------------------------------------------------------- */

struct needed {
	struct buf names; /* each with a NUL behind it */
	bool unknown;	  /* an image can't be read: nothing is removed for good */
};

static void note_needed(void *ctx, const char *name)
{
	struct needed *v = ctx;

	buf_put(&v->names, name, strlen(name) + 1);
}

static void look_what_is_needed(DIR *dir, struct needed *ret)
{
	struct dirent *f;
	const char *rest;

	rewinddir(dir);
	while ((f = readdir(dir))) {
		_cleanup_close_ int fd = -1;
		struct err e = {0};

		if (!number_of(NULL, f->d_name, &rest) || *rest)
			continue;
		fd = openat(dirfd(dir), f->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 ? errno != ENOENT : ckpt_base_names(fd, note_needed, ret, &e) < 0)
			ret->unknown = true;
	}
	if (buf_error(&ret->names))
		ret->unknown = true;
}

static bool is_needed(const struct needed *v, const char *file)
{
	const char *end = (const char *)v->names.data + v->names.len;
	size_t len = strlen(file), suffix = strlen(CKPT_BASE_SUFFIX);

	if (len > suffix && strcmp(file + len - suffix, CKPT_BASE_SUFFIX) == 0)
		len -= suffix;
	for (const char *name = (const char *)v->names.data; !v->unknown && name < end;
		name += strlen(name) + 1)
		if (strlen(name) == len && strncmp(name, file, len) == 0)
			return true;
	return v->unknown;
}

/* ---- what is not needed any more ------------------------------------------------------------- */

/* It is still the very same image, which need not be hashed because of its new name. */
static void hide(const struct paths *p, int dir, const char *file)
{
	_cleanup_free_ char *to = NULL;
	_cleanup_close_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool known = fd >= 0 && ledger_knows_file(p->state, fd);

	if (asprintf(&to, "%s%s", file, CKPT_BASE_SUFFIX) < 0)
		to = NULL;
	if (!to || renameat(dir, file, dir, to) < 0)
		log_warn("cannot keep %s for others", file);
	else if (known)
		ledger_know_file(p->state, fd);
}

void images_hide(const struct paths *p, const char *file)
{
	_cleanup_closedir_ DIR *dir = open_images(p);

	if (dir)
		hide(p, dirfd(dir), file);
}

static bool any_hidden(DIR *dir)
{
	struct dirent *f;
	const char *rest;

	rewinddir(dir);
	while ((f = readdir(dir)))
		if (number_of(NULL, f->d_name, &rest) && *rest)
			return true;
	return false;
}

static void sweep(DIR *dir)
{
	struct needed needed = {.names = BUF_INIT};
	struct dirent *f;
	const char *rest;

	/* All images have to be opened for it, and there may be thousands. */
	if (!any_hidden(dir))
		return;
	look_what_is_needed(dir, &needed);
	rewinddir(dir);
	while ((f = readdir(dir)))
		if (number_of(NULL, f->d_name, &rest) && *rest && !is_needed(&needed, f->d_name))
			unlinkat(dirfd(dir), f->d_name, 0);
	buf_fini(&needed.names);
}

void images_sweep(const struct paths *p)
{
	_cleanup_closedir_ DIR *dir = open_images(p);

	if (dir)
		sweep(dir);
}

bool images_forget(const struct paths *p, const char *name)
{
	_cleanup_closedir_ DIR *dir = open_images(p);
	struct dirent *f;
	const char *rest;
	bool any = false;

	while (dir && (f = readdir(dir)))
		if (number_of(name, f->d_name, &rest) && !*rest) {
			hide(p, dirfd(dir), f->d_name);
			any = true;
		}
	if (dir)
		sweep(dir);
	return any;
}
