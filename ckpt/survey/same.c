// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each open file in question is marked with a number of its own, as many at a time as there are
 * numbers; a descriptor that shows a mark before it was given one leads to the file of that mark.
 */
#include "ckpt/survey/same.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

bool ckpt_same_by_kcmp(void)
{
	static int can = -1;

	if (can < 0)
		can = sys_kcmp(getpid(), getpid(), SYS_KCMP_VM, 0, 0) == 0;
	return can;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* One descriptor: what it was like before, and the first of its file. */
struct look {
	int fd;
	int flags;  /* F_GETFL */
	int before; /* the signal or the flag */
	size_t first;
	bool told;
};

static bool is_async(const struct look *l)
{
	return l->flags & O_ASYNC;
}

static int look_at(const struct look *l)
{
	if (is_async(l))
		return fcntl(l->fd, F_GETFL) & O_NONBLOCK;
	return fcntl(l->fd, F_GETSIG);
}

static void mark(const struct look *l, int value)
{
	if (is_async(l))
		fcntl(l->fd, F_SETFL, (l->flags & ~O_NONBLOCK) | value);
	else
		fcntl(l->fd, F_SETSIG, value);
}

/* The @k-th mark for files like @l, none of which it shows by itself; -1: there are no more. */
static int mark_number(const struct look *l, int k)
{
	if (is_async(l))
		return k == 0 ? l->before ^ O_NONBLOCK : -1;
	k += 1;
	k += k >= l->before && l->before > 0;
	return k < _NSIG ? k : -1;
}

/* What marks one can mark the other. */
static bool is_like(const struct look *a, const struct look *b)
{
	return a->flags == b->flags && a->before == b->before;
}

/*
 * Marks as many as can be of those like @v[from], none of which is told yet, and tells whose file
 * each of the others is, if it is marked.
 */
static void one_round(struct look *v, size_t n, size_t from)
{
	size_t marked[_NSIG];
	int n_marked = 0;

	for (size_t i = from; i < n; i++) {
		int now, value;

		if (v[i].told || !is_like(&v[i], &v[from]))
			continue;
		now = look_at(&v[i]);
		for (int k = 0; k < n_marked && now != v[i].before; k++)
			if (mark_number(&v[i], k) == now) {
				v[i].first = marked[k];
				v[i].told = true;
			}
		value = mark_number(&v[i], n_marked);
		if (v[i].told || value < 0)
			continue;
		v[i].first = i;
		v[i].told = true;
		marked[n_marked++] = i;
		mark(&v[i], value);
	}
	for (int k = 0; k < n_marked; k++)
		mark(&v[marked[k]], v[marked[k]].before);
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool same_name(int a, int b)
{
	_cleanup_free_ char *x = NULL, *y = NULL;
	struct stat s, t;
	char path[32];

	if (fstat(a, &s) < 0 || fstat(b, &t) < 0 || s.st_dev != t.st_dev || s.st_ino != t.st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", a);
	x = io_readlink(AT_FDCWD, path);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b);
	y = io_readlink(AT_FDCWD, path);
	return x && y && strcmp(x, y) == 0;
}

static void compare_names(struct look *v, size_t n, size_t i)
{
	v[i].first = i;
	v[i].told = true;
	for (size_t k = i + 1; k < n; k++)
		if (!v[k].told && is_like(&v[i], &v[k]) && same_name(v[i].fd, v[k].fd)) {
			v[k].first = i;
			v[k].told = true;
		}
}

/* ---- interface ------------------------------------------------------------------------------ */

int ckpt_same_files(const int *fds, size_t n, size_t *ret)
{
	_cleanup_free_ struct look *v = calloc(n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct look){.fd = fds[i], .flags = fcntl(fds[i], F_GETFL)};
		v[i].before = look_at(&v[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (v[i].flags >= 0 && (v[i].flags & O_PATH) && !v[i].told)
			compare_names(v, n, i);
		while (!v[i].told)
			one_round(v, n, i);
		ret[i] = v[i].first;
	}
	return 0;
}

bool ckpt_same_file(int a, int b)
{
	const int fds[] = {a, b};
	size_t first[2] = {0, 1};
	pid_t self = getpid();

	if (ckpt_same_by_kcmp())
		return sys_kcmp(self, self, SYS_KCMP_FILE, (unsigned long)a, (unsigned long)b) == 0;
	return ckpt_same_files(fds, 2, first) == 0 && first[1] == 0;
}
