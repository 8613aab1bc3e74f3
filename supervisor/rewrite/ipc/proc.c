// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A line begins with key and id; shm and msg have the numbers of two processes.  All between is
 * passed on as the kernel has written it (the formats are in ipc/shm.c, sem.c and msg.c), so that
 * widths are right and a column of a newer kernel is not lost.  The kernel lists by slot, and so
 * does this.
 */
#include "supervisor/rewrite/ipc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/users/users.h"

/* One of the session's own. */
struct line {
	int slot;
	const struct ipc_object *o;
	const char *rest; /* behind key and id */
};

pid_t ipc_proc_user(const struct ipc_names *n, const struct numbers *numbers, pid_t host)
{
	pid_t number = numbers_virtual(numbers, host);

	return number ? number : ipc_names_user(n, host);
}

/* The host's file as a string. */
static int read_all(enum ipc_sort sort, struct buf *ret)
{
	static const char *const names[IPC_SORTS] = {"shm", "sem", "msg"};
	char path[32];
	_cleanup_close_ int fd = -1;
	ssize_t got = 1;

	snprintf(path, sizeof(path), "/proc/sysvipc/%s", names[sort]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (got > 0) {
		uint8_t *p = buf_reserve(ret, 4096);

		got = p ? read(fd, p, 4096) : -1;
		if (got > 0)
			ret->len += (size_t)got;
	}
	buf_put_u8(ret, 0);
	return got < 0 ? -EIO : buf_error(ret);
}

static int by_slot(const void *a, const void *b)
{
	return ((const struct line *)a)->slot - ((const struct line *)b)->slot;
}

/* The session's lines of @text, which is cut into lines; to be freed.  NULL when memory is out. */
static struct line *find_lines(struct ipc_names *n, enum ipc_sort sort, char *text, size_t *ret_n)
{
	struct line *lines = calloc((size_t)ipc_names_count(n, sort) + 1, sizeof(*lines));
	size_t found = 0;
	char *save = NULL;

	for (char *at = lines ? strtok_r(text, "\n", &save) : NULL; at;
		at = strtok_r(NULL, "\n", &save)) {
		struct ipc_object *o;
		int id, end = 0;

		if (sscanf(at, "%*d %d%n", &id, &end) != 1 || !end)
			continue;
		o = ipc_names_find_host(n, sort, id);
		if (o && found < (size_t)ipc_names_count(n, sort))
			lines[found++] = (struct line){ipc_names_slot(n, sort, o), o, at + end};
	}
	if (found)
		qsort(lines, found, sizeof(*lines), by_slot);
	*ret_n = found;
	return lines;
}

/*
 * Two numbers of processes behind @skip columns; @first, if not 0, is told in place of the first
 * one.
 */
static void put_users(struct buf *ret, const struct ipc_names *n, const struct numbers *numbers,
	const char *rest, const char *skip, pid_t first)
{
	int one = 0, two = 0, begin = 0, end = 0;

	sscanf(rest, skip, &begin, &one, &two, &end);
	if (!end) {
		buf_put_str(ret, rest);
		return;
	}
	buf_put(ret, rest, (size_t)begin);
	buf_printf(ret, " %5u %5u%s", first ? first : ipc_proc_user(n, numbers, one),
		ipc_proc_user(n, numbers, two), rest + end);
}

/* Owner and creator behind @columns of what has been put since @from. */
static void put_owners(struct buf *ret, const struct rewrite_users *us, size_t from, int columns)
{
	char *line = us && buf_cstr(ret) ? strdup(buf_cstr(ret) + from) : NULL, *rest = line;
	uint32_t id[4];
	int end = 0;

	if (!line)
		return;
	for (; columns; columns--) {
		rest += strspn(rest, " ");
		rest += strcspn(rest, " ");
	}
	if (sscanf(rest, "%u %u %u %u%n", &id[0], &id[1], &id[2], &id[3], &end) == 4) {
		rewrite_users_show_plain(us, &id[0], &id[1]);
		rewrite_users_show_plain(us, &id[2], &id[3]);
		ret->len = from + (size_t)(rest - line);
		buf_printf(ret, " %5u %5u %5u %5u%s", id[0], id[1], id[2], id[3], rest + end);
	}
	free(line);
}

static void put_line(struct buf *ret, const struct ipc_names *n, const struct tasks *t,
	enum ipc_sort sort, const struct line *l)
{
	static const int columns[IPC_SORTS] = {[IPC_SHM] = 7, [IPC_SEM] = 4, [IPC_MSG] = 7};
	const struct numbers *numbers = t->numbers;
	size_t from = ret->len;

	buf_printf(ret, "%10d %10d", l->o->removed ? IPC_PRIVATE : l->o->key,
		ipc_names_id(n, sort, l->o));
	if (sort == IPC_SHM)
		put_users(ret, n, numbers, l->rest, "%*o %*u%n %d %d%n", l->o->creator);
	else if (sort == IPC_MSG)
		put_users(ret, n, numbers, l->rest, "%*o %*u %*u%n %d %d%n", 0);
	else
		buf_put_str(ret, l->rest);
	put_owners(ret, t->users, from, columns[sort]);
	buf_put_u8(ret, '\n');
}

int ipc_proc_show(
	struct ipc_names *n, const struct tasks *tasks, enum ipc_sort sort, struct buf *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_free_ struct line *lines = NULL;
	size_t found = 0;
	int r = read_all(sort, &text);

	if (r < 0)
		return r;
	lines = find_lines(n, sort, (char *)text.data, &found);
	if (!lines)
		return -ENOMEM;
	buf_put_str(ret, (char *)text.data); /* the heading, which was cut off */
	buf_put_u8(ret, '\n');
	for (size_t i = 0; i < found; i++)
		put_line(ret, n, tasks, sort, &lines[i]);
	return buf_error(ret);
}

void ipc_proc_totals(struct ipc_names *n, enum ipc_sort sort, struct ipc_totals *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_free_ struct line *lines = NULL;
	size_t found = 0;

	*ret = (struct ipc_totals){0};
	if (read_all(sort, &text) < 0)
		return;
	lines = find_lines(n, sort, (char *)text.data, &found);
	for (size_t i = 0; lines && i < found; i++) {
		uint64_t a = 0, b = 0;

		if (sort == IPC_SHM) {
			sscanf(lines[i].rest,
				"%*o %*u %*d %*d %*u %*u %*u %*u %*u %*u %*u %*u"
				"%" SCNu64 " %" SCNu64,
				&a, &b);
			ret->size += ALIGN_UP(lines[i].o->size, PAGE_SIZE) / PAGE_SIZE;
			ret->resident += a / PAGE_SIZE;
			ret->swapped += b / PAGE_SIZE;
		} else if (sort == IPC_SEM) {
			ret->size += lines[i].o->size;
		} else {
			sscanf(lines[i].rest, "%*o %" SCNu64 " %" SCNu64, &a, &b);
			ret->size += a;
			ret->messages += b;
		}
	}
}
