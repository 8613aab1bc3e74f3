// SPDX-License-Identifier: GPL-2.0-or-later
/* See xattrs.h. */
#include "ckpt/xattrs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "proto/files.pb-c.h"

#define PREFIX	   "user."
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define MAX_XATTRS 1024

static int read_one(int fd, const char *name, Pb__TreeXattr *x)
{
	ssize_t n;

	x->name = strdup(name);
	x->value.data = malloc(XATTR_SIZE_MAX);
	if (!x->name || !x->value.data)
		return -ENOMEM;
	n = fgetxattr(fd, name, x->value.data, XATTR_SIZE_MAX);
	x->value.len = n < 0 ? 0 : (size_t)n;
	x->value.data = realloc(x->value.data, x->value.len + 1) ?: x->value.data;
	return n < 0 && errno != ENODATA ? -errno : 0;
}

void ckpt_xattrs_free(Pb__TreeXattr **all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(all[i]->name);
		free(all[i]->value.data);
		free(all[i]);
	}
	free(all);
}

int ckpt_xattrs_read(int fd, Pb__TreeXattr ***ret, size_t *ret_n)
{
	char names[XATTR_LIST_MAX];
	ssize_t len = flistxattr(fd, names, sizeof(names));
	size_t n = 0, done = 0;
	Pb__TreeXattr **all;
	int r = 0;

	*ret = NULL;
	*ret_n = 0;
	if (len <= 0)
		return len < 0 && errno != ENOTSUP ? -errno : 0;
	for (const char *p = names; p < names + len; p += strlen(p) + 1)
		n += !strncmp(p, PREFIX, PREFIX_LEN);
	if (n == 0)
		return 0;
	all = calloc(n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (const char *p = names; r == 0 && p < names + len; p += strlen(p) + 1) {
		if (strncmp(p, PREFIX, PREFIX_LEN) != 0)
			continue;
		all[done] = malloc(sizeof(**all));
		if (!all[done]) {
			r = -ENOMEM;
			break;
		}
		pb__tree_xattr__init(all[done]);
		r = read_one(fd, p, all[done++]);
	}
	if (r < 0) {
		ckpt_xattrs_free(all, done);
		return r;
	}
	*ret = all;
	*ret_n = n;
	return 0;
}

int ckpt_xattrs_set(int fd, Pb__TreeXattr *const *all, size_t n, struct err *e)
{
	if (n > MAX_XATTRS)
		return err_set(e, ERR_IMAGE, -EBADMSG, "too many attributes");
	for (size_t i = 0; i < n; i++) {
		if (strncmp(all[i]->name, PREFIX, PREFIX_LEN) != 0 ||
			all[i]->value.len > XATTR_SIZE_MAX)
			return err_set(e, ERR_IMAGE, -EBADMSG, "an attribute that is not a user's");
		if (fsetxattr(fd, all[i]->name, all[i]->value.data, all[i]->value.len, 0) < 0) {
			/* how many and how long they may be depends on the file system */
			err_errno(e, -errno, "attribute %s", all[i]->name);
			return err_reclass(e, ERR_HOST);
		}
	}
	return 0;
}
