// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * find_ahead - the search for names of watched inodes, while the session runs.
 *
 * Which there are is told by the session's own /proc.  Whoever comes or goes meanwhile is no loss:
 * what is not found now is searched when all stand still, and what was found is looked at again.
 *
 * To walk over a directory is to open and to read it.  A program that watches for just that would
 * find events in its queue, and an image has none of them: then nothing is done ahead.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "ckpt/kinds/find.h"
#include "ckpt/survey/survey.h"

#define MAX_FDINFO (1 << 20)
#define WOULD_SHOW (IN_ACCESS | IN_OPEN | IN_CLOSE_NOWRITE)

static int compare_inodes(const void *a, const void *b)
{
	const struct find_inode *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* False if looking would be noticed. */
static bool take_lines(const char *text, struct buf *inodes)
{
	struct find_watch watch;
	int r;

	while ((r = ckpt_find_watch(&text, &watch)) > 0) {
		if (watch.mask & WOULD_SHOW)
			return false;
		buf_put(inodes, &watch.inode, sizeof(watch.inode));
	}
	return r == 0;
}

/* An open file without a name any more, by its link in /proc: none is to be looked for. */
static void take_ghost(int proc, const char *path, const char *link, struct buf *ghosts)
{
	static const char deleted[] = " (deleted)";
	const size_t len = strlen(link), tail = sizeof(deleted) - 1;
	struct find_inode ghost = {0};
	struct statx st;

	/* Whoever serves its file system may be slow, and need not be asked. */
	if (len < tail || strcmp(link + len - tail, deleted) ||
		statx(proc, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_NLINK, &st) < 0 ||
		st.stx_nlink > 0)
		return;
	ghost.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	ghost.ino = st.stx_ino;
	buf_put(ghosts, &ghost, sizeof(ghost));
}

static bool take_process(int proc, pid_t pid, struct buf *inodes, struct buf *ghosts)
{
	_cleanup_free_ int *fds = NULL;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "%d/fd", pid);
	if (proc_list_numbers(proc, path, &fds, &n, NULL) < 0)
		return true;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *link = NULL;
		_cleanup_buf_ struct buf text = BUF_INIT;

		snprintf(path, sizeof(path), "%d/fd/%d", pid, fds[i]);
		link = io_readlink(proc, path);
		if (link)
			take_ghost(proc, path, link, ghosts);
		if (!link || strncmp(link, "anon_inode:", 11) || !strstr(link, "inotify"))
			continue;
		snprintf(path, sizeof(path), "%d/fdinfo/%d", pid, fds[i]);
		if (io_read_file(proc, path, MAX_FDINFO, &text) == 0 && buf_cstr(&text) &&
			!take_lines(buf_cstr(&text), inodes))
			return false;
	}
	return true;
}

/* Each once: many programs watch the same. */
static size_t make_unique(struct find_inode *v, size_t n)
{
	size_t k = 0;

	sort_array(v, n, sizeof(*v), compare_inodes);
	for (size_t i = 0; i < n; i++)
		if (k == 0 || compare_inodes(&v[k - 1], &v[i]))
			v[k++] = v[i];
	return k;
}

static void leave_ghosts(struct find_inode *v, size_t n, struct buf *ghosts)
{
	struct find_inode *g = (struct find_inode *)ghosts->data;
	const size_t n_ghosts = g ? make_unique(g, ghosts->len / sizeof(*g)) : 0;

	for (size_t i = 0; i < n && n_ghosts; i++)
		v[i].found = bsearch(&v[i], g, n_ghosts, sizeof(*g), compare_inodes) != NULL;
}

bool ckpt_find_ahead(const struct ckpt_dump *d, struct buf *ret)
{
	_cleanup_buf_ struct buf ghosts = BUF_INIT;
	_cleanup_free_ int *pids = NULL;
	int proc = d->world->proc_fd;
	bool quiet = proc >= 0;
	size_t n = 0;

	if (quiet && proc_list_numbers(proc, ".", &pids, &n, NULL) < 0)
		return false;
	for (size_t i = 0; quiet && i < n; i++)
		quiet = pids[i] == 1 || take_process(proc, pids[i], ret, &ghosts);
	if (!quiet || buf_error(ret) < 0) {
		buf_clear(ret);
		return false;
	}
	n = make_unique((struct find_inode *)ret->data, ret->len / sizeof(struct find_inode));
	ret->len = n * sizeof(struct find_inode);
	leave_ghosts((struct find_inode *)ret->data, n, &ghosts);
	ckpt_find_inodes(d, (struct find_inode *)ret->data, n);
	return true;
}

void ckpt_find_forget(struct buf *found)
{
	for (size_t i = 0; i < found->len / sizeof(struct find_inode); i++)
		free(((struct find_inode *)found->data)[i].path);
	buf_fini(found);
}
